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
