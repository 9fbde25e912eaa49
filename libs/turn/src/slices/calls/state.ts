/**
 * The call table: the newest batch of tool calls, with the state of each.
 *
 * The ladder of a call: the rungs from its proposal to its end. Each rung except `ruled` is an event, and the third
 * column is the input of its record. A call skips rungs that do not apply to it, and every rung can lead to the end. If
 * the conditions of all hooks at a point do not match, `consult_ended` can be in the record of the previous rung.
 *
 * | rung | event | input of the record | status, members |
 * |---|---|---|---|
 * | proposed | `message_complete` | `model_outcome` | `proposed` |
 * | vetted | `consult_ended` of PreToolUse; before it `call_args_rewritten` | `consult_outcome` | `vetted` |
 * | gated | `consult_ended` of gate_tool_calls | `consult_outcome` | |
 * | asked | `consult_ended` of permission_asked; before it `hook_vetoed` | `consult_outcome` | `asked`, `granted_by` |
 * | ruled | none: `rulingOn` (ruling.ts); a denial is the end | | |
 * | parked | `approval_requested` | the input of the previous rung; `call_outcome`, if the outcome of a running call is unknown | `parked`, `expiry`, `notice` |
 * | released | `approval_decided` | `approve`, `timer`, `consult_outcome`, or the input that ends the wait | `allowed`; or `proposed`, `decided` unless the wait was dropped |
 * | started | `call_started`, after the `loop_checkpoint` of pre_tool_dispatch | as for parked or released; or the end of another call | `running`, `effect_id` |
 * | accepted | `call_accepted`, only for `long_running` tools and children | `call_accepted` | `accepted` |
 * | returned | `call_returned`, only with PostToolUse hooks | `call_outcome`, `child_ended`, or `provision_outcome` of a hand-off | `returned` |
 * | rewritten | `hook_returned` | `consult_outcome` | |
 * | ended | `call_ended` | any of these and others, such as a cancel | `ended` |
 */
import type {
  Actor,
  CallStatus,
  ErrorCode,
  Json,
  JsonObject,
  RememberScope,
  SuspensionRequest,
  ToolResult,
  ToolTraits,
} from '@coxswain/protocol';
import type { OpenEffect } from '../../core/journal-place.ts';

/** The cancel of a call: requested for a sent call, or applied at once to a call that was not in flight. */
export interface CallCancel {
  readonly command_id: string;
  readonly reason?: string | undefined;
  readonly actor?: Actor | undefined;
  readonly inject_reminder: boolean;
  readonly timeout_ms: number;
}

/** Members that a call may have at any rung. */
export interface CallNotes {
  readonly args: Json;
  /** The tool itself requires a human approval for these arguments. */
  readonly needs_approval?: true | undefined;
  /** PreToolUse hooks have answered about the call, or none applied: they are not called about it again. */
  readonly vetted?: true | undefined;
  /**
   * permission_asked hooks have answered whether the call may run, or none applied: they are not called about it again.
   * Whether a person was asked is another question: the status `parked`.
   */
  readonly asked?: true | undefined;
  /** The permission_asked hook that allowed the call, so that no person decides: `hook:<id>`. */
  readonly granted_by?: string | undefined;
  /**
   * Only for a hand-off. `emitted`: `handoff_emitted` is recorded. `let`: the consult of OnHandoffEmitted hooks has
   * ended.
   */
  readonly handoff?: 'emitted' | 'let' | undefined;
  /** An `approve` with other arguments, which hooks check. Kept until the outcome of the command is recorded. */
  readonly edit?: ProposedEdit | undefined;
}

interface CallHead extends CallNotes {
  readonly call_id: string;
  readonly tool: string;
  /**
   * The reason of the approval request, `rule:<rule>` or `unknown_outcome`, and its time, milliseconds since 1970. Only
   * for a call that was parked.
   */
  readonly requested_by?: string | undefined;
  readonly asked_at_ms?: number | undefined;
}

/** A call that was not sent; or a call in doubt, which was sent, and whose outcome is unknown. */
interface NotRunningCall extends CallHead {
  /** The call is in doubt: only a person may let it run again. */
  readonly in_doubt?: true | undefined;
  /** Only for a call in doubt: its last start and the number of restarts of its child, as in {@link SentCall}. */
  readonly started_at_ms?: number | undefined;
  readonly restarts?: number | undefined;
}

interface ProposedCall extends NotRunningCall {
  readonly status: 'proposed';
  /** Why the call can never run: for example, the tool is unknown, or the arguments are invalid or too large. */
  readonly problem?: { readonly code: string; readonly message: string } | undefined;
  /** The denial by a person or a hook, or the expiry. */
  readonly decided?: CallDecision | undefined;
}

/** A call that waits for an approval. The tool `park`, which suspends the session, is something else: `ReturnedOutcome.park`. */
interface ParkedCall extends NotRunningCall {
  readonly status: 'parked';
  readonly requested_by: string;
  readonly asked_at_ms: number;
  /** The timer of the expiry. */
  readonly expiry?: (OpenEffect & { readonly after_ms: number; readonly due_at_ms: number }) | undefined;
  /** The open effect `notify`: it notifies an external service of the wait. Undefined once its outcome is recorded. */
  readonly notice?: OpenEffect | undefined;
}

interface AllowedCall extends NotRunningCall {
  readonly status: 'allowed';
  readonly requested_by: string;
  readonly asked_at_ms: number;
  readonly decided: CallDecision;
}

