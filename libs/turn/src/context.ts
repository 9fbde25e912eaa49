/**
 * The machine's context: everything that a session must remember in order to decide, as plain JSON, and bounded.
 * No message of the transcript stands here, only what waits and what is open.
 */
import type {
  Actor,
  CallStatus,
  ErrorCode,
  Failure,
  HookPoint,
  HookTable,
  Json,
  JsonObject,
  MessageSource,
  Mode,
  OnTimeout,
  ParentLink,
  ParkRequest,
  PersonaIdentity,
  PinnedPermissions,
  PinnedPrice,
  RememberedRule,
  RememberScope,
  ReminderFields,
  ReminderMessage,
  ResolvedCompaction,
  RunBudgets,
  StartSettings,
  StopCondition,
  StopReason,
  ToolResult,
  ToolTraits,
  Usage,
  UserMessage,
  WholeRunLimits,
} from '@coxswain/protocol';
import type { Announcement } from './announcements.ts';
import { type BudgetCount, NOTHING_USED } from './budgets.ts';
import type { Pass } from './compaction.ts';
import { NO_RELAY, type Relay } from './handoff.ts';
import type { DeferredReport, OpenJob } from './jobs.ts';
import type { OpenChild, SpentByChildren } from './open-children.ts';
import { NOTHING_SPENT } from './open-children.ts';
import type { LostSteps, PersonaWait } from './persona-waits.ts';
import type { LiveReminder } from './reminders.ts';
import type { PinnedStep, StepProgress } from './steps.ts';
import type { OutputProgress } from './structured-output.ts';
import { EMPTY_VIEW, type ViewAccount } from './view-account.ts';

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
  /** It ends what runs, once it is let in. Kept only while its verdict is awaited. */
  readonly preempt?: true | undefined;
  /** `user_prompt_submit` hooks have let it in. */
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
  /** `user_prompt_submit` hooks have let it in. */
  readonly allowed?: true | undefined;
}

/** Inbox feedback that waits for a compaction seam. */
export interface PendingFeedback {
  readonly feedback_id: string;
  readonly source: string;
  readonly body: string;
}

/** What is remembered of a run's calls and results, to tell its model when it goes in circles. Fingerprints only. */
export interface StallWatch {
  /** The newest call, and how often it was asked for in a row. */
  readonly call: string;
  readonly repeats: number;
  /** The newest different results, oldest first, and whether the open turn has brought one that was not among them. */
  readonly results: readonly string[];
  readonly fresh: boolean;
  /** Turns in a row that asked for calls and brought no new result. */
  readonly stale_turns: number;
  /** Sources of what has been told of the stall that is on, and of rules that have refused. */
  readonly told: readonly string[];
  /** Rules that have refused a call and of which nothing has been told yet. */
  readonly refusals: readonly { readonly rule: string; readonly tool: string }[];
}

/** Someone asked for a call that is in flight to be cancelled. */
export interface CallCancel {
  readonly command_id: string;
  readonly reason?: string | undefined;
  readonly actor?: Actor | undefined;
  readonly inject_reminder: boolean;
  readonly timeout_ms: number;
}

/**
 * One row of the call table. The table holds the newest batch; it is replaced by the next one.
 * `proposed` → (`parked` →) `allowed` → `running` → (`returned` →) `ended`; every status can go to `ended`.
 */
