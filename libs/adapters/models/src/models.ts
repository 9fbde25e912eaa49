/** Which provider answers for a model's name. */
import { isAbsolute, resolve } from 'node:path';
import type { Clock, Model, Models } from '@coxswain/ports';
import type { Failure, ModelSettings } from '@coxswain/protocol';
import { ScriptStore } from './scripted/script-store.ts';
import { scriptedModel } from './scripted/scripted-model.ts';
import { wallClock } from './wall-clock.ts';

/** What models are made with; every part has a default. */
export interface ModelsOptions {
  /** Keys and addresses of providers; the process's own environment by default. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** For delays, back-off and time-outs; the machine's by default. */
  readonly clock?: Clock;
  /** Where the relative paths of scripts and journals begin; the working directory by default. */
  readonly baseFolder?: string;
}

const PROVIDERS = ['scripted'];

/** The models of this package, by `provider/name`. */
export function createModels(options: ModelsOptions = {}): Models {
  const clock = options.clock ?? wallClock;
  const scripts = new ScriptStore();
  const pathOf = (file: string) => (isAbsolute(file) ? file : resolve(options.baseFolder ?? process.cwd(), file));

  return {
    async check(model: ModelSettings): Promise<Failure | null> {
      const [provider, name] = splitName(model.name);
      if (provider !== 'scripted') return providerUnknown(provider);
      const script = await scripts.load(pathOf(name), name);
      return 'code' in script ? script : null;
    },
    resolve(model: ModelSettings): Model {
      const [provider, name] = splitName(model.name);
      if (provider !== 'scripted') throw new Error(providerUnknown(provider).message);
      return scriptedModel(scripts, pathOf(name), name, clock);
    },
  };
}

function splitName(name: string): [provider: string, model: string] {
  const slash = name.indexOf('/');
  return slash < 0 ? [name, ''] : [name.slice(0, slash), name.slice(slash + 1)];
}

function providerUnknown(provider: string): Failure {
  return {
    code: 'provider_unknown',
    message: `no provider is called ${JSON.stringify(provider)}; there are ${PROVIDERS.join(', ')}`,
    retryable: false,
  };
}
