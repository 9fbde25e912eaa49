/** The AI SDK's adapters. Each is loaded when it is first used: together they would slow every start. */
import type { LanguageModelV3 } from '@ai-sdk/provider';
import {
  ANTHROPIC_RULES,
  GOOGLE_RULES,
  OPENAI_CHAT_RULES,
  OPENAI_COMPATIBLE_RULES,
  OPENAI_RESPONSES_RULES,
  type PromptRules,
} from '../prompt/prompt-rules.ts';
import type { Connection } from '../stream/provider-model.ts';
import type { Endpoint, HttpProvider } from './endpoint.ts';

type Open = (endpoint: Endpoint, apiKey: string, fetch: typeof globalThis.fetch) => Promise<LanguageModelV3>;

interface Adapter {
  readonly rules: PromptRules;
  readonly open: Open;
  readonly defaultOptions?: Connection['defaultOptions'];
  readonly outputFormat?: Connection['outputFormat'];
}

const ADAPTERS: Readonly<Record<HttpProvider, Adapter>> = {
  openai: {
    rules: OPENAI_RESPONSES_RULES,
    // The journal is the only memory of a session: nothing in a later request refers to what OpenAI keeps, so it need
    // keep nothing. Reasoning then comes and goes encrypted.
    // The strict format takes few schemas: all members required, no patterns. The session checks each answer itself.
    defaultOptions: { openai: { store: false, strictJsonSchema: false } },
    outputFormat: 'always',
    open: async ({ model, baseUrl }, apiKey, fetch) => {
      const { createOpenAI } = await import('@ai-sdk/openai');
      return createOpenAI({ baseURL: baseUrl, apiKey, fetch }).responses(model);
    },
  },
  'openai-chat': {
    rules: OPENAI_CHAT_RULES,
    defaultOptions: { openai: { strictJsonSchema: false } },
    outputFormat: 'always',
    open: async ({ model, baseUrl }, apiKey, fetch) => {
      const { createOpenAI } = await import('@ai-sdk/openai');
      return createOpenAI({ baseURL: baseUrl, apiKey, fetch }).chat(model);
    },
  },
  'openai-compatible': {
    rules: OPENAI_COMPATIBLE_RULES,
    open: async ({ model, baseUrl }, apiKey, fetch) => {
      const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible');
      const name = OPENAI_COMPATIBLE_RULES.metadataKey;
      return createOpenAICompatible({ name, baseURL: baseUrl, apiKey, fetch, includeUsage: true }).chatModel(model);
    },
  },
  anthropic: {
    rules: ANTHROPIC_RULES,
    open: async ({ model, baseUrl }, apiKey, fetch) => {
      const { createAnthropic } = await import('@ai-sdk/anthropic');
      return createAnthropic({ baseURL: baseUrl, apiKey, fetch }).messages(model);
    },
  },
  google: {
    rules: GOOGLE_RULES,
    outputFormat: 'without_tools',
    open: async ({ model, baseUrl }, apiKey, fetch) => {
      const { createGoogleGenerativeAI } = await import('@ai-sdk/google');
      // Calls without an id get one that the session makes, the same for the same answer.
      return createGoogleGenerativeAI({ baseURL: baseUrl, apiKey, fetch, generateId: () => '' }).chat(model);
    },
  },
};

// The adapters refuse to have no key, and look for one in the process's own environment.
const NO_KEY = 'none';

/**
 * The connection to an endpoint's model.
 * @param publicFetch what addresses are asked with that the policy does not list.
 */
export function connect(endpoint: Endpoint, publicFetch?: typeof globalThis.fetch): Connection {
  const { rules, open, defaultOptions, outputFormat } = ADAPTERS[endpoint.provider];
  const compatible = endpoint.provider === 'openai-compatible';
  return {
    provider: endpoint.provider,
    rules,
    secret: endpoint.apiKey,
    fetch: endpoint.isUnlisted ? publicFetch : undefined,
    defaultOptions: defaultOptions ?? {},
    outputFormat,
    // A compatible server without a key is sent no Authorization at all.
    open: (fetch) => open(endpoint, endpoint.apiKey ?? (compatible ? '' : NO_KEY), fetch),
  };
}
