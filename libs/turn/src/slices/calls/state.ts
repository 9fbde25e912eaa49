/**
 * The call table: the newest batch of tool calls, and what is known of each.
 *
 * The ladder of a call. Each rung is an event; the third column is the input whose record holds it. A call skips
 * rungs that do not apply to it, and every rung can lead to the end.
 *
 * | rung | event | input of the record | status, members |
 * |---|---|---|---|
 * | proposed | `message_complete` | `model_outcome` | `proposed` |
 * | vetted | `consult_ended` of PreToolUse; before it `call_args_rewritten` | `consult_outcome` | `vetted` |
 * | gated | `consult_ended` of gate_tool_calls | `consult_outcome` | |
 * | asked | `consult_ended` of permission_asked | `consult_outcome` | `asked`, `granted_by` |
 * | ruled | none: `rulingOn` in gate.ts; a refusal is the end | | |
 * | parked | `approval_requested` | the one that finished the rung before | `parked`, `expiry`, `notice` |
 * | released | `approval_decided` | `approve`, `timer`, or `consult_outcome` | `allowed`, `decided` |
 * | started | `call_started`, behind the `loop_checkpoint` of pre_tool_dispatch | as for parked or released | `running`, `effect_id` |
 * | accepted | `call_accepted`, of `long_running` tools | `call_accepted` | `accepted` |
 * | returned | `call_returned`, where PostToolUse hooks are asked | `call_outcome` | `returned` |
 * | rewritten | `hook_returned` | `consult_outcome` | |
 * | ended | `call_ended` | any of these, or a cancel | `ended` |
 */
import type {
  Actor,
  CallStatus,
  ErrorCode,
  Json,
  JsonObject,
  ParkRequest,
  RememberScope,
  ToolResult,
  ToolTraits,
} from '@coxswain/protocol';
import type { OpenEffect } from '../../core/place.ts';

/** Someone asked for a call that is in flight to be cancelled. */
export interface CallCancel {
  readonly command_id: string;
  readonly reason?: string | undefined;
  readonly actor?: Actor | undefined;
  readonly inject_reminder: boolean;
  readonly timeout_ms: number;
}

/** What can be noted on a call at any rung. */
export interface CallNotes {
  readonly args: Json;
  /** The tool's own answer for these arguments: a person must approve the call. */
  readonly needs_approval?: true | undefined;
  /** PreToolUse hooks have seen it, or there are none for it. */
  readonly vetted?: true | undefined;
  /** permission_asked hooks have been asked about it. */
  readonly asked?: true | undefined;
  /** Who decided that it needs no person: `hook:<id>`. */
  readonly granted_by?: string | undefined;
  /** It hands the session over, which was said; and hooks that are asked there have let it. */
  readonly handoff?: 'emitted' | 'let' | undefined;
  /** A person would allow it with other arguments. Hooks are asked about those, or the rejection is not yet recorded. */
  readonly edit?: ProposedEdit | undefined;
}

interface CallHead extends CallNotes {
  readonly call_id: string;
  readonly tool: string;
  /** What asked for a person, `rule:<which>`, and when, milliseconds since 1970. Only of a call that was parked. */
  readonly requested_by?: string | undefined;
  readonly asked_at_ms?: number | undefined;
}

/** A call that the outside world has not been asked for; or it was, and a crash left open whether it ran. */
interface UnsentCall extends CallHead {
  /** A crash left open whether it ran: only a person may have it run again. */
  readonly in_doubt?: true | undefined;
  /** Only of a call in doubt, from its first start: {@link SentCall}. */
  readonly started_at_ms?: number | undefined;
  readonly restarts?: number | undefined;
}

interface ProposedCall extends UnsentCall {
  readonly status: 'proposed';
  /** The call can never run: unknown tool, arguments that do not parse or fit. */
  readonly problem?: { readonly code: string; readonly message: string } | undefined;
  /** A person has refused it; or a hook has, or time. */
  readonly decided?: CallDecision | undefined;
}

