/** Live reminders. */
import type { Actor, ExpiryReason, ReminderFields } from '@coxswain/protocol';

/** A live reminder: it was delivered or inherited, and every prompt shows it. */
export interface LiveReminder extends ReminderFields {
  readonly command_id: string;
  readonly body: string;
  readonly actor?: Actor | undefined;
  /** The run and turn of its delivery; 0 and 0 for an inherited one. */
  readonly run: number;
  readonly turn: number;
  /** Number of turns that ended since its delivery. */
  readonly age: number;
  /** Whether a turn has passed `post_compact` with it: the prompt of that turn shows it, if it is sent (REMINDER-1, reminders.ts). */
  readonly shown: boolean;
  /**
   * Number of turns that are left to it; absent without a limit. What counts as a turn: REMINDER-1,
   * `countDownAtCompaction`.
   */
  readonly ttl_left?: number | undefined;
  /** The reason of its expiry, which is due but not recorded (REMINDER-2, reminders.ts). */
  readonly due?: Exclude<ExpiryReason, 'cleared'> | undefined;
}

/** The members of the context for reminders. They outlive the run. */
export interface RemindersState {
  /** Live reminders, in the order of their delivery. */
  readonly reminders: readonly LiveReminder[];
}

/** No reminders. */
export const EMPTY_REMINDERS: RemindersState = { reminders: [] };
