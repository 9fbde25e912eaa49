/** Reminders that prompts show. */
import type { Actor, ExpiryReason, ReminderFields } from '@coxswain/protocol';

/** A reminder that prompts show. */
export interface LiveReminder extends ReminderFields {
  readonly command_id: string;
  readonly body: string;
  readonly actor?: Actor | undefined;
  /** The run and turn in which it was delivered; 0 and 0 for one that the session was born with. */
  readonly run: number;
  readonly turn: number;
  /** Turns that have ended since. */
  readonly age: number;
  /** A prompt has shown it (L1). */
  readonly shown: boolean;
  /** Turns that will still show it; absent where they do not count. */
  readonly ttl_left?: number | undefined;
  /** Why it is to expire next (L2). */
  readonly due?: Exclude<ExpiryReason, 'cleared'> | undefined;
}

/** The members of the context that belong to reminders. They outlive the run. */
export interface RemindersState {
  /** Delivered reminders that prompts show. */
  readonly reminders: readonly LiveReminder[];
}

/** No reminders. */
export const EMPTY_REMINDERS: RemindersState = { reminders: [] };
