/**
 * A model that answers as the test says. Which answer is next stands in the transcript, not in the model, so that a
 * restarted host goes on at the same place.
 */
import type { Clock, Model, ModelRequest, ModelResult, Models } from '@coxswain/ports';
import type { AssistantMessage, CallPart, Failure, Json, Usage } from '@coxswain/protocol';

/** One answer. */
export interface Answer {
  readonly text?: string;
  /** The deltas that stream the text; one with the whole of it without them. */
  readonly pieces?: readonly string[];
  readonly calls?: readonly CallPart[];
  /** Time until the answer is there. */
  readonly delayMs?: number;
  /** Time from its last delta to its end. */
  readonly endsAfterMs?: number;
  /** It breaks down after what it has said. */
  readonly fail?: Failure;
  /** What it thinks aloud, before anything else. */
  readonly reasoning?: string;
  /** What the provider reports; 10 and 2 tokens without it. */
  readonly usage?: Usage;
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
  /** What compactions are answered, in order; the last one is given again and again. */
  summaries: readonly Answer[] = [say('so far, so good')];
  /** Failures that the first requests for an answer meet, in order; null for none. */
  refusals: readonly (Failure | null)[] = [];
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
        const answer = this.#answerTo(request);
        // Without a delay the answer is there at once: not even the clock gets a word in.
        if (answer.delayMs) await this.#clock.sleep(answer.delayMs, answer.deaf ? undefined : signal);
        if (answer.text !== undefined && answer.text !== '')
          for (const text of answer.pieces ?? [answer.text]) onPart({ type: 'text', text });
        if (answer.endsAfterMs) await this.#clock.sleep(answer.endsAfterMs, signal);
        return result(answer, signal.aborted && !answer.deaf);
      },
    };
  }

  #answerTo(request: ModelRequest): Answer {
    const { compaction } = request;
    if (compaction !== undefined) return nth(this.summaries, compaction - 1);
    const asked = this.requests.filter((other) => other.compaction === undefined).length;
    const fail = this.refusals[asked - 1];
    if (fail) return { fail };
    const given = request.answered?.count ?? request.messages.filter((message) => message.role === 'assistant').length;
    return nth(this.answers, given);
  }
}

function nth(answers: readonly Answer[], index: number): Answer {
  return answers[Math.min(index, answers.length - 1)] ?? {};
}

function result(answer: Answer, stopped: boolean): ModelResult {
  const text: AssistantMessage['content'] = [
    ...(answer.reasoning === undefined ? [] : [{ type: 'reasoning' as const, text: answer.reasoning }]),
    ...(answer.text === undefined || answer.text === '' ? [] : [{ type: 'text' as const, text: answer.text }]),
  ];
  const usage = answer.usage ?? { input_tokens: 10, output_tokens: 2 };
  const head = { finishReason: answer.calls ? 'tool_calls' : 'stop', usage, attempts: 1 };
  if (stopped) return { ...head, status: 'cancelled', message: { role: 'assistant', content: text } };
  if (answer.fail)
    return { ...head, status: 'failed', message: { role: 'assistant', content: text }, error: answer.fail };
  return { ...head, status: 'complete', message: { role: 'assistant', content: [...text, ...(answer.calls ?? [])] } };
}
