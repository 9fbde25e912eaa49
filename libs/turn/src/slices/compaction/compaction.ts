/**
 * Compaction: when it is due, which messages it replaces, and the outcome of its model step. The host asks the model:
 * `askCompaction` (ask-compaction.ts in libs/session). It keeps pinned messages word for word: those that `pinOf`
 * (view-account.ts) selects, and inherited reminders with `preserve_on_compact`. `Transcript.#compact` (transcript.ts in
 * libs/session) replaces the others. Queued messages are not in the view. `context.compaction` is the compaction of the
 * open turn, `context.compacting` its open model step.
 *
 * COMPACTION-1  Each turn considers a compaction between the seams pre_compact and post_compact. If the provider refuses
 *     the turn's prompt as too long, the turn may consider a second one: `decideOverflow`.
 * COMPACTION-2  It replaces the messages of whole turns before the kept ones. Pinned messages stay, and the strategy
 *     `clear_tool_results` replaces results alone. After a refused prompt it keeps fewer turns if the configured number
 *     frees nothing.
 * COMPACTION-3  The estimated size of a refused prompt is the window until the persona changes, if it is smaller than
 *     the configured window.
 * COMPACTION-4  After a failed model step old results are cleared instead. If none can be cleared, the view stays as it
 *     is; and if the provider had refused the prompt, the run fails. A model step whose wait for its persona exceeds
 *     the limit fails the run at once (`afterPersonaWaitExpiry`, steps/persona-waits.ts).
 */

import {
  type CompactionStrategy,
  type CompactOutcome,
  type ConsultOutcome,
  type EventOf,
  type Failure,
  type ModelOutcome,
  type SessionEvent,
  textOf,
  type Usage,
} from '@coxswain/protocol';
import type { SessionContext } from '../../core/context.ts';
import { type Decision, events, late } from '../../core/decision.ts';
import type { AbortOrder, Effect } from '../../core/effect.ts';
import { openEffect, type Placed } from '../../core/journal-place.ts';
import { buildHookDecision, failsClosed } from '../hooks/answers.ts';
import type { OpenCompaction } from './state.ts';
import { compactionResult, growthBeforeNextPass, knownWindow, messageCount } from './view-account.ts';

/**
 * The compaction that is due before the next model request, or null. Its mode is `overflow` if the provider has refused
 * the prompt of the open turn; otherwise `window`: the estimated prompt does not fit into the window without its
 * reserve.
 */
export function compactionDue(context: SessionContext): OpenCompaction | null {
  const settings = context.pinned?.compaction;
  if (!settings) return null;
  const { strategy } = settings;
  const { view } = context;
  const { window, reserve } = knownWindow(view, settings);
  const head = { strategy, tokens_before: view.tokens, window, reserve };
  if (context.overflows === 0) {
    const kept = Math.min(settings.keep_turns, view.closed.length);
    const isDue =
      view.tokens > Math.max(window - reserve, view.next_pass_at) &&
      gain(context, strategy, kept) > gainToExceed(window);
    return isDue ? { ...head, mode: 'window', kept_turns: kept } : null;
  }
  for (let kept = Math.min(settings.keep_turns, view.closed.length); kept >= 0; kept--) {
    if (gain(context, strategy, kept) > 0) return { ...head, mode: 'overflow', kept_turns: kept };
  }
  return null;
}

// Tokens that a compaction would free. Its stubs are deducted, its summary is not. At least 1, or 0 if it replaces nothing.
function gain({ view }: SessionContext, strategy: CompactionStrategy, keptTurns: number): number {
  const { archived, tokens_after } = compactionResult(view, strategy, keptTurns, null);
  return archived === 0 ? 0 : Math.max(1, view.tokens - tokens_after);
}

// The gain that a compaction in the mode `window` must exceed. After a smaller gain the next one would follow soon.
function gainToExceed(window: number): number {
  return Math.floor(growthBeforeNextPass(window) / 2);
}

/**
 * The next event of the open compaction: the start of its model step, or its end if it needs none. Null while the model
 * step runs, and without an open compaction.
 */