interface ParkedCall extends UnsentCall {
  readonly status: 'parked';
  readonly requested_by: string;
  readonly asked_at_ms: number;
  /** When the wait for a person ends by itself. */
  readonly expiry?: (OpenEffect & { readonly after_ms: number; readonly due_at_ms: number }) | undefined;
  /** The notification of an external service that it waits is open. */
  readonly notice?: OpenEffect | undefined;
}

interface AllowedCall extends UnsentCall {
  readonly status: 'allowed';
  readonly requested_by: string;
  readonly asked_at_ms: number;
  readonly decided: CallDecision;
}

/** A call that the outside world was asked for. */
interface SentCall extends CallHead {
  /** Undefined between the end of its child and the start of the next one, which are in the same record. */
  readonly effect_id: string | undefined;
  /** Epoch in which the effect was asked for. An older epoch than the session's means: maybe already sent. */
  readonly epoch: number;
  /** When the record was made that started it, milliseconds since 1970. */
  readonly started_at_ms: number;
  readonly decided?: CallDecision | undefined;
  /** The epoch of the request that a worker accepted. The outcome of the call is then a command. */
  readonly accepted?: number | undefined;
  /** How often the child was restarted, if the call is a delegation. */
  readonly restarts?: number | undefined;
  readonly cancel?: CallCancel | undefined;
  /** An interrupt came that does not wait for it, from this sender: the outside world has to stop it. */
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

/** A call that has its result. What the rungs before have left stays. */
interface EndedCall extends CallHead, Optional<Omit<SentCall, keyof CallHead>> {
  readonly status: 'ended';
  readonly ended: CallStatus;
  readonly is_error: boolean;
  readonly problem?: ProposedCall['problem'];
  readonly in_doubt?: true | undefined;
}

/** The outcome of a call that hooks have yet to see. */
export interface ReturnedOutcome {
  readonly status: CallStatus;
  readonly result: ToolResult;
  readonly duration_ms: number;
  /** Asks for the session to be parked, if hooks leave the result a good one. */
  readonly park?: ParkRequest | undefined;
}

type Rung = ProposedCall | ParkedCall | AllowedCall | RunningCall | ReturnedCall | EndedCall;

type MemberOf<Row> = Row extends unknown ? keyof Row : never;

/** A rung that states of each member of other rungs that it has none. */
type Closed<Row> = Row extends unknown
  ? Row & { readonly [Other in Exclude<MemberOf<Rung>, keyof Row>]?: undefined }
  : never;

/**
 * One row of the call table. The table holds the newest batch; it is replaced by the next one.
 * `proposed` → (`parked` →) `allowed` → `running` → (`returned` →) `ended`; every status can go to `ended`. The steps from
 * rung to rung are in rungs.ts.
 */
export type CallRow = Closed<Rung>;

/** A row with one of these statuses. */
export type CallAt<Status extends CallRow['status']> = Extract<CallRow, { readonly status: Status }>;

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
  /** No decision came in time. */
  readonly expired?: true | undefined;
}

/** What is known of a tool. */
export interface KnownTool extends ToolTraits {
  /** The session carries its calls out itself. */
  readonly by_session?: true | undefined;
}

/** The members of the context that belong to calls. */
export interface CallsState {
  readonly tools: { readonly [name: string]: KnownTool };
  /** Whether the open turn's answer asked for calls. */
  readonly batch_open: boolean;
  readonly calls: readonly CallRow[];
  /** Files that calls have edited and that file_edited hooks have not been told of: sorted, each once. */
  readonly edited: readonly string[];
  readonly dispatch_skipped: boolean;
  /** Calls that the last checkpoint skipped and that have no result yet. */
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

/** A run begins without calls of the run before. */
export const CALLS_AT_RUN_START: Pick<CallsState, 'batch_open' | 'calls' | 'edited' | 'dispatch_skipped'> = {
  batch_open: false,
  calls: [],
  edited: [],
  dispatch_skipped: false,
};

/** A turn begins without a batch. The rows of the batch before stay until the next batch replaces them. */
export const CALLS_AT_TURN_START: Pick<CallsState, 'batch_open' | 'dispatch_skipped'> = {
  batch_open: false,
  dispatch_skipped: false,
};
