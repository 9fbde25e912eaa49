/** The commands of an AG-UI request: answers to interrupts, and the newest message. */
import type { BodyInput, BusSession } from '@coxswain/client';
import { hasEnded, JsonObject, problemOf, Reason, RememberScope, readStrictly, type Verb } from '@coxswain/protocol';
import * as z from 'zod';
import { expectMayAllow, isAllowed, type Principal, VERB_SCOPES } from '../auth/mod.ts';
import { rejectUnknownFields, sendCounted, sendOptions } from '../commands/mod.ts';
import { GATEWAY_BOUNDS, type GatewayContext, Problem, withRenamedField } from '../context/mod.ts';
import { APPROVAL_PREFIX, SUSPENDED_ID } from './run-end.ts';
import type { ResumeEntry, RunRequest } from './run-input.ts';
import { commandOfAnswer, commandOfMessage } from './thread-ids.ts';

/** A command that the session accepted, or rejected with a tolerated code. */
export interface CommandResult {
  readonly verb: Verb;
  readonly command_id: string;
  readonly stage: 'accepted' | 'rejected';
  /** Number of the record with the command; null if the command was rejected, or its receipt has no record. */
  readonly n: number | null;
  readonly duplicate: boolean;
  /** The command stays queued for the next run, because this one has ended. */
  readonly pending_for_next_run?: true;
  readonly code?: string;
  readonly message?: string;
}

/** The dependencies of sending commands. */
export interface CommandSender {
  readonly context: GatewayContext;
  readonly session: BusSession;
  readonly principal: Principal;
  readonly signal: AbortSignal;
}

/** Rejections after which the run continues: another decision came first, or a guard denied the edited arguments. */
const TOLERATED_CODES: ReadonlySet<string> = new Set([
  'edited_call_denied',
  'edit_pending',
  'already_decided',
  'not_pending',
  'not_suspended',
  'not_running',
  'call_unknown',
]);

/** The maximum length of a call id in a command. */
const CALL_ID_MAX_CHARS = 256;

const Answer = z.strictObject({
  approved: z.boolean(),
  args: JsonObject.optional(),
  reason: Reason.optional(),
  remember: RememberScope.optional(),
});

/**
 * Reads the answers to interrupts.
 * @throws Problem `invalid_field` or another validation code for an invalid answer; `scope_missing` for a missing
 *   permission.
 */
export function readAnswers(principal: Principal, { resume }: RunRequest): readonly InterruptAnswer[] {
  const repeated = resume.findIndex(
    ({ interruptId }, at) => resume.findIndex((one) => one.interruptId === interruptId) < at,
  );
  if (repeated >= 0) {
    const field = `resume[${repeated}].interruptId`;
    throw new Problem('invalid_field', `${field}: has two answers in this request`, { field });
  }
  const answers = resume.map(answerOf);
  for (const { command } of answers) if (command) expectScope(principal, command.verb);
  return answers;
}

/**
 * Sends the answers to interrupts, in order. Rejections in `TOLERATED_CODES` are returned, not thrown.
 * @throws Problem, and the errors of sending a command.
 */
export async function sendAnswers(
  sender: CommandSender,
  runId: string,
  answers: readonly InterruptAnswer[],
): Promise<readonly CommandResult[]> {
  const sent: CommandResult[] = [];
  for (const { command, interruptId } of answers) {
    if (!command) continue;
    const { verb, body } = command;
    const id = commandOfAnswer(sender.session.id, runId, interruptId, body);
    sent.push(await send(sender, verb, body, id, TOLERATED_CODES));
  }
  return sent;
}

/** The answer to an interrupt. */
export interface InterruptAnswer {
  readonly interruptId: string;
  /** The command of the answer. Null for a cancelled `suspended`, which leaves the session suspended. */
  readonly command:
    | { readonly verb: 'approve'; readonly body: BodyInput<'approve'> }
    | { readonly verb: 'resume'; readonly body: BodyInput<'resume'> }
    | null;
}

