/** Sends commands for requests: actor, command id and waiting. */
import {
  type BodyInput,
  CommandRejectedError,
  CoxswainError,
  type Session,
  type WireSentCommand,
} from '@coxswain/client';
import {
  cutText,
  httpFieldOf,
  INJECTION_VERBS,
  type JsonObject,
  natsBodyOf,
  nearestWord,
  SessionDeletedError,
  takesText,
  type Verb,
} from '@coxswain/protocol';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { expectMaySteer, isAllowed, type Principal } from '../auth/mod.ts';
import {
  clientFor,
  type GatewayContext,
  onStopping,
  Problem,
  principalOf,
  requestClosedProblem,
  withRenamedField,
} from '../context/mod.ts';
import { membersOf, parseTextBody, type StoredCommand, TextBody, traceparentOf, type Waiting } from '../http/mod.ts';
import { deriveIds, type KeyedIds, rejectOtherCommand, rejectReusedId } from './idempotency.ts';

/** Verbs whose message is delivered to the model after its acceptance. */
const DELIVERED_VERBS: ReadonlySet<Verb> = new Set(INJECTION_VERBS);

/**
 * The request body as an object.
 * @param verb determines whether plain text is accepted; null for JSON only.
 * @throws Problem `unsupported_media_type` (415), `invalid_field` (400) or `unknown_field` (400).
 */
export function objectBody(request: FastifyRequest, verb: Verb | null): Record<string, unknown> {
  const { body } = request;
  if (body instanceof TextBody && (verb === null || !takesText(verb)))
    throw new Problem('unsupported_media_type', 'the body must be a JSON object, not plain text');
  const value = body instanceof TextBody ? parseTextBody(body) : (body ?? {});
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Problem('invalid_field', 'body: must be an object', { field: 'body' });
  if ('actor' in value)
    throw new Problem('unknown_field', 'unknown field "actor": the token determines the actor', { field: 'actor' });
  return value as Record<string, unknown>;
}

/**
 * Rejects unknown fields of a verb's body over HTTP. `actor` is not a field: the token determines the actor.
 * @param without fields that the path sets.
 * @param more fields of the body in addition to those of the verb.
 * @throws Problem `unknown_field` (400).
 */
export function rejectUnknownFields(
  body: object,
  verb: Verb,
  without: readonly string[] = [],
  more: readonly string[] = [],
): void {
  rejectOtherFields(body, verb, [...membersOf(verb).filter((name) => !without.includes(name)), ...more]);
}

/**
 * Rejects fields other than `members`.
 * @throws Problem `unknown_field` (400), with the nearest field and a list of all fields.
 */
export function rejectOtherFields(body: object, what: string, members: readonly string[]): void {
  const unknown = Object.keys(body).find((name) => !members.includes(name));
  if (unknown === undefined) return;
  const field = cutText(unknown, 128);
  const hint = unknown === 'id' ? idHint(members) : nearestHint(unknown, members);
  const message = `unknown field ${JSON.stringify(field)}${hint}; ${what} takes ${members.join(', ')}`;
  throw new Problem('unknown_field', message, { field });
}

function nearestHint(unknown: string, members: readonly string[]): string {
  const nearest = nearestWord(unknown, members);
  return nearest === null ? '' : `; did you mean ${JSON.stringify(nearest)}?`;
}

/**
 * The hint for an unknown field `id`. On NATS it is the command's own id. If the body also has a session id, the sender
 * may mean either.
 */
function idHint(members: readonly string[]): string {
  if (!members.includes('command_id')) return '';
  const session = members.includes('session_id') ? ', and the session’s id is "session_id"' : '';
  return `: over HTTP the command’s own id is "command_id"${session}`;
}

/**
 * The ids of the request's idempotency key; null without a key.
 * @throws Problem `invalid_field` (400).
 */
export function idempotentIds(request: FastifyRequest, principal: Principal, body: unknown): KeyedIds | null {
  const key = request.headers['idempotency-key'];
  if (key === undefined) return null;
  const address = `${request.method} ${request.url.split('?', 1)[0]}`;
  return deriveIds(String(key), principal, { address, body });
}

/**
 * A signal that aborts when the client disconnects before the response is complete. It also aborts some time after the
 * gateway starts to stop: the command is stored then, and the client can query another gateway.
 */
export function abortOnDisconnectOrStop(context: GatewayContext, { raw }: FastifyReply): AbortSignal {
  const controller = new AbortController();
  // The response also closes after it is complete.
  const abortForDisconnect = () => {
    if (!raw.writableFinished) controller.abort(requestClosedProblem());
  };
  const abortForStop = () => controller.abort(stoppingProblem());
  let stopTimer: NodeJS.Timeout | undefined;
  if (raw.destroyed) abortForDisconnect();
  else {
    const removeStopListener = onStopping(context, () => {
      stopTimer = setTimeout(abortForStop, context.times.waitsEndMs);
    });
    raw.once('close', () => {
      clearTimeout(stopTimer);
      removeStopListener();
      abortForDisconnect();
    });
  }
  return controller.signal;
}

function stoppingProblem(): Problem {
  return new Problem(
    'gateway_stopping',
    'this gateway is shutting down; the command is stored and may still take effect: query its receipt at another gateway with its id',
    { headers: { 'retry-after': '1', connection: 'close' } },
  );
}

