/** Models of the embedding program, by name, instead of a provider's models. */
import type { LanguageModelV3 } from '@ai-sdk/provider';
import type { Clock, Model } from '@coxswain/ports';
import type { Failure } from '@coxswain/protocol';
import {
  ANTHROPIC_RULES,
  GOOGLE_RULES,
  OPENAI_CHAT_RULES,
  OPENAI_COMPATIBLE_RULES,
  OPENAI_RESPONSES_RULES,
  type PromptRules,
} from './prompt/prompt-rules.ts';
import { readScripts, type ScriptInput } from './scripted/script.ts';
import { scriptedModel } from './scripted/scripted-model.ts';
import { providerModel } from './stream/provider-model.ts';
import type { SilenceLimits } from './stream/wire.ts';

/**
 * A language model of the AI SDK, as the provider packages create it. The SDK's own types are not used here: they do
 * not compile without types that a program may lack.
 */
export interface OwnLanguageModel {
  readonly specificationVersion: 'v3';
  readonly provider: string;
  readonly modelId: string;
  // biome-ignore lint/suspicious/noExplicitAny: the options are those of the specification
  doStream(options: any): PromiseLike<{ readonly stream: object }>;
}

/** A language model of the AI SDK (specification v3), or the script of a scripted model. */
export type OwnModel = OwnLanguageModel | ScriptInput;

/** The program's models, by the full name in personas and sessions: `provider/name`. */
export type OwnModels = Readonly<Record<string, OwnModel>>;

/** Finds the program's models. */
export interface FoundOwnModels {
  /** Undefined for an unknown name; null for a usable model; otherwise the reason why it cannot be used. */
  check(name: string): Promise<Failure | null> | undefined;
  resolve(name: string): Model | undefined;
}

/** Creates the lookup of the program's models. A script is validated at its first use. */
export function findOwnModels(own: OwnModels, limits: SilenceLimits, clock: Clock): FoundOwnModels {
  const scripts = readScripts(async (name) => JSON.stringify(own[name]));
  const named = (name: string) => (Object.hasOwn(own, name) ? own[name] : undefined);
  return {
    check(name) {
      const model = named(name);
      if (!model) return undefined;
      return 'turns' in model
        ? scripts.load(name, name).then((read) => ('code' in read ? read : null))
        : Promise.resolve(null);
    },
    resolve(name) {
      const model = named(name);
      if (!model) return undefined;
      if ('turns' in model) return scriptedModel(scripts, name, name, clock);
      const { provider } = model;
      const connection = { provider, rules: rulesOf(provider), secret: null, defaultOptions: {} };
      return providerModel({ ...connection, open: async () => model as unknown as LanguageModelV3 }, limits, clock);
    },
  };
}

/**
 * Selects the rules by the AI SDK's name of the provider: `openai.responses`, `anthropic.messages`,
 * `google.generative-ai`.
 */
function rulesOf(provider: string): PromptRules {
  if (/^(anthropic|google-vertex\.anthropic|vertex\.anthropic)/.test(provider)) return ANTHROPIC_RULES;
  if (provider.startsWith('google')) return GOOGLE_RULES;
  if (provider.endsWith('.responses')) return OPENAI_RESPONSES_RULES;
  return /^(openai|azure)\b/.test(provider) ? OPENAI_CHAT_RULES : OPENAI_COMPATIBLE_RULES;
}
