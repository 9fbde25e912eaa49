/** The memory of command ids, by which a repeated command is known. Bounded: the newest of them. */
import { BOUNDS } from '@coxswain/protocol';
import type { SessionContext } from './context.ts';

/** Keeps the newest command ids, the bound's worth of them, each as the entry says. */
export function remember(
  context: SessionContext,
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
export function recordsRejection({ command_ids: ids }: Pick<SessionContext, 'command_ids'>): boolean {
  let rejections = 0;
  for (const entry of ids.slice(-BOUNDS.rejectionWindowCommands)) if (entry.includes('!')) rejections++;
  return rejections < BOUNDS.rejectionsRecordedMax;
}

/** What is remembered of a command id: `accepted`, its reject code, or undefined where it is new. */
export function remembered(context: SessionContext, commandId: string): string | undefined {
  const ids = context.command_ids;
  for (let i = ids.length - 1; i >= 0; i--) {
    const entry = ids[i] as string;
    if (!entry.startsWith(commandId)) continue;
    if (entry.length === commandId.length || entry[commandId.length] === '~') return 'accepted';
    if (entry[commandId.length] === '!') return entry.slice(commandId.length + 1);
  }
  return undefined;
}
