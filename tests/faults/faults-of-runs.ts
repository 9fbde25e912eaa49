/** Faults of runs: seams, queues, batches of tool calls, approvals, ends, budgets. */

import { bindingProblem, type CallStatus, type EventOf, type EventType, type SessionEvent } from '@coxswain/protocol';
import { awaitedTimers, decide, knownWindow, leafOf, next, type SessionContext } from '@coxswain/turn';
import { outcomeOfCommand } from '../../libs/turn/src/core/command-memory.ts';
import { withOutcome } from '../../libs/turn/src/core/decision.ts';
import { evolve } from '../../libs/turn/src/core/evolve.ts';
import { settleApproval } from '../../libs/turn/src/slices/approvals/approvals.ts';
import { decideApproval } from '../../libs/turn/src/slices/approvals/approve.ts';
import { decideEdit, decideEditChecked } from '../../libs/turn/src/slices/approvals/edited-calls.ts';
import { leastNextPrompt } from '../../libs/turn/src/slices/budgets/budgets.ts';
import { nextToRefuse, nextToStart } from '../../libs/turn/src/slices/calls/batch.ts';
import type { CallRow } from '../../libs/turn/src/slices/calls/state.ts';
import { anyParkedBut, batchTerminates, isSequential } from '../../libs/turn/src/slices/calls/table.ts';
import { isNextModelCallPreempted } from '../../libs/turn/src/slices/injections/preempt.ts';
import { collapse } from '../../libs/turn/src/slices/injections/queue.ts';
import { deliverable } from '../../libs/turn/src/slices/injections/seam-passes.ts';
import { openTurnContinuesRun } from '../../libs/turn/src/slices/runs/continuation.ts';
import { suspendRequestOfCall } from '../../libs/turn/src/slices/suspension/requests.ts';
import { noteInterruptOfRequest } from '../../libs/turn/src/slices/suspension/suspension.ts';
import { type Fault, fault } from './fault.ts';

type Change = Partial<SessionContext>;

/** `next` sees another context. */
export function nextSees(change: (context: SessionContext, leaf: string) => Change): Fault {
  return fault(next, (sound) => (state) => sound(withContext(state, change(state.context, leafOf(state)))));
}

/** `next` makes something else of the events of one type. */
export function nextMakes<T extends EventType>(
  type: T,
  change: (event: EventOf<T>, context: SessionContext) => SessionEvent | null,
): Fault {
  return fault(next, (sound) => (state) => {
    const event = sound(state);
    return event?.type === type ? change(event as EventOf<T>, state.context) : event;
  });
}

/** An event of one type changes the context in another way. */
export function evolves<T extends EventType>(
  type: T,
  change: (sound: SessionContext, event: EventOf<T>, context: SessionContext) => SessionContext,
): Fault {
  return fault(evolve, (sound) => (context, event) => {
    const after = sound(context, event);
    return event.type === type ? change(after, event as SessionEvent as EventOf<T>, context) : after;
  });
}

function withContext<S extends { readonly context: SessionContext }>(state: S, change: Change): S {
  return { ...state, context: { ...state.context, ...change } };
}

/** The calls of the batch, those of one end with another. */
const callsEnded = ({ calls }: SessionContext, from: CallStatus, to: CallStatus) =>
  calls.map((row) => (row.status === 'ended' && row.ended === from ? { ...row, ended: to } : row));

