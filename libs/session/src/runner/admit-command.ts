/** Reads stored commands into machine inputs, with the problem of an invalid one. */
import type { CommandInbox, StoredCommand } from '@coxswain/ports';
import {
  type Actor,
  BOUNDS,
  type CommandInput,
  type CommandProblem,
  cutText,
  formatTraceparent,
  HEADERS,
  ID_PATTERN,
  INTERNAL_VERBS,
  INVALID_COMMAND_ID,
  isCrewVerb,
  isReceiptSubject,
  isSessionActor,
  type JsonObject,
  Persona,
  parseCallOutcome,
  parseCommand,
  parseCrewCommand,
  parseFeedback,
  parseTraceparent,
  pathText,
  personaProblem,
  positionalCommandId,
  type TimerInput,
  TimerPayload,
} from '@coxswain/protocol';
import { boundedFeedback } from './feedback-buffer.ts';

/**
 * Reads a due timer. @returns null for a payload that this release does not know. Only the timer store puts timers into the
 * inbox. A client's command with the verb `timer` is rejected as `internal_subject`.
 */
export function admitTimer(command: StoredCommand): TimerInput | null {
  try {
    const payload = TimerPayload.safeParse(JSON.parse(Buffer.from(command.payload).toString('utf8')));
    return payload.success ? { type: 'timer', ...payload.data } : null;
  } catch {
    return null;
  }
}

/** Reads one stored command. Never throws: an unreadable command becomes an input with a problem, which is rejected. */
export function admitCommand(command: StoredCommand, incarnation: CommandInbox['incarnation']): CommandInput {
  const parsed = parsedBody(command);
  const position = positionalCommandId(incarnation, command.seq);
  const asked = parsed.id ?? command.commandId;
  const hostileId = asked !== undefined && !ID_PATTERN.test(asked);
  const receiptTo = command.receiptTo;
  const refusedReceipt = receiptTo !== undefined && !isReceiptSubject(receiptTo, command.ref.tenant);
  const named = parsed.actor;
  const actor: Actor | undefined = named ?? headerActor(command.actor);
  const actorTooLong = named === undefined && (command.actor?.trim().length ?? 0) > BOUNDS.actorMaxChars;
  const problem =
    internal(command) ??
    (hostileId ? INVALID_COMMAND_ID : null) ??
    (refusedReceipt ? badReceipt : null) ??
    (actorTooLong ? badActor : null) ??
    (actor && isSessionActor(actor.name) ? feignedActor : null) ??
    problemOf(parsed);
  return {
    type: 'command',
    verb: cutText(command.verb, 64),
    command_id: asked === undefined || hostileId ? position : asked,
    body: parsed.ok && !problem ? withHeaders(parsed.body, command) : {},
    ...(actor ? { actor } : {}),
    ...(receiptTo !== undefined && !refusedReceipt ? { receipt_to: receiptTo } : {}),
    ...(problem ? { problem } : {}),
  };
}

/**
 * Adds the headers of a start to its body, because they apply to the whole session: the trace of the sender, unless the body
 * has one, and whether the sender is restricted. A fork takes both from its origin.
 */
function withHeaders(body: JsonObject, { verb, traceparent, restricted }: StoredCommand): JsonObject {
  if (verb !== 'start' || body.fork !== undefined) return body;
  const sent = body.trace === undefined ? parseTraceparent(traceparent) : null;
  return {
    ...body,
    ...(sent ? { trace: formatTraceparent(sent) } : {}),
    ...(restricted ? { restricted: true } : {}),
  };
}

function parsedBody({ verb, payload }: StoredCommand): ReturnType<typeof parseCommand> {
  if (isCrewVerb(verb)) return parseCrewCommand(verb, payload);
  if (verb === 'call_outcome') return parseCallOutcome(payload);
  if (verb !== 'feedback') return parseCommand(verb, payload);
  const parsed = parseFeedback(payload);
  if (!parsed.ok || typeof parsed.body.body !== 'string') return parsed;
  return { ...parsed, body: { ...parsed.body, body: boundedFeedback(parsed.body.body) } };
}

const badActor: CommandProblem = {
  code: 'invalid_field',
  message: `${HEADERS.actor}: may have at most ${BOUNDS.actorMaxChars} characters`,
  field: HEADERS.actor,
};
const feignedActor: CommandProblem = {
  code: 'invalid_field',
  message: 'actor: only a session can use the name session:<id>',
  field: 'actor',
};
const badReceipt: CommandProblem = {
  code: 'receipt_subject_refused',
  message:
    'receipts go only to an inbox, _INBOX.<tokens> or _INBOX_<name>.<tokens>, that belongs neither to a host nor to another tenant',
  field: 'Cox-Receipt-To',
};

function internal(command: StoredCommand): CommandProblem | null {
  // Subjects of workers and hosts. The broker checks who may publish there, and the machine checks for an open effect.
  if (command.verb === 'call_outcome' || command.verb === 'feedback' || isCrewVerb(command.verb)) return null;
  if (!(INTERNAL_VERBS as readonly string[]).includes(command.verb)) return null;
  return { code: 'internal_subject', message: `${command.verb} is for hosts and workers only`, field: 'verb' };
}

function problemOf(parsed: ReturnType<typeof parseCommand>): CommandProblem | null {
  if (!parsed.ok) return parsed.problem;
  if (parsed.verb !== 'start') return null;
  return problemOfPersonas(parsed.body);
}

/** The problem of the first invalid persona in a start. A value of another shape is not a persona. */
function problemOfPersonas(body: JsonObject): CommandProblem | null {
  const { persona, personas, fork } = body as { persona?: unknown; personas?: unknown; fork?: ForkOfStart };
  const places: [at: string, value: unknown][] = [
    ...(Array.isArray(personas) ? personas.map((one, index): [string, unknown] => [`personas.${index}`, one]) : []),
    ['persona', persona],
    ['fork.changes.persona', fork?.changes?.persona],
  ];
  for (const [at, value] of places) {
    const read = Persona.safeParse(value);
    const problem = read.success ? personaProblem(read.data) : null;
    if (!problem) continue;
    const field = [at, ...problem.path].map(String).join('.');
    return { code: 'invalid_field', message: `${at}: ${pathText(problem.path)}: ${problem.words}`, field };
  }
  return null;
}

interface ForkOfStart {
  readonly changes?: { readonly persona?: unknown };
}

function headerActor(name: string | undefined): Actor | undefined {
  const trimmed = name === undefined ? '' : cutText(name.trim(), BOUNDS.actorMaxChars);
  return trimmed ? { name: trimmed, verified: false } : undefined;
}