export interface CallRow {
  readonly call_id: string;
  readonly tool: string;
  readonly args: Json;
  readonly status: 'proposed' | 'parked' | 'allowed' | 'running' | 'returned' | 'ended';
  /** The call can never run: unknown tool, arguments that do not parse or fit. */
  readonly problem?: { readonly code: string; readonly message: string } | undefined;
  /** PreToolUse hooks have seen it, or there are none for it. */
  readonly vetted?: true | undefined;
  /** permission_asked hooks have been asked about it. */
  readonly asked?: true | undefined;
  /** It hands the session over, which was said; and hooks that are asked there have let it. */
  readonly handoff?: 'emitted' | 'let' | undefined;
  /** What asked for a person: `rule:<which>`. */
  readonly requested_by?: string | undefined;
  /** Who decided that it needs no person: `hook:<id>`. */
  readonly granted_by?: string | undefined;
  /** A person would allow it with other arguments, and hooks are asked about those first. */
  readonly edit?: ProposedEdit | undefined;
  /** A person's decision; or a hook's, or time's. */
  readonly decided?: CallDecision | undefined;
  /** Since when it has waited for a person. */
  readonly asked_at_ms?: number | undefined;
  /** When the wait for a person ends by itself. */
  readonly expiry?: (OpenEffect & { readonly after_ms: number; readonly due_at_ms: number }) | undefined;
  /** Somebody outside is still to be told that it waits. */
  readonly notice?: OpenEffect | undefined;
  readonly effect_id?: string | undefined;
  /** When the record was made that started it, milliseconds since 1970. */
  readonly started_at_ms?: number | undefined;
  /** Epoch in which the effect was asked for. An older epoch than the session's means: maybe already sent. */
  readonly epoch?: number | undefined;
  /** A crash left open whether it ran: only a person may have it run again. */
  readonly in_doubt?: true | undefined;
  /** Whoever runs it has taken it up; the epoch that it was sent with. Its outcome comes as a command. */
  readonly accepted?: number | undefined;
  /** How often its child is to have been begun again, where it is a delegation. */
  readonly restarts?: number | undefined;
  readonly cancel?: CallCancel | undefined;
  /** An interrupt came that does not wait for it, from this sender: the outside world has to stop it. */
  readonly preempted?: { readonly actor?: Actor | undefined } | undefined;
  readonly returned?:
    | {
        readonly status: CallStatus;
        readonly result: ToolResult;
        readonly duration_ms: number;
        /** Asks for the session to be parked, if hooks leave the result a good one. */
        readonly park?: ParkRequest | undefined;
      }
    | undefined;
  readonly ended?: CallStatus | undefined;
  readonly is_error?: boolean | undefined;
}

/** An `approve` that edits a call, while hooks are asked about the edited call. */
export interface ProposedEdit {
  readonly command_id: string;
  readonly args: JsonObject;
  readonly actor?: Actor | undefined;
  readonly reason?: string | undefined;
  readonly remember?: RememberScope | undefined;
  /** It was rejected, and its outcome follows in the same record. */
  readonly rejected?: ErrorCode | undefined;
}

/** What was decided about a call that waited for a person. */
export interface CallDecision {
  readonly decision: 'allow' | 'deny';
  readonly actor?: Actor | undefined;
  readonly reason?: string | undefined;
  /** The hook that has refused it in a person's place. */
  readonly hook?: string | undefined;
  /** Nobody had decided in time. */
  readonly expired?: true | undefined;
}

/** A rule that people have had this session remember, or have revoked again. */
export interface KnownRule extends RememberedRule {
  readonly revoked?: { readonly actor?: Actor | undefined; readonly at: string } | undefined;
}

/** An open consult: one effect for one point, all its registrations together. */
export interface OpenConsult {
  readonly effect_id: string;
  readonly epoch: number;
  readonly point: HookPoint;
  readonly call_id?: string | undefined;
  /** The steer or follow-up that the guard asks about, or the `approve` whose edited call is checked. */
  readonly command_id?: string | undefined;
  readonly hooks: readonly string[];
  /** Those of them whose failure refuses nothing. */
  readonly fail_open?: readonly string[] | undefined;
  readonly payload: JsonObject;
  /** Reports of jobs that its hooks may begin: they are decided when it ends. */
  readonly reports?: readonly DeferredReport[] | undefined;
  /** Asked while the run was unwinding already: what ended the run is no reason to stop asking. */
  readonly of_end?: true | undefined;
}

/** An effect that is only an id and the epoch in which it was asked for. */
export interface OpenEffect {
  readonly id: string;
  readonly epoch: number;
}