/** By the test file that must find them. */
export const FAULTS_OF_RUNS = {
  'libs/turn/test/seams-and-modes.test.ts': {
    'a delivered message stays in the queue': evolves('loop_checkpoint', (after, _, { pending }) => ({
      ...after,
      pending,
    })),
    'a seam delivers messages of every mode': fault(
      deliverable,
      () =>
        ({ pending }) =>
          pending,
    ),
    'a checkpoint that delivers skips no call': nextMakes('loop_checkpoint', (event) => ({
      ...event,
      dispatch_skipped: false,
      skipped_call_ids: undefined,
    })),
    'a checkpoint skips calls without delivering a message': nextMakes('loop_checkpoint', (event, { calls }) =>
      event.kind === 'pre_tool_dispatch'
        ? { ...event, dispatch_skipped: true, skipped_call_ids: calls.map(({ call_id }) => call_id) }
        : event,
    ),
    'a delivered message comes before the results of skipped calls': nextSees(({ delivering, skipping }) => ({
      skipping: delivering.length > 0 ? [] : skipping,
    })),
  },
  'libs/turn/test/queues.test.ts': {
    'the newest message is delivered first': fault(
      deliverable,
      (sound) => (context, seam) => sound({ ...context, pending: context.pending.toReversed() }, seam),
    ),
    'a replaced message moves to the end of the queue': fault(collapse, (sound) => (context, event) => {
      const { pending = [], ...rest } = sound(context, event);
      const isNewer = ({ command_id }: { command_id: string }) => command_id === event.into;
      return { ...rest, pending: [...pending.filter((one) => !isNewer(one)), ...pending.filter(isNewer)] };
    }),
  },
  'libs/turn/test/continuation.test.ts': {
    'a queue is drained at the turn cap': fault(
      deliverable,
      (sound) => (context, seam) => sound({ ...context, turns_counted: 0 }, seam),
    ),
    'steering at the end of a turn does not continue the run': fault(
      openTurnContinuesRun,
      (sound) => (context) => sound({ ...context, delivered_at_end: 0 }),
    ),
    'a failed tool call does not keep a batch from terminating the run': fault(
      batchTerminates,
      (sound) => (context) => sound({ ...context, calls: callsEnded(context, 'error', 'ok') }),
    ),
    'a batch with denied tool calls only terminates the run': fault(
      batchTerminates,
      (sound) => (context) => sound({ ...context, calls: callsEnded(context, 'denied', 'ok') }),
    ),
  },
  'libs/turn/test/calls.test.ts': {
    'a sequential batch runs in parallel': fault(isSequential, () => () => false),
    'a tool call with invalid arguments reaches hooks and permissions': nextSees((context) => ({
      calls: context.calls.map(({ problem: _, ...row }) => row),
    })),
  },
  'libs/turn/test/approvals.test.ts': {
    'a sequential batch continues past a parked tool call': fault(
      nextToStart,
      (sound) => (context, except) =>
        sound({ ...context, calls: context.calls.filter(({ status }) => status !== 'parked') }, except),
    ),
    'the first of several decisions ends the wait for the others': fault(anyParkedBut, () => () => false),
    'a second decision replaces the first': fault(
      decideApproval,
      (sound) => (state, input, atMs) =>
        sound(
          withContext(state, { calls: state.context.calls.map(({ decided: _, ...row }) => row as CallRow) }),
          input,
          atMs,
        ),
    ),
    'arguments that the approver edited do not run': fault(evolve, (sound) => (context, event) => {
      if (event.type !== 'approval_decided') return sound(context, event);
      const { args: _, ...rest } = event;
      return sound(context, rest);
    }),
  },
  'libs/turn/test/approval-ends.test.ts': {
    'an aborted run leaves approvals open': nextMakes('approval_decided', (event) =>
      event.decision === 'aborted' ? null : event,
    ),
  },
  'libs/turn/test/edited-calls.test.ts': {
    'an edited tool call starts without hooks': fault(
      decideEdit,
      () => (context, input, row, args, atMs) => settleApproval(context, input, row, args, atMs),
    ),
    'a hook rewrites arguments that a person has edited': fault(
      decideEditChecked,
      (sound) => (context, consult, answers, atMs) => {
        const passed = answers.map((answer) =>
          answer.verdict?.kind === 'rewrite_args' ? { ...answer, verdict: { kind: 'no_objection' as const } } : answer,
        );
        return sound(context, consult, passed, atMs);
      },
    ),
  },
  'libs/turn/test/remembered.test.ts': {
    'a remembered rule applies to another agent definition': fault(bindingProblem, () => () => null),
  },
  'libs/turn/test/commands.test.ts': {
    'a late model outcome ends the model call in progress': fault(
      decide,
      (sound) => (state, input, atMs) =>
        input.type === 'model_outcome' && state.context.model
          ? sound(state, { ...input, effect_id: state.context.model.id }, atMs)
          : sound(state, input, atMs),
    ),
    'a repeated command is applied twice': fault(outcomeOfCommand, () => () => undefined),
  },
  'libs/turn/test/controls.test.ts': {
    'a rejected control command has no outcome': fault(withOutcome, () => (_sessionId, _input, decision) => decision),
  },
  'libs/turn/test/cancelling.test.ts': {
    'an interrupted model response keeps its unfinished tool calls': fault(decide, (sound) => (state, input, atMs) => {
      const decision = sound(state, input, atMs);
      if (decision.kind !== 'events' || input.type !== 'model_outcome') return decision;
      const whole = (event: SessionEvent) =>
        event.type === 'message_complete' && event.message.partial
          ? { ...event, message: { ...event.message, content: input.message.content } }
          : event;
      return { ...decision, events: decision.events.map(whole) };
    }),
  },
  'libs/turn/test/preempting.test.ts': {
    'a withdrawn interrupt still ends the model response': fault(
      isNextModelCallPreempted,
      () =>
        ({ preempting }) =>
          preempting.length > 0,
    ),
  },
  'libs/turn/test/sleeping.test.ts': {
    'an interrupt from before the request ends a suspension': fault(
      noteInterruptOfRequest,
      (sound) => (context, ids) => {
        const { suspend } = context;
        const interrupts = suspend?.command_id ?? suspend?.call_id ?? '';
        return sound({ ...context, pending: context.pending.map((one) => ({ ...one, interrupts })) }, ids);
      },
    ),
    'a failed tool call parks the session': fault(
      suspendRequestOfCall,
      (sound) => (context, ended) =>
        sound(context, { ...ended, status: 'ok', result: { ...ended.result, is_error: false } }),
    ),
  },
  'libs/turn/test/failing.test.ts': {
    'a crash during a model response is not counted': evolves('owned', (after) =>
      after.model ? { ...after, model: { ...after.model, restarts: 0 } } : after,
    ),
    'a second failure replaces the first': evolves('run_failed', (after, { error }) => ({ ...after, failure: error })),
    'a failed run ends without an error': nextMakes('agent_end', (event) =>
      event.stop_reason === 'error' ? { ...event, stop_reason: 'end_turn' } : event,
    ),
  },
  'libs/turn/test/idling.test.ts': {
    'a daemon counts the turns of earlier jobs': evolves('loop_checkpoint', (after, _, { turns_counted }) => ({
      ...after,
      turns_counted,
    })),
  },
  'libs/turn/test/budgets.test.ts': {
    'a run that is ending keeps the timer of its time budget': fault(
      awaitedTimers,
      (sound) => (state) => sound(withContext(state, { aborting: false })),
    ),
    'a run ends for lack of budget although compaction would shorten its next prompt': fault(
      leastNextPrompt,
      () =>
        ({ count }) =>
          count.prompt_tokens,
    ),
  },
  'libs/turn/test/compaction.test.ts': {
    'a prompt that the provider refused does not reduce the known context window': fault(
      knownWindow,
      () =>
        (_view, { window, reserve }) => ({ window, reserve }),
    ),
  },
  'tests/traces/golden-traces.test.ts': {
    'a denied tool call gets its result after later calls start': fault(
      nextToRefuse,
      (sound) => (context) => (nextToStart(context) ? undefined : sound(context)),
    ),
  },
} satisfies { readonly [testFile: string]: { readonly [name: string]: Fault } };
