/** Queries session hosts for the text so far of a running answer. */
import { AnswerPieces, type AnswerPlace, type SessionRef, subjects } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';

const REPLY_WITHIN_MS = 2_000;

/**
 * The text of the newest answer after a position. Only the host that runs the session replies.
 * @param from The reader's position; null for the whole answer.
 * @returns null if no host replies within two seconds, or if the reply is invalid: the record of the answer has the
 *   text.
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
    // No host runs the session, or the connection is lost. Nothing depends on deltas: the record has the whole answer.
    return null;
  }
}
