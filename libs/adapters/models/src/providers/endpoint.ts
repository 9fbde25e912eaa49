/** Determines the address and key of a model's provider from its settings and the environment. */
import {
  type AllowedOrigin,
  type Failure,
  type HostRules,
  isAllowedOrigin,
  type KeyOwner,
  type ModelSettings,
  mayHaveKey,
  OPEN_RULES,
  secretInUrl,
} from '@coxswain/protocol';

/** Providers with an HTTP API. */
export type HttpProvider = 'openai' | 'openai-chat' | 'openai-compatible' | 'anthropic' | 'google';

/** A provider's address and key. */
export interface Endpoint {
  readonly provider: HttpProvider;
  /** The provider's name of the model. */
  readonly model: string;
  readonly baseUrl: string;
  /** Null if no key is needed and none is set, or if the policy withholds it from this address. */
  readonly apiKey: string | null;
  /**
   * Whether a request named an address that the policy does not list. Such an address must be on the public network.
   */
  readonly isUnlisted: boolean;
}

/** Environment variables, in the form of `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>;

interface ProviderEntry {
  /** The owner of the key, as in a policy. */
  readonly keyOf: KeyOwner;
  readonly keys: readonly string[];
  readonly urls: readonly string[];
  /** Null if an address is required. */
  readonly defaultUrl: string | null;
  /** The path of the API on a server whose address has no path. */
  readonly path: string;
}

const OPENAI: ProviderEntry = {
  keyOf: 'openai',
  keys: ['OPENAI_API_KEY'],
  urls: ['OPENAI_BASE_URL'],
  defaultUrl: 'https://api.openai.com/v1',
  path: '/v1',
};

const ENTRIES: Readonly<Record<HttpProvider, ProviderEntry>> = {
  openai: OPENAI,
  'openai-chat': OPENAI,
  'openai-compatible': {
    keyOf: 'openai-compatible',
    keys: ['OPENAI_COMPATIBLE_API_KEY'],
    urls: ['OPENAI_COMPATIBLE_BASE_URL'],
    defaultUrl: null,
    // Some of these servers have their API at the root, so an address is used unchanged.
    path: '',
  },
  anthropic: {
    keyOf: 'anthropic',
    keys: ['ANTHROPIC_API_KEY'],
    urls: ['ANTHROPIC_BASE_URL'],
    defaultUrl: 'https://api.anthropic.com/v1',
    path: '/v1',
  },
  google: {
    keyOf: 'google',
    keys: ['GOOGLE_GENERATIVE_AI_API_KEY', 'GEMINI_API_KEY'],
    urls: ['GOOGLE_GENERATIVE_AI_BASE_URL'],
    defaultUrl: 'https://generativelanguage.googleapis.com/v1beta',
    path: '/v1beta',
  },
};

/**
 * The origins that get keys of a host without a policy entry: each provider's own, and the one that the environment
 * names.
 */
export function ownOrigins(env: Environment): AllowedOrigin[] {
  return Object.values(ENTRIES).flatMap(({ keyOf, urls, defaultUrl, path }) => {
    const urlsOf = [firstSet(urls, env)?.value, defaultUrl].filter((url) => typeof url === 'string');
    return urlsOf.flatMap((url) => {
      const address = baseUrlOf(url, path);
      return address === null ? [] : [{ origin: new URL(address).origin, key_of: keyOf }];
    });
  });
}

/**
 * Determines the endpoint of a model. The failure is `model_key_missing`, `not_allowed_by_policy` or
 * `provision_failed`, and names the setting to change.
 */
export function endpointOf(
  provider: HttpProvider,
  model: string,
  settings: ModelSettings,
  env: Environment,
  rules: HostRules = OPEN_RULES,
): Endpoint | Failure {
  const entry = ENTRIES[provider];
  const given = settings.base_url ?? firstSet(entry.urls, env)?.value ?? null;
  const address = given ?? entry.defaultUrl;
  if (address === null) {
    return unusable(
      'provision_failed',
      `${provider} needs an address: give base_url or set ${entry.urls.join(' or ')}`,
    );
  }
  const baseUrl = baseUrlOf(address, entry.path);
  if (baseUrl === null) {
    return unusable('provision_failed', `${provider}: its address is not an http or https address`);
  }
  const secret = secretInUrl(baseUrl);
  if (secret !== null) {
    return unusable(
      'provision_failed',
      `${provider}: its address has ${secret}; set the key as ${entry.keys.join(' or ')}`,
    );
  }
  const named = settings.base_url !== undefined;
  const isUnlisted = named && rules.origins !== 'any' && !isAllowedOrigin(rules.origins, baseUrl);
  if (named && !mayHaveKey(rules, baseUrl, entry.keyOf)) {
    if (!isUnlisted || provider === 'openai-compatible') return { provider, model, baseUrl, apiKey: null, isUnlisted };
    const { origin } = new URL(baseUrl);
    const message = `base_url: ${origin} gets no key of this host, and ${provider} needs one; policy: add it to origins, with key_of if it is to get a key of this host`;
    return unusable('not_allowed_by_policy', message);
  }
  const key = firstSet(entry.keys, env);
  if (key && !/^[\x21-\x7e]+$/.test(key.value)) {
    return unusable(
      'model_key_missing',
      `${provider} needs a key, and ${key.name} contains characters that are invalid in a key`,
    );
  }
  const optional = provider === 'openai-compatible' || (given !== null && isLoopback(baseUrl));
  if (!key && !optional) {
    return unusable('model_key_missing', `${provider} needs a key: set ${entry.keys.join(' or ')}`);
  }
  return { provider, model, baseUrl, apiKey: key?.value ?? null, isUnlisted };
}

function firstSet(names: readonly string[], env: Environment): { name: string; value: string } | null {
  for (const name of names) {
    // Keys often come from files that end with a newline.
    const value = env[name]?.trim();
    if (value) return { name, value };
  }
  return null;
}

function baseUrlOf(address: string, path: string): string | null {
  if (!URL.canParse(address)) return null;
  const url = new URL(address);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return null;
  if (url.pathname === '/') url.pathname = path;
  const { href } = url;
  let end = href.length;
  // In linear time: a regular expression for trailing slashes would backtrack over each run of slashes.
  while (href[end - 1] === '/') end -= 1;
  return href.slice(0, end);
}

function isLoopback(baseUrl: string): boolean {
  const { hostname } = new URL(baseUrl);
  return (
    hostname === 'localhost' ||
    hostname.endsWith('.localhost') ||
    hostname === '[::1]' ||
    /^127(\.\d{1,3}){3}$/.test(hostname)
  );
}

function unusable(code: string, message: string): Failure {
  return { code, message, retryable: false };
}
