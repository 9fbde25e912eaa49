/**
 * Events: facts in the journal. The turn machine uses the same events, without a mapping.
 */
import * as z from 'zod';
import { ERROR_CODES } from '../catalogues/error-codes.ts';
import { Mode, SeamKind } from '../catalogues/seams.ts';
import { StoredActor } from '../commands/actor.ts';
import { ApprovalNoticeOutcome } from '../commands/approval-notices.ts';
import { StoredStartSettings } from '../commands/commands.ts';
import { RememberedRule, RememberScope } from '../commands/remembered-rules.ts';
import { OnTimeout, SuspensionRequest } from '../commands/suspension-request.ts';
import { HookPoint } from '../hooks/hook-points.ts';
import { HookTable } from '../hooks/hook-registrations.ts';
import { JobReceipt } from '../hooks/job-receipts.ts';
import { HookAnswer } from '../hooks/verdicts.ts';
import { Budget } from '../personas/budgets.ts';
import { MessageSource, ParentLink } from '../personas/crews.ts';
import { OutputCheck } from '../personas/output-schema.ts';
import { CompactionStrategy } from '../personas/persona.ts';
import { PERSONA_STEP_EVENTS } from '../personas/persona-steps.ts';
import { PinnedPrice } from '../personas/prices.ts';
import { ErrorBoundary, StepArgs, StepStatus } from '../personas/steps.ts';
import { StopCondition } from '../personas/stop-conditions.ts';
import { CallStatus, ToolDefinition } from '../tools/calls.ts';
import { Json, JsonObject, WrapperObject } from '../wire/json.ts';
import { ChangedSettings, CopyOrigin } from './forks.ts';
import { EditedPath, Failure, Provision, StopAnswer, TimerPurpose, ToolResult, Usage } from './inputs.ts';
import { AssistantMessage, ReminderMessage, UserMessage } from './messages.ts';
import { ExpiryReason, STORED_REMINDER_FIELDS } from './reminders.ts';

const turn = z.number().int().nonnegative();
const effectId = z.string();
/** Time of the record, ISO 8601. */
const at = z.string();
/** Only if the price of every used model is known. */
const cost_usd = z.number().nonnegative().optional();
/** The interrupt ends the streaming answer and the running calls. */
const preempt = z.literal(true).optional();

/** How a run ended. */
export const StopReason = z.enum([
  'end_turn',
  'terminated',
  'stop_condition',
  'max_turns',
  'budget_exceeded',
  'cancelled',
  'user_prompt_submit_blocked',
  'error',
]);
export type StopReason = z.infer<typeof StopReason>;

/** Commands that act on the session, a call or another command. They are not messages to a model. */
export const ControlVerb = z.enum([
  'approve',
  'cancel',
  'cancel_call',
  'suspend',
  'resume',
  'signal',
  'revoke',
  'replace',
]);
export type ControlVerb = z.infer<typeof ControlVerb>;

/** The outcome of a control. For a rejected control: the code of the `command_rejected` event before it. */
export const ControlStatus = z.enum([
  'allowed',
  'denied',
  'cancelled',
  'already_cancelled',
  'not_found',
  'timeout',
  'suspending',
  'resumed',
  'blocked',
  /** A requested suspension: the run ended before the suspension started. */
  'lapsed',
  /** A signal without a suspension that waits for it. */
  'stored',
  'revoked',
  'replaced',
  ...ERROR_CODES,
]);
export type ControlStatus = z.infer<typeof ControlStatus>;

/** Why a call was denied, as recorded and as sent to the model. */
export const Denial = z.strictObject({
  /** `gate_unavailable`: a gate hook gave no valid verdict on the call. `expiry`: the approval expired. */
  by: z.enum(['rule', 'hook', 'user', 'gate_unavailable', 'expiry']),
  rule: z.string().optional(),
  hook: z.string().optional(),
  actor: StoredActor.optional(),
  reason: z.string().optional(),
  /** The arguments of the denied call: shortened, and without texts that look like secrets. */
  args: Json.optional(),
});
export type Denial = z.infer<typeof Denial>;

/**
 * The reason of a compaction. `window`: the estimated prompt exceeds the window minus the reserve. `overflow`: the
 * provider refused the prompt as too long.
 */
export const CompactionMode = z.enum(['window', 'overflow']);
export type CompactionMode = z.infer<typeof CompactionMode>;

