/** A command before it is sent: how it is to be sent, and whether it is one at all. The same over every transport. */
import {
  type CallCancellation,
  type COMMAND_BODIES,
  CommandId,
  parseCommand,
  type Receipt,
  unwritableProblem,
  type Verb,
} from '@coxswain/protocol';
import { CommandRejectedError } from './client-errors.ts';

/** What a verb's body may look like as a caller writes it, before defaults. */
export type BodyInput<V extends Verb> = (typeof COMMAND_BODIES)[V]['_zod']['input'];

/** How far a command is followed. */
export type WaitStage = 'stored' | 'accepted' | 'delivered';
/** How far a transport follows a command: of a `cancel_call` also to its outcome. */
export type SendStage = WaitStage | 'outcome';

/** How a command is sent. */
export interface SendOptions<Stage extends SendStage = 'stored' | 'accepted'> {
  /** The command's id; sending the same again changes nothing. Default: a new UUIDv7. */
  readonly id?: string | undefined;
  /** Who sends it, as the sender says. Default: whom the connection names. Over the bus alone: a gateway names the actor by the token, and refuses this one (`unknown_field`). */
  readonly actor?: string | undefined;
  /**
   * The stage to wait for. `stored` (the default): the command is durable on the bus. `accepted`: the session has
   * recorded it; a rejection throws. `delivered`: the model has received it, which may take as long as the running
   * turn. If the run has ended or ends first, the receipt is `accepted` with `pending_for_next_run`. `outcome`, for
   * `cancel_call` only: the session has recorded the outcome of the cancellation; `timeoutMs` bounds the whole wait.
   */
  readonly wait?: Stage | undefined;
  /** How long a receipt is waited for, after the command is stored. Default 30,000. */
  readonly timeoutMs?: number | undefined;
  /** How long the session may take to accept what is to be `delivered`. Default: as long as `timeoutMs`. */
  readonly acceptedWithinMs?: number | undefined;
  /** Ends the waiting for a receipt; what was sent stays sent. */
  readonly signal?: AbortSignal | undefined;
  /** Trace context of the sender (W3C Trace Context). The trace of a start continues it. Invalid values are ignored. */
  readonly traceparent?: string | undefined;
  /**
   * Holds the command, and a session that it starts, to the policy of the host, also where the host trusts the bus. For programs
   * that send for others, as a gateway does; over HTTP the gateway decides. Default: false.
   */
  readonly restricted?: boolean | undefined;
}

/** A command that is stored, in the form of the wire. */
export interface WireSentCommand {
  readonly commandId: CommandId;
  /** Its position in the command stream. */
  readonly seq: number;
  /**
   * The bus had this command already, and nothing was stored a second time; or the start repeats the session's start under its
   * `message_id`, which only its receipt says. The receipt is that of the first.
   */
  readonly duplicate: boolean;
  /** The receipt that was waited for; absent with `wait: 'stored'`. */
  readonly receipt?: Receipt;
  /** How the cancelling of a call ended; only with `wait: 'outcome'`. */
  readonly cancellation?: CallCancellation;
}

/** Time limit for storing a command, milliseconds. It exceeds the time of a leader election, which is six seconds. */
export const STORED_WITHIN_MS = 15_000;
/** How long a receipt is waited for where the caller does not say. */
export const RECEIPT_TIMEOUT_MS = 30_000;

/** An id as a command’s. @throws CommandRejectedError `invalid_id`. */
export function checkedCommandId(id: string): CommandId {
  const parsed = CommandId.safeParse(id);
  if (parsed.success) return parsed.data;
  throw new CommandRejectedError('invalid_id', 'a command id is 1 to 64 characters of A-Z a-z 0-9 _ -', {
    field: 'id',
  });
}

/**
 * Encodes a body. The parser of the host validates it here, so that an invalid body fails at once and is not stored.
 * @throws CommandRejectedError naming the field.
 */
export function checkedPayload(verb: Verb, body: unknown, actor: string | undefined): Uint8Array {
  const text = written(actor === undefined ? body : { ...(body as object), actor });
  // JSON.stringify writes an infinite number as null, which the host would accept.
  const unwritable = unwritableProblem(body);
  if (unwritable) throw new CommandRejectedError(unwritable.code, unwritable.message, { field: unwritable.field });
  const payload = new TextEncoder().encode(text);
  const parsed = parseCommand(verb, payload);
  if (parsed.ok) return payload;
  throw new CommandRejectedError(parsed.problem.code, parsed.problem.message, { field: parsed.problem.field });
}

/** A body as JSON. What cannot be written is the caller's to mend: a circle, a bigint, lists within lists without end. */
function written(body: unknown): string {
  try {
    return JSON.stringify(body);
  } catch (error) {
    const [field] = Object.entries(body as object).find(([, member]) => !isWritable(member)) ?? ['body'];
    const why = error instanceof RangeError ? 'is nested too deep' : (error as Error).message.split('\n', 1)[0];
    throw new CommandRejectedError('invalid_field', `${field}: ${why}`, { field });
  }
}

function isWritable(value: unknown): boolean {
  try {
    JSON.stringify(value);
    return true;
  } catch {
    // Which is all that was asked.
    return false;
  }
}
