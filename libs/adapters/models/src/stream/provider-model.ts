/**
 * A model behind an AI SDK provider: one request, streamed, bounded in time, sent again where that is safe.
 *
 * A1 It never rejects: every ending is a result.
 * A2 Once a part has been handed on, the request is not sent again.
 * A3 An abort ends it at once, also while it waits to send again.
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

/** How one of a provider's models is reached. */
export interface Connection {
  /** The provider, as messages call it. */
  readonly provider: string;
  readonly rules: PromptRules;
  /** A secret that must not stand in any message. */
  readonly secret: string | null;
  /** What requests are sent with; the system's `fetch` if not given. */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /** The provider's own options that a request has unless the persona says otherwise. */
  readonly defaultOptions: SharedV3ProviderOptions;
  /**
   * Whether the provider has an option for the JSON Schema of an answer that takes any schema of an object. Google refuses it in
   * a request with tools. Without the option the system prompt alone states the schema.
   */
  readonly outputFormat?: 'always' | 'without_tools' | undefined;
  /** The model, with its requests going through the given `fetch`. */
  open(fetch: typeof globalThis.fetch): Promise<LanguageModelV3>;
}

interface Attempt {
  readonly answer: Answer;
  readonly requests: number;
  /** Null where the answer is complete. */
  readonly failure: Failure | null;
  readonly retryAfterMs: number | null;
}

/** The model of a connection. */
export function providerModel(connection: Connection, limits: SilenceLimits, clock: Clock): Model {
  return {
    async stream(request, onPart, signal) {
      let requests = 0;
      // Providers charge for answers that broke off, too.
      let spent: Usage = { input_tokens: 0, output_tokens: 0 };
      for (let number = 1; ; number++) {
        const attempt = await tryOnce(connection, limits, clock, request, onPart, signal);
        requests += attempt.requests;
        const { answer, failure } = attempt;
        spent = addUsage(spent, answer.usage);
        if (!failure) return complete(answer, spent, requests);
        if (signal.aborted) return cancelled(answer, spent, requests);
        if (!failure.retryable || answer.handedOn || number >= ATTEMPTS_MAX)
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
      wire.heard();
      answer.take(next.value);
      if (answer.complete) wire.settle();
    }
    if (!answer.complete) throw new BrokenStreamError('it ended without a final frame');
  } catch (error) {
    // A complete answer stays one, however its connection ends.
    if (!answer.complete) failure = redacted(failureOf(error, wire, connection.provider), connection.secret);
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
    // For the usage of an answer that breaks off.
    includeRawChunks: true,
  };
  if (tools.length > 0) options.tools = toolsOf(tools);
  const isFormatted = connection.outputFormat === 'always' || (connection.outputFormat && tools.length === 0);
  if (isFormatted && outputSchema?.type === 'object')
    options.responseFormat = { type: 'json', schema: outputSchema as JSONSchema7, name: 'output' };
  if (model.temperature !== undefined) options.temperature = model.temperature;
  if (model.max_output_tokens !== undefined) options.maxOutputTokens = model.max_output_tokens;
  // A journal of an earlier release may hold lone surrogates, which strict providers refuse.
  return toWellFormed(options);
}

function mergedOptions(defaults: SharedV3ProviderOptions, own: SharedV3ProviderOptions): SharedV3ProviderOptions {
  const merged: SharedV3ProviderOptions = { ...defaults };
  for (const [provider, values] of Object.entries(own)) merged[provider] = { ...merged[provider], ...values };
  return merged;
}

function redacted(failure: Failure, secret: string | null): Failure {
  return secret ? { ...failure, message: failure.message.replaceAll(secret, '[key]') } : failure;
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
