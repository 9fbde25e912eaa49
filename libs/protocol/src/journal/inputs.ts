/**
 * Inputs of a session. Each record contains the whole input that caused it, so that a journal is sufficient to run the
 * session again.
 */

import * as z from 'zod';
import type { ErrorCode } from '../catalogues/error-codes.ts';
import { type Actor, StoredActor } from '../commands/actor.ts';
import { ApprovalNoticeOutcome } from '../commands/approval-notices.ts';
import { PersonaIdentity, RememberedRule } from '../commands/remembered-rules.ts';
import { SuspensionRequest } from '../commands/suspension-request.ts';
import { HookTable } from '../hooks/hook-registrations.ts';
import { HookAnswer } from '../hooks/verdicts.ts';
import { RunBudgets, WholeRunLimits } from '../personas/budgets.ts';
import { OutputCheck, PinnedOutput } from '../personas/output-schema.ts';
import { PinnedPermissions } from '../personas/permissions.ts';
import { CompactionStrategy, ModelSettings, StoredPersona } from '../personas/persona.ts';
import { PersonaStepInput } from '../personas/persona-steps.ts';
import { PinnedPrice } from '../personas/prices.ts';
import { CallStatus, ToolDefinition } from '../tools/calls.ts';
import { BOUNDS } from '../wire/bounds.ts';
import { listOf } from '../wire/containers.ts';
import { JsonObject, WrapperObject } from '../wire/json.ts';
import { AfterCopy, CopyOrigin } from './forks.ts';
import { AssistantMessage, FilePart, TextPart } from './messages.ts';

/** A recorded failure of an external system: a stable code, a sentence, and whether a retry may help. */
export const Failure = z.strictObject({
  code: z.string().min(1),
  message: z.string(),
  retryable: z.boolean().optional(),
});
export type Failure = z.infer<typeof Failure>;

/** Token counts of one model call. */
export const Usage = z.strictObject({
  input_tokens: z.number().int().nonnegative(),
  output_tokens: z.number().int().nonnegative(),
  cached_input_tokens: z.number().int().nonnegative().optional(),
  reasoning_tokens: z.number().int().nonnegative().optional(),
});
export type Usage = z.infer<typeof Usage>;

/**
 * A command after its checks by the host. With `problem` it can only be rejected, and `body` contains the readable
 * part.
 */
export const CommandInput = z.strictObject({
  type: z.literal('command'),
  verb: z.string(),
  command_id: z.string(),
  body: WrapperObject,
  actor: StoredActor.optional(),
  receipt_to: z.string().optional(),
  problem: z.strictObject({ code: z.string(), message: z.string(), field: z.string().optional() }).optional(),
  /** Only in the first record of a journal copied from another. */
  copied_from: CopyOrigin.optional(),
});
export type CommandInput = Omit<z.infer<typeof CommandInput>, 'problem' | 'actor'> & {
  actor?: Actor | undefined;
  problem?: { code: ErrorCode; message: string; field?: string | undefined } | undefined;
};

/** How a run keeps its prompts within the context window of its model. */
export const ResolvedCompaction = z.strictObject({
  strategy: CompactionStrategy,
  keep_turns: z.number().int().nonnegative(),
  /** Context window of the model in tokens, and the source of this figure. */
  window: z.number().int().positive(),
  window_from: z.enum(['persona', 'model', 'default']),
  /** Tokens of the window that are reserved for the answer. */
  reserve: z.number().int().nonnegative(),
});
export type ResolvedCompaction = z.infer<typeof ResolvedCompaction>;

