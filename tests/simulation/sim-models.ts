/** The models of a simulation: they say what the plan says, and look at what they are shown. */
import type { Clock, Model, ModelRequest, ModelResult, Models } from '@coxswain/ports';
import { type AssistantMessage, type Message, textOf } from '@coxswain/protocol';
import type { PlannedAnswer, SessionPlan } from './generator.ts';
import type { History } from './history.ts';
import type { Plant } from './sim-bus.ts';

/** See the top of the file. */
export class SimModels implements Models {
  readonly #plans: ReadonlyMap<string, SessionPlan>;
  readonly #clock: Clock;
  readonly #history: History;
  readonly #shown: Plant['shown'];

  constructor(sessions: readonly SessionPlan[], clock: Clock, history: History, shown: Plant['shown']) {
    this.#plans = new Map(sessions.map((plan) => [plan.id, plan]));
    this.#clock = clock;
    this.#history = history;
    this.#shown = shown;
  }

  async check(): Promise<null> {
    return null;
  }

  resolve(): Model {
    return { stream: (request, onPart, signal) => this.#stream(request, onPart, signal) };
  }

  async #stream(
    request: ModelRequest,
    onPart: Parameters<Model['stream']>[1],
    signal: AbortSignal,
  ): Promise<ModelResult> {
    const messages = this.#shown(request.messages);
    const problem = unpaired(messages);
    if (problem) this.#history.push({ what: 'shown', session: request.sessionId, problem });
    const plan = this.#plans.get(request.sessionId) ?? this.#plans.get(request.system);
    if (request.compaction !== undefined) {
      await this.#clock.sleep(SUMMARY_MS, signal);
      return result(
        { ...PLAIN, text: `part ${request.compaction}`, fails: plan?.summariesFail ?? false },
        signal.aborted,
      );
    }
    const effectId = request.idempotencyKey.split('.').at(-1) as string;
    const { sessionId: session, system } = request;
    this.#history.push({ what: 'asked', session, effectId, system, said: saidIn(messages) });
    // Which answer is next stands in the journal, so that a restarted host goes on at the same place.
    const given = request.answered?.count ?? 0;
    const planned = plan?.answers[given] ?? PLAIN;
    if (messages.length > (planned.messagesMax ?? Number.POSITIVE_INFINITY)) return refusal(planned);
    await this.#clock.sleep(planned.delayMs, planned.deaf ? undefined : signal);
    if (planned.text !== '') onPart({ type: 'text', text: planned.text });
    return result(planned, signal.aborted && !planned.deaf, messages.length * (plan?.tokensPerMessage ?? 0));
  }
}

/** Long enough for something to happen meanwhile. */
const SUMMARY_MS = 700;

/** Longer texts are prompts and summaries, of which nobody asks whether they are there. */
const SAID_MAX_CHARS = 200;

function saidIn(messages: readonly Message[]): string[] {
  return messages
    .filter(({ role }) => role === 'user' || role === 'reminder')
    .map(textOf)
    .filter(({ length }) => length <= SAID_MAX_CHARS);
}

const PLAIN: PlannedAnswer = { text: 'that is all', calls: [], delayMs: 0, fails: false, deaf: false };

function refusal({ messagesMax }: PlannedAnswer): ModelResult {
  return {
    status: 'failed',
    message: { role: 'assistant', content: [] },
    finishReason: 'error',
    usage: { input_tokens: 0, output_tokens: 0 },
    error: { code: 'context_overflow', message: `more than ${messagesMax} messages` },
    attempts: 1,
  };
}

function result({ text, calls, fails }: PlannedAnswer, stopped: boolean, input_tokens = 0): ModelResult {
  const content: AssistantMessage['content'] = text === '' ? [] : [{ type: 'text', text }];
  const head = { finishReason: 'stop', usage: { input_tokens, output_tokens: 1 }, attempts: 1 };
  if (stopped) return { ...head, status: 'cancelled', message: { role: 'assistant', content } };
  if (fails) {
    const error = { code: 'model_unavailable', message: 'gone' };
    return { ...head, status: 'failed', message: { role: 'assistant', content }, error };
  }
  return { ...head, status: 'complete', message: { role: 'assistant', content: [...content, ...calls] } };
}

/** What a provider would refuse: a call without its result right behind it, or a result without its call. */
export function unpaired(messages: readonly Message[]): string | null {
  let owed: string[] = [];
  for (const [index, message] of messages.entries()) {
    if (message.role === 'tool') {
      if (owed.shift() !== message.call_id) return `message ${index}: result of ${message.call_id} out of place`;
    } else if (owed.length > 0) return `message ${index}: no result of ${owed[0]}`;
    if (message.role === 'assistant' && !message.partial)
      owed = message.content.flatMap((part) => (part.type === 'call' ? [part.call_id] : []));
  }
  return owed.length > 0 ? `no result of ${owed[0]}` : null;
}
