/**
 * Inputs: everything that can be put to a session. A record holds the one input that caused it, whole, so that a
 * journal alone is enough to run the session again.
 */

import * as z from 'zod';
import type { ErrorCode } from '../catalogues/error-codes.ts';
import { type Actor, StoredActor } from '../commands/actor.ts';
import { NoticeOutcome } from '../commands/approval-notices.ts';
import { ParkRequest } from '../commands/parking.ts';
import { PersonaIdentity, RememberedRule } from '../commands/remembered-rules.ts';
import { HookTable } from '../hooks/hook-registrations.ts';
import { HookAnswer } from '../hooks/verdicts.ts';
import { RunBudgets, WholeRunLimits } from '../personas/budgets.ts';
import { OutputCheck, PinnedOutput } from '../personas/output-schema.ts';
import { PinnedPermissions } from '../personas/permissions.ts';
import { CompactionStrategy, ModelSettings, Persona } from '../personas/persona.ts';
import { PersonaStepInput } from '../personas/persona-steps.ts';
import { PinnedPrice } from '../personas/prices.ts';
import { CallStatus, ToolDefinition } from '../tools/calls.ts';
import { BOUNDS } from '../wire/bounds.ts';
import { Json, JsonObject } from '../wire/json.ts';
import { AfterCopy, CopyOrigin } from './forks.ts';
import { AssistantMessage, FilePart, TextPart } from './messages.ts';
import { TimerInput } from './timers.ts';

/** A failure of the world, as it is recorded: a stable code, a sentence, and whether trying again could help. */
export const Failure = z.strictObject({
  code: z.string().min(1),
  message: z.string(),
  retryable: z.boolean().optional(),
});
/** See {@link Failure}. */
export type Failure = z.infer<typeof Failure>;

/** Tokens of one model call. */
export const Usage = z.strictObject({
  input_tokens: z.number().int().nonnegative(),
  output_tokens: z.number().int().nonnegative(),
  cached_input_tokens: z.number().int().nonnegative().optional(),
  reasoning_tokens: z.number().int().nonnegative().optional(),
});
/** See {@link Usage}. */
export type Usage = z.infer<typeof Usage>;

/** A command after the edge has checked it. With `problem` it can only be rejected; `body` is then what could be read. */
export const CommandInput = z.strictObject({
  type: z.literal('command'),
  verb: z.string(),
  command_id: z.string(),
  body: JsonObject,
  actor: StoredActor.optional(),
  receipt_to: z.string().optional(),
  problem: z.strictObject({ code: z.string(), message: z.string(), field: z.string().optional() }).optional(),
  /** Only in the first record of a journal that was copied from another. */
  copied_from: CopyOrigin.optional(),
});
/** See {@link CommandInput}. */
export type CommandInput = Omit<z.infer<typeof CommandInput>, 'problem' | 'actor'> & {
  actor?: Actor | undefined;
  problem?: { code: ErrorCode; message: string; field?: string | undefined } | undefined;
};

/** How a run keeps its prompts within the window of its model. */
export const ResolvedCompaction = z.strictObject({
  strategy: CompactionStrategy,
  keep_turns: z.number().int().nonnegative(),
  /** Tokens that the model takes, and where that figure is from. */
  window: z.number().int().positive(),
  window_from: z.enum(['persona', 'model', 'default']),
  /** Tokens of it that are kept free for the answer. */
  reserve: z.number().int().nonnegative(),
});
/** See {@link ResolvedCompaction}. */
export type ResolvedCompaction = z.infer<typeof ResolvedCompaction>;