/** Persona, prompt and tools of a session, resolved and pinned for a run. */
export const Provision = z.strictObject({
  persona: z.strictObject({ name: z.string(), version: z.string() }),
  /** Remembered rules are bound to it. Absent in journals of earlier releases, where no remembered rule applies. */
  identity: PersonaIdentity.optional(),
  /** The whole pinned definition. */
  definition: StoredPersona,
  /** Only for a persona that other processes serve: no host runs its model steps and its own tools. */
  served: z.literal(true).optional(),
  /** The mode that the start or a later prompt selected. */
  mode: z.string().optional(),
  model: ModelSettings,
  system_prompt: z.string(),
  tools: listOf(ToolDefinition),
  hooks: HookTable,
  permissions: PinnedPermissions,
  max_turns: z.number().int().min(1),
  parallel_calls: z.number().int().min(1),
  drain: z.strictObject({ steering: z.enum(['all', 'one_at_a_time']), followups: z.enum(['all', 'one_at_a_time']) }),
  daemon: z.boolean(),
  /** Only with delegation: maximum of concurrent children, and of generations below the session. */
  delegation: z
    .strictObject({ children: z.number().int().nonnegative(), depth: z.number().int().nonnegative() })
    .optional(),
  /** An idle daemon wakes after this time. */
  wake_interval_ms: z.number().int().positive().optional(),
  /** Absent in journals older than compaction: their prompts grow until the provider refuses them. */
  compaction: ResolvedCompaction.optional(),
  root: z.string(),
  /** Only if the run has a budget. */
  budgets: RunBudgets.optional(),
  /** Only if the final answer has a schema. */
  output: PinnedOutput.optional(),
  /** Only for a persona that receives a hand-off: the limits of the start for the whole run. */
  run_limits: WholeRunLimits.optional(),
  /** Only if the price of the model is known. */
  price: PinnedPrice.optional(),
  /** The remembered rules of the persona; absent if there are none. */
  remembered: listOf(RememberedRule).max(BOUNDS.rememberedRulesMax).optional(),
  /** A webhook is notified when a call waits for approval. */
  notifies: z.literal(true).optional(),
  fingerprints: z.strictObject({
    persona: z.string(),
    prompt: z.string(),
    tools: z.string(),
    hooks: z.string(),
    price: z.string().optional(),
  }),
});
export type Provision = z.infer<typeof Provision>;

const effectId = z.string().regex(/^\d+-\d+$/);

/** The outcome of the resolution of persona, prompt and tools. */
export const ProvisionOutcome = z.discriminatedUnion('status', [
  z.strictObject({
    type: z.literal('provision_outcome'),
    effect_id: effectId,
    status: z.literal('ok'),
    provision: Provision,
  }),
  z.strictObject({
    type: z.literal('provision_outcome'),
    effect_id: effectId,
    status: z.literal('failed'),
    error: Failure,
  }),
  z.strictObject({ type: z.literal('provision_outcome'), effect_id: effectId, status: z.literal('cancelled') }),
]);
export type ProvisionOutcome = z.infer<typeof ProvisionOutcome>;

/** The outcome of one model call. `message` is the whole answer, or the streamed part of it. */
export const ModelOutcome = z.strictObject({
  type: z.literal('model_outcome'),
  effect_id: effectId,
  status: z.enum(['complete', 'failed', 'cancelled']),
  message: AssistantMessage,
  finish_reason: z.string(),
  usage: Usage,
  /** Whether deltas have already contained this text. */
  body_streamed: z.boolean(),
  error: Failure.optional(),
  /** Number of requests, with retries. */
  attempts: z.number().int().nonnegative(),
  duration_ms: z.number().nonnegative(),
  /** Only with an output schema, for a complete answer without calls. */
  output: OutputCheck.optional(),
});
export type ModelOutcome = z.infer<typeof ModelOutcome>;

/** The outcome of the model step of a compaction: the summary or the notes that replace older messages. */
export const CompactOutcome = z.strictObject({
  type: z.literal('compact_outcome'),
  effect_id: effectId,
  status: z.enum(['complete', 'failed', 'cancelled']),
  /** Empty unless `status` is complete. */
  text: z.string(),
  usage: Usage,
  error: Failure.optional(),
  attempts: z.number().int().nonnegative(),
  duration_ms: z.number().nonnegative(),
});
export type CompactOutcome = z.infer<typeof CompactOutcome>;

