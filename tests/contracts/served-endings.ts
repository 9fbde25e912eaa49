/** The ends of served work in one form for all kinds, and the session's part in a step. */
import type { HookReply, ModelResult, ServedPersonas, ToolOutcome } from '@coxswain/ports';
import type { SessionRef } from '@coxswain/protocol';
import { modelsOfStep } from '../../libs/session/src/effects/route-model-step.ts';

/** The end of work as its session sees it. */
export interface Ending {
  readonly status: 'answered' | 'lost' | 'unavailable' | 'cancelled';
  /** The answer, or the reason for another end. */
  readonly text: string;
  /** How often a lost call had moved. */
  readonly moves?: number;
}

/** The version of the personas of these tests. */
export const PERSONA_VERSION = 'v1';

/** The end of a call. @throws Error if the tool failed. */
export function endingOfCall({ status, result, moves }: ToolOutcome): Ending {
  const [content] = result.content;
  const text = content?.type === 'text' ? content.text : '';
  if (status === 'ok') return { status: 'answered', text };
  if (status === 'error' || status === 'accepted') throw new Error(`a call ended as ${status}: ${text}`);
  return { status, text, ...(moves === undefined ? {} : { moves }) };
}

/** The end of a question to a hook that denies with its answer. @throws Error if the hook failed. */
export function endingOfQuestion(reply: HookReply): Ending {
  if (reply.status === 'returned') return { status: 'answered', text: (reply.raw as { deny: string }).deny };
  if (reply.code !== 'hook_unavailable') throw new Error(`a question ended as ${reply.code}: ${reply.message}`);
  return { status: 'unavailable', text: reply.message };
}

/**
 * Runs a step of a persona with the session's part in it: a lost step is repeated, and a step waits while no instance serves
 * the persona.
 * @throws Error if the model failed.
 */
export async function runServedStep(
  personas: ServedPersonas,
  persona: string,
  { ref, effectId, system }: { readonly ref: SessionRef; readonly effectId: string; readonly system: string },
  signal: AbortSignal,
): Promise<Ending> {
  const models = modelsOfStep({ check: runsHere, resolve: runsHere }, personas, CLOCK, {
    ref,
    effectId,
    epoch: 1,
    firstRequestEpoch: 1,
    persona,
    version: PERSONA_VERSION,
    servedOnly: true,
    waitMs: Number.POSITIVE_INFINITY,
    lost: 0,
    isWaiting: () => false,
    recordProgress: () => undefined,
  });
  const model = { name: 'fake/model' };
  const request = {
    idempotencyKey: `${ref.tenant}.${ref.sessionId}.${effectId}`,
    sessionId: ref.sessionId,
    turn: 1,
    model,
    system,
    messages: [],
    tools: [],
  };
  return endingOfStep(await models.resolve(model).stream(request, () => undefined, signal));
}

function endingOfStep({ status, message, error }: ModelResult): Ending {
  const [content] = message.content;
  if (status === 'complete') return { status: 'answered', text: content?.type === 'text' ? content.text : '' };
  if (status === 'cancelled') return { status, text: '' };
  if (error?.code !== 'persona_unavailable') throw new Error(`a step ended as ${error?.code}: ${error?.message}`);
  return { status: 'unavailable', text: error.message };
}

const runsHere = () => {
  throw new Error('the host runs the step itself');
};

const CLOCK = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  sleep: (ms: number, signal?: AbortSignal) =>
    new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      const wake = () => {
        clearTimeout(timer);
        resolve();
      };
      if (signal?.aborted) wake();
      else signal?.addEventListener('abort', wake, { once: true });
    }),
  yield: async () => undefined,
};
