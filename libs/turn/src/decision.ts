/** Decisions: what `decide` gives back. */
import type { CommandInput, SessionEvent } from '@coxswain/protocol';

type CommandRejected = Extract<SessionEvent, { type: 'command_rejected' }>;

/**
 * What becomes of an input. `ignored` leaves no record; `previously` is what a repeated command was told the first time.
 * `deletes`: nothing follows from it here, and the host is to end the journal.
 */
export type Decision =
  | { readonly kind: 'events'; readonly events: readonly SessionEvent[] }
  | { readonly kind: 'rejected'; readonly events: readonly [CommandRejected, ...SessionEvent[]] }
  | { readonly kind: 'ignored'; readonly reason: string; readonly previously?: string; readonly deletes?: true };

/** A decision for these events. */
export function events(...list: readonly SessionEvent[]): Decision {
  return { kind: 'events', events: list };
}

/** An outcome that no open effect waits for (D2). */
export function late(effectId: string): Decision {
  return { kind: 'ignored', reason: `no open effect ${effectId}` };
}

/** Who sent a command, as a member of its events. */
export const by = (input: CommandInput) => (input.actor ? { actor: input.actor } : {});
/** A reason as the end of a sentence: `: reason`, or nothing. */
export function because(reason: string | null | undefined): string {
  return reason ? `: ${reason}` : '';
}

/** A reason, where one is given. */
export const why = (reason: unknown) => (typeof reason === 'string' ? { reason } : {});
