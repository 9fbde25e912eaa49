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

/** One request to a model. */
export interface ModelRequest {
  /** `<tenant>.<sid>.<effect id>`: the same when the request is sent again after a crash. */
  readonly idempotencyKey: string;
  readonly sessionId: string;
  readonly turn: number;
  readonly model: ModelSettings;
  readonly system: string;
  /**
   * The messages of the context, oldest first. Calls and results are paired, and injected messages follow the results.
   * The texts are the original ones. A model that sends them to a provider marks their origin first (`prompt-marks.ts`
   * of the protocol).
   */
  readonly messages: readonly Message[];
  readonly tools: readonly ToolDefinition[];
  /**
   * The JSON Schema of the final answer. `system` contains it as well. A model sets the provider's option for a schema
   * if there is one. The session validates the answer in any case.
   */
  readonly outputSchema?: JsonObject | undefined;
  /**
   * The number of recorded answers with content in the session, and the model's newest message, even if `messages` does not
   * contain it. A message of a refused request can be the newest, and does not count. Scripted and replayed models use this to
   * find their position.
   */
  readonly answered?: { readonly count: number; readonly last: AssistantMessage | null };
  /** Set for a request of a compaction: its number within the session, from 1. */
  readonly compaction?: number;
  /** Trace context for the answer; undefined without tracing. */
  readonly traceparent?: string | undefined;
}

/** One piece of a streaming answer. */
export type ModelPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'reasoning'; readonly text: string }
  | { readonly type: 'call'; readonly callId: string; readonly tool: string; readonly argsText: string }
  /** All earlier parts are void: another process starts the answer again. Models of providers do not send it. */
  | { readonly type: 'again' };

/**
 * How one model call ended. In every status, `message` has the content that was streamed by then. Call parts have
 * parsed `args`. Arguments that cannot be parsed have `problem {code: 'invalid_call_arguments'}` and `args: null`.
 */
export interface ModelResult {
  readonly status: 'complete' | 'failed' | 'cancelled';
  readonly message: AssistantMessage;
  readonly finishReason: string;
  readonly usage: Usage;
  readonly error?: Failure;
  /** The number of requests, including retries. */
  readonly attempts: number;
}

/** A model. */
export interface Model {
  /**
   * Streams one answer.
   * Contract: never rejects. A failed request has the status `failed`, an aborted one `cancelled`. Settles within a
   * bounded time after `signal` aborts. Calls `onPart` in order, and never after it has settled. Retries 429, 5xx and
   * network errors, and honours `retry-after`, but only before the first part.
   */
  stream(request: ModelRequest, onPart: (part: ModelPart) => void, signal: AbortSignal): Promise<ModelResult>;
}

/** Finds a model by the provider in its name. */
export interface Models {
  /**
   * Null if the model can be used; otherwise the reason, for an early and clear error.
   * @param rules the host's rules for the session. Without them the session may use everything.
   */
  check(model: ModelSettings, rules?: HostRules): Promise<Failure | null>;
  /** The model of a `provider/name`. Throws only if {@link check} would return a failure. */
  resolve(model: ModelSettings, rules?: HostRules): Model;
}