/** A suspension that is asked for and takes hold at the next turn boundary. */
export interface AskedSuspension {
  /** The command that asked, or the call by which the session parks itself. */
  readonly command_id?: string | undefined;
  readonly call_id?: string | undefined;
  readonly actor?: Actor | undefined;
  readonly reason?: string | undefined;
  readonly until_ms?: number | undefined;
  readonly for_ms?: number | undefined;
  readonly signal?: string | undefined;
  readonly on_timeout?: OnTimeout | undefined;
  readonly input?: string | undefined;
  /** An interrupt that came after it was asked for, and was delivered: the session wakes as soon as it is parked. */
  readonly interrupted_by?: string | undefined;
  /** The step that has failed, and waits for a person. */
  readonly step?: string | undefined;
}

/** A suspension that has taken hold: since when, and what ends it. */
export interface Suspension extends Omit<AskedSuspension, 'for_ms'> {
  readonly since_ms: number;
  readonly timer?: OpenEffect | undefined;
  /** The command that has ended it. */
  readonly resumed_by?: string | undefined;
  /** Its time has come. */
  readonly expired?: true | undefined;
}

/** A signal that no suspension has waited for yet. */
export interface StoredSignal {
  readonly command_id: string;
  readonly name: string;
  readonly data?: Json | undefined;
}

/** What the model is still to be told of a wait that is over, said before anything else happens. */
export interface Waking {
  /** What the messages are told as: the command, call or timer that the wait was begun by. */
  readonly id: string;
  readonly seam: 'post_resume' | 'daemon_idle_post';
  readonly messages: readonly (UserMessage | ReminderMessage)[];
  /** Whether it gives the model something to do, or only goes with what is done in any case. */
  readonly takes_turn: boolean;
}

/** What a session has pinned for its run. */
export interface Pinned {
  readonly persona: string;
  /** Absent in a snapshot of an earlier build. */
  readonly persona_version?: string | undefined;
  /** What remembered rules are bound to. Absent in a journal of an earlier version. */
  readonly identity?: PersonaIdentity | undefined;
  /** The absolute path of the root folder; absent in a snapshot of an earlier build. */
  readonly root?: string | undefined;
  readonly persona_fingerprint: string;
  readonly prompt_fingerprint: string;
  readonly tools_fingerprint: string;
  readonly hooks_fingerprint: string;
  readonly model: string;
  readonly permissions: PinnedPermissions;
  readonly max_turns: number;
  readonly parallel_calls: number;
  readonly drain: { readonly steering: 'all' | 'one_at_a_time'; readonly followups: 'all' | 'one_at_a_time' };
  readonly daemon: boolean;
  /** How many children at once, and generations below, where it can delegate. */
  readonly delegation?: { readonly children: number; readonly depth: number } | undefined;
  /** A person is asked about a call whose outcome a crash has left unknown. */
  readonly asks_unknown?: true | undefined;
  /** Somebody outside is told when a call waits for a person. */
  readonly notifies?: true | undefined;
  readonly wake_interval_ms?: number | undefined;
  readonly stop_when: readonly StopCondition[];
  readonly compaction?: ResolvedCompaction | undefined;
  /** The persona leaves something out of its prompts, so that one may be shorter than the one before. */
  readonly shapes_prompts?: true | undefined;
  readonly budgets: RunBudgets | null;
  readonly price: PinnedPrice | null;
  readonly price_fingerprint: string;
  /** What the persona declares of its work. */
  readonly steps?: readonly PinnedStep[] | undefined;
  /** Only where the final answer has a schema: turns that may be spent on repairing it. */
  readonly output_repairs?: number | undefined;
  /** Whom it may hand the session to. */
  readonly handoffs?: readonly string[] | undefined;
  /** What the start allows the whole run, where the persona has taken it over. */
  readonly run_limits?: WholeRunLimits | undefined;
}

/** What is known of a tool. */
export interface KnownTool extends ToolTraits {
  /** The session carries its calls out itself. */
  readonly by_session?: true | undefined;
}