export function nextCompactionEvent(context: SessionContext, effectId: string): SessionEvent | null {
  const { compaction } = context;
  if (!compaction || context.compacting) return null;
  if (compaction.strategy === 'clear_tool_results')
    return buildCompactionDone(context, compaction, compaction.strategy);
  return { type: 'compaction_started', ...headOf(context, compaction), effect_id: effectId };
}

/**
 * The members of the payload of pre_compact and post_compact hooks, in addition to `payloadHead` (hooks/consult.ts).
 * Both points have an open compaction, so the defaults never apply. For post_compact also the counts in `done`.
 */
export function compactionPayload(context: SessionContext): { [key: string]: string | number } {
  const { compaction, view } = context;
  return {
    mode: compaction?.mode ?? 'window',
    strategy: compaction?.strategy ?? 'summary',
    message_count: messageCount(view),
    estimated_tokens: view.tokens,
    ...compaction?.done,
  };
}

/** Decides the outcome of the open compaction's model step. */
export function decideCompact(context: SessionContext, outcome: CompactOutcome): Decision {
  const { compaction } = context;
  if (context.compacting?.id !== outcome.effect_id || !compaction) return late(outcome.effect_id);
  const { usage, attempts, duration_ms } = outcome;
  if (context.aborting) {
    const error = { code: 'compaction_aborted', message: 'the run ended during the compaction' };
    return events({ type: 'compaction_skipped', ...headOf(context, compaction), error, usage });
  }
  const text = outcome.text.trim();
  if (outcome.status === 'complete' && text !== '')
    return events(
      buildCompactionDone(context, compaction, compaction.strategy, { summary: text, usage, attempts, duration_ms }),
    );
  const error = outcome.error ?? {
    code: outcome.status === 'complete' ? 'summary_empty' : 'model_stream_broken',
    message:
      outcome.status === 'complete' ? 'the summary is empty' : 'the model stream ended before the summary was complete',
  };
  return events(...afterFailedSummary(context, compaction, error, usage));
}

/** The events after a failed model step of a compaction (COMPACTION-4). */
export function afterFailedSummary(
  context: SessionContext,
  compaction: OpenCompaction,
  error: Failure,
  usage?: Usage,
): SessionEvent[] {
  const instead_of = { strategy: compaction.strategy, error };
  const spent = usage ? { usage } : {};
  if (gain(context, 'clear_tool_results', compaction.kept_turns) > 0)
    return [buildCompactionDone(context, compaction, 'clear_tool_results', { ...spent, instead_of })];
  const skipped: SessionEvent = { type: 'compaction_skipped', ...headOf(context, compaction), error, ...spent };
  if (compaction.mode === 'window') return [skipped];
  return [
    skipped,
    overflowFailed(`the prompt exceeds the context window of the model, and the compaction failed: ${error.message}`),
  ];
}

/**
 * The event after a hook vetoed a compaction: the failure of the run, because a prompt that the provider refused cannot be
 * sent again. None if the provider has not refused it.
 */
function afterVeto(context: SessionContext, hook: string): SessionEvent[] {
  return context.compaction?.mode === 'overflow'
    ? [overflowFailed(`the prompt exceeds the context window of the model, and hook ${hook} vetoed the compaction`)]
    : [];
}

/**
 * The decision if the provider refused the prompt as too long: the turn continues with a compaction. Null for any other
 * outcome, and after a first refusal in the turn. Also null if no compaction would free anything, if text of the answer
 * was shown, and if the run or the model call is being ended.
 */
export function decideOverflow(context: SessionContext, outcome: ModelOutcome): Decision | null {
  if (!isOverflow(outcome) || context.aborting || context.model?.preempted || context.overflows > 0) return null;
  // Text that was shown cannot be withdrawn, so an answer that has started is not repeated.
  if (textOf(outcome.message) !== '' || !compactionDue({ ...context, overflows: 1 })) return null;
  const { message, usage, attempts, duration_ms } = outcome;
  const error = outcome.error ?? { code: 'context_overflow', message: '' };
  return events({
    type: 'context_overflowed',
    turn: context.turn,
    error,
    tokens: context.view.tokens,
    usage,
    attempts,
    duration_ms,
    ...(message.content.length > 0 ? { message } : {}),
  });
}

