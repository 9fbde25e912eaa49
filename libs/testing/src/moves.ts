/** The moves of a test: commands of a person or a program, and the passing of time. */
import type { BodyInput } from '@coxswain/client';
import {
  type CamelCased,
  COMMAND_BODIES,
  camelName,
  type Json,
  SEAMS,
  type SeamKind,
  VERBS,
  type Verb,
} from '@coxswain/protocol';
import { checkKeys, inWireForm } from './known-keys.ts';
import { SceneError } from './testing-errors.ts';

/** Selects a call by its tool or by its id. Without both, it selects the only candidate. */
export interface WhichCall {
  readonly tool?: string | undefined;
  readonly callId?: string | undefined;
}

/** The body of a command, with names in camelCase. */
type MoveBody<V extends Verb> = CamelCased<BodyInput<V>>;

/** The body of a command in wire form. `call_id` is added when the command is sent. */
export type CommandBody = Readonly<Record<string, unknown>>;

/** A command to a session. */
export interface CommandMove {
  readonly kind: 'command';
  readonly verb: Verb | 'say';
  readonly body: CommandBody;
  /** The call for `call_id`: among those that wait for an approval, or among those that run. */
  readonly call?: { readonly among: 'waiting' | 'running'; readonly which: WhichCall } | undefined;
}

/** The passing of virtual time. */
export interface WaitMove {
  readonly kind: 'wait';
  readonly ms: number;
}

/** A moment at which the session works. */
export type Moment =
  | { readonly at: 'seam'; readonly seam: SeamKind }
  | { readonly at: 'answer'; readonly number: number }
  | { readonly at: 'call'; readonly tool: string };

/** A command that is sent while the session works. */
export interface MomentMove {
  readonly kind: 'moment';
  readonly moment: Moment;
  readonly move: CommandMove;
}

/** One move of a test. The functions of this module create moves. */
export type Move = CommandMove | WaitMove | MomentMove;

/** A prompt: it starts the session, or the next run of an idle session. */
export function prompt(text: string): Move & CommandMove {
  return { kind: 'command', verb: 'say', body: { body: text } };
}

/**
 * A steering message. Its default mode delivers it at the end of the step. Inside {@link atSeam} the default is a mode
 * of that seam.
 */
export function steer(body: string, options: Omit<MoveBody<'steer'>, 'body'> = {}): Move & CommandMove {
  return bodied('steer(…, { … })', 'steer', { ...options, body });
}

/** A reminder, which is not a message of the user. */
export function remind(body: string, options: Omit<MoveBody<'remind'>, 'body'> = {}): Move & CommandMove {
  return bodied('remind(…, { … })', 'remind', { ...options, body });
}

/** A follow-up prompt, for the time when the run would otherwise end. */
export function followup(body: string): Move & CommandMove {
  return { kind: 'command', verb: 'followup', body: { body } };
}

/** A person's decision on a call, and the selection of that call. */
export type CallDecision = WhichCall & Pick<MoveBody<'approve'>, 'remember' | 'reason'>;

/**
 * A person approves a call that waits. `args` replaces the model's arguments. `remember` stores the decision for
 * similar later calls.
 * @throws SceneError for an unknown key.
 */
export function approve(decision: CallDecision & Pick<MoveBody<'approve'>, 'args'> = {}): Move & CommandMove {
  checkKeys('approve({ … })', decision, [...DECISION_KEYS, 'args']);
  return decided('allow', decision);
}

/** A person denies a call that waits. @throws SceneError for an unknown key. */
export function deny(decision: CallDecision = {}): Move & CommandMove {
  checkKeys('deny({ … })', decision, DECISION_KEYS);
  return decided('deny', decision);
}

const CALL_KEYS = ['tool', 'callId'] as const;
const DECISION_KEYS = [...CALL_KEYS, 'remember', 'reason'] as const;

/** Cancels the run. */
export function cancel(reason?: string): Move & CommandMove {
  return { kind: 'command', verb: 'cancel', body: reason === undefined ? {} : { reason } };
}

/**
 * Cancels one running call. Without `which` exactly one call must be running.
 * @throws SceneError for an unknown key.
 */
export function cancelCall(which: WhichCall = {}, reason?: string): Move & CommandMove {
  checkKeys('cancelCall({ … })', which, CALL_KEYS);
  const body = reason === undefined ? {} : { reason };
  return { kind: 'command', verb: 'cancel_call', body, call: { among: 'running', which } };
}

/** Sends a signal to a session that waits for it. */
export function signal(name: string, data?: Json): Move & CommandMove {
  return { kind: 'command', verb: 'signal', body: { name, ...(data === undefined ? {} : { data }) } };
}

/** Suspends the session after its open turn. */
export function suspend(request: MoveBody<'suspend'> = {}): Move & CommandMove {
  return bodied('suspend({ … })', 'suspend', { ...request });
}

/** Resumes a suspended session. */
export function resume(): Move & CommandMove {
  return { kind: 'command', verb: 'resume', body: {} };
}

/**
 * Any command, by its verb and its whole body.
 * @throws SceneError for an unknown verb or key.
 */
