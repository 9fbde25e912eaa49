/**
 * The memory of command ids: it detects repeated commands. Bounded to the newest ids.
 *
 * Five mechanisms prevent that a repetition takes effect twice, in this order on the way of a command:
 * 1. The message id in the command stream: the store drops a second message with the same id within the stream's
 *    `duplicate_window` (`storeCommand` in libs/bus, store-message.ts). The client then stores the command once more without
 *    this id, because the dropped one may have differed from the stored one. Mechanism 4 detects that repetition.
 * 2. The inbox position in records: a command at or before the session's cursor was taken already. It detects a
 *    repeated delivery (`InboxReader.read` and `SessionIntake.#judge` in libs/session).
 * 3. The message id in the body of a start: the same start under another command id, without a limit of time
 *    (`repeatedStart` in libs/session, repeated-start.ts).
 * 4. This memory: the same command id in another message ({@link outcomeOfCommand}; `decideCommand` in decide.ts).
 * 5. The time in the command id: an id that this memory may have forgotten is rejected ({@link isTooOld}).
 */

import { BOUNDS } from '@coxswain/protocol';

/**
 * Adds a command id with its outcome, unless the memory has the id already. It keeps the newest ids, up to the bound.
 * @param entry the id with its outcome, in a form of {@link CommandMemory}; without it, the command was accepted.
 */
export function noteCommand(
  context: CommandMemory,
  commandId: string,
  entry = commandId,
): { command_ids: readonly string[] } {
  const ids = context.command_ids;
  if (outcomeOfCommand(context, commandId) !== undefined) return { command_ids: ids };
  return { command_ids: [...(ids.length < BOUNDS.commandIdsRemembered ? ids : ids.slice(1)), entry] };
}

/**
 * Whether another rejection gets a record: only while fewer than `rejectionsRecordedMax` of the newest
 * `rejectionWindowCommands` remembered commands were rejected. The caller exempts commands of other sessions' hosts
 * (`isCrewVerb`): their rejections always get a record.
 */
export function recordsRejection({ command_ids: ids }: CommandMemory): boolean {
  let rejections = 0;
  for (const entry of ids.slice(-BOUNDS.rejectionWindowCommands)) if (entry.includes('!')) rejections++;
  return rejections < BOUNDS.rejectionsRecordedMax;
}

/** The remembered outcome of a command: `accepted` or its rejection code; undefined if its id is new or forgotten. */
export function outcomeOfCommand(context: CommandMemory, commandId: string): string | undefined {
  const ids = context.command_ids;
  for (let i = ids.length - 1; i >= 0; i--) {
    const entry = ids[i] as string;
    if (!entry.startsWith(commandId)) continue;
    if (entry.length === commandId.length || entry[commandId.length] === '~') return 'accepted';
    if (entry[commandId.length] === '!') return entry.slice(commandId.length + 1);
  }
  return undefined;
}

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/**
 * Whether a command id is too old to tell a new command from a repetition: the memory may have held the id and forgotten
 * it. A memory that is not full has forgotten none. UUIDv7s sort by time (RFC 9562 5.7), so the oldest entry with a
 * UUIDv7 is the limit: a UUIDv7 that sorts before it is too old. Ids of other forms have no time, and are never too old.
 *
 * An entry whose time is after `atMs` is not the limit: its sender's clock is fast, and the ids of all other senders
 * would sort before it.
 * @param atMs the present time, milliseconds since 1970.
 */
export function isTooOld(context: CommandMemory, commandId: string, atMs: number): boolean {
  if (context.command_ids.length < BOUNDS.commandIdsRemembered || !UUID_V7.test(commandId)) return false;
  const oldest = context.command_ids.find((entry) => {
    const id = entry.slice(0, 36);
    return UUID_V7.test(id) && timeOf(id) <= atMs;
  });
  // Capital letters are a valid spelling, and sort differently.
  return oldest !== undefined && commandId.toLowerCase() < oldest.slice(0, 36).toLowerCase();
}

/** The time in a UUIDv7, its first 48 bits: milliseconds since 1970. */
function timeOf(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}

/** The member of the context with the memory of commands. */
export interface CommandMemory {
  /**
   * The newest command ids, oldest first: `<id>` of an accepted command, `<id>!<code>` of a rejected one. A message has
   * `<id>~` while it is queued and after its delivery. It has `<id>~revoked` after it was revoked, cleared, blocked or
   * collapsed into another message (`INJECTION`, `REVOKED` in injections/queue.ts).
   */
  readonly command_ids: readonly string[];
}

/** No command so far. */
export const EMPTY_COMMAND_MEMORY: CommandMemory = { command_ids: [] };

/** Adds the command that an event names, if there is one. */
export function noteSourceCommand(
  memory: CommandMemory,
  { command_id }: { readonly command_id?: string | undefined },
): Partial<CommandMemory> {
  return command_id === undefined ? {} : noteCommand(memory, command_id);
}