const count = z.number().int().nonnegative();
/** Members of every compaction event. Token counts are estimates. */
const Pass = {
  turn,
  mode: CompactionMode,
  strategy: CompactionStrategy,
  tokens_before: count,
  window: count,
  reserve: count,
  /** Number of closed turns before the open one that the compaction keeps unchanged. */
  kept_turns: count,
};

/** The step, its index from 0, and the number of the attempt. */
const StepHead = { step: z.string(), index: count, attempt: z.number().int().positive() };

const event = <T extends string, S extends z.ZodRawShape>(type: T, shape: S) =>
  z.strictObject({ type: z.literal(type), ...shape });

/** Every event type, with its strict schema. */
export const EVENT_SCHEMAS = {
  prompt_received: event('prompt_received', {
    command_id: z.string(),
    run: z.number().int().positive(),
    messages: z.array(UserMessage).min(1),
    actor: StoredActor.optional(),
    /** Only in the first prompt of a session. */
    settings: StoredStartSettings.optional(),
    /** Only in a child session. */
    parent: ParentLink.optional(),
    /** The session that sent the message. */
    from: MessageSource.optional(),
    /** The id of a later command that replaced the text. */
    replaced_by: z.string().optional(),
  }),
  persona_changed: event('persona_changed', {
    fingerprint: z.string(),
    provision: Provision.omit({ tools: true, hooks: true, price: true, remembered: true }),
    /** The hand-off that caused the change: its call, and the previous persona. */
    handoff: z.strictObject({ call_id: z.string(), from: z.string() }).optional(),
  }),
  /**
   * A persona requested a hand-off. Hooks are called, then the other persona is resolved. A `persona_changed` with the
   * id of the call completes the hand-off; any other end of the call changes nothing.
   */
  handoff_emitted: event('handoff_emitted', {
    call_id: z.string(),
    from: z.string(),
    to: z.string(),
    brief: z.string(),
  }),
  tools_changed: event('tools_changed', { fingerprint: z.string(), tools: z.array(ToolDefinition) }),
  hooks_changed: event('hooks_changed', { fingerprint: z.string(), table: HookTable }),
  /** The price of the model of the run; null if it is no longer known. */
  prices_changed: event('prices_changed', { fingerprint: z.string(), price: PinnedPrice.nullable() }),
  agent_start: event('agent_start', {
    run: z.number().int().positive(),
    machine_version: z.number().int().positive(),
    persona: z.string().nullable(),
    model: z.string().nullable(),
    /** Null if the run ended before they were resolved. */
    fingerprints: z.strictObject({ persona: z.string(), prompt: z.string(), tools: z.string() }).nullable(),
  }),
  turn_start: event('turn_start', { turn }),
  loop_checkpoint: event('loop_checkpoint', {
    session_id: z.string(),
    iteration: turn,
    kind: SeamKind,
    delivered: z.number().int().nonnegative(),
    delivered_ids: z.array(z.string()),
    inbox_delivered: z.number().int().nonnegative(),
    dispatch_skipped: z.boolean(),
    skipped_call_ids: z.array(z.string()).optional(),
  }),
  message_complete: event('message_complete', {
    turn,
    message: AssistantMessage,
    finish_reason: z.string(),
    usage: Usage,
    body_streamed: z.boolean(),
    duration_ms: z.number().nonnegative(),
    attempts: z.number().int().nonnegative(),
    /** The check of a complete answer without calls against the output schema, if the session has one. */
    output: OutputCheck.optional(),
  }),
  /**
   * A final answer does not fit the output schema. Then a `message_injected` at the seam `output` asks for a repair, or
   * the run fails or ends.
   */
  output_rejected: event('output_rejected', {
    turn,
    /** Repair turns so far, and their maximum. */
    repairs: count,
    repairs_max: count,
    problems: z.array(z.string()).min(1),
  }),
  /**
   * The provider refused the prompt as too long. A compaction follows, then the request is sent once more. If hooks
   * veto the compaction, or it ends with `compaction_skipped`, the run fails.
   */
  context_overflowed: event('context_overflowed', {
    turn,
    error: Failure,
    /** The estimated size of the prompt. */
    tokens: count,
    usage: Usage,
    attempts: count,
    duration_ms: z.number().nonnegative(),
    /** What the answer contained before the refusal: no text. It is not part of a transcript. */
    message: AssistantMessage.optional(),
  }),
  /** A model step that summarizes older messages has started. */
  compaction_started: event('compaction_started', { ...Pass, effect_id: effectId }),
  /** The model's view of older messages has changed. The journal keeps all messages. */
  compaction_done: event('compaction_done', {
    ...Pass,
    tokens_after: count,
    /** Messages that the summary or the notes replace, or results that stubs replace. */
    archived: count,
    /** Messages of the view after the compaction. */
    remaining: count,
    /** The summary or the notes. */
    summary: z.string().optional(),
    usage: Usage.optional(),
    attempts: count.optional(),
    duration_ms: z.number().nonnegative().optional(),
    /** The configured strategy, and why it failed. */
    instead_of: z.strictObject({ strategy: CompactionStrategy, error: Failure }).optional(),
  }),
  /** A compaction failed; the view is unchanged. */
  compaction_skipped: event('compaction_skipped', {
    ...Pass,
    error: Failure,
    usage: Usage.optional(),
  }),
  call_started: event('call_started', { call_id: z.string(), tool: z.string(), args: Json, effect_id: effectId }),
  /**
   * A worker has accepted the call, or the start command of its child is stored. The outcome arrives later: as the
   * command `call_outcome`, for a child as `child_ended`.
   */
  call_accepted: event('call_accepted', { call_id: z.string(), epoch: z.number().int().positive() }),
  /** The session starts a child session for the call. */
  child_started: event('child_started', {
    call_id: z.string(),
    effect_id: effectId,
    session: z.string(),
    persona: z.string(),
    depth: count,
    /** The number of the restart, from 1. */
    restart: z.number().int().positive().optional(),
    /** The child's share of the remaining budget of the run. */
    budget: z.strictObject({ tokens: count.optional(), nano_usd: count.optional() }).optional(),
    /** Number of inherited reminders beyond the bound. */
    reminders_left_out: z.number().int().positive().optional(),
  }),
  /** A child has reported its end. Its usage counts from this record on. */
  child_ended: event('child_ended', {
    command_id: z.string(),
    call_id: z.string(),
    effect_id: effectId,
    session: z.string(),
    stop_reason: StopReason,
    turns: count,
    /** Of the child and all its descendants. */
    usage: Usage,
    /** Null if a price is unknown. */
    nano_usd: count.nullable(),
    error: Failure.optional(),
    /** The child restarts. */
    restarts: z.literal(true).optional(),
  }),
  /** The report to the parent is stored in the parent's inbox; or, with `error`, it cannot be stored. */
  parent_notified: event('parent_notified', { effect_id: effectId, session: z.string(), error: Failure.optional() }),
  call_cancel_requested: event('call_cancel_requested', {
    call_id: z.string(),
    command_id: z.string(),
    reason: z.string().optional(),
    actor: StoredActor.optional(),
    inject_reminder: z.boolean(),
    timeout_ms: z.number().int().nonnegative(),
  }),
  call_returned: event('call_returned', {
    call_id: z.string(),
    status: CallStatus,
    result: ToolResult,
    duration_ms: z.number().nonnegative(),
    /** The tool `park` asks to suspend the session. Hooks may still replace the result by an error. */
    park: SuspensionRequest.optional(),
    /** The `call_outcome` command with this result. */
    command_id: z.string().optional(),
  }),
  call_ended: event('call_ended', {
    call_id: z.string(),
    tool: z.string(),
    status: CallStatus,
    result: ToolResult,
    is_error: z.boolean(),
    duration_ms: z.number().nonnegative(),
    denial: Denial.optional(),
    timed_out: z.literal(true).optional(),
    /** The `call_outcome` command with this result. */
    command_id: z.string().optional(),
  }),
  turn_end: event('turn_end', {
    turn,
    usage: Usage,
    cost_usd,
    dispatch_skipped: z.literal(true).optional(),
    skip_reason: z.literal('interrupt_immediate').optional(),
  }),
  agent_end: event('agent_end', {
    run: z.number().int().positive(),
    stop_reason: StopReason,
    turns: z.number().int().nonnegative(),
    usage: Usage,
    cost_usd,
    /** Number of injections queued for the next run. */
    pending: z.number().int().nonnegative(),
    error: Failure.optional(),
    /** The number of the record with the failure. */
    failed_at: z.number().int().nonnegative().optional(),
    reason: z.string().optional(),
    /** The value of the last answer, if it fits the output schema. */
    output: Json.optional(),
  }),
  steering_received: event('steering_received', {
    command_id: z.string(),
    body: z.string(),
    mode: Mode,
    dedupe_key: z.string().optional(),
    preempt,
    actor: StoredActor.optional(),
    /** The session that sent the message. */
    from: MessageSource.optional(),
    at,
  }),
  reminder_injected: event('reminder_injected', {
    command_id: z.string(),
    body: z.string(),
    mode: Mode,
    ...STORED_REMINDER_FIELDS,
    preempt,
    /** The hook that returned the reminder. */
    hook: z.string().optional(),
    /** The reminder is in the transcript immediately. It waits for no seam, and does not make a run continue. */
    direct: z.literal(true).optional(),
    actor: StoredActor.optional(),
    at,
  }),
  followup_received: event('followup_received', {
    command_id: z.string(),
    body: z.string(),
    dedupe_key: z.string().optional(),
    actor: StoredActor.optional(),
    /** The session that sent the message. */
    from: MessageSource.optional(),
    /** A message that needs a run arrived after the last seam of one. The next run starts with the first such message. */
    begins_run: z.literal(true).optional(),
    at,
  }),
  /** A newer message with the same dedupe key replaced this one, which is never delivered. */
  injection_collapsed: event('injection_collapsed', {
    command_id: z.string(),
    into: z.string(),
    dedupe_key: z.string(),
  }),
  feedback_received: event('feedback_received', {
    feedback_id: z.string(),
    source: z.string(),
    body: z.string(),
    /** The command that contained the feedback. */
    command_id: z.string().optional(),
  }),
  /** Feedback was dropped because the queue was full. `source` gave the last dropped piece. */
  feedback_dropped: event('feedback_dropped', {
    source: z.string(),
    count: z.number().int().positive(),
    code: z.literal('too_much_feedback'),
    /** The command that contained the feedback. */
    command_id: z.string().optional(),
  }),
  /**
   * The report of a job that the session does not know so far. Hooks are being called that may have started the job, so
   * the report is decided after their answers.
   */
  job_report_deferred: event('job_report_deferred', {
    command_id: z.string(),
    receipt: JobReceipt,
    body: z.string().optional(),
  }),
  /** A report of a job that a hook started: its progress, or its end. */
  job_reported: event('job_reported', { command_id: z.string(), source: z.string(), receipt: JobReceipt }),
  /** The limit of open jobs is reached. The session does not remember this job, and rejects its reports. */
  job_untracked: event('job_untracked', { hook: z.string(), job_id: z.string(), code: z.literal('too_many_jobs') }),
  /** A reminder of a hook exceeded the bound of reminders. */
  reminder_dropped: event('reminder_dropped', { hook: z.string(), code: z.literal('too_many_reminders') }),
  message_injected: event('message_injected', {
    command_id: z.string(),
    origin: z.enum(['steer', 'followup', 'feedback', 'direct']),
    seam: z.string(),
    turn,
    message: z.discriminatedUnion('role', [UserMessage, ReminderMessage]),
    /** The id of a later command that replaced the text. */
    replaced_by: z.string().optional(),
    /** Only recorded: no prompt contains it. */
    audit_only: z.literal(true).optional(),
  }),
  /** A reminder was delivered. Unless it is `audit_only`, every prompt contains it until it expires. */
  reminder_fired: event('reminder_fired', {
    command_id: z.string(),
    seam: z.string(),
    turn,
    message: ReminderMessage,
    /** The reminder survives compactions. */
    preserve_on_compact: z.literal(true).optional(),
    replaced_by: z.string().optional(),
    /** Only recorded: no prompt contains it. */
    audit_only: z.literal(true).optional(),
  }),
  /** A newer reminder with the same dedupe key replaced a shown one. */
  reminder_deduped: event('reminder_deduped', { command_id: z.string(), by: z.string() }),
  /** Prompts no longer contain a reminder. */
  reminder_expired: event('reminder_expired', { command_id: z.string(), reason: ExpiryReason }),
  /** A child session inherits a reminder of its parent. */
  reminder_inherited: event('reminder_inherited', {
    command_id: z.string(),
    /** The parent session. */
    from: z.string(),
    body: z.string(),
    ...STORED_REMINDER_FIELDS,
  }),
  approval_requested: event('approval_requested', {
    call_id: z.string(),
    tool: z.string(),
    args: Json,
    /** `rule:<rule>`; or `unknown_outcome`, if the call was sent and its outcome is unknown. */
    requested_by: z.string(),
    /** The question, if it differs from whether the call may run. */
    question: z.string().optional(),
    /** The approval expires after this time. */
    expire_after_ms: z.number().int().positive().optional(),
    /** A webhook is notified of the approval. */
    notifies: z.literal(true).optional(),
  }),
  /** Outcome of the notification of a pending approval. */
  approval_notified: event('approval_notified', {
    call_id: z.string(),
    ...ApprovalNoticeOutcome.omit({ type: true }).shape,
  }),
  /** A person decided that a rule answers for similar later calls. */
  permission_remembered: event('permission_remembered', { call_id: z.string(), rule: RememberedRule }),
  /** A remembered rule was revoked. */
  permission_forgotten: event('permission_forgotten', {
    rule_id: z.string(),
    command_id: z.string(),
    actor: StoredActor.optional(),
    at,
  }),
  /** The remembered rules of the run's persona, as of this run. */
  permissions_changed: event('permissions_changed', { rules: z.array(RememberedRule) }),
  /**
   * A person approved a pending call with edited arguments. `PreToolUse` hooks check them first; meanwhile the approval
   * stays pending.
   */
  edited_call_proposed: event('edited_call_proposed', {
    call_id: z.string(),
    /** The `approve` command. Its receipt follows from a later record. */
    command_id: z.string(),
    args: JsonObject,
    remember: RememberScope.optional(),
    actor: StoredActor.optional(),
    reason: z.string().optional(),
  }),
  /**
   * The hooks have checked an edited call. The same record decides the call or rejects the edit, unless the call no
   * longer waits for this approval.
   */
  edited_call_checked: event('edited_call_checked', {
    call_id: z.string(),
    command_id: z.string(),
    effect_id: effectId,
  }),
  approval_decided: event('approval_decided', {
    call_id: z.string(),
    /**
     * Without a decision: `superseded` by a cancel of the call, an interrupt or the rules of a fork's persona, `aborted` by
     * the end of the run, `expired`.
     */
    decision: z.enum(['allow', 'deny', 'superseded', 'aborted', 'expired']),
    command_id: z.string().optional(),
    actor: StoredActor.optional(),
    reason: z.string().optional(),
    /** The hook that decided the approval, if no person did. */
    hook: z.string().optional(),
    /** The arguments as the approver edited them. */
    args: JsonObject.optional(),
  }),
  files_edited: event('files_edited', { call_id: z.string(), paths: z.array(EditedPath).min(1) }),
  call_args_rewritten: event('call_args_rewritten', {
    call_id: z.string(),
    args: JsonObject,
    by: z.string(),
    /** The tool itself requires a person's approval for these arguments. */
    needs_approval: z.literal(true).optional(),
  }),
  hook_call: event('hook_call', {
    hook: z.string(),
    point: HookPoint,
    effect_id: effectId,
    call_id: z.string().optional(),
    /** The steer or follow-up that `user_prompt_submit` hooks check, or the `approve` with the edited call. */
    command_id: z.string().optional(),
    /** Left out where it is large and the first `hook_call` of the consult has it. */
    payload: WrapperObject.optional(),
  }),
  hook_returned: event('hook_returned', {
    hook: z.string(),
    point: HookPoint,
    effect_id: effectId,
    call_id: z.string().optional(),
    command_id: z.string().optional(),
    ...HookAnswer.omit({ hook: true }).shape,
  }),
  /** A hook's decision: a refusal, or at `permission_asked` also `allow` or `ask`. */
  hook_vetoed: event('hook_vetoed', {
    hook: z.string(),
    point: HookPoint,
    call_id: z.string().optional(),
    command_id: z.string().optional(),
    decision: z.string(),
    reason: z.string().optional(),
  }),
  /** A `user_prompt_submit` hook blocked a steer or a follow-up, which is never delivered. */
  injection_blocked: event('injection_blocked', { command_id: z.string(), reason: z.string() }),
  /**
   * `user_prompt_submit` hooks have checked a queued steer or follow-up. `none`: the check was cancelled, or the
   * message is no longer queued or has another text.
   */
  guard_ended: event('guard_ended', {
    command_id: z.string(),
    /** Absent if no hook was called because no condition matches. */
    effect_id: effectId.optional(),
    verdict: z.enum(['allowed', 'blocked', 'none']),
  }),
  /**
   * The hooks have answered. Without `effect_id` no hook was called: no condition matches, or the table has changed.
   */
  consult_ended: event('consult_ended', {
    point: HookPoint,
    effect_id: effectId.optional(),
    call_id: z.string().optional(),
  }),
  /**
   * The hooks of an announced point (`ANNOUNCED`, hooks/state.ts in libs/turn) have answered. Calls and seams do not
   * wait for them. Without `effect_id` no hook matched.
   */
  announced: event('announced', { point: HookPoint, effect_id: effectId.optional() }),
  command_rejected: event('command_rejected', {
    command_id: z.string(),
    verb: z.string(),
    code: z.string(),
    message: z.string(),
    field: z.string().optional(),
    detail: JsonObject.optional(),
  }),
  control_outcome: event('control_outcome', {
    control: ControlVerb,
    command_id: z.string(),
    status: ControlStatus,
    /**
     * The target of the control: a call's id, another command's id, or the session's id. For an unreadable command: the
     * session's id.
     */
    target: z.string(),
    tool: z.string().optional(),
    /** The new text of the target of a `replace`. */
    body: z.string().optional(),
    actor: StoredActor.optional(),
    reason: z.string().optional(),
  }),
  suspend_requested: event('suspend_requested', {
    /** The command that asked for the suspension, or the call of the tool `park`. */
    command_id: z.string().optional(),
    call_id: z.string().optional(),
    actor: StoredActor.optional(),
    reason: z.string().optional(),
    until_ms: z.number().int().optional(),
    for_ms: z.number().int().positive().optional(),
    signal: z.string().optional(),
    on_timeout: OnTimeout.optional(),
    input: z.string().optional(),
  }),
  suspended: event('suspended', {
    command_id: z.string().optional(),
    call_id: z.string().optional(),
    reason: z.string().optional(),
    until_ms: z.number().int().optional(),
    signal: z.string().optional(),
    on_timeout: OnTimeout.optional(),
    /** The timer that ends the suspension, if it has a time limit. */
    effect_id: effectId.optional(),
  }),
  resumed: event('resumed', {
    cause: z.enum(['command', 'interrupt', 'signal', 'timeout']),
    /** The command that resumed the session: a resume, an interrupt, a signal. */
    command_id: z.string().optional(),
    slept_ms: z.number().int().nonnegative(),
    signal: z.strictObject({ name: z.string(), data: Json.optional() }).optional(),
  }),
  signal_received: event('signal_received', {
    command_id: z.string(),
    name: z.string(),
    data: Json.optional(),
    actor: StoredActor.optional(),
  }),
  timer_fired: event('timer_fired', { effect_id: effectId, what: TimerPurpose }),
  /** A model step cannot start: no instance serves its persona, or the persona is paused. */
  waiting_for_persona: event('waiting_for_persona', PERSONA_STEP_EVENTS.waiting_for_persona),
  /** An instance serves the persona again, the pause has ended, or the model step now waits for another reason. */
  persona_wait_ended: event('persona_wait_ended', PERSONA_STEP_EVENTS.persona_wait_ended),
  /**
   * The instance of a model step was lost, or returned the step. The streamed text of this attempt is void. Another
   * attempt starts, unless this was the last one.
   */
  persona_step_lost: event('persona_step_lost', PERSONA_STEP_EVENTS.persona_step_lost),
  run_failed: event('run_failed', {
    source: z.enum(['provisioning', 'model', 'session', 'prompt', 'suspension', 'step', 'output']),
    error: Failure,
    stop_reason: StopReason,
  }),
  /** A declared step starts: PreStep hooks run, then the model gets the task of the step. */
  step_started: event('step_started', {
    ...StepHead,
    turn,
    args: StepArgs,
  }),
  /** A PreStep hook replaced the prompt of the step. */
  step_args_rewritten: event('step_args_rewritten', { ...StepHead, args: StepArgs, by: z.string() }),
  /** A PostStep hook replaced the answer of the step. The next step gets the new answer. */
  step_output_rewritten: event('step_output_rewritten', { ...StepHead, output: Json, by: z.string() }),
  /** An attempt of a step has ended. The answer of a completed step is `output`, or else that of its last turn. */
  step_finished: event('step_finished', {
    ...StepHead,
    status: StepStatus,
    /** For a failed step: the reason, and the effect on the run. */
    error: Failure.optional(),
    error_boundary: ErrorBoundary.optional(),
    /** The answer with which a PostStep hook replaced that of the model. */
    output: Json.optional(),
    /** Tokens that the step used, in and out. */
    tokens: count,
    cost_usd,
  }),
  /**
   * A threshold of a budget is reached: once for each threshold of a limit, until the limit counts anew (BUDGET-1,
   * budgets.ts in libs/turn). At 100 percent the run ends.
   */
  budget_threshold: event('budget_threshold', {
    budget: Budget,
    percent: z.number().int().min(1).max(100),
    /** In tokens, USD or milliseconds, by the budget. */
    used: z.number().nonnegative(),
    limit: z.number().positive(),
    /** Minimum for the next answer, if it exceeds the rest of the budget. */
    needed: z.number().positive().optional(),
  }),
  /**
   * A stop condition is true. The turn ends the run, unless its last seam delivers a message, or an interrupt skipped
   * calls or cut the answer short.
   */
  stop_condition_held: event('stop_condition_held', { turn, condition: StopCondition }),
  stop_predicates_asked: event('stop_predicates_asked', { turn, effect_id: effectId, predicates: z.array(z.string()) }),
  stop_predicates_answered: event('stop_predicates_answered', {
    turn,
    effect_id: effectId,
    answers: z.array(StopAnswer),
  }),
  tools_closed: event('tools_closed', { effect_id: effectId, notes: z.array(z.string()) }),
  owned: event('owned', {
    epoch: z.number().int().positive(),
    host: z.string(),
    /** All earlier records are copies from another session. Workers that accepted its calls report to it only. */
    after_copy: z.literal(true).optional(),
    /** Calls that only the last copied, changed record of a fork starts, or starts with other arguments. */
    unsent: z.array(z.string()).optional(),
  }),
  /** The journal is a copy of another one. This is the first event of its first record. */
  session_copied: event('session_copied', {
    ...CopyOrigin.pick({ how: true, session: true, hash: true, command_id: true, actor: true, before: true }).shape,
    /** The last copied record of the origin. `hash` is the hash of this record. */
    up_to: z.number().int().positive(),
  }),
  /** The copy is incomplete: only `copied` records of the origin could be copied. */
  copy_failed: event('copy_failed', { copied: count, error: Failure }),
  /**
   * The persona, model or mode changes from here on: by a fork, or by a prompt, before `prompt_received` in the same
   * record.
   */
  settings_changed: event('settings_changed', {
    settings: ChangedSettings,
    /** A run is active: persona, prompt and tools are resolved again before it continues. */
    reprovisions: z.literal(true).optional(),
  }),
  /** The new resolution of persona, prompt and tools has succeeded, or was abandoned. After a failure the run fails. */
  reprovisioned: event('reprovisioned', { effect_id: effectId }),
} as const;

