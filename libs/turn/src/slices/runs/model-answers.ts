/**
 * Answers of the model, their failures, and the effect of the open model call. The host calls the model: `streamAnswer`
 * (stream-answer.ts in libs/session). What follows an answer: the state `assistant_streaming` (chart.ts).
 *
 * Whether a failed model call is repeated, by its failure. `effects/` is a folder of libs/session.
 * - A failed request to the provider: the port decides, `Model.stream` (provider-model.ts in libs/adapters/models).
 * - A lost instance that serves the persona: `Step.run` (effects/route-model-step.ts), at once, up to `stepTriesMax` attempts.
 * - A prompt that the provider refuses as too long: `decideOverflow` (compaction/compaction.ts), once a turn.
 * - A host that stops or crashes: the next runner restarts the call. `decideOwned` (owners.ts) limits the restarts,
 *   `restartBackoffMs` (effects/session-worker.ts) delays them.
 * - Any other failure of an outcome, also after the last attempt: {@link decideModel} does not repeat the call. The run
 *   fails; or, if a declared step of the persona is open, its error boundary decides: `stepFailure` (steps/steps.ts).
 *
 * Each repetition asks the pinned model. There is no fallback to another model.
 *
 * What validates an answer, in this order:
 * - Its output, by the schema of the session: `checkOutput` (check-output.ts in libs/protocol), only for a complete answer
 *   without calls. The problems are recorded with the answer; `outputRejection` (output.ts) repairs a final answer.
 * - Its calls, by their number, their sizes and the schemas of the tools: `checkedCalls` (effects/stream-answer.ts). It
 *   gives an invalid call a `problem`; `refuseMalformed` (calls/batch.ts) ends such a call with an error result.
 * - The outcome as a whole, by the schema of outcomes: `readOutcome` (effects/read-outcome.ts). An unreadable answer
 *   becomes a failed outcome, without its text.
 * - Ids of its calls that occur twice: `withUniqueCallIds`, here.
 */

import {
  type AssistantMessage,
  type ConsultOutcome,
  callsOf,
  cutText,
  type EventOf,
  type ModelOutcome,
  type SessionEvent,
} from '@coxswain/protocol';
import type { SessionContext } from '../../core/context.ts';
import { type Decision, events, late } from '../../core/decision.ts';
import type { AbortOrder, Effect } from '../../core/effect.ts';
import { openEffect } from '../../core/journal-place.ts';
import { answerUsageAdded } from '../budgets/spending.ts';
import { proposedRows } from '../calls/transitions.ts';
import { decideOverflow, modelFailure } from '../compaction/compaction.ts';
import { failsClosed } from '../hooks/answers.ts';
import { isNextModelCallPreempted, PREEMPT_ORDER } from '../injections/preempt.ts';
import { stallAfterAnswer } from '../stalls/stalls.ts';
import { answerOfStep, stepFailure } from '../steps/steps.ts';
import { textStop } from './stop-conditions.ts';

/**
 * Decides the outcome of the open model call. A complete answer of a run that is not aborting is recorded whole, and
 * after it the first text stop condition that it fulfils. Any other answer is recorded without its calls, as `partial`. If the
 * run is aborting or an interrupt ended the call, that is all. Otherwise the open step or the run fails, and an answer
 * that is empty without its calls is not recorded. A prompt that is too long: `decideOverflow`.
 */