/** The result of a tool. */
export const ToolResult = z.strictObject({
  content: listOf(z.discriminatedUnion('type', [TextPart, FilePart])),
  is_error: z.boolean(),
  /** Machine-readable detail: a denial's reasons, a failure's code. */
  detail: JsonObject.optional(),
});
export type ToolResult = z.infer<typeof ToolResult>;

/** A file that a call edited, relative to the root. */
export const EditedPath = z.string().min(1).max(4_096);

/** The outcome of one call. */
export const CallOutcome = z.strictObject({
  type: z.literal('call_outcome'),
  effect_id: effectId,
  call_id: z.string(),
  status: CallStatus.extract(['ok', 'error', 'cancelled', 'interrupted']),
  result: ToolResult,
  duration_ms: z.number().nonnegative(),
  /** Edited files, relative to the root: sorted, without duplicates. */
  edited: listOf(EditedPath).min(1).max(BOUNDS.editedPathsPerCallMax).optional(),
  /**
   * The tool did not confirm that it stopped: its grace period is over, or the order to stop reached no worker. Its own
   * outcome, if it still comes, is dropped and logged.
   */
  timed_out: z.literal(true).optional(),
  /** The call asks to suspend its session at the end of the turn. */
  park: SuspensionRequest.optional(),
});
export type CallOutcome = z.infer<typeof CallOutcome>;

/**
 * A worker has accepted a call, and sends the outcome later as the command `call_outcome`. Or the start command of the
 * call's child is stored, and the child's host sends `child_ended` later.
 */
export const CallAccepted = z.strictObject({
  type: z.literal('call_accepted'),
  effect_id: effectId,
  call_id: z.string(),
  /** The epoch of the session in the request. */
  epoch: z.number().int().positive(),
});
export type CallAccepted = z.infer<typeof CallAccepted>;

/** The outcome of one consult of hooks: one answer for each `hook_call`, in order. With `not_run` it was not called. */
export const ConsultOutcome = z.strictObject({
  type: z.literal('consult_outcome'),
  effect_id: effectId,
  status: z.enum(['answered', 'cancelled']),
  answers: listOf(HookAnswer),
  /** After PreToolUse replaced the arguments: why they do not fit the tool's schema. */
  args_problem: z.strictObject({ code: z.string(), message: z.string() }).optional(),
  /** After PreToolUse replaced the arguments: the tool itself requires an approval for them. */
  needs_approval: z.literal(true).optional(),
});
export type ConsultOutcome = z.infer<typeof ConsultOutcome>;

/** The tool connections are closed. This never fails: `notes` has the problems. */
export const CloseOutcome = z.strictObject({
  type: z.literal('close_outcome'),
  effect_id: effectId,
  notes: listOf(z.string()).max(64),
});
export type CloseOutcome = z.infer<typeof CloseOutcome>;

/** The answer of one predicate of a stop condition. A failed predicate counts as false. */
export const StopAnswer = z.strictObject({
  predicate: z.string(),
  holds: z.boolean(),
  failure: z.strictObject({ code: z.literal('predicate_failed'), message: z.string() }).optional(),
});
export type StopAnswer = z.infer<typeof StopAnswer>;

/** The answers of the predicates of a run after a turn: in order, up to the first true one. */
export const StopOutcome = z.strictObject({
  type: z.literal('stop_outcome'),
  effect_id: effectId,
  status: z.enum(['checked', 'cancelled']),
  answers: listOf(StopAnswer).max(BOUNDS.stopConditionsMax),
});
export type StopOutcome = z.infer<typeof StopOutcome>;

/** The report on the session's first run is stored in the parent's inbox; or, with `error`, it was not stored. */
export const ParentReportOutcome = z.strictObject({
  type: z.literal('notify_outcome'),
  effect_id: effectId,
  error: Failure.optional(),
});
export type ParentReportOutcome = z.infer<typeof ParentReportOutcome>;

/** A host has claimed the session. Made by hosts only. */
export const OwnedInput = z.strictObject({
  type: z.literal('owned'),
  epoch: z.number().int().positive(),
  host: z.string(),
  /** The session is a fork, or an import under a new id, and its copied part ends here. */
  after_copy: AfterCopy.optional(),
});
export type OwnedInput = z.infer<typeof OwnedInput>;

