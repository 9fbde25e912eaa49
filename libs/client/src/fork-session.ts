/** Forks: a new session with the past of another. */
import type { ForkChangesInput, SessionRef } from '@coxswain/protocol';
import { SessionNotFoundError } from './client-errors.ts';
import { type JournalBus, lastNumber } from './read-journal.ts';
import { type CommandBus, type SendOptions, type SentCommand, sendCommand } from './send-command.ts';

/** How a session is forked. */
export interface ForkOptions extends SendOptions {
  /** The record up to which its past is the fork's, and at which changes are made. Default: the newest. */
  readonly at?: number | undefined;
  /** What is to be otherwise: in that record, or from there on. */
  readonly changes?: ForkChangesInput | undefined;
  /** The fork's id. Default: a random one. */
  readonly sessionId?: string | undefined;
}

/** Sends the start of a fork. @returns the record it begins at, beside the stored command. */
export async function sendFork(
  bus: CommandBus & JournalBus,
  origin: SessionRef,
  fork: SessionRef,
  { at, changes, sessionId: _, ...options }: ForkOptions,
): Promise<SentCommand & { readonly n: number }> {
  const n = at ?? (await lastNumber(bus, origin));
  if (n === 0) throw new SessionNotFoundError(origin.sessionId);
  const body = { fork: { session: origin.sessionId, n, ...(changes === undefined ? {} : { changes }) } };
  return { ...(await sendCommand(bus, fork, 'start', body, options)), n };
}
