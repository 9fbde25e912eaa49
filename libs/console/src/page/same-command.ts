/** What somebody asks for once more, as it was not heard whether it was taken: under the ids that it had it is done once. */
import { newCommandId, newSessionId } from '../browser-client.ts';

/** Under which a command is sent; a start or a fork makes the session of this id. */
export interface CommandIds {
  readonly id: string;
  readonly sessionId: string;
}

/** After these nobody knows whether the command takes effect. Whatever else goes wrong, the command was refused. */
const UNDECIDED: ReadonlySet<unknown> = new Set(['receipt_timeout', 'command_not_stored', 'gateway_unreachable']);

/** Whether what failed with this may be done all the same. */
export function isUndecided(error: unknown): boolean {
  return UNDECIDED.has((error as { readonly code?: unknown } | null)?.code);
}

/** Remembers what is undecided of one box or form: the last thing that was asked for there. */
export class SameCommand {
  #undecided: { readonly what: string; readonly ids: CommandIds } | null = null;

  /**
   * Sends a command: what is undecided under its own ids again, anything else under new ones. What was refused is another command the
   * next time: under its ids it would be refused for ever.
   * @param what all that makes it the same command.
   * @throws what sending throws.
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
