/**
 * The start of a run, by a command or by a queued message with `begins_run`. Starts in other files: the first run of a
 * child (`decideStartChild`, children/children.ts), and the prompt of a fork (`decideAfterCopy`, copies/copies.ts). A
 * follow-up without `begins_run` continues a run: `nextFollowupEvent` (injections/seam-passes.ts). The messages that a model
 * call gets: `Transcript.viewLater` (transcript.ts in libs/session).
 */

import {
  type ConsultOutcome,
  type EventOf,
  messageText,
  type SessionEvent,
  textOf,
  type UserMessage,
  userText,
} from '@coxswain/protocol';
import { noteCommand } from '../../core/command-memory.ts';
import type { Command } from '../../core/commands.ts';
import type { SessionContext } from '../../core/context.ts';
import { actorMember, type CommandHead, type Decision, events, reasonSuffix, reject } from '../../core/decision.ts';
import { openEffect, type Placed } from '../../core/journal-place.ts';
import { isEnded, leafOf, type MachineState, topStateOf } from '../../machine/state.ts';
import { copiedFrom, settingsOfPrompt } from '../copies/copies.ts';
import { buildHookDecision, firstBlockOfMessage } from '../hooks/answers.ts';
import { decideInjection } from '../injections/queue.ts';
import type { PendingFollowup } from '../injections/state.ts';
import { isLastStep } from '../steps/progress.ts';
import { isCapped } from './continuation.ts';
import { isStopped } from './stop-conditions.ts';

/** Decides `start`: the first run of a session. */
export function decideStart(state: MachineState, input: Command<'start'>): Decision {
  const { context } = state;
  const busy = busyProblem(state, input);
  if (busy) return busy;
  if (context.run > 0)
    return reject(input, 'session_exists', 'the session already had a run; continue it with prompt, or use another id');
  const { prompt, messages, message_id: _, fork, ...settings } = input.body;
  // A host does not pass a fork to the machine: it copies the inputs of the origin (`SessionCopy` in libs/session).
  if (fork !== undefined)
    return reject(input, 'fork_origin_not_found', 'the host did not look up the session to fork', { field: 'fork' });
  return events(...copiedFrom(input), { ...promptOf(context, input, prompt, messages), settings });
}

/**
 * Decides `prompt` without `if_running`. It starts the next run. It is rejected during a run, and while the report on
 * the first run to the parent is open. With `if_running`: {@link decidePromptOrSteer}.
 */
export function decidePrompt(state: MachineState, input: Command<'prompt'>): Decision {
  const busy = busyProblem(state, input);
  if (busy) return busy;
  const { body, messages } = input.body;
  return events(...copiedFrom(input), ...settingsOfPrompt(input), promptOf(state.context, input, body, messages));
}

function busyProblem(state: MachineState, input: CommandHead): Decision | null {
  if (!isEnded(state))
    return reject(input, 'session_busy', `the session is ${topStateOf(state)}; ${insteadOfAPrompt(state)}`);
  // The report to the parent still reads the answer of the first run.
  if (state.context.notice)
    return reject(
      input,
      'session_busy',
      'the session is reporting its end to its parent; retry the prompt in a moment',
    );
  return null;
}

function promptOf(
  { run }: SessionContext,
  input: CommandHead,
  text: string | undefined,
  messages: readonly UserMessage[] = [],
): EventOf<'prompt_received'> {
  return {
    type: 'prompt_received',
    command_id: input.command_id,
    run: run + 1,
    messages: text === undefined ? [...messages] : [userText(text)],
    ...actorMember(input),
  };
}

/**
 * Decides a prompt with `if_running: steer`. After the end of a run it starts the next one; during a run it is a steer
 * with the mode `finish_step`. If the run has no seam left for a steer ({@link isPastLastSeam}), and until the report to
 * the parent is sent, it is queued and starts the next run: {@link runOfLateMessage}. If the run continues after all,
 * it is delivered like a follow-up.
 */
