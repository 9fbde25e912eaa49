/** Queues of a session: messages (steers, reminders and follow-ups), and feedback. */
import type { Actor, InjectionVerb, MessageSource, Mode, ReminderFields } from '@coxswain/protocol';

/** A steer or a reminder that is queued for a seam. A queued follow-up is a {@link PendingFollowup}. */
export interface PendingInjection {
  readonly command_id: string;
  readonly kind: Exclude<InjectionVerb, 'followup'>;
  readonly body: string;
  readonly mode: Mode;
  readonly actor?: Actor | undefined;
  /** Time of arrival, ISO 8601. */
  readonly at: string;
  readonly dedupe_key?: string | undefined;
  /** The command that replaced its text. */
  readonly replaced_by?: string | undefined;
  /** The session that sent it. */
  readonly from?: MessageSource | undefined;
  /** Only for reminders. */
  readonly reminder?: Omit<ReminderFields, 'dedupe_key'> | undefined;
  /** The message preempts as soon as hooks accept it. */
  readonly preempt?: true | undefined;
  /** `user_prompt_submit` hooks have accepted it. */
  readonly allowed?: true | undefined;
  /**
   * The suspension (`requestOf`, suspension.ts) that was requested, and had not started, when this interrupt arrived or
   * hooks accepted it. The delivery of the interrupt ends that suspension as soon as it starts.
   */
  readonly interrupts?: string | undefined;
  /** This interrupt has ended a suspension, and is still queued: it ends no other one. */
  readonly has_woken?: true | undefined;
}

/** A follow-up that is queued until the run would otherwise end or idle. */
export interface PendingFollowup {
  readonly command_id: string;
  readonly body: string;
  readonly actor?: Actor | undefined;
  readonly at: string;
  readonly dedupe_key?: string | undefined;
  readonly replaced_by?: string | undefined;
  /** The session that sent it. */
  readonly from?: MessageSource | undefined;
  /**
   * The first such message starts the next run (`runOfLateMessage`, runs/run-starts.ts). Further ones are follow-ups in
   * that run.
   */
  readonly begins_run?: true | undefined;
  /** `user_prompt_submit` hooks have accepted it. */
  readonly allowed?: true | undefined;
}

/** Feedback that is queued for a compaction seam. */
export interface PendingFeedback {
  readonly feedback_id: string;
  readonly source: string;
  readonly body: string;
}

/** The members of the context for queued messages. */
export interface InjectionsState {
  readonly pending: readonly PendingInjection[];
  readonly followups: readonly PendingFollowup[];
  /**
   * The model has not read the newest delivery: a message was delivered since the last model request. With
   * `one_at_a_time` the next message waits for a request.
   */
  readonly unheard: boolean;
  /** Messages that the last checkpoint delivered, and direct reminders of hooks, that are not in the transcript so far. */
  readonly delivering: readonly PendingInjection[];
  /** The seam of the last delivery of messages or feedback. */
  readonly delivering_seam: string;
  /**
   * Preempting interrupts that arrived, or were accepted by hooks, while the open turn had no work to end. While one of them
   * is queued, a model call ends before it is sent.
   */
  readonly preempting: readonly string[];
  readonly feedback: readonly PendingFeedback[];
  /** Feedback that the last checkpoint delivered and that is not in the transcript so far. */
  readonly delivering_feedback: readonly PendingFeedback[];
  /** Number of all queued pieces of feedback so far: the base of their ids. */
  readonly feedback_count: number;
  /** Number of pieces dropped since the last delivery. */
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

/** Queued messages outlive the run. The list of preempting interrupts does not outlive its turn. */
export const INJECTIONS_AT_RUN_OR_TURN_START: Pick<InjectionsState, 'preempting'> = { preempting: [] };