/** A session's surroundings, resolved and pinned for a run. */
export const Provision = z.strictObject({
  persona: z.strictObject({ name: z.string(), version: z.string() }),
  /** What remembered rules are bound to. Absent in journals of earlier versions: no remembered rule holds there. */
  identity: PersonaIdentity.optional(),
  /** The whole definition, as pinned. */
  definition: Persona,
  /** Only where its steps and tools run in processes that serve it: no host runs them itself. */
  served: z.literal(true).optional(),
  /** The mode of it that the start has chosen. */
  mode: z.string().optional(),
  model: ModelSettings,
  system_prompt: z.string(),
  tools: z.array(ToolDefinition),
  hooks: HookTable,
  permissions: PinnedPermissions,
  max_turns: z.number().int().min(1),
  parallel_calls: z.number().int().min(1),
  drain: z.strictObject({ steering: z.enum(['all', 'one_at_a_time']), followups: z.enum(['all', 'one_at_a_time']) }),
  daemon: z.boolean(),
  /** Only where it can delegate: children at once, and generations below it. */
  delegation: z
    .strictObject({ children: z.number().int().nonnegative(), depth: z.number().int().nonnegative() })
    .optional(),
  /** A daemon that idles so long wakes by itself. */
  wake_interval_ms: z.number().int().positive().optional(),
  /** Absent in journals of before there was compaction: their prompts grow until the provider refuses them. */
  compaction: ResolvedCompaction.optional(),
  root: z.string(),
  /** Only where the run has a budget. */
  budgets: RunBudgets.optional(),
  /** Only where the final answer has a schema. */
  output: PinnedOutput.optional(),
  /** Only of a persona that takes a run over: what the start allows the whole of it. */
  run_limits: WholeRunLimits.optional(),
  /** Only where the model's price is known. */
  price: PinnedPrice.optional(),
  /** What people have had the persona remember; absent where that is nothing. */
  remembered: z.array(RememberedRule).max(BOUNDS.rememberedRulesMax).optional(),
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
/** See {@link Provision}. */
export type Provision = z.infer<typeof Provision>;

const effectId = z.string().regex(/^\d+-\d+$/);

/** The outcome of resolving persona, prompt and tools. */
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
/** See {@link ProvisionOutcome}. */
export type ProvisionOutcome = z.infer<typeof ProvisionOutcome>;

/** The outcome of one model call. Every outcome has a `message`: the whole one, or the part that was streamed. */
export const ModelOutcome = z.strictObject({
  type: z.literal('model_outcome'),
  effect_id: effectId,
  status: z.enum(['complete', 'failed', 'cancelled']),
  message: AssistantMessage,
  finish_reason: z.string(),
  usage: Usage,
  /** Whether deltas have already shown this text. */
  body_streamed: z.boolean(),
  error: Failure.optional(),
  /** Requests that were sent, retries included. */
  attempts: z.number().int().nonnegative(),
  duration_ms: z.number().nonnegative(),
  /** Only where the session has an output schema, and of a complete answer without calls. */
  output: OutputCheck.optional(),
});
/** See {@link ModelOutcome}. */
export type ModelOutcome = z.infer<typeof ModelOutcome>;

/** The outcome of the model step of a compaction: the summary or the notes that stand for older messages. */
export const CompactOutcome = z.strictObject({
  type: z.literal('compact_outcome'),
  effect_id: effectId,
  status: z.enum(['complete', 'failed', 'cancelled']),
  /** Empty unless complete. */
  text: z.string(),
  usage: Usage,
  error: Failure.optional(),
  attempts: z.number().int().nonnegative(),
  duration_ms: z.number().nonnegative(),
});
/** See {@link CompactOutcome}. */
export type CompactOutcome = z.infer<typeof CompactOutcome>;

/** What a tool gave back. */
export const ToolResult = z.strictObject({
  content: z.array(z.discriminatedUnion('type', [TextPart, FilePart])),
  is_error: z.boolean(),
  /** Machine-readable detail: a denial's reasons, a failure's code. */
  detail: JsonObject.optional(),
});
/** See {@link ToolResult}. */
export type ToolResult = z.infer<typeof ToolResult>;

/** A file that a call has edited, relative to the root. */
export const EditedPath = z.string().min(1).max(4_096);

/** The outcome of one call. */
export const CallOutcome = z.strictObject({
  type: z.literal('call_outcome'),
  effect_id: effectId,
  call_id: z.string(),
  status: CallStatus.extract(['ok', 'error', 'cancelled', 'interrupted']),
  result: ToolResult,
  duration_ms: z.number().nonnegative(),
  /** Files that it has edited, relative to the root: sorted, each once. */
  edited: z.array(EditedPath).min(1).max(BOUNDS.editedPathsPerCallMax).optional(),
  /** The tool did not stop within its grace; whatever it does from here on is dropped and noted. */
  timed_out: z.literal(true).optional(),
  /** The call asks its session to be parked at the end of the turn. */
  park: ParkRequest.optional(),
});
/** See {@link CallOutcome}. */
export type CallOutcome = z.infer<typeof CallOutcome>;

/** A worker has accepted a call, and sends its outcome later as the command `call_outcome`. */
export const CallAccepted = z.strictObject({
  type: z.literal('call_accepted'),
  effect_id: effectId,
  call_id: z.string(),
  /** The epoch that the call was sent with. */
  epoch: z.number().int().positive(),
});
/** See {@link CallAccepted}. */
export type CallAccepted = z.infer<typeof CallAccepted>;

/** The outcome of one consult: an answer per registration that was asked, in order. */
export const ConsultOutcome = z.strictObject({
  type: z.literal('consult_outcome'),
  effect_id: effectId,
  status: z.enum(['answered', 'cancelled']),
  answers: z.array(HookAnswer),
  /** After PreToolUse rewrote arguments: why they do not fit the tool's schema. */
  args_problem: z.strictObject({ code: z.string(), message: z.string() }).optional(),
  /** After PreToolUse rewrote arguments: the tool's own answer for them, as in a call of the model. */
  needs_approval: z.literal(true).optional(),
});
/** See {@link ConsultOutcome}. */
export type ConsultOutcome = z.infer<typeof ConsultOutcome>;

/** Tool connections are closed. Never fails: what could not be closed is noted. */
export const CloseOutcome = z.strictObject({
  type: z.literal('close_outcome'),
  effect_id: effectId,
  notes: z.array(z.string()).max(64),
});
/** See {@link CloseOutcome}. */
export type CloseOutcome = z.infer<typeof CloseOutcome>;

/** What one predicate said of a turn. One that failed does not hold. */
export const StopAnswer = z.strictObject({
  predicate: z.string(),
  holds: z.boolean(),
  failure: z.strictObject({ code: z.literal('predicate_failed'), message: z.string() }).optional(),
});
/** See {@link StopAnswer}. */
export type StopAnswer = z.infer<typeof StopAnswer>;

/** What the predicates of a run said of a turn: in order, up to the first that holds. */
export const StopOutcome = z.strictObject({
  type: z.literal('stop_outcome'),
  effect_id: effectId,
  status: z.enum(['checked', 'cancelled']),
  answers: z.array(StopAnswer).max(BOUNDS.stopConditionsMax),
});
/** See {@link StopOutcome}. */
export type StopOutcome = z.infer<typeof StopOutcome>;

/** The parent's inbox holds what became of the session's first run; or its store refuses to. */
export const NotifyOutcome = z.strictObject({
  type: z.literal('notify_outcome'),
  effect_id: effectId,
  error: Failure.optional(),
});
/** See {@link NotifyOutcome}. */
export type NotifyOutcome = z.infer<typeof NotifyOutcome>;

/** A host took the session over. Made by hosts only. */
export const OwnedInput = z.strictObject({
  type: z.literal('owned'),
  epoch: z.number().int().positive(),
  host: z.string(),
  /** The session is a fork, and its copied part ends here. */
  after_copy: AfterCopy.optional(),
});
/** See {@link OwnedInput}. */
export type OwnedInput = z.infer<typeof OwnedInput>;

/** The table of registrations has changed since the run began. Made by hosts only; a run's first comes with its provision. */
export const HooksChangedInput = z.strictObject({
  type: z.literal('hooks_changed'),
  fingerprint: z.string(),
  table: HookTable,
});
/** See {@link HooksChangedInput}. */
export type HooksChangedInput = z.infer<typeof HooksChangedInput>;

/** One piece of inbox feedback: who gives it (`tool:<name>`, `mcp:<server>`, `hook:<id>`, `command_policy`), and what it says. */
export const Feedback = z.strictObject({ source: z.string().min(1).max(256), body: z.string().min(1) });
/** See {@link Feedback}. */
export type Feedback = z.infer<typeof Feedback>;

/** What the session's own surroundings tell its model: tools, MCP servers, policy. Made by hosts only. */
export const FeedbackInput = z.strictObject({
  type: z.literal('feedback'),
  items: z.array(Feedback).max(BOUNDS.feedbackPendingMax),
  /** Feedback that the host dropped for lack of space, and the source of the last piece. */
  dropped: z.strictObject({ count: z.number().int().positive(), source: z.string().min(1).max(256) }).optional(),
});
/** See {@link FeedbackInput}. */
export type FeedbackInput = z.infer<typeof FeedbackInput>;

/** An invariant broke while this session was worked on. Made by hosts only. */
export const SessionFailedInput = z.strictObject({
  type: z.literal('session_failed'),
  error: Failure,
  n: z.number().int().nonnegative(),
});
/** See {@link SessionFailedInput}. */
export type SessionFailedInput = z.infer<typeof SessionFailedInput>;

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
  NotifyOutcome,
  NoticeOutcome,
  OwnedInput,
  HooksChangedInput,
  FeedbackInput,
  PersonaStepInput,
  SessionFailedInput,
  TimerInput,
]);
/** See {@link Input}. */
export type Input =
  | CommandInput
  | Outcome
  | OwnedInput
  | HooksChangedInput
  | FeedbackInput
  | PersonaStepInput
  | SessionFailedInput
  | TimerInput;

/** An input that answers an effect. */
export type Outcome =
  | ProvisionOutcome
  | ModelOutcome
  | CompactOutcome
  | CallOutcome
  | CallAccepted
  | ConsultOutcome
  | CloseOutcome
  | StopOutcome
  | NotifyOutcome
  | NoticeOutcome;

/** Arbitrary JSON that stands where a payload is recorded. */
export const Payload = Json;

/** The sum of two usages. It omits kinds of tokens that neither has. */
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
