/** Stores messages in streams. */
import { HEADERS, type SessionRef, subjects } from '@coxswain/protocol';
import { headers, type MsgHdrs, type NatsConnection } from '@nats-io/nats-core';
import { failureOf, isWrongSequence, NatsUnavailableError } from './errors.ts';
import { answerOf, type PublishAck } from './status.ts';
import { wireOf } from './wire.ts';

/** The position of a stored message in its stream. */
export interface StoredPosition {
  readonly seq: number;
  /** The stream knew the message's id: `seq` is the position of the earlier message. */
  readonly duplicate: boolean;
}

/**
 * Stores one message. It is durable when the promise resolves.
 * @param what describes the action in errors, such as `storing a snapshot`.
 * @returns null if the headers name an expected last sequence, and the stream has another one.
 * @throws NatsUnavailableError, StreamFullError, NatsRefusedError, NotPermittedError.
 */
export async function storeMessage(
  nc: NatsConnection,
  what: string,
  subject: string,
  payload: Uint8Array,
  headers?: MsgHdrs,
): Promise<StoredPosition | null> {
  const answer = answerOf<PublishAck>(await wireOf(nc).request(subject, payload, headers));
  const { error, seq, duplicate = false } = answer;
  if (error && isWrongSequence(error)) return null;
  if (error) throw failureOf(what, error);
  if (seq === undefined) throw new NatsUnavailableError(`${what}: the acknowledgement names no position`);
  return { seq, duplicate };
}

/** The headers of a command. */
export interface CommandHeaders {
  /** The stream drops a command with a known id, unless `repeat` is set. Default: the id of its position. */
  readonly commandId?: string | undefined;
  /** Stores the command also if the stream knows its id. */
  readonly repeat?: boolean | undefined;
  /** The inbox for receipts. */
  readonly receiptTo?: string | undefined;
  readonly actor?: string | undefined;
  readonly traceparent?: string | undefined;
  readonly restricted?: boolean | undefined;
}

/**
 * Stores one command. It is durable when the promise resolves. After a NatsUnavailableError the command may be stored
 * or not; with a command id it is safe to send it again. After a NatsRefusedError it is not stored.
 * @throws NatsUnavailableError, StreamFullError, NatsRefusedError, NotPermittedError.
 */
export async function storeCommand(
  nc: NatsConnection,
  ref: SessionRef,
  verb: string,
  payload: Uint8Array,
  { commandId, repeat, receiptTo, actor, traceparent, restricted }: CommandHeaders = {},
): Promise<StoredPosition> {
  const head = headers();
  if (commandId !== undefined) {
    head.append(HEADERS.commandId, commandId);
    // The message id is unique per stream, so it contains the session.
    if (!repeat) head.append('Nats-Msg-Id', subjects.commandMessageId(ref, commandId));
  }
  if (receiptTo !== undefined) head.append(HEADERS.receiptTo, receiptTo);
  if (actor !== undefined) head.append(HEADERS.actor, actor);
  if (restricted) head.append(HEADERS.restricted, '1');
  if (traceparent !== undefined) head.append(HEADERS.traceparent, traceparent);
  const what = `storing the command ${verb}`;
  const sent = head.keys().length > 0 ? head : undefined;
  return (await storeMessage(nc, what, subjects.command(ref, verb), payload, sent)) as StoredPosition;
}
