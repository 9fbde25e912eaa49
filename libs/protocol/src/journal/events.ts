/**
 * Events: what has happened. They are the journal's vocabulary and the turn machine's events at once; there is no
 * mapping between the two.
 */
import * as z from 'zod';
import { ERROR_CODES } from '../catalogues/error-codes.ts';
import { Mode, SeamKind } from '../catalogues/seams.ts';
import { StoredActor } from '../commands/actor.ts';
import { NoticeOutcome } from '../commands/approval-notices.ts';
import { StartSettings } from '../commands/commands.ts';
import { OnTimeout, ParkRequest } from '../commands/parking.ts';
import { RememberedRule, RememberScope } from '../commands/remembered-rules.ts';
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
import { Json, JsonObject } from '../wire/json.ts';
import { ChangedSettings, CopyOrigin } from './forks.ts';
import { EditedPath, Failure, Provision, StopAnswer, ToolResult, Usage } from './inputs.ts';
import { AssistantMessage, ReminderMessage, UserMessage } from './messages.ts';
import { ExpiryReason, STORED_REMINDER_FIELDS } from './reminders.ts';
import { TimerPurpose } from './timers.ts';

const turn = z.number().int().nonnegative();
const effectId = z.string();
/** When the record was made, ISO 8601. */
const at = z.string();
/** Only where the prices of all that was used are known. */
const cost_usd = z.number().nonnegative().optional();
/** The interrupt does not wait for the answer or the calls under way: it ends them. */
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
/** See {@link StopReason}. */
export type StopReason = z.infer<typeof StopReason>;

/** Commands that act on the session, on a call or on another command rather than say something to a model. */
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
/** See {@link ControlVerb}. */
export type ControlVerb = z.infer<typeof ControlVerb>;

/** What became of a control. Those that were refused have the code of their rejection. */
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
  /** Of a suspension that was asked for: the run has ended before it took hold. */
  'lapsed',
  /** A signal that no suspension waits for yet. */
  'stored',
  'revoked',
  'replaced',
  ...ERROR_CODES,
]);
/** See {@link ControlStatus}. */
export type ControlStatus = z.infer<typeof ControlStatus>;

/** Why a call was denied, as recorded and as sent to the model. */
export const Denial = z.strictObject({
  /** `expiry`: the approval expired. */
  by: z.enum(['rule', 'hook', 'user', 'gate_unavailable', 'expiry']),
  rule: z.string().optional(),
  hook: z.string().optional(),
  actor: StoredActor.optional(),
  reason: z.string().optional(),
  /** What was refused: shortened, and without what looks like a secret. */
  args: Json.optional(),
});
/** See {@link Denial}. */
export type Denial = z.infer<typeof Denial>;

/** Why a compaction is made: the prompt is estimated to pass the window less the reserve, or the provider has refused it. */
export const CompactionMode = z.enum(['window', 'overflow']);
/** See {@link CompactionMode}. */
export type CompactionMode = z.infer<typeof CompactionMode>;

const count = z.number().int().nonnegative();
/** What every event of a compaction says of it. Tokens are estimates. */
const Pass = {
  turn,
  mode: CompactionMode,
  strategy: CompactionStrategy,
  tokens_before: count,
  window: count,
  reserve: count,
  /** Closed turns before the open one that stay as they are. */
  kept_turns: count,
};

/** Which step, its place among the steps from 0, and how often it was begun. */
const StepHead = { step: z.string(), index: count, attempt: z.number().int().positive() };

const event = <T extends string, S extends z.ZodRawShape>(type: T, shape: S) =>
  z.strictObject({ type: z.literal(type), ...shape });

