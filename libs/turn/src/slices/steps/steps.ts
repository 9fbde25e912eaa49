/**
 * Declared steps of a persona: the current step of a run, its end, and what its failure causes. A model step is
 * something else: a model call or a compaction. Its retries: the header of runs/model-answers.ts.
 *
 * STEPS-1  Steps run in order, one at a time. A run starts with the first; so does each follow-up, each job of a
 *     daemon, and the next persona after a hand-off.
 * STEPS-2  A step completes where a run without steps would end: with the first turn whose answer is complete, has no calls
 *     and needs no repair, and whose last seam delivers nothing. At the end of any other turn it fails if its own budget is
 *     used up.
 * STEPS-3  Each start of a step has one end in the journal: `completed`, `failed`, or `unfinished` if the run ends or is
 *     handed off before, or if the persona of a fork does not declare the step.
 * STEPS-4  The error boundary of a step alone decides what its failure causes. `fail` ends the run. `continue` proceeds
 *     with the next step, and the task of that step tells the model the reason. `escalate` suspends the session; a
 *     resume starts the step again.
 */

import {
  type ConsultOutcome,
  canonicalJson,
  type EventOf,
  type Failure,
  type JsonObject,
  readStepArgs,
  type SessionEvent,
  textOf,
  usdOf,
  userText,
} from '@coxswain/protocol';
import type { SessionContext } from '../../core/context.ts';
import { buildHookDecision, failsClosed } from '../hooks/answers.ts';
import { nextConsultEvent } from '../hooks/consult.ts';
import { needsRepair } from '../runs/output.ts';
import type { RequestedSuspension } from '../suspension/state.ts';
import { openStep, STEP_SEAM, stepTarget } from './progress.ts';
import type { PinnedStep } from './state.ts';

/**
 * The next event of steps before a turn: if no step is open, the start of the next one; then its task for the model.
 * Null after that, and if no step is left.
 */
export function stepOpening(context: SessionContext): SessionEvent | null {
  const { pinned, step, turn } = context;
  const steps = pinned?.steps ?? [];
  const index = step?.index ?? 0;
  const due = steps[index];
  if (!due) return null;
  if (!step?.open) {
    const attempt = step?.attempt ?? 1;
    return { type: 'step_started', step: due.name, index, attempt, turn, args: { prompt: due.prompt } };
  }
  if (step.told) return null;
  const again = step.attempt > 1 ? `, attempt ${step.attempt}` : '';
  const head = `Step ${index + 1} of ${steps.length}: ${due.name}${again}`;
  return {
    type: 'message_injected',
    command_id: `step:${due.name}`,
    origin: 'direct',
    seam: STEP_SEAM,
    turn,
    message: userText([head, ...(step.note === undefined ? [] : [step.note]), step.args.prompt].join('\n\n')),
  };
}

/**
 * At the end of a turn: the failure of the run by a failed step, or the end of the open step, completed or failed; null if the
 * step continues, or none is open.
 */
export function stepEnd(context: SessionContext): SessionEvent | null {
  const { step } = context;
  if (step?.fatal) return { type: 'run_failed', source: 'step', ...step.fatal };
  const open = openStep(context);
  if (!open) return null;
  if (isComplete(context, context.delivered_at_end)) return finished(context, { status: 'completed' });
  const spent = overspent(context, open);
  if (spent === null) return null;
  const error = { code: 'step_budget_exceeded', message: `the step ${open.name} used up its budget: ${spent}` };
  return finished(context, { status: 'failed', error, error_boundary: open.error_boundary });
}

/**
 * Whether the open turn completes its step (STEPS-2).
 * @param delivered the number of messages that the last seam of the turn delivers.
 */
export function isComplete(context: SessionContext, delivered: number): boolean {
  const isPlain = context.step?.open === true && !context.batch_open && !context.cut_short && delivered === 0;
  return isPlain && !needsRepair(context, delivered);
}

