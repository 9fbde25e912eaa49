/**
 * Checks of a stored command before the machine decides it. {@link inputOfCommand} parses it (`parseCommand` in libs/protocol,
 * commands.ts), and applies the policy of the host ({@link applyPolicy}). Then `SessionIntake` applies the quotas, answers a
 * repeated start, and limits the number of rejections that get a record (`#rejectBeyondShare`). Last, a command to a session
 * without a record passes {@link checkStart}, any other {@link checkCommand}; a start that forks is checked by `planFork`
 * (plan-fork.ts). Except `planFork`, these return the input, with a problem if the command is to be rejected.
 * `checkCommand` returns null while stored files cannot be read.
 */
import type { Blobs, CommandInbox, Log, StoredCommand, ToolOutcome } from '@coxswain/ports';
import {
  type Actor,
  BOUNDS,
  type CommandInput,
  type CommandProblem,
  checkRequest,
  cutText,
  type ErrorCode,
  formatTraceparent,
  HEADERS,
  ID_PATTERN,
  INTERNAL_VERBS,
  INVALID_COMMAND_ID,
  isCrewVerb,
  isErrorCode,
  isReceiptSubject,
  isSessionActor,
  type JsonObject,
  modeProblem,
  OPEN_RULES,
  Persona,
  parseCallOutcome,
  parseCommand,
  parseCrewCommand,
  parseFeedback,
  parseTraceparent,
  pathText,
  personaProblem,
  positionalCommandId,
  type SessionRef,
  type TimerInput,
  TimerPayload,
  type ToolDefinition,
} from '@coxswain/protocol';
import { argumentsProblem } from '@coxswain/protocol/validate-arguments';
import type { SessionActor } from '@coxswain/turn';
import { boundResult, READ_ON_TOOL } from '../effects/bound-result.ts';
import { findPersona } from '../effects/find-persona.ts';
import { chooseModel, isFailure, type ProvisionPorts, type ProvisionSettings } from '../effects/provision-session.ts';
import { type PolicyPorts, rulesOfSession } from '../effects/session-rules.ts';
import { isUnavailable } from '../effects/until-answered.ts';
import type { Transcript } from '../view/transcript.ts';
import { boundedFeedback } from './feedback-buffer.ts';
import type { ResultStore } from './result-store.ts';

/**
 * Reads a due timer. Only the timer store puts timers into the inbox. A client's command with the verb `timer` is rejected
 * as `internal_subject`.
 * @returns null for a payload that is unreadable, or that this release does not know.
 */
export function inputOfTimer(command: StoredCommand): TimerInput | null {
  try {
    const payload = TimerPayload.safeParse(JSON.parse(Buffer.from(command.payload).toString('utf8')));
    return payload.success ? { type: 'timer', ...payload.data } : null;
  } catch {
    return null;
  }
}

/**
 * Reads one stored command. Never throws: an unreadable command, or one with an invalid header, becomes an input with a
 * problem, which is rejected.
 * @param policy the policy of the host, which is applied last. Without it, the caller rejects the command in any case.
 */
export function inputOfCommand(
  command: StoredCommand,
  incarnation: CommandInbox['incarnation'],
  policy?: PolicyPorts & { readonly log: Log },
): CommandInput {
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
  const input: CommandInput = {
    type: 'command',
    verb: cutText(command.verb, 64),
    command_id: asked === undefined || hostileId ? position : asked,
    body: parsed.ok && !problem ? withHeaders(parsed.body, command) : {},
    ...(actor ? { actor } : {}),
    ...(receiptTo !== undefined && !refusedReceipt ? { receipt_to: receiptTo } : {}),
    ...(problem ? { problem } : {}),
  };
  return policy ? applyPolicy(policy, command, input) : input;
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
  // Workers and hosts send these. The broker checks which keys may publish them. The machine checks that a reported
  // call, job or child is open.
  if (command.verb === 'call_outcome' || command.verb === 'feedback' || isCrewVerb(command.verb)) return null;
  if (!(INTERNAL_VERBS as readonly string[]).includes(command.verb)) return null;
  return { code: 'internal_subject', message: `${command.verb} is for hosts and workers only`, field: 'verb' };
}

function problemOf(parsed: ReturnType<typeof parseCommand>): CommandProblem | null {
  if (!parsed.ok) return parsed.problem;
  if (parsed.verb !== 'start') return null;
  return problemOfPersonas(parsed.body);
}

/**
 * The problem of the first invalid persona definition in a start. The names of personas, and all other values, have
 * passed the schema of the command.
 */
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

type Problem = NonNullable<CommandInput['problem']>;

/**
 * The command with a problem if it names something that the policy does not allow. The rejection is logged, and the body is
 * dropped, so its record keeps nothing of the body. The same applies to a command that was rejected for a literal
 * secret; the log does not show the secret.
 */
function applyPolicy(
  { rulesFor, log }: PolicyPorts & { readonly log: Log },
  { ref, restricted = false }: StoredCommand,
  input: CommandInput,
): CommandInput {
  const refuse = (problem: Problem): CommandInput => {
    logRejection(log, ref, input, problem);
    return { ...input, body: {}, problem };
  };
  if (input.problem?.code === 'secret_in_request') return refuse(input.problem);
  if (input.problem) return input;
  // Without a policy, OPEN_RULES still limit the modes of messages from other sessions.
  const rules = rulesFor?.(ref.tenant, restricted || input.body.restricted === true) ?? OPEN_RULES;
  const problem = checkRequest(rules, input.verb, input.body);
  return problem ? refuse(problem) : input;
}