/** Why the model's answer failed. For a refused prompt also why {@link decideOverflow} does not continue the turn. */
export function modelFailure(context: SessionContext, outcome: ModelOutcome): Failure {
  const error = outcome.error ?? {
    code: 'model_stream_broken',
    message: 'the model stream ended before the response was complete',
  };
  if (!isOverflow(outcome)) return error;
  return { ...error, message: `${error.message} (${whyNotRepeated(context, outcome)})` };
}

function whyNotRepeated({ overflows, pinned }: SessionContext, { message }: ModelOutcome): string {
  if (overflows > 0) return 'the compaction did not free enough space';
  if (textOf(message) !== '') return 'the answer has started, so the request is not repeated';
  return pinned?.compaction ? 'no older messages are left to compact' : 'the run has no compaction';
}

function isOverflow({ status, error }: ModelOutcome): boolean {
  return status === 'failed' && error?.code === 'context_overflow';
}

function overflowFailed(message: string): SessionEvent {
  return { type: 'run_failed', source: 'model', error: { code: 'context_overflow', message }, stop_reason: 'error' };
}

/** The members that all events of a compaction have. */
function headOf({ turn }: SessionContext, compaction: OpenCompaction) {
  const { mode, strategy, tokens_before, window, reserve, kept_turns } = compaction;
  return { turn, mode, strategy, tokens_before, window, reserve, kept_turns };
}

function buildCompactionDone(
  context: SessionContext,
  compaction: OpenCompaction,
  strategy: CompactionStrategy,
  more: Partial<Extract<SessionEvent, { type: 'compaction_done' }>> = {},
): SessionEvent {
  const { summary = null } = more;
  return {
    type: 'compaction_done',
    ...headOf(context, compaction),
    strategy,
    ...compactionResult(context.view, strategy, compaction.kept_turns, summary),
    ...more,
  };
}

/**
 * The events after pre_compact hooks: the first hook that blocks the compaction, or whose failure refuses
 * (`failsClosed`), vetoes it. None without a veto.
 */
export function afterPreCompact(context: SessionContext, outcome: ConsultOutcome): SessionEvent[] {
  for (const answer of outcome.answers) {
    const { verdict, failure } = answer;
    const closed = failsClosed(context, answer);
    if (!closed && verdict?.kind !== 'block') continue;
    const reason = verdict?.kind === 'block' ? verdict.reason : failure?.message;
    return [buildHookDecision('pre_compact', answer.hook, 'block', reason), ...afterVeto(context, answer.hook)];
  }
  return [];
}

/** The model step of the open compaction was requested. */
export function compactionStarted(
  context: SessionContext,
  event: Placed<'compaction_started'>,
): Partial<SessionContext> {
  const { effect, next_effect } = openEffect(context, event);
  return { compacting: { ...effect, restarts: 0 }, next_effect };
}

/** The open compaction has replaced messages. The payload of post_compact hooks has its strategy and counts. */
export function compactionDone(
  { compaction }: SessionContext,
  { strategy, archived, remaining }: EventOf<'compaction_done'>,
): Partial<SessionContext> {
  return {
    compacting: null,
    compaction: compaction ? { ...compaction, strategy, done: { archived, remaining } } : null,
  };
}

/** The effect for the model step of the open compaction. */
export function compactionEffects(context: SessionContext, abort: AbortOrder | null): readonly Effect[] {
  const { compacting, compaction, turn, view } = context;
  if (!compacting || !compaction) return [];
  const { id, epoch, restarts } = compacting;
  const { strategy, kept_turns: keptTurns, window, reserve } = compaction;
  const room = window - reserve;
  return [{ kind: 'compact', id, epoch, restarts, turn, strategy, keptTurns, room, step: view.steps, abort }];
}
