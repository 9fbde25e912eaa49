/** Retries with the ids of the failed attempt if its outcome is unknown, so that the command is applied once. */
import { newCommandId, newSessionId } from '../browser-client.ts';

/** The ids of a command. A start or a fork creates the session with this id. */
export interface CommandIds {
  readonly id: string;
  readonly sessionId: string;
}

/** After these errors the outcome is unknown. After any other error the command had no effect. */
const UNDECIDED: ReadonlySet<unknown> = new Set(['receipt_timeout', 'command_not_stored', 'gateway_unreachable']);

/** Whether the command may have taken effect despite this error. */
export function isUndecided(error: unknown): boolean {
  return UNDECIDED.has((error as { readonly code?: unknown } | null)?.code);
}

/** Remembers the last command of one form if its outcome is unknown. */
export class SameCommand {
  #undecided: { readonly what: string; readonly ids: CommandIds } | null = null;

  /**
   * Sends a command: with the ids of the last attempt if that was the same command and its outcome is unknown,
   * otherwise with new ids. A rejected command gets new ids, because the old ones would be rejected again.
   * @param what Identifies the command by its whole content.
   * @throws errors of sending.
   */
  async send<T>(what: string, sending: (ids: CommandIds) => Promise<T>): Promise<T> {
    const known = this.#undecided?.what === what ? this.#undecided.ids : null;
    const ids = known ?? { id: newCommandId(), sessionId: newSessionId() };
    this.#undecided = null;
    try {
      return await sending(ids);
    } catch (error) {
      if (isUndecided(error)) this.#undecided = { what, ids };
      throw error;
    }
  }
}
