/**
 * One step of a model: what it is asked, what it says while it answers, and how it ends.
 */
import * as z from 'zod';
import { Failure, Usage } from '../journal/inputs.ts';
import { AssistantMessage, Message } from '../journal/messages.ts';
import { ToolDefinition } from '../tools/calls.ts';
import { JsonObject } from '../wire/json.ts';
import { ModelSettings } from './persona.ts';

/** One request as it goes over the bus. */
export const StepRequest = z.strictObject({
  idempotency_key: z.string().min(1).max(256),
  session_id: z.string(),
  turn: z.number().int().nonnegative(),
  model: ModelSettings,
  system: z.string(),
  messages: z.array(Message),
  tools: z.array(ToolDefinition),
  /** The JSON Schema of the final answer, for providers that have an option for it. */
  output_schema: JsonObject.optional(),
  /** How many answers the session has had, and the newest: for models that play what was written before. */
  answered: z.strictObject({ count: z.number().int().nonnegative(), last: AssistantMessage.nullable() }).optional(),
  /** Where a compaction asks: which of the session's it is, from 1. */
  compaction: z.number().int().positive().optional(),
});
/** See {@link StepRequest}. */
export type StepRequest = z.infer<typeof StepRequest>;

/** One piece of a streaming answer as it goes over the bus. `seq` is dense, from 0. */
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
/** See {@link StepPart}. */
export type StepPart = z.infer<typeof StepPart>;

/** How a step has ended, as it goes over the bus. */
export const StepResult = z.strictObject({
  status: z.enum(['complete', 'failed', 'cancelled']),
  message: AssistantMessage,
  finish_reason: z.string(),
  usage: Usage,
  error: Failure.optional(),
  attempts: z.number().int().nonnegative(),
});
/** See {@link StepResult}. */
export type StepResult = z.infer<typeof StepResult>;

/** A request as a model takes it. */
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

/** How one request ended. */
export interface ModelAnswered {
  readonly status: 'complete' | 'failed' | 'cancelled';
  readonly message: AssistantMessage;
  readonly finishReason: string;
  readonly usage: Usage;
  readonly error?: Failure;
  readonly attempts: number;
}

/** Whatever finds models by name. `createModels()` of the models adapter is one. */
export interface StepModels<Part> {
  /** Null where the model can be asked; else what is missing. */
  check(model: ModelSettings): Promise<Failure | null>;
  resolve(model: ModelSettings): {
    stream(request: ModelAsked, onPart: (part: Part) => void, signal: AbortSignal): Promise<ModelAnswered>;
  };
}

/** The result of a model that was not asked, because it could not be. */
export function refusedStep(error: Failure): ModelAnswered {
  return { ...unasked('failed', 'error'), error };
}

/** The result of a step that was stopped before anybody was asked. */
export function stoppedStep(): ModelAnswered {
  return unasked('cancelled', 'cancelled');
}

function unasked(status: 'failed' | 'cancelled', finishReason: string): ModelAnswered {
  return {
    status,
    message: { role: 'assistant', content: [] },
    finishReason,
    usage: { input_tokens: 0, output_tokens: 0 },
    attempts: 0,
  };
}