function answerOf({ interruptId, status, payload }: ResumeEntry, index: number): InterruptAnswer {
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
 * Delivers the newest message to the session. It starts the session, starts its next run, or joins the run in progress.
 * @param persona persona of a new session from the request's path; null if the path names none.
 * @throws Problem, and the errors of sending a command.
 */
export async function deliverMessage(
  sender: CommandSender,
  request: RunRequest,
  persona: string | null,
): Promise<CommandResult> {
  const { session } = sender;
  const { message } = request;
  if (message === null) throw new Error('a request without a message has none');
  const id = commandOfMessage(session.id, message.id);
  const newest = await sender.context.stateReads.run(sender.principal, () => session.newest(), sender.signal);
  // Of two concurrent requests, the second gets one of these codes. Its message then joins the run of the first.
  const lostRaceCodes = new Set(['session_busy', 'session_exists']);
  if (newest === null) {
    const body = startBody(request, message.text, persona);
    expectMayAllow(sender.principal, body, (field) => `forwardedProps.start.${field}`);
    const sent = await send(sender, 'start', body as BodyInput<'start'>, id, lostRaceCodes).catch(
      rethrowWithRequestField(request),
    );
    sender.context.known.remember(session);
    return sent.stage === 'accepted' ? sent : sendToRun(sender, request, message.text, `${id}-f`);
  }
  if (hasEnded(newest.state)) {
    const sent = await send(sender, 'prompt', { body: message.text }, id, lostRaceCodes);
    return sent.stage === 'accepted' ? sent : sendToRun(sender, request, message.text, `${id}-f`);
  }
  // If a start or prompt with this id was rejected before, a repeated request gets the same rejection.
  const sent = await sendToRun(sender, request, message.text, id, lostRaceCodes);
  return sent.stage === 'accepted' ? sent : sendToRun(sender, request, message.text, `${id}-f`);
}

/** Sends a message to a running session. If the run has just ended, the message is revoked and starts the next run. */
async function sendToRun(
  sender: CommandSender,
  { mode, preempt }: RunRequest,
  body: string,
  id: string,
  tolerated?: ReadonlySet<string>,
): Promise<CommandResult> {
  const sent =
    mode === 'follow_up'
      ? await send(sender, 'followup', { body }, id, tolerated)
      : await send(sender, 'steer', { body, mode, ...(preempt ? { preempt } : {}) }, id, tolerated);
  // An audit-only message needs no answer, so it starts no run.
  return sent.pending_for_next_run && mode !== 'audit_only' ? revokeAndPrompt(sender, sent, body) : sent;
}

/**
 * Revokes a queued message and starts the next run with it. If another run has started meanwhile, the message joins
 * that run.
 */
async function revokeAndPrompt(sender: CommandSender, kept: CommandResult, body: string): Promise<CommandResult> {
  // A client with permission to steer but not to prompt leaves the message queued for the next run.
  if (!isAllowed(sender.principal, VERB_SCOPES.prompt)) return kept;
  const tolerated = new Set(['already_delivered', 'already_revoked', 'unknown_command_id', 'session_busy']);
  const revoked = await send(sender, 'revoke', { command_id: kept.command_id }, `${kept.command_id}-r`, tolerated);
  if (revoked.stage === 'rejected') return kept;
  const sent = await send(sender, 'prompt', { body }, `${kept.command_id}-p`, tolerated);
  return sent.stage === 'accepted' ? sent : send(sender, 'followup', { body }, `${kept.command_id}-q`);
}

/**
 * Members of a start's body that `forwardedProps.start` must not contain. `persona` is allowed if the request's path
 * names none.
 */
const EXCLUDED_START_FIELDS = ['prompt', 'messages', 'message_id', 'fork', 'command_id', 'persona'] as const;

function startBody({ start }: RunRequest, prompt: string, persona: string | null): Record<string, unknown> {
  const excluded =
    persona === null ? EXCLUDED_START_FIELDS.filter((name) => name !== 'persona') : [...EXCLUDED_START_FIELDS];
  try {
    rejectUnknownFields(start, 'start', excluded);
  } catch (error) {
    throw withRenamedField(error, (field) => `${START_PREFIX}${field}`);
  }
  return { ...start, prompt, ...(persona === null ? {} : { persona }) };
}

const START_PREFIX = 'forwardedProps.start.';

/** Maps the field in an error of a start to the field of the AG-UI request that contains its value. */
function rethrowWithRequestField({ message, start }: RunRequest): (error: unknown) => never {
  return (error) => {
    throw withRenamedField(error, (field) => {
      if (field === 'prompt' && message !== null) return message.field;
      const [member = ''] = field.split('.', 1);
      return member in start ? `${START_PREFIX}${field}` : field;
    });
  };
}

/**
 * Checks the scope that a verb needs.
 * @throws Problem `scope_missing`.
 */
function expectScope(principal: Principal, verb: Verb): void {
  const scope = VERB_SCOPES[verb];
  if (!isAllowed(principal, scope)) throw new Problem('scope_missing', `${verb} needs the scope ${scope}`);
}

async function send<V extends Verb>(
  { context, session, principal, signal }: CommandSender,
  verb: V,
  body: BodyInput<V>,
  id: string,
  tolerated: ReadonlySet<string> = new Set(),
): Promise<CommandResult> {
  expectScope(principal, verb);
  const waiting = { wait: 'accepted', timeout_ms: GATEWAY_BOUNDS.waitDefaultMs } as const;
  const options = sendOptions(verb, { principal, id, waiting, signal });
  try {
    const sent = await sendCounted(context, verb, () => session.wire.send(verb, body, options));
    const { commandId, receipt, duplicate } = sent;
    const kept = receipt?.pending_for_next_run ? { pending_for_next_run: true as const } : {};
    return { verb, command_id: commandId, stage: 'accepted', n: receipt?.n ?? null, duplicate, ...kept };
  } catch (error) {
    const { code, message } = error as { readonly code?: unknown; readonly message: string };
    if (typeof code !== 'string' || !tolerated.has(code)) throw error;
    return { verb, command_id: id, stage: 'rejected', n: null, duplicate: false, code, message };
  }
}