export function command<V extends Verb>(verb: V, body: MoveBody<V>): Move & CommandMove {
  if (!(VERBS as readonly string[]).includes(verb))
    throw new SceneError(`unknown command ${JSON.stringify(verb)}; there are ${VERBS.join(', ')}`);
  return bodied(`command("${verb}", { … })`, verb, body as CommandBody);
}

/**
 * Advances the virtual time: timers fire, approvals expire, daemons wake up. No real time passes.
 * @param ms milliseconds.
 */
export function wait(ms: number): Move {
  if (!Number.isFinite(ms) || ms < 0) throw new SceneError(`wait(${ms}): give milliseconds, 0 or more`);
  return { kind: 'wait', ms };
}

/**
 * Sends a steering message or a reminder just before this seam, the first time that the session reaches it. The scene
 * fails if it is delivered elsewhere, or not at all.
 *
 * - `daemon_idle_post`: a daemon passes it when it wakes up. The message is sent once the daemon waits.
 * - `daemon_idle_pre`: it delivers only messages that arrive while a `SessionIdle` hook is consulted, so the scene
 *   needs such a hook. `iteration_end` delivers earlier messages.
 * - `pre_compact`, `post_compact`: they deliver feedback of tools and hooks only.
 *
 * @throws SceneError for an unknown seam, for another command, and for a mode that the seam does not deliver. The
 *   message names the modes that it delivers.
 */
export function atSeam(seam: SeamKind, move: CommandMove): Move {
  const known: (typeof SEAMS)[SeamKind] | undefined = SEAMS[seam];
  if (known === undefined) throw new SceneError(`unknown seam "${seam}"; there are ${Object.keys(SEAMS).join(', ')}`);
  if (move.verb !== 'steer' && move.verb !== 'remind')
    throw new SceneError(`atSeam("${seam}", …) takes steer or remind: seams deliver nothing else`);
  if (!(seam in BEFORE_SEAM))
    throw new SceneError(
      `atSeam("${seam}", …): no steer or reminder is ever delivered at this seam, which takes feedback alone: let a tool of the ` +
        `scene say it by context.feedback(…), or use ${Object.keys(BEFORE_SEAM).join(', ')}`,
    );
  const [byDefault = 'finish_step'] = known.drains.includes('finish_step') ? ['finish_step' as const] : known.drains;
  const said = move.body.preempt === true ? 'interrupt_immediate' : (move.body.mode ?? byDefault);
  const mode = said === 'interrupt' ? 'interrupt_immediate' : said === 'steer' ? 'finish_step' : said;
  if (!(known.drains as readonly unknown[]).includes(mode))
    throw new SceneError(`atSeam("${seam}", …): this seam takes ${known.drains.join(' and ')}, not ${String(mode)}`);
  return { kind: 'moment', moment: { at: 'seam', seam }, move: { ...move, body: { ...move.body, mode } } };
}

/** Sends a command during the first call of this tool. */
export function during(tool: string, move: CommandMove): Move {
  checkSent(`during(${JSON.stringify(tool)}, …)`, move);
  return { kind: 'moment', moment: { at: 'call', tool }, move };
}

/** Sends a command during the model's answer with this number, counted from 1 in the session. */
export function duringAnswer(number: number, move: CommandMove): Move {
  if (!Number.isInteger(number) || number < 1) throw new SceneError(`duringAnswer(${number}, …): answers count from 1`);
  checkSent(`duringAnswer(${number}, …)`, move);
  return { kind: 'moment', moment: { at: 'answer', number }, move };
}

function checkSent(where: string, move: CommandMove): void {
  if (typeof move === 'object' && move !== null && move.kind === 'command') return;
  throw new SceneError(
    `${where} takes what steer(…), cancelCall(…) or another command makes, not ${JSON.stringify(move) ?? 'nothing'}`,
  );
}

/** The activity of the session just before it reaches a seam. */
export const BEFORE_SEAM: Readonly<
  Partial<Record<SeamKind, 'start' | 'answer with calls' | 'plain answer' | 'calls' | 'idle hook' | 'idle'>>
> = {
  iteration_start: 'start',
  pre_tool_dispatch: 'answer with calls',
  post_tool_dispatch: 'calls',
  iteration_end: 'plain answer',
  daemon_idle_pre: 'idle hook',
  daemon_idle_post: 'idle',
  loop_exit: 'start',
};

function decided(
  decision: 'allow' | 'deny',
  { tool, callId, ...body }: CallDecision & Pick<MoveBody<'approve'>, 'args'>,
): Move & CommandMove {
  const call = { among: 'waiting', which: { tool, callId } } as const;
  return { kind: 'command', verb: 'approve', body: { ...body, decision }, call };
}

/** Creates a command with known keys only. The session validates the values. */
function bodied(where: string, verb: Verb, body: CommandBody): Move & CommandMove {
  const schema = COMMAND_BODIES[verb];
  checkKeys(where, body, Object.keys(schema.shape).map(camelName));
  return { kind: 'command', verb, body: inWireForm(where, schema, body) as CommandBody };
}
