/** Options and results of sending a command, the same over every transport. */
import { type CallCancellation, type COMMAND_BODIES, CommandId, type Receipt, type Verb } from '@coxswain/protocol';
import { CommandRejectedError } from './client-errors.ts';

/** The body of a command as a caller writes it, before defaults. */
export type BodyInput<V extends Verb> = (typeof COMMAND_BODIES)[V]['_zod']['input'];

/** The stage of a command to wait for. */
export type WaitStage = 'stored' | 'accepted' | 'delivered';
/** The stages that a transport can wait for; `outcome` for `cancel_call` only. */
export type SendStage = WaitStage | 'outcome';

/** Options for sending a command. */
export interface SendOptions<Stage extends SendStage = 'stored' | 'accepted'> {
  /** The id of the command. Sending it again with the same id changes nothing. Default: a new UUIDv7. */
  readonly id?: string | undefined;
  /**
   * The actor as stated by the sender. Default: the actor of the connection. Over NATS only: a gateway takes the actor
   * from the token, and rejects this option (`unknown_field`).
   */
  readonly actor?: string | undefined;
  /**
   * The stage to wait for. `stored` (the default): the command is durable in NATS. `accepted`: the session has recorded
   * it; a rejection throws. `delivered`: the model has received it, which may take as long as the running turn. If the
   * run has ended or ends first, the receipt is `accepted` with `pending_for_next_run`. `outcome`, for `cancel_call`
   * only: the session has recorded the outcome of the cancellation; `timeoutMs` bounds the whole wait.
   */
  readonly wait?: Stage | undefined;
  /** The timeout for a receipt after the command is stored, in milliseconds. Default 30,000. */
  readonly timeoutMs?: number | undefined;
  /** With `delivered`: the timeout for acceptance, in milliseconds. Default: `timeoutMs`. */
  readonly acceptedWithinMs?: number | undefined;
  /** Stops waiting for the receipt. A sent command stays sent. If it is already aborted, nothing is sent. */
  readonly signal?: AbortSignal | undefined;
  /** Trace context of the sender (W3C Trace Context). The trace of a start continues it. Invalid values are ignored. */
  readonly traceparent?: string | undefined;
  /**
   * Applies the host's policy to the command and to a session that it starts, even if the host trusts this connection.
   * For programs that send for others, such as a gateway; over HTTP the gateway decides. Default: false.
   */
  readonly restricted?: boolean | undefined;
}

/** A stored command, in its wire form. */
export interface WireSentCommand {
  readonly commandId: CommandId;
  /** Its sequence number in the command stream. */
  readonly seq: number;
  /**
   * The command was stored earlier under this id, or the start repeats an earlier one with the same `message_id`. Only
   * a receipt reports the latter. The receipt is that of the first command.
   */
  readonly duplicate: boolean;
  /** The awaited receipt; absent with `wait: 'stored'`. */
  readonly receipt?: Receipt;
  /** The outcome of `cancel_call`; only with `wait: 'outcome'`. */
  readonly cancellation?: CallCancellation;
}

/**
 * Time limit for storing a command, in milliseconds. It exceeds the time of a leader election, which is six seconds.
 */
export const STORED_WITHIN_MS = 15_000;
/** The default timeout for a receipt, in milliseconds. */
export const RECEIPT_TIMEOUT_MS = 30_000;

/** Validates a command id. @throws CommandRejectedError `invalid_id`. */
export function checkedCommandId(id: string): CommandId {
  const parsed = CommandId.safeParse(id);
  if (parsed.success) return parsed.data;
  throw new CommandRejectedError('invalid_id', 'a command id is 1 to 64 characters of A-Z a-z 0-9 _ -', {
    field: 'id',
  });
}