/** What the next provisioning is to choose anew, whatever is pinned. With the persona go its model and its mode. */
export type Repins = 'model' | 'mode' | 'model_and_mode' | 'persona';

/** The context. Snake case, as it is data that snapshots hold. */
export interface SessionContext {
  readonly session_id: string;
  /** The record that is being folded, and the index of the next effect asked for in it. */
  readonly n: number;
  readonly next_effect: number;
  /** When that record was made, milliseconds since 1970: the only clock that the machine knows. */
  readonly at_ms: number;
  readonly epoch: number;
  /** Runs so far, 0 before the first record. */
  readonly run: number;
  readonly run_started: boolean;
  readonly settings: StartSettings | null;
  readonly pinned: Pinned | null;
  readonly tools: { readonly [name: string]: KnownTool };
  readonly hooks: HookTable;
  /** Rules that were remembered in this session, oldest first. */
  readonly remembered: readonly KnownRule[];
  /** Rules that the persona had when the run began. */
  readonly persona_rules: readonly RememberedRule[];
  /** The prompt that opened the run, as hooks are shown it. */
  readonly prompt: string;
  readonly turn: number;
  readonly turn_open: boolean;
  /** Turns since the run began or last idled: what max_turns counts. */
  readonly turns_counted: number;
  readonly turn_usage: Usage;
  readonly run_usage: Usage;
  readonly total_usage: Usage;
  /** Nano-USD; null where a price was not known. */
  readonly turn_cost: number | null;
  readonly run_cost: number | null;
  readonly total_cost: number | null;
  readonly count: BudgetCount;
  /** The timer of the next threshold of the time budget. */
  readonly clock_watch: (OpenEffect & { readonly due_at_ms: number }) | null;
  /** Whether the open turn's answer asked for calls. */
  readonly batch_open: boolean;
  readonly calls: readonly CallRow[];
  /** Files that calls have edited and that file_edited hooks have not been told of: sorted, each once. */
  readonly edited: readonly string[];
  readonly dispatch_skipped: boolean;
  /** Interrupts that do not wait and came when the open turn had nothing to end yet: while one waits, no model is asked. */
  readonly preempting: readonly string[];
  /** The open turn's answer was cut short by an interrupt: whatever becomes of that, the model is asked again. */
  readonly cut_short: boolean;
  /** Delivered at the last seam of the open turn: the run goes on. */
  readonly delivered_at_end: number;
  readonly pending: readonly PendingInjection[];
  readonly followups: readonly PendingFollowup[];
  /** Something was delivered since the model was last asked: delivered one at a time, the next waits until it is. */
  readonly unheard: boolean;
  /** Taken from `pending` by the last checkpoint, and not yet said in a message_injected. */
  readonly delivering: readonly PendingInjection[];
  readonly delivering_seam: string;
  /** Delivered reminders that prompts show. */
  readonly reminders: readonly LiveReminder[];
  readonly feedback: readonly PendingFeedback[];
  /** Taken from `feedback` by the last checkpoint, and not yet said in a message_injected. */
  readonly delivering_feedback: readonly PendingFeedback[];
  /** Feedback ever kept: what ids are made of. */
  readonly feedback_count: number;
  /** Feedback that had no room since the last was said. */
  readonly feedback_dropped: number;
  readonly stall: StallWatch;
  /** Calls that the last checkpoint skipped and that have no result yet. */
  readonly skipping: readonly string[];
  /** What models are shown, in figures. */
  readonly view: ViewAccount;
  /** The compaction of the open turn, from the seam before it to the seam after it. */
  readonly pass: Pass | null;
  /** How often the provider has refused the open turn's prompt as too long. */
  readonly overflows: number;
  readonly provision: OpenEffect | null;
  readonly repins: Repins | null;
  /** `preempted`: an interrupt came that does not wait for the answer. */
  readonly model: (OpenEffect & { readonly restarts: number; readonly preempted?: true | undefined }) | null;
  /** What the open step waits for before it can begin; and how many of its tries were lost. Only of served personas. */
  readonly persona_wait: PersonaWait | null;
  readonly lost_steps: LostSteps | null;
  /** The model step of the compaction that is under way. */
  readonly compacting: (OpenEffect & { readonly restarts: number }) | null;
  readonly closing: OpenEffect | null;
  readonly consult: OpenConsult | null;
  /** What hooks are still to be told of, oldest first. */
  readonly announcements: readonly Announcement[];
  /** Jobs that hooks have begun and of which no end was reported. */
  readonly jobs: readonly OpenJob[];
  /** Predicates are being asked about the open turn. */
  readonly stop_check: (OpenEffect & { readonly predicates: readonly string[] }) | null;
  /** Whether they have been asked, and whether a stop condition holds after this turn. */
  readonly stop_checked: boolean;
  readonly stop_held: boolean;
  /** Cancelled or failed: nothing new may start. */
  readonly aborting: boolean;
  readonly stop_reason: StopReason | null;
  readonly cancel_reason: string | null;
  /** Who cancelled the run, where a command did and named its sender. */
  readonly cancel_actor: Actor | null;
  readonly failure: Failure | null;
  readonly failed_at: number | null;
  /** How far the run is in its persona's steps; null before the first. */
  readonly step: StepProgress | null;
  /** How far the run is with its final answer; null without an output schema. */
  readonly output: OutputProgress | null;
  /** How the run goes from persona to persona. */
  readonly relay: Relay;
  readonly suspend: AskedSuspension | null;
  readonly suspension: Suspension | null;
  /** Signals that wait for a suspension that waits for them, oldest first. */
  readonly signals: readonly StoredSignal[];
  /** Wakes an idling daemon. */
  readonly idle_timer: (OpenEffect & { readonly due_at_ms: number }) | null;
  readonly waking: Waking | null;
  /** Whose child it is. `detached`: it was forked from one, and nobody waits for it. */
  readonly parent: (ParentLink & { readonly detached?: true | undefined }) | null;
  /** Children that have not said how they ended, oldest first; also those of calls that were given up. */
  readonly children: readonly OpenChild[];
  /** What children that have ended have used, of all runs. */
  readonly spent_by_children: SpentByChildren;
  /** Messages between sessions that have led, one after another, to what the run does. */
  readonly hops: number;
  /** The parent is to be told how the first run has ended. */
  readonly notice: OpenEffect | null;
  /** The newest command ids, oldest first: `<id>`, `<id>!<reject code>`; of an injection `<id>~`, `<id>~revoked`. */
  readonly command_ids: readonly string[];
}

