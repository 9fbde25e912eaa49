/** Commands as clients published them, put together from the history's single attempts. */
import type { History } from '../history.ts';

/** One command, over all attempts to publish it. */
export interface Published {
  readonly session: string;
  readonly commandId: string;
  readonly verb: string;
  /** Positions that the store has acknowledged. */
  readonly seqs: readonly number[];
  /** The store, or a receipt, has said that it is there. */
  readonly isAcknowledged: boolean;
  /** When it was acknowledged first; null if never. */
  readonly acknowledgedAtMs: number | null;
}

/** Commands by session and id. */
export function publishedIn(history: History): ReadonlyMap<string, Published> {
  const ops = new Map<number, string>();
  const commands = new Map<string, { -readonly [K in keyof Published]: Published[K] }>();
  for (const entry of history.entries) {
    if (entry.what === 'invoked') {
      const { session, commandId, verb, op } = entry;
      const key = keyOf(session, commandId);
      ops.set(op, key);
      if (!commands.has(key))
        commands.set(key, { session, commandId, verb, seqs: [], isAcknowledged: false, acknowledgedAtMs: null });
    }
    if (entry.what === 'stored') {
      const command = commands.get(ops.get(entry.op) ?? '');
      if (!command) throw new Error(`attempt ${entry.op} was never made`);
      if (entry.seq !== null) command.seqs = [...command.seqs, entry.seq];
      command.isAcknowledged = true;
      command.acknowledgedAtMs ??= entry.atMs;
    }
  }
  return commands;
}

/** The key of a command. */
export const keyOf = (session: string, commandId: string) => `${session} ${commandId}`;
