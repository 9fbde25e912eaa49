/**
 * The payloads of hook points: one strict schema for each.
 */
import * as z from 'zod';
import { INJECTION_VERBS } from '../catalogues/seams.ts';
import { OnTimeout } from '../commands/suspension-request.ts';
import { EVENT_SCHEMAS, StopReason } from '../journal/events.ts';
import { EditedPath, Failure, ToolResult } from '../journal/inputs.ts';
import { Budget } from '../personas/budgets.ts';
import { CompactionStrategy } from '../personas/persona.ts';
import { Json } from '../wire/json.ts';
import { HOOK_POINTS, type HookPoint } from './hook-points.ts';

const count = z.number().int().nonnegative();

/** One call in a payload. */
export const HookTool = z.strictObject({ name: z.string(), args: Json, call_id: z.string() });
const tool = HookTool;
const step = z.strictObject({ name: z.string(), args: Json, output: Json.optional() });
const pass = {
  /**
   * `window`: the estimated prompt exceeds the window minus the reserve. `overflow`: the provider refused the prompt as too
   * long.
   */
  mode: z.enum(['window', 'overflow']),
  strategy: CompactionStrategy,
  message_count: count,
  estimated_tokens: count,
};
const ending = { stop_reason: StopReason };
const unsettled = z.strictObject({
  /** Number of undelivered injections. If there are many, `injections` lists only the first ones. */
  undelivered: count,
  injections: z.array(z.strictObject({ command_id: z.string(), kind: z.enum(INJECTION_VERBS) })),
  /** Jobs that hooks started, without a reported end. */
  open_jobs: z.array(z.string()).optional(),
});
const { type: _, ...checkpoint } = EVENT_SCHEMAS.loop_checkpoint.shape;

/** The members of each point's payload, in addition to the common ones. */
const OWN_FIELDS = {
  session_start: { source: z.enum(['start', 'prompt']) },
  user_prompt_submit: { prompt: z.string(), origin: z.enum(['prompt', 'followup', 'steer']) },
  pre_compact: pass,
  post_compact: {
    ...pass,
    /** Number of replaced messages or cleared results, and of messages in the new view. */
    archived: count,
    remaining: count,
  },
  transform_context: { message_count: count, estimated_tokens: count },
  PreToolUse: { tool },
  gate_tool_calls: { calls: z.array(tool) },
  permission_asked: { tool },
  permission_replied: {
    tool,
    decision: z.enum(['allow', 'deny']),
    /** `rule:<rule>`, `hook:<id>`, `user`; or `expiry` if the approval expired. */
    by: z.string(),
    reason: z.string().optional(),
  },
  PostToolUse: { tool, result: ToolResult, is_error: z.boolean() },
  post_turn: {},
  file_edited: { path: EditedPath },
  session_idle: {},
  pre_suspend: {
    reason: z.string().optional(),
    until: z.string().optional(),
    for_ms: count.optional(),
    signal: z.string().optional(),
    on_timeout: OnTimeout.optional(),
    call_id: z.string().optional(),
  },
  post_resume: {},
  session_error: { ...ending, error: Failure.omit({ retryable: true }), failed_at: count.nullable() },
  session_end: ending,
  pre_finish: ending,
  on_unsettled_detected: { ...ending, unsettled },
  post_finish: ending,
  loop_checkpoint: checkpoint,
  PreStep: { step: step.omit({ output: true }) },
  PostStep: { step },
  OnApprovalRequested: {
    call_id: z.string(),
    /** `rule:<rule>` or `unknown_outcome`. */
    requested_by: z.string(),
    tool,
    /** The question, if it differs from whether the call may run. */
    question: z.string().optional(),
    /** The approval expires after this time. */
    expire_after_ms: count.optional(),
  },
  OnHandoffEmitted: { to: z.string(), brief: z.string() },
  OnPersonaPaused: {
    /** The version of the persona that the session has pinned. */
    version: z.string(),
    /** The reason of the pause. */
    reason: z.string().optional(),
  },
  OnPersonaResumed: { version: z.string() },
  OnBudgetThreshold: {
    budget_pct: z.number().int().min(1).max(100),
    usage: z.strictObject({ budget: Budget, used: z.number().nonnegative(), limit: z.number().positive() }),
  },
} as const satisfies { readonly [P in HookPoint]: z.ZodRawShape };

type OwnFields = typeof OWN_FIELDS;
const payload = <P extends HookPoint>(point: P) =>
  z.strictObject({
    event: z.literal(point),
    session: z.strictObject({ id: z.string() }),
    persona: z.string(),
    turn: count,
    ...(OWN_FIELDS[point] as OwnFields[P]),
  });

/** The payload of each point. */
export const HOOK_PAYLOADS = Object.fromEntries(HOOK_POINTS.map((point) => [point, payload(point)])) as {
  readonly [P in HookPoint]: ReturnType<typeof payload<P>>;
};
/** The payload of a point. */
export type HookPayload<P extends HookPoint = HookPoint> = P extends HookPoint
  ? z.infer<(typeof HOOK_PAYLOADS)[P]>
  : never;
