/** What a request does to its session: answers to interrupts, then what its newest message says. */
import type { BodyInput, BusSession } from '@coxswain/client';
import { hasEnded, JsonObject, problemOf, Reason, RememberScope, readStrictly, type Verb } from '@coxswain/protocol';
import * as z from 'zod';
import { isAllowed, type Principal } from '../auth/principal.ts';
import { expectMayAllow, VERB_SCOPES } from '../auth/verb-scopes.ts';
import { GATEWAY_BOUNDS } from '../gateway-bounds.ts';
import type { GatewayContext } from '../gateway-context.ts';
import { Problem, withFieldNamed } from '../problem.ts';
import { refuseUnknown, sendOptions, told } from '../send-command.ts';
import { APPROVAL_PREFIX, SUSPENDED_ID } from './run-end.ts';
import type { ResumeEntry, RunRequest } from './run-input.ts';
import { commandOfAnswer, commandOfMessage } from './thread-ids.ts';

/** A command that the session has taken, or has refused because somebody else was quicker. */
export interface Sent {
  readonly verb: Verb;
  readonly command_id: string;
  readonly stage: 'accepted' | 'rejected';
  /** The record that holds it. */
  readonly n: number | null;
  readonly duplicate: boolean;
  /** It waits for the next run: this one has ended. */
  readonly pending_for_next_run?: true;
  readonly code?: string;
  readonly message?: string;
}

/** With what commands are sent. */
export interface Sending {
  readonly context: GatewayContext;
  readonly session: BusSession;
  readonly principal: Principal;
  readonly signal: AbortSignal;
}

/** Another decision was first, or a guard has denied the edited arguments; the run goes on all the same. */
const NOT_DECIDING: ReadonlySet<string> = new Set([
  'edited_call_denied',
  'edit_pending',
  'already_decided',
  'not_pending',
  'not_suspended',
  'not_running',
  'call_unknown',
]);

/** The bound of a call id in a command. */
const CALL_ID_MAX_CHARS = 256;

const Answer = z.strictObject({
  approved: z.boolean(),
  args: JsonObject.optional(),
  reason: Reason.optional(),
  remember: RememberScope.optional(),
});

/** The commands that answer interrupts. @throws Problem for what is no answer, or may not be given. */
export function readAnswers(principal: Principal, { resume }: RunRequest): readonly Answered[] {
  const twice = resume.findIndex(
    ({ interruptId }, at) => resume.findIndex((one) => one.interruptId === interruptId) < at,
  );
  if (twice >= 0) {
    const field = `resume[${twice}].interruptId`;
    throw new Problem('invalid_field', `${field}: has two answers in this request`, { field });
  }
  const answers = resume.map(answerOf);
  for (const { command } of answers) if (command) mayWith(principal, command.verb);
  return answers;
}

/** Answers interrupts. @throws what sending throws. */
export async function sendAnswers(
  sending: Sending,
  runId: string,
  answers: readonly Answered[],
): Promise<readonly Sent[]> {
  const sent: Sent[] = [];
  for (const { command, interruptId } of answers) {
    if (!command) continue;
    const { verb, body } = command;
    const id = commandOfAnswer(sending.session.id, runId, interruptId, body);
    sent.push(await send(sending, verb, body, id, NOT_DECIDING));
  }
  return sent;
}

/** The answer to one interrupt. */
export interface Answered {
  readonly interruptId: string;
  /** What the answer sends; null for a cancelled `suspended`, which leaves the session suspended. */
  readonly command:
    | { readonly verb: 'approve'; readonly body: BodyInput<'approve'> }
    | { readonly verb: 'resume'; readonly body: BodyInput<'resume'> }
    | null;
}

function answerOf({ interruptId, status, payload }: ResumeEntry, index: number): Answered {
  const at = `resume[${index}]`;
  if (interruptId === SUSPENDED_ID)
    return { interruptId, command: status === 'resolved' ? { verb: 'resume', body: {} } : null };
  if (!interruptId.startsWith(APPROVAL_PREFIX)) {
    const message = `${at}.interruptId: must be ${APPROVAL_PREFIX}CALL or ${SUSPENDED_ID}, as in an interrupt`;
    throw new Problem('invalid_field', message, { field: `${at}.interruptId` });
  }
  const call_id = interruptId.slice(APPROVAL_PREFIX.length);
  if (call_id.length < 1 || call_id.length > CALL_ID_MAX_CHARS) {
    const field = `${at}.interruptId`;
    throw new Problem('invalid_field', `${field}: has no call id after ${APPROVAL_PREFIX}`, { field });
  }
  if (status === 'cancelled')
    return {
      interruptId,
      command: { verb: 'approve', body: { call_id, decision: 'deny', reason: 'left unanswered' } },
    };
  const read = readStrictly(Answer, payload);
  if (!read.ok) {
    const { code, message, field = 'body' } = problemOf(read.problems);
    const where = field === 'body' ? `${at}.payload` : `${at}.payload.${field}`;
    throw new Problem(code, message.replace(field, where), { field: where });
  }
  const { approved, args, ...more } = read.data;
  if (!approved && args !== undefined)
    throw new Problem('invalid_field', `${at}.payload.args: requires approved: true`, {
      field: `${at}.payload.args`,
    });
  const changed = args === undefined ? {} : { args };
  const body = { call_id, decision: approved ? ('allow' as const) : ('deny' as const), ...changed, ...more };
  return { interruptId, command: { verb: 'approve', body } };
}

