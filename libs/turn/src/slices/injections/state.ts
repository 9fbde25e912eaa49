/** Queued messages: injections, follow-ups and inbox feedback. */
import type { Actor, MessageSource, Mode, ReminderFields } from '@coxswain/protocol';

/** An injection that waits for a seam. */
export interface PendingInjection {
  readonly command_id: string;
  readonly kind: 'steer' | 'remind';
  readonly body: string;
  readonly mode: Mode;
  readonly actor?: Actor | undefined;
  /** When it was received, ISO 8601. */
  readonly at: string;
  readonly dedupe_key?: string | undefined;
  /** The command that gave it another text than it came with. */
  readonly replaced_by?: string | undefined;
  /** Another session has sent it. */
  readonly from?: MessageSource | undefined;
  /** Only a reminder has it. */
  readonly reminder?: Omit<ReminderFields, 'dedupe_key'> | undefined;
  /** It interrupts after hooks have accepted it. Set only until their verdict. */
  readonly preempt?: true | undefined;
  /** `user_prompt_submit` hooks have accepted it. */
  readonly allowed?: true | undefined;
  /** The suspension that was asked for before this interrupt came: its delivery ends it. */
  readonly interrupts?: string | undefined;
  /** This interrupt has ended a suspension, and no seam was passed since: it ends no other. */
  readonly has_woken?: true | undefined;
}

/** A follow-up that waits for the run to come to a plain answer. */
export interface PendingFollowup {
  readonly command_id: string;
  readonly body: string;
  readonly actor?: Actor | undefined;
  readonly at: string;
  readonly dedupe_key?: string | undefined;
  readonly replaced_by?: string | undefined;
  /** Another session has sent it. */
  readonly from?: MessageSource | undefined;
  /** The next run begins with it, as soon as the one before has ended. */
  readonly begins_run?: true | undefined;
  /** `user_prompt_submit` hooks have accepted it. */
  readonly allowed?: true | undefined;
}

/** Inbox feedback that waits for a compaction seam. */
export interface PendingFeedback {
  readonly feedback_id: string;
  readonly source: string;
  readonly body: string;
}

/** The members of the context that belong to queued messages. */
export interface InjectionsState {
  readonly pending: readonly PendingInjection[];
  readonly followups: readonly PendingFollowup[];
  /** Something was delivered since the model was last asked: delivered one at a time, the next waits until it is. */
  readonly unheard: boolean;
  /** Taken from `pending` by the last checkpoint, and not yet said in a message_injected. */
  readonly delivering: readonly PendingInjection[];
  readonly delivering_seam: string;
  /** Interrupts that do not wait and came when the open turn had nothing to end yet: while one waits, no model is asked. */
  readonly preempting: readonly string[];
  readonly feedback: readonly PendingFeedback[];
  /** Taken from `feedback` by the last checkpoint, and not yet said in a message_injected. */
  readonly delivering_feedback: readonly PendingFeedback[];
  /** Feedback ever kept: what ids are made of. */
  readonly feedback_count: number;
  /** Feedback that had no room since the last was said. */
  readonly feedback_dropped: number;
}

/** Empty queues. */
export const EMPTY_INJECTIONS: InjectionsState = {
  pending: [],
  followups: [],
  unheard: false,
  delivering: [],
  delivering_seam: '',
  preempting: [],
  feedback: [],
  delivering_feedback: [],
  feedback_count: 0,
  feedback_dropped: 0,
};

/** Queued messages outlive the run; interrupts of a turn do not outlive the turn. */
export const INJECTIONS_AT_TURN_START: Pick<InjectionsState, 'preempting'> = { preempting: [] };
