/** The model port. */
import type {
  AssistantMessage,
  Failure,
  HostRules,
  JsonObject,
  Message,
  ModelSettings,
  ToolDefinition,
  Usage,
} from '@coxswain/protocol';

/** One request for one answer. */
export interface ModelRequest {
  /** `<tenant>.<sid>.<effect id>`: the same when the request is sent again after a crash. */
  readonly idempotencyKey: string;
  readonly sessionId: string;
  readonly turn: number;
  readonly model: ModelSettings;
  readonly system: string;
  /**
   * The view of the transcript, oldest first. Calls and results are paired; injected messages follow the results. Texts are the
   * original ones: a model that sends them on marks them first, by where they are from (`prompt-marks.ts` of the protocol).
   */
  readonly messages: readonly Message[];
  readonly tools: readonly ToolDefinition[];
  /**
   * The JSON Schema of the final answer, which `system` states too. A model whose provider has an option for it sets that; the
   * session checks the answer in any case.
   */
  readonly outputSchema?: JsonObject | undefined;
  /**
   * How many answers the session's models have given, and the newest of them, whether or not `messages` still hold it.
   * For models that play what was written before.
   */
  readonly answered?: { readonly count: number; readonly last: AssistantMessage | null };
  /** Set where a compaction asks: which of the session's it is, from 1. */
  readonly compaction?: number;
  /** Trace context for the answer; undefined without tracing. */
  readonly traceparent?: string | undefined;
}

/** One piece of a streaming answer. */
export type ModelPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'reasoning'; readonly text: string }
  | { readonly type: 'call'; readonly callId: string; readonly tool: string; readonly argsText: string }
  /** All earlier parts are void: another process starts the answer again. Models of providers never send it. */
  | { readonly type: 'again' };

/** How one model call ended. `message` holds what was streamed by then, in every status. Call parts hold parsed `args`; arguments that do not parse give `problem {code: 'invalid_call_arguments'}` and `args: null`. */
export interface ModelResult {
  readonly status: 'complete' | 'failed' | 'cancelled';
  readonly message: AssistantMessage;
  readonly finishReason: string;
  readonly usage: Usage;
  readonly error?: Failure;
  /** Requests that were sent, retries included. */
  readonly attempts: number;
}

/** A model that can be asked. */
export interface Model {
  /**
   * Streams one answer.
   * Contract: never rejects; a failed request is a `failed` result, an aborted one `cancelled`. Settles within a
   * bounded time after `signal` aborts. Calls `onPart` in order, never after it has settled. Retries (429, 5xx,
   * network; retry-after honoured) only while no part has been handed on.
   */
  stream(request: ModelRequest, onPart: (part: ModelPart) => void, signal: AbortSignal): Promise<ModelResult>;
}

/** Finds a model by the provider in its name. */
export interface Models {
  /**
   * Null where the model can be asked; else what is missing, for an early and clear error.
   * @param rules what the session may use; without it everything.
   */
  check(model: ModelSettings, rules?: HostRules): Promise<Failure | null>;
  /** The model of a `provider/name`. Throws only where {@link check} would have given a failure. */
  resolve(model: ModelSettings, rules?: HostRules): Model;
}
