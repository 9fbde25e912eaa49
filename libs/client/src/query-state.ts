/** Asks a session host what a session is doing. */
import { type SessionRef, SessionStatus, subjects } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { errors } from '@nats-io/nats-core';
import { ClientError, NoHostError, SessionNotFoundError } from './client-errors.ts';

const QUERY_TIMEOUT_MS = 5_000;

/**
 * The session's status after its newest record.
 * @throws NoHostError where nobody answers queries, SessionNotFoundError where there is no such session.
 */
export async function queryState(
  nc: NatsConnection,
  ref: SessionRef,
  timeoutMs = QUERY_TIMEOUT_MS,
): Promise<SessionStatus> {
  let answer: unknown;
  try {
    const reply = await nc.request(subjects.query(ref, 'get_state'), undefined, { timeout: timeoutMs });
    answer = reply.json();
  } catch (error) {
    if (isUnanswered(error)) throw new NoHostError({ cause: error });
    throw error;
  }
  const refusal = refusalIn(answer);
  if (refusal?.code === 'session_not_found') throw new SessionNotFoundError(ref.sessionId);
  if (refusal) throw new ClientError(refusal.code, refusal.message);
  const status = SessionStatus.safeParse(answer);
  // A host of another version, or somebody who listens where only hosts should.
  if (!status.success)
    throw new ClientError(
      'answer_unreadable',
      'what answered is no host of this version: its answer is no state of a session',
    );
  return status.data;
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
