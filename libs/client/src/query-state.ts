/** Asks a session host what a session is doing. */
import { HEADERS, type SessionRef, SessionStatus, subjects } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { errors } from '@nats-io/nats-core';
import { CoxswainError, NoHostError, SessionNotFoundError } from './client-errors.ts';

const QUERY_TIMEOUT_MS = 5_000;
/** Several times what a session's bounds allow its state. */
const ANSWER_MAX_BYTES = 64 * 1024 * 1024;

/**
 * Reads the state of the session after its newest record.
 * @throws NoHostError if no host responds, SessionNotFoundError if the session does not exist.
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
    if (isUnanswered(error)) throw new NoHostError({ cause: error });
    throw error;
  }
  const refusal = refusalIn(answer);
  if (refusal?.code === 'session_not_found') throw new SessionNotFoundError(ref.sessionId);
  if (refusal) throw new CoxswainError(refusal.code, refusal.message);
  const status = SessionStatus.safeParse(answer);
  // A host of another version, or somebody who listens where only hosts should.
  if (!status.success)
    throw new CoxswainError(
      'answer_unreadable',
      'the response is not from a host of this version: it is not the state of a session',
    );
  return status.data;
}

/**
 * The answer to a query, read as JSON. Each part but the last has the header `Cox-More`.
 * @throws NoHostError where the last part does not come in time, CoxswainError where the answer has too many bytes.
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
    return parts.length === 1 ? readJson(data) : readJson(concatenated(parts, bytes));
  }
  throw new NoHostError();
}

function concatenated(parts: readonly Uint8Array[], bytes: number): Uint8Array {
  const all = new Uint8Array(bytes);
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** Undefined where it is not JSON, which is the answer of no host. */
function readJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return undefined;
  }
}

function isUnanswered(error: unknown): boolean {
  return (
    error instanceof errors.TimeoutError ||
    error instanceof errors.NoRespondersError ||
    (error instanceof errors.RequestError && error.isNoResponders())
  );
}

function refusalIn(answer: unknown): { readonly code: string; readonly message: string } | null {
  if (typeof answer !== 'object' || answer === null || !('code' in answer)) return null;
  const { code, message } = answer as { code: unknown; message?: unknown };
  return { code: String(code), message: typeof message === 'string' ? message : String(code) };
}