/** Every event type with its strict schema. */
export const EVENT_SCHEMAS = {
  prompt_received: event('prompt_received', {
    command_id: z.string(),
    run: z.number().int().positive(),
    messages: z.array(UserMessage).min(1),
    actor: StoredActor.optional(),
    /** Only the first prompt of a session has it. */
    settings: StartSettings.optional(),
    /** The session is a child. */
    parent: ParentLink.optional(),
    /** Another session has sent it. */
    from: MessageSource.optional(),
    /** The text is that of this later command. */
    replaced_by: z.string().optional(),
  }),
  persona_changed: event('persona_changed', {
    fingerprint: z.string(),
    provision: Provision.omit({ tools: true, hooks: true, price: true, remembered: true }),
    /** The persona before has handed the session over, by this call. */
    handoff: z.strictObject({ call_id: z.string(), from: z.string() }).optional(),
  }),
  /**
   * A persona hands the session over: hooks are asked, then the other persona is looked up. It has the session with the
   * `persona_changed` that names the call; a call that ends otherwise has changed nothing.
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
    /** Null where the run ended before they were known. */
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
    /** What the answer came to by the session's output schema, where it has one. */
    output: OutputCheck.optional(),
  }),
  /** A final answer does not fit the output schema. A `message_injected` at `output` follows, or the run fails or ends. */
  output_rejected: event('output_rejected', {
    turn,
    /** Repair turns so far, and how many there may be. */
    repairs: count,
    repairs_max: count,
    problems: z.array(z.string()).min(1),
  }),
  /** The provider refused the prompt as too long: a compaction follows, and the prompt is sent once more. */
  context_overflowed: event('context_overflowed', {
    turn,
    error: Failure,
    /** What the prompt had been estimated to have. */
    tokens: count,
    usage: Usage,
    attempts: count,
    duration_ms: z.number().nonnegative(),
    /** The message of a refusal without text. It is not part of a transcript. */
    message: AssistantMessage.optional(),
  }),
  /** A model step for the replacement of older messages has started. */
  compaction_started: event('compaction_started', { ...Pass, effect_id: effectId }),
  /** From here on models are shown another view of what came before. The journal keeps all of it. */
  compaction_done: event('compaction_done', {
    ...Pass,
    tokens_after: count,
    /** Messages that were replaced: by the summary or notes, or each result by a stub. */
    archived: count,
    /** Messages that the view has now. */
    remaining: count,
    /** The summary or the notes. */
    summary: z.string().optional(),
    usage: Usage.optional(),
    attempts: count.optional(),
    duration_ms: z.number().nonnegative().optional(),
    /** What the persona asks for, and why it could not be had. */
    instead_of: z.strictObject({ strategy: CompactionStrategy, error: Failure }).optional(),
  }),
  /** A compaction came to nothing; the view stays as it was. */
  compaction_skipped: event('compaction_skipped', {
    ...Pass,
    error: Failure,
    usage: Usage.optional(),
  }),
  call_started: event('call_started', { call_id: z.string(), tool: z.string(), args: Json, effect_id: effectId }),
  /** The worker has accepted the call. Its outcome arrives later as the command `call_outcome`. */
  call_accepted: event('call_accepted', { call_id: z.string(), epoch: z.number().int().positive() }),
  /** A child begins to work for the call: the command that starts it is on its way. */
  child_started: event('child_started', {
    call_id: z.string(),
    effect_id: effectId,
    session: z.string(),
    persona: z.string(),
    depth: count,
    /** Which restart of the call's work this is, from 1. */
    restart: z.number().int().positive().optional(),
    /** Its share of what the run may still use. */
    budget: z.strictObject({ tokens: count.optional(), nano_usd: count.optional() }).optional(),
    /** Reminders that found no room. */
    reminders_left_out: z.number().int().positive().optional(),
  }),
  /** A child has reported how it ended. What it has used counts from here on. */
  child_ended: event('child_ended', {
    command_id: z.string(),
    call_id: z.string(),
    effect_id: effectId,
    session: z.string(),
    stop_reason: StopReason,
    turns: count,
    /** Of it and all that it has started. */
    usage: Usage,
    /** Null where a price was not known. */
    nano_usd: count.nullable(),
    error: Failure.optional(),
    /** Another one takes its place. */
    restarts: z.literal(true).optional(),
  }),
  /** The parent's inbox holds what became of this session's first run; or cannot take it. */
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
    /** It asks for its session to be parked; hooks may still make an error of it. */
    park: ParkRequest.optional(),
    /** The `call_outcome` that brought it. */
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
    /** The `call_outcome` that brought it. */
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
    /** Injections that wait for the next run. */
    pending: z.number().int().nonnegative(),
    error: Failure.optional(),
    /** The record in which what failed, failed. */
    failed_at: z.number().int().nonnegative().optional(),
    reason: z.string().optional(),
    /** The value of the last answer, where it fits the output schema. */
    output: Json.optional(),
  }),
  steering_received: event('steering_received', {
    command_id: z.string(),
    body: z.string(),
    mode: Mode,
    dedupe_key: z.string().optional(),
    preempt,
    actor: StoredActor.optional(),
    /** Another session has sent it. */
    from: MessageSource.optional(),
    at,
  }),
  reminder_injected: event('reminder_injected', {
    command_id: z.string(),
    body: z.string(),
    mode: Mode,
    ...STORED_REMINDER_FIELDS,
    preempt,
    /** The hook that returned it. */
    hook: z.string().optional(),
    /** It waits for no seam, and makes no run go on. */
    direct: z.literal(true).optional(),
    actor: StoredActor.optional(),
    at,
  }),
  followup_received: event('followup_received', {
    command_id: z.string(),
    body: z.string(),
    dedupe_key: z.string().optional(),
    actor: StoredActor.optional(),
    /** Another session has sent it. */
    from: MessageSource.optional(),
    /** A message that asks for a run and came when the one before took no more: the next begins with it. */
    begins_run: z.literal(true).optional(),
    at,
  }),
  /** A newer message with the same dedupe key has replaced this one, which is never delivered. */
  injection_collapsed: event('injection_collapsed', {
    command_id: z.string(),
    into: z.string(),
    dedupe_key: z.string(),
  }),
  feedback_received: event('feedback_received', {
    feedback_id: z.string(),
    source: z.string(),
    body: z.string(),
    /** The command that brought it. */
    command_id: z.string().optional(),
  }),
  /** As much waited as may wait: so many are not kept. `source` gave the last of them. */
  feedback_dropped: event('feedback_dropped', {
    source: z.string(),
    count: z.number().int().positive(),
    code: z.literal('too_much_feedback'),
    /** The command that brought it. */
    command_id: z.string().optional(),
  }),
  /** A report of a job that no hook of the session has started, while one is asked that may start it: decided with its answer. */
  job_report_deferred: event('job_report_deferred', {
    command_id: z.string(),
    receipt: JobReceipt,
    body: z.string().optional(),
  }),
  /** Progress of a job that a hook has started. */
  job_reported: event('job_reported', { command_id: z.string(), source: z.string(), receipt: JobReceipt }),
  /** The limit of open jobs is reached: the session does not wait for the end of this one. */
  job_untracked: event('job_untracked', { hook: z.string(), job_id: z.string(), code: z.literal('too_many_jobs') }),
  /** A hook's reminder found no room. */
  reminder_dropped: event('reminder_dropped', { hook: z.string(), code: z.literal('too_many_reminders') }),
  message_injected: event('message_injected', {
    command_id: z.string(),
    origin: z.enum(['steer', 'followup', 'feedback', 'direct']),
    seam: z.string(),
    turn,
    message: z.discriminatedUnion('role', [UserMessage, ReminderMessage]),
    /** The command that gave it another text than it came with. */
    replaced_by: z.string().optional(),
    /** In the transcript for the record, never rendered to a model. */
    audit_only: z.literal(true).optional(),
  }),
  /** A reminder is delivered: it is part of the transcript, and every prompt shows it until it expires. */
  reminder_fired: event('reminder_fired', {
    command_id: z.string(),
    seam: z.string(),
    turn,
    message: ReminderMessage,
    /** It outlives a compaction. */
    preserve_on_compact: z.literal(true).optional(),
    replaced_by: z.string().optional(),
    /** In the transcript for the record, never rendered to a model. */
    audit_only: z.literal(true).optional(),
  }),
  /** A reminder that was shown makes way for a newer one with its dedupe key. */
  reminder_deduped: event('reminder_deduped', { command_id: z.string(), by: z.string() }),
  /** A reminder is shown no longer. */
  reminder_expired: event('reminder_expired', { command_id: z.string(), reason: ExpiryReason }),
  /** A child session is born with a reminder of its parent's. */
  reminder_inherited: event('reminder_inherited', {
    command_id: z.string(),
    /** The session that it comes from. */
    from: z.string(),
    body: z.string(),
    ...STORED_REMINDER_FIELDS,
  }),
  approval_requested: event('approval_requested', {
    call_id: z.string(),
    tool: z.string(),
    args: Json,
    /** `rule:<which>` or `hook:<which>`, or `unknown_outcome`: a crash left open whether the call ran. */
    requested_by: z.string(),
    /** What is asked, where it is another question than whether the call may run. */
    question: z.string().optional(),
    /** It is decided by itself after so long. */
    expire_after_ms: z.number().int().positive().optional(),
    /** A webhook is notified of it. */
    notifies: z.literal(true).optional(),
  }),
  /** Outcome of the notification of a pending approval. */
  approval_notified: event('approval_notified', {
    call_id: z.string(),
    ...NoticeOutcome.omit({ type: true }).shape,
  }),
  /** A person has had later calls like this one decided in advance. */
  permission_remembered: event('permission_remembered', { call_id: z.string(), rule: RememberedRule }),
  /** A remembered rule holds no more. */
  permission_forgotten: event('permission_forgotten', {
    rule_id: z.string(),
    command_id: z.string(),
    actor: StoredActor.optional(),
    at,
  }),
  /** What people have had the run's persona remember, as of this run. */
  permissions_changed: event('permissions_changed', { rules: z.array(RememberedRule) }),
  /** A person would allow a parked call with other arguments. `PreToolUse` hooks are asked about it; meanwhile it stays parked. */
  edited_call_proposed: event('edited_call_proposed', {
    call_id: z.string(),
    /** The `approve`. Its receipt follows from a later record. */
    command_id: z.string(),
    args: JsonObject,
    remember: RememberScope.optional(),
    actor: StoredActor.optional(),
    reason: z.string().optional(),
  }),
  /** The hooks that were asked about an edited call have answered. The same record decides the call or rejects the edit. */
  edited_call_checked: event('edited_call_checked', {
    call_id: z.string(),
    command_id: z.string(),
    effect_id: effectId,
  }),
  approval_decided: event('approval_decided', {
    call_id: z.string(),
    decision: z.enum(['allow', 'deny', 'superseded', 'aborted', 'expired']),
    command_id: z.string().optional(),
    actor: StoredActor.optional(),
    reason: z.string().optional(),
    /** The hook that has decided it, where no person did. */
    hook: z.string().optional(),
    /** The arguments as the approver edited them. */
    args: JsonObject.optional(),
  }),
  files_edited: event('files_edited', { call_id: z.string(), paths: z.array(EditedPath).min(1) }),
  call_args_rewritten: event('call_args_rewritten', {
    call_id: z.string(),
    args: JsonObject,
    by: z.string(),
    /** A person must approve the call with these arguments, by the tool's own answer. */
    needs_approval: z.literal(true).optional(),
  }),
  hook_call: event('hook_call', {
    hook: z.string(),
    point: HookPoint,
    effect_id: effectId,
    call_id: z.string().optional(),
    /** The steer or follow-up that the guard asks about, or the `approve` whose edited call is checked. */
    command_id: z.string().optional(),
    payload: JsonObject,
  }),
  hook_returned: event('hook_returned', {
    hook: z.string(),
    point: HookPoint,
    effect_id: effectId,
    call_id: z.string().optional(),
    command_id: z.string().optional(),
    ...HookAnswer.omit({ hook: true }).shape,
  }),
  hook_vetoed: event('hook_vetoed', {
    hook: z.string(),
    point: HookPoint,
    call_id: z.string().optional(),
    command_id: z.string().optional(),
    decision: z.string(),
    reason: z.string().optional(),
  }),
  /** A `user_prompt_submit` hook has blocked a steer or a follow-up: it is never delivered. */
  injection_blocked: event('injection_blocked', { command_id: z.string(), reason: z.string() }),
  /** The consult about a steer or follow-up is over. `none`: it was broken off, or what it was about waits no more. */
  guard_ended: event('guard_ended', {
    command_id: z.string(),
    /** Absent if no hook was called: no condition of a guard matches. */
    effect_id: effectId.optional(),
    verdict: z.enum(['allowed', 'blocked', 'none']),
  }),
  /** The hooks have answered. Without an effect no hook was called: no condition matches, or the table has changed. */
  consult_ended: event('consult_ended', {
    point: HookPoint,
    effect_id: effectId.optional(),
    call_id: z.string().optional(),
  }),
  /**
   * Hooks of a notification point were called; the session does not wait for them. Without an effect there were none.
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
    /** What it was aimed at: a call's id, another command's, or the session's, also where nothing else could be read. */
    target: z.string(),
    tool: z.string().optional(),
    /** The new text of the target of a `replace`. */
    body: z.string().optional(),
    actor: StoredActor.optional(),
    reason: z.string().optional(),
  }),
  suspend_requested: event('suspend_requested', {
    /** The command that asked for it, or the call by which the session parks itself. */
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
    /** The timer that ends the wait, where it has a time. */
    effect_id: effectId.optional(),
  }),
  resumed: event('resumed', {
    cause: z.enum(['command', 'interrupt', 'signal', 'timeout']),
    /** The command that woke it: a resume, an interrupt, a signal. */
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
  /** A step cannot start: its persona has no instance, or is paused. */
  waiting_for_persona: event('waiting_for_persona', PERSONA_STEP_EVENTS.waiting_for_persona),
  /** What it has waited for is there. */
  persona_wait_ended: event('persona_wait_ended', PERSONA_STEP_EVENTS.persona_wait_ended),
  /**
   * The instance of a step was lost, or returned the step. Another attempt starts, and the streamed text of the last
   * one is void.
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
  /** A PreStep hook has given the step another prompt. */
  step_args_rewritten: event('step_args_rewritten', { ...StepHead, args: StepArgs, by: z.string() }),
  /** A PostStep hook has replaced the answer of the step. The next step gets the new one. */
  step_output_rewritten: event('step_output_rewritten', { ...StepHead, output: Json, by: z.string() }),
  /**
   * A step has ended, once for each of its attempts. Its answer is that of the turn, unless a hook has rewritten it.
   */
  step_finished: event('step_finished', {
    ...StepHead,
    status: StepStatus,
    /** Of one that has failed: why, and what becomes of the run. */
    error: Failure.optional(),
    error_boundary: ErrorBoundary.optional(),
    output: Json.optional(),
    /** What it has used, in and out. */
    tokens: count,
    cost_usd,
  }),
  /** Once per budget and threshold in a run. At 100 percent the run ends. */
  budget_threshold: event('budget_threshold', {
    budget: Budget,
    percent: z.number().int().min(1).max(100),
    /** Tokens, USD or milliseconds, as the budget's name says. */
    used: z.number().nonnegative(),
    limit: z.number().positive(),
    /** What the next answer needs at least, where that is more than is left. */
    needed: z.number().positive().optional(),
  }),
  /** The turn ends the run, unless its last seam delivers something. */
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
    /** All earlier records were copied from another session: calls accepted there are void here. */
    after_copy: z.literal(true).optional(),
    /** But for these, which the last copied record of a fork begins and its origin's did not: they were never sent. */
    unsent: z.array(z.string()).optional(),
  }),
  /** The journal was copied from another: the first event of its first record. */
  session_copied: event('session_copied', {
    ...CopyOrigin.pick({ how: true, session: true, hash: true, command_id: true, actor: true, before: true }).shape,
    /** The last record of the origin that was copied, which the hash is of. */
    up_to: z.number().int().positive(),
  }),
  /** The origin could not be copied to the end; so many records were. */
  copy_failed: event('copy_failed', { copied: count, error: Failure }),
  /** From here on another persona, model or mode: of a fork, or by a prompt, in whose record it stands before that. */
  settings_changed: event('settings_changed', {
    settings: ChangedSettings,
    /** A run is under way: its surroundings are resolved anew before anything goes on. */
    reprovisions: z.literal(true).optional(),
  }),
  /** The surroundings of a run that is under way are resolved anew, or that was given up. */
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

/** An injection is in the transcript. */
export type Delivery =
  | EventOf<'reminder_fired'>
  | (EventOf<'message_injected'> & { readonly origin: 'steer' | 'followup' });

/** Whether an event says that someone's injection is in the transcript. What hooks and the runtime say is none. */
export function isDelivery(event: SessionEvent): event is Delivery {
  if (event.type === 'reminder_fired') return event.seam !== 'direct';
  return event.type === 'message_injected' && (event.origin === 'steer' || event.origin === 'followup');
}
