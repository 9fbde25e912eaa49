/** The end of an AG-UI run: the session's run has ended, or the session waits for a person or an event. */
import { type Event, EventType, type Interrupt } from '@ag-ui/core';
import type { RunResult } from '@coxswain/client';
import { hasEnded, type SessionStatus, type StateValue, topState } from '@coxswain/protocol';
import type { SharedState } from './shared-state.ts';

/** The prefix of an approval's interrupt id; the call id follows. */
export const APPROVAL_PREFIX = 'approval:';
/** The id of the interrupt of a suspended session. */
export const SUSPENDED_ID = 'suspended';

/** Whether an AG-UI run ends in this state: the session continues only after an input or a timer. */
export function endsAguiRun(state: StateValue): boolean {
  return hasEnded(state) || WAITING_STATES.has(topState(state));
}

const WAITING_STATES: ReadonlySet<string> = new Set(['function_awaiting_approval', 'suspended', 'daemon_idle']);

/** The ids of an AG-UI run. */
export interface RunIds {
  readonly threadId: string;
  readonly runId: string;
}

/**
 * The last event of a run.
 * @param result result of the session's newest run; null if that run has not ended.
 */
export function buildRunEnd(ids: RunIds, shared: SharedState, result: RunResult | null): Event {
  const finished = { type: EventType.RUN_FINISHED as const, ...ids };
  if (result === null) {
    const interrupts = interruptsOf(shared);
    return interrupts.length > 0
      ? { ...finished, outcome: { type: 'interrupt', interrupts } }
      : { ...finished, outcome: { type: 'success' } };
  }
  const { stopReason, text, turns, costUsd, pending, error, usage } = result;
  const spent = {
    usage: [
      {
        ...(shared.model === null ? {} : { model: shared.model }),
        inputTokens: usage.inputTokens,
        outputTokens: usage.outputTokens,
        totalTokens: usage.inputTokens + usage.outputTokens,
        ...(usage.cachedInputTokens === undefined ? {} : { cachedInputTokens: usage.cachedInputTokens }),
        ...(usage.reasoningTokens === undefined ? {} : { reasoningTokens: usage.reasoningTokens }),
      },
    ],
  };
  if (stopReason === 'error') {
    const { code = 'internal', message = 'the run has failed' } = error ?? {};
    return { type: EventType.RUN_ERROR, code, message, ...spent };
  }
  const summary = { stop_reason: stopReason, text, turns, cost_usd: costUsd ?? null, pending };
  const outcome = stopReason === 'cancelled' ? ({ type: 'cancelled' } as const) : ({ type: 'success' } as const);
  return { ...finished, outcome, result: summary, ...spent };
}

function interruptsOf({ state, approvals, suspended }: SharedState): Interrupt[] {
  if (state === 'function_awaiting_approval') return approvals.map(toInterrupt);
  if (suspended === null) return [];
  const { reason, until, signal } = suspended;
  const message =
    reason ?? (until ? `sleeps until ${until}` : signal ? `waits for the signal ${signal}` : 'is suspended');
  return [{ id: SUSPENDED_ID, reason: 'suspended', message, responseSchema: { type: 'object', properties: {} } }];
}

function toInterrupt({ call_id, tool, args, question, expires_at }: SessionStatus['approvals'][number]): Interrupt {
  return {
    id: `${APPROVAL_PREFIX}${call_id}`,
    reason: 'tool_approval',
    message: question ?? `May ${tool} run?`,
    toolCallId: call_id,
    responseSchema: ANSWER_SCHEMA,
    metadata: { tool, args },
    ...(expires_at === undefined ? {} : { expiresAt: expires_at }),
  };
}

/** The JSON Schema of an answer to an approval. */
const ANSWER_SCHEMA = {
  type: 'object',
  properties: {
    approved: { type: 'boolean' },
    args: { type: 'object', description: 'Replaces the arguments of the call.' },
    reason: { type: 'string' },
    remember: { enum: ['session', 'persona'], description: 'Remembers the decision for similar calls.' },
  },
  required: ['approved'],
  additionalProperties: false,
};
