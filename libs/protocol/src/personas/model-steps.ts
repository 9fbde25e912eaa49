/** One step of a model: its request, its streamed parts and its result. A host runs it in its own process or over the bus. */
import * as z from 'zod';
import { Failure, Usage } from '../journal/inputs.ts';
import { AssistantMessage, Message } from '../journal/messages.ts';
import { ToolDefinition } from '../tools/calls.ts';
import { listOf } from '../wire/containers.ts';
import { JsonObject } from '../wire/json.ts';
import { ModelSettings } from './persona.ts';

/** The request of one step on the bus. */
export const StepRequest = z.strictObject({
  idempotency_key: z.string().min(1).max(256),
  session_id: z.string(),
  turn: z.number().int().nonnegative(),
  model: ModelSettings,
  system: z.string(),
  messages: listOf(Message),
  tools: listOf(ToolDefinition),
  /** The JSON Schema of the final answer, for providers with an option for it. */
  output_schema: JsonObject.optional(),
  /** Number of the session's answers so far, and the newest one: for scripted and replay models. */
  answered: z.strictObject({ count: z.number().int().nonnegative(), last: AssistantMessage.nullable() }).optional(),
  /** For a compaction: its number in the session, from 1. */
  compaction: z.number().int().positive().optional(),
});
export type StepRequest = z.infer<typeof StepRequest>;

/** One piece of a streaming answer on the bus. `seq` is dense, from 0. */
export const StepPart = z.discriminatedUnion('type', [
  z.strictObject({ seq: z.number().int().nonnegative(), type: z.literal('text'), text: z.string() }),
  z.strictObject({ seq: z.number().int().nonnegative(), type: z.literal('reasoning'), text: z.string() }),
  z.strictObject({
    seq: z.number().int().nonnegative(),
    type: z.literal('call'),
    call_id: z.string(),
    tool: z.string(),
    args_text: z.string(),
  }),
]);
export type StepPart = z.infer<typeof StepPart>;

/** The result of a step on the bus. */
export const StepResult = z.strictObject({
  status: z.enum(['complete', 'failed', 'cancelled']),
  message: AssistantMessage,
  finish_reason: z.string(),
  usage: Usage,
  error: Failure.optional(),
  attempts: z.number().int().nonnegative(),
});
export type StepResult = z.infer<typeof StepResult>;

/** {@link StepRequest} with TypeScript names, as models get it. */
export interface ModelAsked {
  readonly idempotencyKey: string;
  readonly sessionId: string;
  readonly turn: number;
  readonly model: ModelSettings;
  readonly system: string;
  readonly messages: readonly Message[];
  readonly tools: readonly ToolDefinition[];
  readonly outputSchema?: JsonObject | undefined;
  readonly answered?: { readonly count: number; readonly last: AssistantMessage | null };
  readonly compaction?: number;
}

/** {@link StepResult} with TypeScript names, as models return it. */
export interface ModelAnswered {
  readonly status: 'complete' | 'failed' | 'cancelled';
  readonly message: AssistantMessage;
  readonly finishReason: string;
  readonly usage: Usage;
  readonly error?: Failure;
  readonly attempts: number;
}

/** Finds models by name. `createModels()` of the models adapter implements it. */
export interface StepModels<Part> {
  /** Null if the model can be called; otherwise the missing requirement. */
  check(model: ModelSettings): Promise<Failure | null>;
  resolve(model: ModelSettings): {
    stream(request: ModelAsked, onPart: (part: Part) => void, signal: AbortSignal): Promise<ModelAnswered>;
  };
}

/** The result of a step that failed without an answer: its model cannot be called, or its instances were lost. */
export function failedStep(error: Failure): ModelAnswered {
  return { ...withoutAnswer('failed', 'error'), error };
}

/** The result of a step that was aborted without an answer. A lost instance may have called the model. */
export function stoppedStep(): ModelAnswered {
  return withoutAnswer('cancelled', 'cancelled');
}

function withoutAnswer(status: 'failed' | 'cancelled', finishReason: string): ModelAnswered {
  return {
    status,
    message: { role: 'assistant', content: [] },
    finishReason,
    usage: { input_tokens: 0, output_tokens: 0 },
    attempts: 0,
  };
}