/** A type of event. */
export type EventType = keyof typeof EVENT_SCHEMAS;
/** All event types. */
export const EVENT_TYPES = Object.keys(EVENT_SCHEMAS) as EventType[];
/** Any event. */
export type SessionEvent = { [T in EventType]: z.infer<(typeof EVENT_SCHEMAS)[T]> }[EventType];
/** One event by its type. */
export type EventOf<T extends EventType> = Extract<SessionEvent, { type: T }>;

/** Any event; strict. */
export const SessionEvent = z.discriminatedUnion(
  'type',
  Object.values(EVENT_SCHEMAS) as unknown as [
    (typeof EVENT_SCHEMAS)['turn_start'],
    ...(typeof EVENT_SCHEMAS)['turn_start'][],
  ],
) as unknown as z.ZodType<SessionEvent>;

/**
 * An event that delivers an injection: into the transcript, or with `audit_only` into the record alone. A `reminder_fired`
 * of a hook (seam `direct`) is none, which the type does not exclude.
 */
export type Delivery =
  | EventOf<'reminder_fired'>
  | (EventOf<'message_injected'> & { readonly origin: 'steer' | 'followup' });

/**
 * Whether an event delivers a message of a sender ({@link Delivery}). Messages of hooks and of the runtime do not count.
 */
export function isDelivery(event: SessionEvent): event is Delivery {
  if (event.type === 'reminder_fired') return event.seam !== 'direct';
  return event.type === 'message_injected' && (event.origin === 'steer' || event.origin === 'followup');
}