function overspent(context: SessionContext, { max_tokens, max_nano_usd }: PinnedStep): string | null {
  const { tokens, nano_usd } = used(context);
  if (max_tokens !== undefined && tokens >= max_tokens) return `${tokens} of ${max_tokens} tokens`;
  if (max_nano_usd !== undefined && nano_usd >= max_nano_usd) return `${usdOf(nano_usd)} of ${usdOf(max_nano_usd)} USD`;
  return null;
}

/** The `unfinished` end of the open step, at the end of a run or at a hand-off (STEPS-3); null without one (`openStep`). */
export function unfinishedStepEnd(context: SessionContext): SessionEvent | null {
  return openStep(context) ? finished(context, { status: 'unfinished' }) : null;
}

/** The `unfinished` end of an open step that the persona of a fork does not declare; otherwise null. */
export function undeclaredStepEnd(context: SessionContext): SessionEvent | null {
  return context.step?.open && !openStep(context) ? finished(context, { status: 'unfinished' }) : null;
}

/**
 * The events of a failure of the open step (STEPS-4); null without one (`openStep`).
 * @param run the failure of the run, which follows if the error boundary is `fail`.
 */
export function stepFailure(
  context: SessionContext,
  error: Failure,
  run: EventOf<'run_failed'>,
): SessionEvent[] | null {
  const open = openStep(context);
  if (!open) return null;
  const { error_boundary } = open;
  const end = finished(context, { status: 'failed', error, error_boundary });
  return error_boundary === 'fail' ? [end, run] : [end];
}

type End = Pick<EventOf<'step_finished'>, 'status' | 'error' | 'error_boundary'>;

function finished(context: SessionContext, end: End): SessionEvent {
  const { tokens, nano_usd } = used(context);
  const { step, pinned } = context;
  return {
    type: 'step_finished',
    ...headOf(context),
    ...end,
    ...(step?.output === undefined || end.status !== 'completed' ? {} : { output: step.output }),
    tokens,
    // Without a price no cost is recorded: 0 would say that the step was free.
    ...(pinned?.price ? { cost_usd: usdOf(nano_usd) } : {}),
  };
}

function headOf(context: SessionContext): { step: string; index: number; attempt: number } {
  const { name = '', index = 0, attempt = 1 } = context.step ?? {};
  return { step: name, index, attempt };
}

function used({ count, step }: SessionContext): { readonly tokens: number; readonly nano_usd: number } {
  // The count can have restarted since the start of the step. Then all of it counts.
  const since = (now: number, then: number) => (now < then ? now : now - then);
  return { tokens: since(count.tokens, step?.tokens ?? 0), nano_usd: since(count.nano_usd, step?.nano_usd ?? 0) };
}

/** The members of the payload at the points of a step, in addition to `payloadHead` (hooks/consult.ts). */
function stepPayload(context: SessionContext, point: 'PreStep' | 'PostStep'): JsonObject {
  const name = openStep(context)?.name ?? '';
  const { args = { prompt: '' }, answer = '' } = context.step ?? {};
  return { step: { name, args: { ...args }, ...(point === 'PostStep' ? { output: answer } : {}) } };
}

/**
 * The events after PreStep or PostStep hooks, in the order of their answers. The first denial, refusing failure or invalid
 * rewrite of the arguments fails the step.
 */
export function afterStepHooks(
  context: SessionContext,
  point: 'PreStep' | 'PostStep',
  outcome: ConsultOutcome,
): SessionEvent[] {
  const events: SessionEvent[] = [];
  const refused = (hook: string, reason: string | undefined): SessionEvent[] => {
    const cause = reason === undefined ? '' : `: ${reason}`;
    const what = point === 'PreStep' ? 'denied the start of the step' : 'rejected the output of the step';
    const error = { code: 'step_denied', message: `hook ${hook} ${what}${cause}` };
    return [
      ...events,
      buildHookDecision(point, hook, 'deny', reason),
      ...(stepFailure(context, error, runFailed(error)) ?? []),
    ];
  };
  for (const answer of outcome.answers) {
    const { hook, verdict, failure } = answer;
    if (failsClosed(context, answer)) return refused(hook, failure?.message);
    if (verdict?.kind === 'deny') return refused(hook, verdict.reason);
    if (verdict?.kind === 'rewrite_args') {
      const args = readStepArgs(verdict.args);
      if (typeof args === 'string') return refused(hook, args);
      events.push({ type: 'step_args_rewritten', ...headOf(context), args, by: `hook:${hook}` });
    }
    if (verdict?.kind === 'rewrite_output')
      events.push({ type: 'step_output_rewritten', ...headOf(context), output: verdict.output, by: `hook:${hook}` });
  }
  return events;
}

