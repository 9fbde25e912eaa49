/**
 * The memory of command ids: it detects repeated commands. Bounded to the newest ids.
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
 * Whether a command id is too old: its command may be a repetition, and the memory may have forgotten the id. UUIDv7s
 * sort by time (RFC 9562 5.7). So, once the memory is full, a UUIDv7 is too old if it sorts before the first UUIDv7 in
 * the memory. Ids of the future do not count there: the clock of their sender is wrong, and all others would be too old.
 * Ids of other forms are never too old.
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