/**
 * Brings the newest message to the session: starts it, begins its next run, or says it while it works.
 * @param persona who works in a new session, by the address.
 * @throws Problem, and what sending throws.
 */
export async function bringMessage(sending: Sending, request: RunRequest, persona: string | null): Promise<Sent> {
  const { session } = sending;
  const { message } = request;
  if (message === null) throw new Error('a request without a message has none');
  const id = commandOfMessage(session.id, message.id);
  const newest = await session.newest();
  // Two requests at once: the second finds the first one's run.
  const quicker = new Set(['session_busy', 'session_exists']);
  if (newest === null) {
    const body = startBody(request, message.text, persona);
    expectMayAllow(sending.principal, body, (field) => `forwardedProps.start.${field}`);
    const sent = await send(sending, 'start', body as BodyInput<'start'>, id, quicker).catch(asAsked(request));
    sending.context.known.note(session);
    return sent.stage === 'accepted' ? sent : say(sending, request, message.text, `${id}-f`);
  }
  if (hasEnded(newest.state)) {
    const sent = await send(sending, 'prompt', { body: message.text }, id, quicker);
    return sent.stage === 'accepted' ? sent : say(sending, request, message.text, `${id}-f`);
  }
  // One that was refused as a start, and is sent again, is known under its id as what was refused.
  const sent = await say(sending, request, message.text, id, quicker);
  return sent.stage === 'accepted' ? sent : say(sending, request, message.text, `${id}-f`);
}

/** To a session that works. Where its run ends just before, what is said is taken back, and begins the next one. */
async function say(
  sending: Sending,
  { mode, preempt }: RunRequest,
  body: string,
  id: string,
  tolerated?: ReadonlySet<string>,
): Promise<Sent> {
  const sent =
    mode === 'follow_up'
      ? await send(sending, 'followup', { body }, id, tolerated)
      : await send(sending, 'steer', { body, mode, ...(preempt ? { preempt } : {}) }, id, tolerated);
  // What only the journal is told waits for no answer.
  return sent.pending_for_next_run && mode !== 'audit_only' ? promptInstead(sending, sent, body) : sent;
}

/** It is taken back, and begins the next run; where another has begun meanwhile, that one has it. */
async function promptInstead(sending: Sending, kept: Sent, body: string): Promise<Sent> {
  // Who may steer and begin no run leaves it to the next one.
  if (!isAllowed(sending.principal, VERB_SCOPES.prompt)) return kept;
  const tolerated = new Set(['already_delivered', 'already_revoked', 'unknown_command_id', 'session_busy']);
  const revoked = await send(sending, 'revoke', { command_id: kept.command_id }, `${kept.command_id}-r`, tolerated);
  if (revoked.stage === 'rejected') return kept;
  const sent = await send(sending, 'prompt', { body }, `${kept.command_id}-p`, tolerated);
  return sent.stage === 'accepted' ? sent : send(sending, 'followup', { body }, `${kept.command_id}-q`);
}

/** What a start may say in `forwardedProps.start`: whatever is not said elsewhere. */
const ELSEWHERE = ['prompt', 'messages', 'message_id', 'fork', 'command_id', 'persona'] as const;

function startBody({ start }: RunRequest, prompt: string, persona: string | null): Record<string, unknown> {
  const without = persona === null ? ELSEWHERE.filter((name) => name !== 'persona') : [...ELSEWHERE];
  try {
    refuseUnknown(start, 'start', without);
  } catch (error) {
    throw withFieldNamed(error, (field) => `${AT_START}${field}`);
  }
  return { ...start, prompt, ...(persona === null ? {} : { persona }) };
}

const AT_START = 'forwardedProps.start.';

/** A start is sent, whose fields stand elsewhere in the request. */
function asAsked({ message, start }: RunRequest): (error: unknown) => never {
  return (error) => {
    throw withFieldNamed(error, (field) => {
      if (field === 'prompt' && message !== null) return message.field;
      const [member = ''] = field.split('.', 1);
      return member in start ? `${AT_START}${field}` : field;
    });
  };
}

/** @throws Problem `scope_missing`. */
function mayWith(principal: Principal, verb: Verb): void {
  const scope = VERB_SCOPES[verb];
  if (!isAllowed(principal, scope)) throw new Problem('scope_missing', `${verb} needs the scope ${scope}`);
}

async function send<V extends Verb>(
  { context, session, principal, signal }: Sending,
  verb: V,
  body: BodyInput<V>,
  id: string,
  tolerated: ReadonlySet<string> = new Set(),
): Promise<Sent> {
  mayWith(principal, verb);
  const waiting = { wait: 'accepted', timeout_ms: GATEWAY_BOUNDS.waitDefaultMs } as const;
  const options = sendOptions(verb, { principal, id, waiting, signal });
  try {
    const sent = await told(context, verb, () => session.wire.send(verb, body, options));
    const { commandId, receipt, duplicate } = sent;
    const kept = receipt?.pending_for_next_run ? { pending_for_next_run: true as const } : {};
    return { verb, command_id: commandId, stage: 'accepted', n: receipt?.n ?? null, duplicate, ...kept };
  } catch (error) {
    const { code, message } = error as { readonly code?: unknown; readonly message: string };
    if (typeof code !== 'string' || !tolerated.has(code)) throw error;
    return { verb, command_id: id, stage: 'rejected', n: null, duplicate: false, code, message };
  }
}