/** No tokens. */
export const NO_USAGE: Usage = { input_tokens: 0, output_tokens: 0 };

/** Nothing has been called yet. */
export const NO_STALL: StallWatch = {
  call: '',
  repeats: 0,
  results: [],
  fresh: false,
  stale_turns: 0,
  told: [],
  refusals: [],
};

/** The context before a session's first record. */
export function emptyContext(sessionId: string): SessionContext {
  return {
    session_id: sessionId,
    n: 0,
    next_effect: 0,
    at_ms: 0,
    epoch: 1,
    run: 0,
    run_started: false,
    settings: null,
    pinned: null,
    tools: {},
    hooks: [],
    remembered: [],
    persona_rules: [],
    prompt: '',
    turn: 0,
    turn_open: false,
    turns_counted: 0,
    turn_usage: NO_USAGE,
    run_usage: NO_USAGE,
    total_usage: NO_USAGE,
    turn_cost: 0,
    run_cost: 0,
    total_cost: 0,
    count: NOTHING_USED,
    clock_watch: null,
    batch_open: false,
    calls: [],
    edited: [],
    dispatch_skipped: false,
    preempting: [],
    cut_short: false,
    delivered_at_end: 0,
    pending: [],
    unheard: false,
    followups: [],
    delivering: [],
    delivering_seam: '',
    reminders: [],
    feedback: [],
    delivering_feedback: [],
    feedback_count: 0,
    feedback_dropped: 0,
    stall: NO_STALL,
    skipping: [],
    view: EMPTY_VIEW,
    pass: null,
    overflows: 0,
    provision: null,
    repins: null,
    model: null,
    persona_wait: null,
    lost_steps: null,
    compacting: null,
    closing: null,
    consult: null,
    announcements: [],
    jobs: [],
    stop_check: null,
    stop_checked: false,
    stop_held: false,
    aborting: false,
    stop_reason: null,
    cancel_reason: null,
    cancel_actor: null,
    failure: null,
    failed_at: null,
    step: null,
    output: null,
    relay: NO_RELAY,
    suspend: null,
    suspension: null,
    signals: [],
    idle_timer: null,
    waking: null,
    parent: null,
    children: [],
    spent_by_children: NOTHING_SPENT,
    hops: 0,
    notice: null,
    command_ids: [],
  };
}