/**
 * The table of hook registrations has changed since the start of the run. Made by hosts only. The first table of a run
 * is part of its provision.
 */
export const HooksChangedInput = z.strictObject({
  type: z.literal('hooks_changed'),
  fingerprint: z.string(),
  table: HookTable,
});
export type HooksChangedInput = z.infer<typeof HooksChangedInput>;

/**
 * One piece of inbox feedback: its source and its text. Sources of hosts are `tool:<name>`, `mcp:<server>` and
 * `hook:<id>`. Sources of the turn machine are `stall:<kind>` and `command_policy:<rule>`.
 */
export const Feedback = z.strictObject({ source: z.string().min(1).max(256), body: z.string().min(1) });
export type Feedback = z.infer<typeof Feedback>;

/** Feedback for the model from tools, MCP servers and hooks. Made by hosts only. */
export const FeedbackInput = z.strictObject({
  type: z.literal('feedback'),
  items: listOf(Feedback).max(BOUNDS.feedbackPendingMax),
  /** Number of pieces that the host dropped for lack of space, and the source of the last one. */
  dropped: z.strictObject({ count: z.number().int().positive(), source: z.string().min(1).max(256) }).optional(),
});
export type FeedbackInput = z.infer<typeof FeedbackInput>;

/** An invariant broke while a host processed this session. Made by hosts only. */
export const SessionFailedInput = z.strictObject({
  type: z.literal('session_failed'),
  error: Failure,
  n: z.number().int().nonnegative(),
});
export type SessionFailedInput = z.infer<typeof SessionFailedInput>;

/** The purpose of a timer. */
export const TimerPurpose = z.enum(['suspension', 'wake_interval', 'time_budget', 'approval', 'waiting_for_persona']);
export type TimerPurpose = z.infer<typeof TimerPurpose>;

/** The content of a stored timer. Unknown members are rejected. */
export const TimerPayload = z.strictObject({
  effect_id: z.string().regex(/^\d+-\d+$/),
  due_at_ms: z.number().int(),
});
export type TimerPayload = z.infer<typeof TimerPayload>;

/** The input of a due timer. Made by timer stores only. */
export const TimerInput = z.strictObject({ type: z.literal('timer'), ...TimerPayload.shape });
export type TimerInput = z.infer<typeof TimerInput>;

/** Any input. */
export const Input = z.union([
  CommandInput,
  ProvisionOutcome,
  ModelOutcome,
  CompactOutcome,
  CallOutcome,
  CallAccepted,
  ConsultOutcome,
  CloseOutcome,
  StopOutcome,
  ParentReportOutcome,
  ApprovalNoticeOutcome,
  OwnedInput,
  HooksChangedInput,
  FeedbackInput,
  PersonaStepInput,
  SessionFailedInput,
  TimerInput,
]);
export type Input =
  | CommandInput
  | Outcome
  | OwnedInput
  | HooksChangedInput
  | FeedbackInput
  | PersonaStepInput
  | SessionFailedInput
  | TimerInput;

/** An input with the outcome of an effect. */
export type Outcome =
  | ProvisionOutcome
  | ModelOutcome
  | CompactOutcome
  | CallOutcome
  | CallAccepted
  | ConsultOutcome
  | CloseOutcome
  | StopOutcome
  | ParentReportOutcome
  | ApprovalNoticeOutcome;

/** The sum of two usages. Optional counts are omitted if their sum is 0. */
export function addUsage(a: Usage, b: Usage): Usage {
  const sum: Usage = {
    input_tokens: a.input_tokens + b.input_tokens,
    output_tokens: a.output_tokens + b.output_tokens,
  };
  const cached = (a.cached_input_tokens ?? 0) + (b.cached_input_tokens ?? 0);
  const reasoning = (a.reasoning_tokens ?? 0) + (b.reasoning_tokens ?? 0);
  if (cached > 0) sum.cached_input_tokens = cached;
  if (reasoning > 0) sum.reasoning_tokens = reasoning;
  return sum;
}
