/**
 * A model that answers as the test says. Which answer is next stands in the transcript, not in the model, so that a
 * restarted host goes on at the same place.
 */
import type { Clock, Model, ModelRequest, ModelResult, Models } from '@coxswain/ports';
import type { AssistantMessage, CallPart, Failure, Json } from '@coxswain/protocol';

/** One answer. */
export interface Answer {
  readonly text?: string;
  readonly calls?: readonly CallPart[];
  /** Time until the answer is there. */
  readonly delayMs?: number;
  /** It breaks down after what it has said. */
  readonly fail?: Failure;
  /** It does not stop when it is told to. */
  readonly deaf?: boolean;
}

/** A plain answer. */
export const say = (text: string, more: Answer = {}): Answer => ({ text, ...more });
/** An answer that asks for calls. */
export const ask = (...calls: readonly CallPart[]): Answer => ({ calls });
/** A call. */
export const call = (callId: string, tool: string, args: Json = {}): CallPart => ({
  type: 'call',
  call_id: callId,
  tool,
  args,
});

/** The models of one test: they all play the same answers. */
export class FakeModels implements Models {
  /** The answers, in order; the last one is given again and again. */
  answers: readonly Answer[] = [say('done')];
  /** Every request, as it came. */
  readonly requests: ModelRequest[] = [];
  /** What is missing, before a model is asked. */
  missing: Failure | null = null;
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async check(): Promise<Failure | null> {
    return this.missing;
  }

  resolve(): Model {
    return {
      stream: async (request, onPart, signal) => {
        this.requests.push(request);
        const given = request.messages.filter((message) => message.role === 'assistant').length;
        const answer = this.answers[Math.min(given, this.answers.length - 1)] ?? {};
        // Without a delay the answer is there at once: not even the clock gets a word in.
        if (answer.delayMs) await this.#clock.sleep(answer.delayMs, answer.deaf ? undefined : signal);
        if (answer.text !== undefined && answer.text !== '') onPart({ type: 'text', text: answer.text });
        return result(answer, signal.aborted && !answer.deaf);
      },
    };
  }
}

function result(answer: Answer, stopped: boolean): ModelResult {
  const text: AssistantMessage['content'] =
    answer.text === undefined || answer.text === '' ? [] : [{ type: 'text', text: answer.text }];
  const usage = { input_tokens: 10, output_tokens: 2 };
  const head = { finishReason: answer.calls ? 'tool_calls' : 'stop', usage, attempts: 1 };
  if (stopped) return { ...head, status: 'cancelled', message: { role: 'assistant', content: text } };
  if (answer.fail)
    return { ...head, status: 'failed', message: { role: 'assistant', content: text }, error: answer.fail };
  return { ...head, status: 'complete', message: { role: 'assistant', content: [...text, ...(answer.calls ?? [])] } };
}