/**
 * A context with some members changed.
 *
 * Every member is spelled out because of how V8 (as of Node 20) copies: the copy that a spread makes of an object which
 * is itself such a copy gets a hidden class of its own. The machine makes one context from another with every event, so
 * each had a new class, which took ten times the memory of its members and made every access to them a slow one.
 */
export function contextWith(context: SessionContext, change: Partial<SessionContext>): SessionContext {
  const copy: SessionContext = {
    session_id: context.session_id,
    n: context.n,
    next_effect: context.next_effect,
    at_ms: context.at_ms,
    epoch: context.epoch,
    run: context.run,
    run_started: context.run_started,
    settings: context.settings,
    pinned: context.pinned,
    tools: context.tools,
    hooks: context.hooks,
    remembered: context.remembered,
    persona_rules: context.persona_rules,
    prompt: context.prompt,
    turn: context.turn,
    turn_open: context.turn_open,
    turns_counted: context.turns_counted,
    turn_usage: context.turn_usage,
    run_usage: context.run_usage,
    total_usage: context.total_usage,
    turn_cost: context.turn_cost,
    run_cost: context.run_cost,
    total_cost: context.total_cost,
    count: context.count,
    clock_watch: context.clock_watch,
    batch_open: context.batch_open,
    calls: context.calls,
    edited: context.edited,
    dispatch_skipped: context.dispatch_skipped,
    preempting: context.preempting,
    cut_short: context.cut_short,
    delivered_at_end: context.delivered_at_end,
    pending: context.pending,
    unheard: context.unheard,
    followups: context.followups,
    delivering: context.delivering,
    delivering_seam: context.delivering_seam,
    reminders: context.reminders,
    feedback: context.feedback,
    delivering_feedback: context.delivering_feedback,
    feedback_count: context.feedback_count,
    feedback_dropped: context.feedback_dropped,
    stall: context.stall,
    skipping: context.skipping,
    view: context.view,
    pass: context.pass,
    overflows: context.overflows,
    provision: context.provision,
    repins: context.repins,
    model: context.model,
    // Snapshots of before there were any have neither.
    persona_wait: context.persona_wait ?? null,
    lost_steps: context.lost_steps ?? null,
    compacting: context.compacting,
    closing: context.closing,
    consult: context.consult,
    announcements: context.announcements,
    jobs: context.jobs,
    stop_check: context.stop_check,
    stop_checked: context.stop_checked,
    stop_held: context.stop_held,
    aborting: context.aborting,
    stop_reason: context.stop_reason,
    cancel_reason: context.cancel_reason,
    cancel_actor: context.cancel_actor,
    failure: context.failure,
    failed_at: context.failed_at,
    step: context.step,
    output: context.output ?? null,
    relay: context.relay ?? NO_RELAY,
    suspend: context.suspend,
    suspension: context.suspension,
    signals: context.signals,
    idle_timer: context.idle_timer,
    waking: context.waking,
    parent: context.parent,
    children: context.children,
    spent_by_children: context.spent_by_children,
    hops: context.hops,
    notice: context.notice,
    command_ids: context.command_ids,
  };
  return Object.assign(copy, change);
}
