/** Asks the hosts for the text so far of a session's running answer. */
import { AnswerPieces, type AnswerPlace, type SessionRef, subjects } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';

const REPLY_WITHIN_MS = 2_000;

/**
 * What follows a place in the newest answer. The host that runs the session replies; the other hosts do not.
 * @param from the reader's place; null for the whole answer.
 * @returns null where no host replies within two seconds, or the reply is not valid: the answer's record has the text.
 */
export async function queryAnswer(
  nc: NatsConnection,
  ref: SessionRef,
  from: AnswerPlace | null,
): Promise<AnswerPieces | null> {
  const body = from === null ? undefined : JSON.stringify(from);
  try {
    const reply = await nc.request(subjects.query(ref, 'get_answer'), body, { timeout: REPLY_WITHIN_MS });
    const pieces = AnswerPieces.safeParse(reply.json());
    return pieces.success ? pieces.data : null;
  } catch {
    // No host has the session now, or the connection is lost. Nothing depends on deltas: the record has the whole answer.
    return null;
  }
}
