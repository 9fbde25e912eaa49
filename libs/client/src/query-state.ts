/** Queries a session host for the state of a session. */
import { busErrorOf, NatsUnavailableError } from '@coxswain/bus';
import { HEADERS, type SessionRef, SessionStatus, subjects } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { CoxswainError, NoHostError, SessionNotFoundError } from './client-errors.ts';

const QUERY_TIMEOUT_MS = 5_000;
/** Several times the maximum size of a session's state. */
const ANSWER_MAX_BYTES = 64 * 1024 * 1024;

/**
 * Reads the state of the session after its newest record.
 * @param timeoutMs In milliseconds. Default 5,000.
 * @throws NoHostError if no host responds in time, SessionNotFoundError if the session does not exist, CoxswainError
 *   for another error of the host or an unreadable response.
 */
export async function queryState(
  nc: NatsConnection,
  ref: SessionRef,
  timeoutMs = QUERY_TIMEOUT_MS,
): Promise<SessionStatus> {
  let answer: unknown;
  try {
    answer = await askInParts(nc, subjects.query(ref, 'get_state'), timeoutMs);
  } catch (error) {
    const failure = busErrorOf(error);
    if (failure instanceof NatsUnavailableError && !failure.isFinal) throw new NoHostError({ cause: error });
    throw error;
  }
  const refusal = refusalIn(answer);
  if (refusal?.code === 'session_not_found') throw new SessionNotFoundError(ref.sessionId);
  if (refusal) throw new CoxswainError(refusal.code, refusal.message);
  const status = SessionStatus.safeParse(answer);
  // A host of another version, or another program that responds to queries.
  if (!status.success)
    throw new CoxswainError(
      'answer_unreadable',
      'the response is not from a host of this version: it is not the state of a session',
    );
  return status.data;
}

/**
 * Reads the parts of a response as one JSON value. Each part except the last has the header `Cox-More`.
 * @throws NoHostError if the last part does not arrive in time, CoxswainError if the response is too large.
 */
async function askInParts(nc: NatsConnection, subject: string, timeoutMs: number): Promise<unknown> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const { data, headers } of await nc.requestMany(subject, undefined, { maxWait: timeoutMs })) {
    parts.push(data);
    bytes += data.length;
    if (bytes > ANSWER_MAX_BYTES)
      throw new CoxswainError('answer_unreadable', `the response has more than ${ANSWER_MAX_BYTES} bytes`);
    if (headers?.has(HEADERS.more)) continue;
    return readJson(Buffer.concat(parts));
  }
  throw new NoHostError();
}

/** Undefined if it is not JSON: then it is not the response of a host. */
function readJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return undefined;
  }
}

function refusalIn(answer: unknown): { readonly code: string; readonly message: string } | null {
  if (typeof answer !== 'object' || answer === null || !('code' in answer)) return null;
  const { code, message } = answer as { code: unknown; message?: unknown };
  return { code: String(code), message: typeof message === 'string' ? message : String(code) };
}