export function decidePromptOrSteer(state: MachineState, input: Command<'prompt'>, atMs: number): Decision {
  const { context } = state;
  if (isEnded(state) && !context.notice) return decidePrompt(state, input);
  const { body = '' } = input.body;
  return isEnded(state) || isPastLastSeam(state)
    ? decideInjection(context, { ...input, verb: 'followup', body: { body } }, atMs, { begins_run: true })
    : decideInjection(context, { ...input, verb: 'steer', body: { body, mode: 'finish_step' } }, atMs);
}

/**
 * Whether the run has no seam left that delivers a new steer with the mode `finish_step`. True in the teardown, after the
 * first seam of the last turn, and after the last seam of a turn that ends the run. False while it is undecided whether
 * the turn ends the run, for example while a stop predicate is called.
 */
function isPastLastSeam(state: MachineState): boolean {
  const { context } = state;
  const leaf = leafOf(state);
  if (topStateOf(state) === 'tearing_down') return true;
  if (isCapped(context)) return !BEFORE_FIRST_SEAM.test(leaf);
  if (leaf === 'steering_check.post_step') return isStopped(context) || isLastStep(context);
  return topStateOf(state) === 'steering_check' && context.batch_open && isStopped(context);
}

const BEFORE_FIRST_SEAM = /^(provisioning\..*|assistant_streaming\.(opening|pre_step|iteration_start))$/;

// Of all messages, an interrupt alone wakes a suspended session.
function insteadOfAPrompt(state: MachineState): string {
  return topStateOf(state) === 'suspended'
    ? 'resume it, or interrupt it with a steer'
    : 'steer it or queue a follow-up';
}

/** The event that starts a run with a message: a queued one (`begins_run`), or a new one from another session. */
export function promptOfMessage(
  { run }: SessionContext,
  { command_id, body, from, actor, replaced_by }: Omit<PendingFollowup, 'at'>,
): SessionEvent {
  return {
    type: 'prompt_received',
    command_id,
    run: run + 1,
    messages: [userText(messageText(body, from))],
    ...(actor ? { actor } : {}),
    ...(from ? { from } : {}),
    ...(replaced_by === undefined ? {} : { replaced_by }),
  };
}

/**
 * The start of a run by the first queued message with `begins_run`, which arrived too late for the previous run; or
 * null. Also null until the report on the first run to the parent is sent, and while hooks are called.
 */
export function runOfLateMessage(context: SessionContext): SessionEvent | null {
  const message = context.followups.find(({ begins_run }) => begins_run);
  if (!message || context.notice || context.consult) return null;
  return promptOfMessage(context, message);
}

/** The events after user_prompt_submit hooks about the prompt of a run: if they block it, the run fails; otherwise none. */
export function afterUserPromptSubmit(context: SessionContext, outcome: ConsultOutcome): SessionEvent[] {
  const block = firstBlockOfMessage(context, outcome.answers);
  if (!block) return [];
  const { hook, reason, code } = block;
  const error = { code, message: `hook ${hook} blocked the prompt${reasonSuffix(reason)}` };
  return [
    buildHookDecision('user_prompt_submit', hook, 'block', reason),
    { type: 'run_failed', source: 'prompt', error, stop_reason: 'user_prompt_submit_blocked' },
  ];
}

/** A run starts. The command id of a queued message that starts it is already remembered. */
export function promptReceived(context: SessionContext, event: Placed<'prompt_received'>): Partial<SessionContext> {
  const { effect, next_effect } = openEffect(context, event);
  const isQueued = context.followups.some(({ command_id }) => command_id === event.command_id);
  return {
    run: event.run,
    settings: event.settings ?? context.settings,
    prompt: event.messages.map(textOf).join('\n'),
    ...(event.parent ? { parent: event.parent } : {}),
    hops: event.parent?.hops ?? event.from?.hops ?? 0,
    followups: context.followups.filter(({ command_id }) => command_id !== event.command_id),
    ...(isQueued ? {} : noteCommand(context, event.command_id)),
    provision: effect,
    next_effect,
  };
}
