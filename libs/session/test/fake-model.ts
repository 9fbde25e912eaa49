/**
 * A model with answers of the test. The transcript determines the next answer, so that a restarted host continues at
 * the same place.
 */
import type { Clock, Model, ModelRequest, ModelResult, Models } from '@coxswain/ports';
import type { AssistantMessage, CallPart, Failure, Json, Usage } from '@coxswain/protocol';

/** One answer. */
export interface Answer {
  readonly text?: string;
  /** The deltas of the text; without them, one with all of it. */
  readonly pieces?: readonly string[];
  readonly calls?: readonly CallPart[];
  /** Time until the answer starts. */
  readonly delayMs?: number;
  /** Time from its last delta to its end. */
  readonly endsAfterMs?: number;
  /** The model fails after this answer. */
  readonly fail?: Failure;
  /** Its reasoning before the text. */
  readonly reasoning?: string;
  /** The reported usage; 10 and 2 tokens by default. */
  readonly usage?: Usage;
  /** It ignores aborts. */
  readonly deaf?: boolean;
}

/** A plain answer. */
export const say = (text: string, more: Answer = {}): Answer => ({ text, ...more });
/** An answer with calls. */
export const ask = (...calls: readonly CallPart[]): Answer => ({ calls });
/** A call. */
export const call = (callId: string, tool: string, args: Json = {}): CallPart => ({
  type: 'call',
  call_id: callId,
  tool,
  args,
});

/** The models of one test: all give the same answers. */
export class FakeModels implements Models {
  /** The answers in order; the last one is repeated. */
  answers: readonly Answer[] = [say('done')];
  /** The answers of compactions in order; the last one is repeated. */
  summaries: readonly Answer[] = [say('so far, so good')];
  /** Failures of the first requests in order; null for none. */
  refusals: readonly (Failure | null)[] = [];
  /** Every request. */
  readonly requests: ModelRequest[] = [];
  /** The missing requirement, checked before a call. */
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
        // Without a delay the answer is immediate: not even the clock runs.
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
