/**
 * A model of an AI SDK provider: one streamed request, limited in time, and repeated if that is safe.
 *
 * A1 It never rejects: every end is a result.
 * A2 After the first published part, the request is not repeated.
 * A3 An abort ends it at once, even during the delay before a repetition.
 */
import type {
  JSONSchema7,
  LanguageModelV3,
  LanguageModelV3CallOptions,
  SharedV3ProviderOptions,
} from '@ai-sdk/provider';
import type { Clock, Model, ModelPart, ModelRequest, ModelResult } from '@coxswain/ports';
import { type AssistantMessage, addUsage, type Failure, toWellFormed, type Usage } from '@coxswain/protocol';
import { promptOf, toolsOf } from '../prompt/prompt.ts';
import type { PromptRules } from '../prompt/prompt-rules.ts';
import { Answer } from './answer.ts';
import { ATTEMPTS_MAX, retryAfterMs, waitMs } from './back-off.ts';
import { CallIds, effectOf } from './call-ids.ts';
import { BrokenStreamError, failureOf } from './stream-failure.ts';
import { type SilenceLimits, Wire } from './wire.ts';

/** The connection to one of a provider's models. */
export interface Connection {
  /** The provider's name in messages. */
  readonly provider: string;
  readonly rules: PromptRules;
  /** A secret that is redacted in messages. */
  readonly secret: string | null;
  /** The `fetch` of the requests; by default the system's. */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /** The default provider options of a request. Those of the persona take precedence. */
  readonly defaultOptions: SharedV3ProviderOptions;
  /**
   * Whether the provider has an option for the answer's JSON Schema that accepts any schema of an object. Google
   * rejects it in a request with tools. Without the option only the system prompt contains the schema.
   */
  readonly outputFormat?: 'always' | 'without_tools' | undefined;
  /** Opens the model, whose requests use the given `fetch`. */
  open(fetch: typeof globalThis.fetch): Promise<LanguageModelV3>;
}

interface Attempt {
  readonly answer: Answer;
  readonly requests: number;
  /** Null for a complete answer. */
  readonly failure: Failure | null;
  readonly retryAfterMs: number | null;
}

/** Creates the model of a connection. */
export function providerModel(connection: Connection, limits: SilenceLimits, clock: Clock): Model {
  return {
    async stream(request, onPart, signal) {
      let requests = 0;
      // Providers also charge for answers that broke off.
      let spent: Usage = { input_tokens: 0, output_tokens: 0 };
      for (let number = 1; ; number++) {
        const attempt = await tryOnce(connection, limits, clock, request, onPart, signal);
        requests += attempt.requests;
        const { answer, failure } = attempt;
        spent = addUsage(spent, answer.usage);
        if (!failure) return complete(answer, spent, requests);
        if (signal.aborted) return cancelled(answer, spent, requests);
        if (!failure.retryable || answer.hasPublished || number >= ATTEMPTS_MAX)
          return failed(answer, failure, spent, requests);
        await clock.sleep(waitMs(number, request.idempotencyKey, attempt.retryAfterMs), signal);
        if (signal.aborted) return cancelled(answer, spent, requests);
      }
    },
  };
}

async function tryOnce(
  connection: Connection,
  limits: SilenceLimits,
  clock: Clock,
  request: ModelRequest,
  onPart: (part: ModelPart) => void,
  signal: AbortSignal,
): Promise<Attempt> {
  const wire = new Wire(clock, limits, signal, connection.fetch);
  const answer = new Answer(onPart, new CallIds(request.messages, effectOf(request.idempotencyKey)));
  let failure: Failure | null = null;
  try {
    const options = callOptions(connection, request, wire.signal);
    const model = await wire.within(connection.open(wire.fetch));
    const { stream } = await wire.within(model.doStream(options));
    const reader = stream.getReader();
    for (let next = await wire.within(reader.read()); !next.done; next = await wire.within(reader.read())) {
      wire.partArrived();
      answer.take(next.value);
      if (answer.complete) wire.settle();
    }
    if (!answer.complete) throw new BrokenStreamError('it ended without a final frame');
  } catch (error) {
    // A complete answer stays complete, even if its connection ends with an error.
    if (!answer.complete) failure = failureOf(error, wire, connection.provider, connection.secret);
  } finally {
    wire.close();
  }
  const asked = wire.response ? retryAfterMs(wire.response.headers, clock.nowMs()) : null;
  return { answer, requests: wire.requests, failure, retryAfterMs: asked };
}

function callOptions(connection: Connection, request: ModelRequest, signal: AbortSignal): LanguageModelV3CallOptions {
  const { model, system, messages, tools, outputSchema } = request;
  const options: LanguageModelV3CallOptions = {
    prompt: promptOf(system, messages, connection.rules),
    providerOptions: mergedOptions(connection.defaultOptions, model.provider_options ?? {}),
    abortSignal: signal,
    // Needed for the usage of an answer that breaks off.
    includeRawChunks: true,
  };
  if (tools.length > 0) options.tools = toolsOf(tools);
  const isFormatted = connection.outputFormat === 'always' || (connection.outputFormat && tools.length === 0);
  if (isFormatted && outputSchema?.type === 'object')
    options.responseFormat = { type: 'json', schema: outputSchema as JSONSchema7, name: 'output' };
  if (model.temperature !== undefined) options.temperature = model.temperature;
  if (model.max_output_tokens !== undefined) options.maxOutputTokens = model.max_output_tokens;
  // A journal of an earlier release may contain lone surrogates, which strict providers reject.
  return toWellFormed(options);
}

function mergedOptions(defaults: SharedV3ProviderOptions, own: SharedV3ProviderOptions): SharedV3ProviderOptions {
  const merged: SharedV3ProviderOptions = { ...defaults };
  for (const [provider, values] of Object.entries(own)) merged[provider] = { ...merged[provider], ...values };
  return merged;
}

function complete(answer: Answer, usage: Usage, attempts: number): ModelResult {
  return {
    status: 'complete',
    message: { role: 'assistant', content: answer.content },
    finishReason: answer.finishReason,
    usage,
    attempts,
  };
}

function failed(answer: Answer, error: Failure, usage: Usage, attempts: number): ModelResult {
  return { status: 'failed', finishReason: 'error', error, message: cutShort(answer), usage, attempts };
}

function cancelled(answer: Answer, usage: Usage, attempts: number): ModelResult {
  return { status: 'cancelled', finishReason: 'cancelled', message: cutShort(answer), usage, attempts };
}

function cutShort(answer: Answer): AssistantMessage {
  return { role: 'assistant', content: answer.partialContent, partial: true };
}
