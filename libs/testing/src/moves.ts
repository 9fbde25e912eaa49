/** What happens to a session in a test: what a person, a program or the clock does to it. */
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

/** Which call is meant: by its tool, by its id, or the only one where nothing is said. */
export interface WhichCall {
  readonly tool?: string | undefined;
  readonly callId?: string | undefined;
}

/** A body as a test writes it. */
type MoveBody<V extends Verb> = CamelCased<BodyInput<V>>;

/** A body in the form of the wire that is known when the command is sent: an approval names the call that waits then. */
export type CommandBody = Readonly<Record<string, unknown>>;

/** A command to a session. */
export interface CommandMove {
  readonly kind: 'command';
  readonly verb: Verb | 'say';
  readonly body: CommandBody;
  /** The call that `call_id` is to name, among those that wait for a person or that run. */
  readonly call?: { readonly among: 'waiting' | 'running'; readonly which: WhichCall } | undefined;
}

/** Time that passes. */
export interface WaitMove {
  readonly kind: 'wait';
  readonly ms: number;
}

/** When something happens while the session works. */
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

/** One thing that happens. Made by the functions of this file. */
export type Move = CommandMove | WaitMove | MomentMove;

/** A prompt: it starts the session, and where that has ended its next run. */
export function prompt(text: string): Move & CommandMove {
  return { kind: 'command', verb: 'say', body: { body: text } };
}

/** Steering. Without a mode it is delivered where the step ends; inside {@link atSeam}, as that seam takes it. */
export function steer(body: string, options: Omit<MoveBody<'steer'>, 'body'> = {}): Move & CommandMove {
  return bodied('steer(…, { … })', 'steer', { ...options, body });
}

/** A reminder, not in a user's voice. */
export function remind(body: string, options: Omit<MoveBody<'remind'>, 'body'> = {}): Move & CommandMove {
  return bodied('remind(…, { … })', 'remind', { ...options, body });
}

/** What is to be done once the run would otherwise end. */
export function followup(body: string): Move & CommandMove {
  return { kind: 'command', verb: 'followup', body: { body } };
}

/** What a person says of a call that waits, and of which. */
export type CallDecision = WhichCall & Pick<MoveBody<'approve'>, 'remember' | 'reason'>;

/**
 * A person allows a call that waits: `approve({ tool, args })` with these arguments in place of the model's, `remember` for
 * later calls like it.
 * @throws SceneError for an unknown key.
 */
export function approve(decision: CallDecision & Pick<MoveBody<'approve'>, 'args'> = {}): Move & CommandMove {
  checkKeys('approve({ … })', decision, [...DECISION_KEYS, 'args']);
  return decided('allow', decision);
}

/** A person refuses a call that waits. @throws SceneError for an unknown key. */
export function deny(decision: CallDecision = {}): Move & CommandMove {
  checkKeys('deny({ … })', decision, DECISION_KEYS);
  return decided('deny', decision);
}

const CALL_KEYS = ['tool', 'callId'] as const;
const DECISION_KEYS = [...CALL_KEYS, 'remember', 'reason'] as const;

/** Ends the run. */
export function cancel(reason?: string): Move & CommandMove {
  return { kind: 'command', verb: 'cancel', body: reason === undefined ? {} : { reason } };
}

/** Ends one call that runs. Inside {@link during} it is the one that is being made. */
export function cancelCall(which: WhichCall = {}, reason?: string): Move & CommandMove {
  checkKeys('cancelCall({ … })', which, CALL_KEYS);
  const body = reason === undefined ? {} : { reason };
  return { kind: 'command', verb: 'cancel_call', body, call: { among: 'running', which } };
}

/** A signal, for a session that waits for it. */
export function signal(name: string, data?: Json): Move & CommandMove {
  return { kind: 'command', verb: 'signal', body: { name, ...(data === undefined ? {} : { data }) } };
}

/** Parks the session at its next turn boundary. */
export function suspend(request: MoveBody<'suspend'> = {}): Move & CommandMove {
  return bodied('suspend({ … })', 'suspend', { ...request });
}

/** Lets a suspended session go on. */
export function resume(): Move & CommandMove {
  return { kind: 'command', verb: 'resume', body: {} };
}

/** Any command, by its verb and its whole body. */
export function command<V extends Verb>(verb: V, body: MoveBody<V>): Move & CommandMove {
  if (!(VERBS as readonly string[]).includes(verb))
    throw new SceneError(`unknown command ${JSON.stringify(verb)}; there are ${VERBS.join(', ')}`);
  return bodied(`command("${verb}", { … })`, verb, body as CommandBody);
}

/** Lets time pass, of which none is spent: timers, approvals that expire, daemons that wake by themselves. Milliseconds. */
export function wait(ms: number): Move {
  if (!Number.isFinite(ms) || ms < 0) throw new SceneError(`wait(${ms}): give milliseconds, 0 or more`);
  return { kind: 'wait', ms };
}

/**
 * Sends a steer or a reminder so that this seam is the next that takes it, the first time that the session comes there. The
 * scene fails where it is delivered elsewhere, or never.
 *
 * `daemon_idle_post` is passed by a daemon that something has woken: it is sent once the daemon waits. `daemon_idle_pre` takes only what
 * comes while a `SessionIdle` hook is asked, as everything sooner is taken by `iteration_end`: the scene needs such a hook.
 * `pre_compact` and `post_compact` never take any: they deliver what tools and hooks have said by `feedback`.
 * @throws SceneError for a seam that takes none of its mode, naming those that do.
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

/** Sends a command while a call of this tool is being made, the first time that one is. */
export function during(tool: string, move: CommandMove): Move {
  checkSent(`during(${JSON.stringify(tool)}, …)`, move);
  return { kind: 'moment', moment: { at: 'call', tool }, move };
}

/** Sends a command while the model's answer of this number is being made, counted from 1 in the session. */
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

/** By what the session is kept busy just before it comes to a seam. */
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

/** A command whose body has only keys of its verb; their values are checked by the session. */
function bodied(where: string, verb: Verb, body: CommandBody): Move & CommandMove {
  const schema = COMMAND_BODIES[verb];
  checkKeys(where, body, Object.keys(schema.shape).map(camelName));
  return { kind: 'command', verb, body: inWireForm(where, schema, body) as CommandBody };
}
