/**
 * Connects to providers with the adapters of the AI SDK. Each adapter is loaded at its first use, because loading all
 * of them would slow every start.
 */
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
    // Later requests do not refer to data stored at OpenAI, so nothing is stored there. Reasoning is then sent in
    // encrypted form. The strict format supports few schemas: all members required, no patterns. The session validates
    // each answer itself.
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
      // Calls without an id get one from `CallIds`, which is the same for the same answer.
      return createGoogleGenerativeAI({ baseURL: baseUrl, apiKey, fetch, generateId: () => '' }).chat(model);
    },
  },
};

// Without a key, the adapters read the process's environment, and then fail.
const NO_KEY = 'none';

/**
 * Creates the connection to an endpoint's model.
 * @param publicFetch the `fetch` for addresses that the policy does not list.
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
    // A request to a compatible server without a key has no Authorization header.
    open: (fetch) => open(endpoint, endpoint.apiKey ?? (compatible ? '' : NO_KEY), fetch),
  };
}