/** A call whose effect was requested. */
interface SentCall extends CallHead {
  /** Undefined between the end of a delegation's child and the start of the next one, which are in the same record. */
  readonly effect_id: string | undefined;
  /** Epoch of the request. If it is older than the session's, an earlier owner may have sent the call. */
  readonly epoch: number;
  /** Time of the record with the call's start, milliseconds since 1970. */
  readonly started_at_ms: number;
  readonly decided?: CallDecision | undefined;
  /**
   * The epoch of the request that a worker accepted; for a child, the epoch in which its start command was stored. From
   * then on a command brings the outcome of the call, unless the call must stop.
   */
  readonly accepted?: number | undefined;
  /** Number of restarts of the child, for a delegation. */
  readonly restarts?: number | undefined;
  readonly cancel?: CallCancel | undefined;
  /** A preempting interrupt has ordered the end of the call; with its sender. */
  readonly preempted?: { readonly actor?: Actor | undefined } | undefined;
}

interface RunningCall extends SentCall {
  readonly status: 'running';
}

interface ReturnedCall extends SentCall {
  readonly status: 'returned';
  readonly returned: ReturnedOutcome;
}

type Optional<Members> = { readonly [Member in keyof Members]?: Members[Member] | undefined };

/** A call with a result for the model. It keeps some members of earlier rungs. */
interface EndedCall extends CallHead, Optional<Omit<SentCall, keyof CallHead>> {
  readonly status: 'ended';
  readonly ended: CallStatus;
  readonly is_error: boolean;
  readonly problem?: ProposedCall['problem'];
  readonly in_doubt?: true | undefined;
}

/** The outcome of a call that PostToolUse hooks must check. */
export interface ReturnedOutcome {
  readonly status: CallStatus;
  readonly result: ToolResult;
  readonly duration_ms: number;
  /** The request to suspend the session, if hooks do not turn the result into an error. */
  readonly park?: SuspensionRequest | undefined;
}

type AnyCall = ProposedCall | ParkedCall | AllowedCall | RunningCall | ReturnedCall | EndedCall;

type MemberOf<Row> = Row extends unknown ? keyof Row : never;

/** A row with one status, and all members of rows with other statuses declared as absent. */
type Closed<Row> = Row extends unknown
  ? Row & { readonly [Other in Exclude<MemberOf<AnyCall>, keyof Row>]?: undefined }
  : never;

/**
 * One row of the call table. The table contains the newest batch, until the next batch or the next run replaces it.
 * row-changes.ts changes the status. The sequences of statuses:
 * - allowed by rules or hooks: `proposed` → `running` → (`returned` →) `ended`
 * - allowed by an approval: `proposed` → `parked` → `allowed` → `running`
 * - denied, expired, or the wait was dropped: `parked` → `proposed` → `ended`
 * - the rules of a fork's persona deny it: `parked` or `allowed` → `proposed` → `ended`
 * - an unknown outcome that a person must decide: `running` → `parked`
 * - every status can change to `ended`
 */
export type CallRow = Closed<AnyCall>;

/** A row with one of these statuses. */
export type CallAt<Status extends CallRow['status']> = Extract<CallRow, { readonly status: Status }>;

/** An `approve` that edits a call, while hooks check the edited call. */
export interface ProposedEdit {
  readonly command_id: string;
  readonly args: JsonObject;
  readonly actor?: Actor | undefined;
  readonly reason?: string | undefined;
  readonly remember?: RememberScope | undefined;
  /** The code of the edit's rejection, once it was rejected. The outcome of its command follows in the same record. */
  readonly rejected?: ErrorCode | undefined;
}

/** The decision about a parked call. */
export interface CallDecision {
  readonly decision: 'allow' | 'deny';
  readonly actor?: Actor | undefined;
  readonly reason?: string | undefined;
  /** The OnApprovalRequested hook that denied the call, if it was not a person. */
  readonly hook?: string | undefined;
  /** The approval expired. */
  readonly expired?: true | undefined;
}

/** The traits of a tool. */
export interface KnownTool extends ToolTraits {
  /** The session executes calls of the tool itself (`sessionToolOf`, table.ts). */
  readonly by_session?: true | undefined;
}

/** The members of the context for calls. */
export interface CallsState {
  readonly tools: { readonly [name: string]: KnownTool };
  /** Whether the newest turn's answer has calls. */
  readonly batch_open: boolean;
  readonly calls: readonly CallRow[];
  /** Edited files that file_edited hooks have not received: sorted, without duplicates. */
  readonly edited: readonly string[];
  /** Whether an interrupt skipped calls of the newest turn. */
  readonly dispatch_skipped: boolean;
  /** Calls that the last checkpoint skipped, without a result so far. */
  readonly skipping: readonly string[];
}

/** No tools, no calls. */
export const EMPTY_CALLS: CallsState = {
  tools: {},
  batch_open: false,
  calls: [],
  edited: [],
  dispatch_skipped: false,
  skipping: [],
};

/** A run starts without calls of the previous run. */
export const CALLS_AT_RUN_START: Pick<CallsState, 'batch_open' | 'calls' | 'edited' | 'dispatch_skipped'> = {
  batch_open: false,
  calls: [],
  edited: [],
  dispatch_skipped: false,
};

/** A turn starts without a batch. The rows of the previous batch stay until the next batch replaces them. */
export const CALLS_AT_TURN_START: Pick<CallsState, 'batch_open' | 'dispatch_skipped'> = {
  batch_open: false,
  dispatch_skipped: false,
};