/** Logs a rejection by the policy, or for a literal secret: the sender, the code, the field and the reason. */
function logRejection(log: Log, ref: SessionRef, input: CommandInput, { code, field, message }: Problem): void {
  const { verb, command_id, actor } = input;
  log.warn(
    { tenant: ref.tenant, session_id: ref.sessionId, verb, command_id, actor: actor?.name, code, field },
    `a command was rejected: ${message}`,
  );
}

/**
 * Adds a problem to a start whose model this host cannot ask: no model, an unknown provider, no key, an invalid address, an
 * unreadable script or journal. A rejection costs nothing, while a session whose first run fails would have to be deleted.
 * Provisioning finds other problems, such as an unknown persona. A rejection by the policy is logged, for example if a
 * symbolic link leads out of the allowed folders.
 * @returns the input unchanged if it is not a start or has a problem already, or if the model can be asked. Also
 *   unchanged if the failure is retryable or not of the error catalogue, if the persona is unknown, if another process
 *   runs its steps, or if a lookup fails now.
 */
export async function checkStart(
  ports: ProvisionPorts & { readonly log: Log },
  ref: SessionRef,
  input: CommandInput,
): Promise<CommandInput> {
  if (input.problem || input.verb !== 'start') return input;
  const settings = input.body as ProvisionSettings;
  try {
    const found = await findPersona(ports, ref.tenant, settings.persona);
    if (isFailure(found) || found.served) return input;
    const model = chooseModel(settings, found.definition, ports.defaultModel);
    const failure = isFailure(model)
      ? model
      : await ports.models.check(model, rulesOfSession(ports, ref.tenant, settings));
    if (!failure || failure.retryable || !isErrorCode(failure.code)) return input;
    const problem: { code: ErrorCode; message: string; field: string } = {
      code: failure.code,
      message: failure.message,
      field: failure.code === 'not_allowed_by_policy' && settings.base_url !== undefined ? 'base_url' : 'model',
    };
    if (problem.code === 'not_allowed_by_policy') logRejection(ports.log, ref, input, problem);
    return { ...input, problem };
  } catch {
    // The run looks it up again, and waits for it or fails with the reason.
    return input;
  }
}

/** The parts of a session that its commands are checked against. */
export interface CheckedSession {
  readonly actor: SessionActor;
  readonly transcript: Transcript;
}

/**
 * Checks a command: validates edited arguments and modes, and cuts a result to its bound.
 * @returns null where the object store is unavailable and the result waits for it: the command cannot be checked now.
 */
export async function checkCommand(
  session: CheckedSession,
  input: CommandInput,
  results: ResultStore,
): Promise<CommandInput | null> {
  if (input.problem) return input;
  if (input.verb === 'approve') return withValidArguments(session, input);
  if (input.verb === 'prompt') return withKnownMode(session, input);
  return input.verb === 'call_outcome' || input.verb === 'child_ended'
    ? withBoundedResult(session, input, results)
    : input;
}

/** Rejects an unknown mode: a run in it could only fail, and so would later runs. */
function withKnownMode({ transcript }: CheckedSession, input: CommandInput): CommandInput {
  const { mode } = input.body;
  const persona = transcript.frame.persona?.definition;
  const problem = typeof mode === 'string' && persona ? modeProblem(persona, mode) : null;
  return problem === null ? input : { ...input, problem: { code: 'invalid_field', message: problem, field: 'mode' } };
}

/**
 * Validates edited arguments against the schema of the call's tool. Bounds on their size: `refusedBySize` (edited-calls.ts
 * in libs/turn). If the session no longer has the tool, it validates nothing: `sendCall` (run-tool-call.ts) then ends the
 * call without a dispatch.
 */
function withValidArguments(session: CheckedSession, input: CommandInput): CommandInput {
  const { args } = input.body;
  const tool = args === undefined ? undefined : toolOfCall(session, input);
  const problem = tool ? argumentsProblem(tool, args as JsonObject) : null;
  return problem === null
    ? input
    : { ...input, problem: { code: 'invalid_arguments', message: problem, field: 'args' } };
}

/**
 * Cuts the result in a command to its bound, like the result of a tool.
 * @returns null where the result waits for the object store: a record without the whole result would lose it for good.
 */
async function withBoundedResult(
  session: CheckedSession,
  input: CommandInput,
  results: ResultStore,
): Promise<CommandInput | null> {
  const tool = toolOfCall(session, input);
  const hasReadOnTool = session.transcript.frame.tools.some(({ name }) => name === READ_ON_TOOL);
  const { status, result } = input.body as unknown as ToolOutcome;
  let isAway = false;
  const put: Blobs['put'] = async (sha256, bytes) => {
    try {
      await results.put(sha256, bytes);
    } catch (error) {
      isAway ||= isUnavailable(error);
      throw error;
    }
  };
  const bounded = await boundResult({ put }, { status, result }, { tool, hasReadOnTool });
  if (isAway && results.isAwaited) return null;
  return { ...input, body: { ...input.body, ...bounded } as unknown as JsonObject };
}

function toolOfCall({ actor, transcript }: CheckedSession, { body }: CommandInput): ToolDefinition | undefined {
  const row = actor.state.context.calls.find((call) =>
    body.call_id === undefined ? call.effect_id === body.effect_id : call.call_id === body.call_id,
  );
  return transcript.frame.tools.find(({ name }) => name === row?.tool);
}
