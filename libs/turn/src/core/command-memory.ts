/** The memory of command ids, by which a repeated command is known. Bounded: the newest of them. */

import { BOUNDS } from '@coxswain/protocol';

/** Keeps the newest command ids, the bound's worth of them, each as the entry says. */
export function remember(
  context: CommandMemory,
  commandId: string,
  entry = commandId,
): { command_ids: readonly string[] } {
  const ids = context.command_ids;
  // Several events of one command may name it; only the first adds it.
  if (remembered(context, commandId) !== undefined) return { command_ids: ids };
  return { command_ids: [...(ids.length < BOUNDS.commandIdsRemembered ? ids : ids.slice(1)), entry] };
}

/**
 * Whether one more rejection gets a record: not where rejections have their share of the newest commands already. Accepted
 * commands make room again, so a journal holds at most a third more rejections than accepted commands, and 64.
 */
export function recordsRejection({ command_ids: ids }: CommandMemory): boolean {
  let rejections = 0;
  for (const entry of ids.slice(-BOUNDS.rejectionWindowCommands)) if (entry.includes('!')) rejections++;
  return rejections < BOUNDS.rejectionsRecordedMax;
}

/** What is remembered of a command id: `accepted`, its reject code, or undefined where it is new. */
export function remembered(context: CommandMemory, commandId: string): string | undefined {
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
 * UUIDv7s sort by time (RFC 9562 5.7): one below the oldest that is remembered may be a repetition of a forgotten one.
 */
export function isTooOld(context: CommandMemory, commandId: string): boolean {
  if (context.command_ids.length < BOUNDS.commandIdsRemembered || !UUID_V7.test(commandId)) return false;
  const oldest = context.command_ids.find((entry) => UUID_V7.test(entry.slice(0, 36)));
  // Capitals are as good a spelling, and sort otherwise.
  return oldest !== undefined && commandId.toLowerCase() < oldest.slice(0, 36).toLowerCase();
}

/** The member of the context that remembers commands. */
export interface CommandMemory {
  /** The newest command ids, oldest first: `<id>`, `<id>!<reject code>`; of an injection `<id>~`, `<id>~revoked`. */
  readonly command_ids: readonly string[];
}

/** No command so far. */
export const EMPTY_COMMAND_MEMORY: CommandMemory = { command_ids: [] };

/** Remembers the command that an event names, where it names one. */
export function rememberSource(
  memory: CommandMemory,
  { command_id }: { readonly command_id?: string | undefined },
): Partial<CommandMemory> {
  return command_id === undefined ? {} : remember(memory, command_id);
}