export function decideModel(context: SessionContext, outcome: ModelOutcome): Decision {
  if (context.model?.id !== outcome.effect_id) return late(outcome.effect_id);
  const overflowed = decideOverflow(context, outcome);
  if (overflowed) return overflowed;
  const whole = outcome.status === 'complete' && !outcome.message.partial && !context.aborting;
  const message: AssistantMessage = whole
    ? withUniqueCallIds(outcome.message)
    : { role: 'assistant', content: outcome.message.content.filter((part) => part.type !== 'call'), partial: true };
  const answer: SessionEvent = {
    type: 'message_complete',
    turn: context.turn,
    message,
    finish_reason: outcome.finish_reason,
    usage: outcome.usage,
    body_streamed: outcome.body_streamed,
    duration_ms: outcome.duration_ms,
    attempts: outcome.attempts,
    ...(whole && outcome.output ? { output: outcome.output } : {}),
  };
  if (whole) return events(answer, ...textStop(context, message));
  if (context.aborting || context.model.preempted) return events(answer);
  const error = modelFailure(context, outcome);
  const failed: EventOf<'run_failed'> = { type: 'run_failed', source: 'model', error, stop_reason: 'error' };
  const list = stepFailure(context, error, failed) ?? [failed];
  // Without its calls, a failed answer can be empty. Then it is not recorded, and nor is its usage.
  return message.content.length > 0 ? events(answer, ...list) : events(...list);
}

// Results are paired with calls by id, so an id that a model uses twice in one answer becomes two.
function withUniqueCallIds(message: AssistantMessage): AssistantMessage {
  const calls = callsOf(message);
  const ids = new Set(calls.map((call) => call.call_id));
  if (ids.size === calls.length) return message;
  const seen = new Set<string>();
  return {
    ...message,
    content: message.content.map((part) => {
      if (part.type !== 'call') return part;
      let id = part.call_id;
      for (let i = 2; seen.has(id) || (id !== part.call_id && ids.has(id)); i++)
        id = `${cutText(part.call_id, 240)}_${i}`;
      seen.add(id);
      return id === part.call_id ? part : { ...part, call_id: id };
    }),
  };
}

/**
 * The events after transform_context hooks. If the failure of a hook refuses (`failsClosed`), the run fails and the
 * model is not called: it is unknown what the hook would have removed. Otherwise there are none.
 */
export function afterTransformContext(context: SessionContext, outcome: ConsultOutcome): SessionEvent[] {
  const failed = outcome.answers.find((answer) => failsClosed(context, answer));
  if (!failed?.failure) return [];
  const { code, message } = failed.failure;
  const error = { code, message: `hook ${failed.hook} could not transform the context: ${message}` };
  return [{ type: 'run_failed', source: 'model', error, stop_reason: 'error' }];
}

/** An answer of the model is recorded: its usage counts, and the calls of a whole answer become the new batch. */
export function answered(context: SessionContext, event: EventOf<'message_complete'>): Partial<SessionContext> {
  const calls = event.message.partial ? [] : callsOf(event.message);
  const change = {
    model: null,
    cut_short: event.message.partial === true && context.model?.preempted === true,
    ...answerUsageAdded(context, event.usage),
    ...(event.message.partial ? {} : { stall: stallAfterAnswer(context.stall, calls) }),
  };
  if (calls.length === 0) return { ...change, ...answerOfStep(context, event) };
  return {
    ...change,
    batch_open: true,
    calls: proposedRows(calls),
  };
}

/**
 * The model call of the turn is requested. If a queued interrupt ends it before it is sent (`isNextModelCallPreempted`), the model
 * does not get the delivered messages, so `unheard` stays.
 */
export function modelCallOpened(context: SessionContext, event: { readonly n: number }): Partial<SessionContext> {
  const { effect, next_effect } = openEffect(context, event);
  if (isNextModelCallPreempted(context)) return { next_effect, model: { ...effect, restarts: 0, preempted: true } };
  return { next_effect, model: { ...effect, restarts: 0 }, unheard: false };
}

/** The effect of the open model call. */
export function modelEffects({ model, turn }: SessionContext, abort: AbortOrder | null): readonly Effect[] {
  if (!model) return [];
  const { id, epoch, restarts } = model;
  const order = abort ?? (model.preempted ? PREEMPT_ORDER : null);
  return [{ kind: 'call_model', id, epoch, restarts, turn, abort: order }];
}