/** How a command is sent for a request. */
export interface SendContext {
  readonly principal: Principal;
  readonly id: string | undefined;
  readonly waiting: Waiting;
  readonly signal: AbortSignal;
  readonly traceparent?: string | undefined;
}

/**
 * The options of a command for the client.
 * @throws Problem `invalid_field` (400) if the verb does not have the stage to wait for.
 */
export function sendOptions(verb: Verb, { principal, id, waiting, signal, traceparent }: SendContext) {
  const { wait, timeout_ms } = waiting;
  if (wait === 'delivered' && !DELIVERED_VERBS.has(verb))
    throw new Problem('invalid_field', `wait: ${verb} has no stage delivered; use accepted`, { field: 'wait' });
  if (wait === 'outcome' && verb !== 'cancel_call')
    throw new Problem('invalid_field', `wait: ${verb} has no outcome to wait for; only cancel_call has`, {
      field: 'wait',
    });
  return {
    id,
    actor: principal.name,
    wait: wait ?? ('stored' as const),
    timeoutMs: timeout_ms,
    signal,
    traceparent,
    // Only a token with the scope `admin` may configure the host.
    restricted: !isAllowed(principal, 'admin'),
  };
}

/**
 * Sends the command of a request and sets the status 202.
 * @param pathFields fields that the path sets, with their names over HTTP.
 * @throws Problem, and the errors of sending the command.
 */
export async function handleCommand<V extends Verb>(
  context: GatewayContext,
  request: FastifyRequest & { readonly query: Waiting; readonly params: { readonly session_id: string } },
  reply: FastifyReply,
  verb: V,
  pathFields: JsonObject = {},
): Promise<StoredCommand> {
  const principal = principalOf(request);
  const session = clientFor(context, principal).session(request.params.session_id);
  const given = rejectPathFields(objectBody(request, verb), pathFields);
  rejectUnknownFields(given, verb, Object.keys(pathFields));
  expectMaySteer(principal, verb, given);
  const body = natsBodyOf({ ...given, ...pathFields });
  const keyed = idempotentIds(request, principal, body)?.commandId;
  const id = (body as { readonly id?: string }).id ?? keyed;
  await context.known.expect(session);
  const options = sendOptions(verb, {
    principal,
    id,
    waiting: request.query,
    signal: abortOnDisconnectOrStop(context, reply),
    traceparent: traceparentOf(request),
  });
  const sent = await sendCounted(context, verb, () =>
    sendToExisting(context, session, verb, body as BodyInput<V>, options),
  );
  // The next command checks again whether the session exists.
  if (verb === 'delete') context.known.forget(session);
  if (sent.duplicate && id !== undefined) {
    const reject = id === keyed ? rejectOtherCommand : rejectReusedId;
    await reject(context.expensiveReads, session, { principal, commandId: id, verb, body });
  }
  reply.code(202);
  return toStoredCommand(session, sent);
}

/**
 * Sends a command to an existing session. Without a receipt, no host has checked the session, so this function checks
 * it afterwards.
 */
async function sendToExisting<V extends Verb>(
  { known }: GatewayContext,
  session: Session,
  verb: V,
  body: BodyInput<V>,
  options: ReturnType<typeof sendOptions>,
): Promise<WireSentCommand> {
  try {
    const sent = await session.wire.send(verb, body, options);
    // A delete has just deleted the session.
    if (options.wait === 'stored' && verb !== 'delete') await known.expectNotDeleted(session);
    return sent;
  } catch (error) {
    if ((error as { readonly code?: unknown } | null)?.code === 'session_deleted') known.forget(session);
    throw error;
  }
}

/** Rejects a body that repeats a field of the path. */
function rejectPathFields(body: Record<string, unknown>, pathFields: JsonObject): Record<string, unknown> {
  const repeated = Object.keys(pathFields).find((name) => name in body);
  if (repeated === undefined) return body;
  throw new Problem('unknown_field', `unknown field "${repeated}": the URL contains it`, { field: repeated });
}

/**
 * Sends a command and counts its outcome in the metrics.
 * @throws the error of sending, with its field named as over HTTP.
 */
export async function sendCounted(
  context: GatewayContext,
  verb: Verb,
  send: () => Promise<WireSentCommand>,
): Promise<WireSentCommand> {
  try {
    const sent = await send();
    context.metrics.commands.inc({ verb, outcome: sent.receipt?.stage ?? 'stored' });
    return sent;
  } catch (failure) {
    // The reason of an aborted signal is the problem to respond with.
    const error = failure instanceof CoxswainError && failure.code === 'aborted' ? failure.cause : failure;
    context.metrics.commands.inc({ verb, outcome: outcomeOf(error) });
    throw withRenamedField(error, httpFieldOf);
  }
}

function outcomeOf(error: unknown): string {
  if (error instanceof CommandRejectedError || error instanceof SessionDeletedError) return 'rejected';
  // The gateway's signals end a wait only after the command is stored.
  return error instanceof Problem ? 'stored' : 'failed';
}

/** The response body for a sent command. */
export function toStoredCommand(
  session: Session,
  { commandId, seq, duplicate, receipt, cancellation }: WireSentCommand,
): StoredCommand {
  return {
    session_id: session.id,
    command_id: commandId,
    seq,
    duplicate,
    ...(receipt ? { receipt } : {}),
    ...cancellation,
  };
}