function runFailed(error: Failure): EventOf<'run_failed'> {
  return { type: 'run_failed', source: 'step', error, stop_reason: 'error' };
}

type StepEvent = EventOf<'step_started' | 'step_args_rewritten' | 'step_output_rewritten' | 'step_finished'>;

/** The changes of the context by an event of a step. */
export function stepEvolved(context: SessionContext, event: StepEvent): Partial<SessionContext> {
  const { step, count, turn } = context;
  const { index, attempt } = event;
  if (event.type === 'step_started') {
    const { args } = event;
    const note = step?.note === undefined ? {} : { note: step.note };
    const { tokens, nano_usd } = count;
    return { step: { name: event.step, index, open: true, attempt, args, told: false, tokens, nano_usd, ...note } };
  }
  if (!step) return {};
  if (event.type === 'step_args_rewritten') return { step: { ...step, args: event.args } };
  if (event.type === 'step_output_rewritten') return { step: { ...step, output: event.output } };
  const closed = { ...step, open: false, answer: undefined, output: undefined, note: undefined, ended_in: turn };
  const { status, error, error_boundary } = event;
  if (status === 'unfinished') return { step: openStep(context) ? closed : null };
  const message = error?.message ?? '';
  if (status === 'completed') {
    const { output } = event;
    const text = typeof output === 'string' ? output : output === undefined ? undefined : canonicalJson(output);
    const note =
      text === undefined ? {} : { note: `A hook replaced the output of step ${event.step} with this:\n${text}` };
    return { step: { ...closed, index: index + 1, attempt: 1, ...note } };
  }
  const model = { model: null };
  switch (error_boundary) {
    case 'continue':
      return {
        ...model,
        step: {
          ...closed,
          index: index + 1,
          attempt: 1,
          note: `Step ${event.step} failed and was skipped: ${message}`,
        },
      };
    case 'escalate':
      return {
        ...model,
        step: { ...closed, attempt: attempt + 1, note: `The previous attempt of this step failed: ${message}` },
        suspend: escalation(context, event.step, message),
      };
    default: {
      const stop_reason = error?.code === 'step_budget_exceeded' ? 'budget_exceeded' : 'error';
      return {
        ...model,
        step: { ...closed, fatal: { error: error ?? { code: 'step_denied', message }, stop_reason } },
      };
    }
  }
}

/**
 * The suspension after a failed step, which waits for a person. It replaces an earlier request, whose time limit or signal
 * would end it, and which hooks could deny. The command of that request stays, because it still gets its outcome.
 */
function escalation({ suspend }: SessionContext, step: string, message: string): RequestedSuspension {
  const { command_id, actor } = suspend ?? {};
  const asked = command_id === undefined ? {} : { command_id, ...(actor ? { actor } : {}) };
  return { ...asked, reason: `the step ${step} failed: ${message}`, step };
}

/** The task of the open step was delivered. */
export function stepTaskDelivered({ step }: SessionContext): Partial<SessionContext> {
  return step ? { step: { ...step, told: true, note: undefined } } : {};
}

/** The next event of the consult of PreStep or PostStep hooks about the open step. */
export function consultStep(context: SessionContext, point: 'PreStep' | 'PostStep'): SessionEvent | null {
  const name = openStep(context)?.name ?? '';
  return nextConsultEvent(context, point, stepPayload(context, point), stepTarget(context, name));
}

/** Stores the answer of the open step for PostStep hooks, also for those that are registered before the step ends. */
export function answerOfStep(context: SessionContext, event: EventOf<'message_complete'>): Partial<SessionContext> {
  const { step } = context;
  return step && openStep(context) ? { step: { ...step, answer: textOf(event.message) } } : {};
}
