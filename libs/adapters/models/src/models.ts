/** Finds the provider for the name of a model. */
import { isAbsolute, resolve } from 'node:path';
import type { Clock, Model, Models } from '@coxswain/ports';
import { type Failure, type HostRules, type ModelSettings, modelProblem, OPEN_RULES } from '@coxswain/protocol';
import { FileReads } from './file-reads.ts';
import { KeptFiles } from './kept-files.ts';
import { findOwnModels, type OwnModels } from './own-models.ts';
import { connect } from './providers/connect.ts';
import { type Endpoint, type Environment, endpointOf, type HttpProvider } from './providers/endpoint.ts';
import { refusedFile, refusedRealPath } from './refused-file.ts';
import { JOURNAL_FILE, type Journals, readJournals } from './replay/journals.ts';
import { replayModel } from './replay/replay-model.ts';
import { readScripts, SCRIPT_FILE, type Scripts } from './scripted/script.ts';
import { scriptedModel } from './scripted/scripted-model.ts';
import { providerModel } from './stream/provider-model.ts';
import { wallClock } from './wall-clock.ts';

/** Options of models. All have defaults. */
export interface ModelsOptions {
  /** The environment variables with keys and addresses of providers; the process's own by default. */
  readonly env?: Environment;
  /** The clock for delays, backoff and timeouts; the system clock by default. */
  readonly clock?: Clock;
  /** The folder of relative paths of scripts and journals; the working directory by default. */
  readonly baseFolder?: string;
  /**
   * Reads the journal of a `replay/<name>`, one JSON object per line. Valid journals are cached by name. By default the
   * name is the path of a file, which is read again after a change.
   */
  readonly readJournal?: (name: string) => Promise<string>;
  /**
   * Reads the YAML of a `scripted/<name>`. Valid scripts are cached by name. By default the name is the path of a file,
   * which is read again after a change.
   */
  readonly readScript?: (name: string) => Promise<string>;
  /**
   * The `fetch` for providers whose origin the policy does not list. It must refuse addresses that are not public.
   * Without it, sessions under a policy cannot use such a provider.
   */
  readonly publicFetch?: typeof globalThis.fetch;
  /** Models of the embedding program, by their full names. They take precedence over providers. */
  readonly own?: OwnModels;
  /** The maximum silence of a provider before the start of its answer, in milliseconds; 120,000 by default. */
  readonly firstByteTimeoutMs?: number;
  /** The maximum silence of a provider within its answer, in milliseconds; 60,000 by default. */
  readonly betweenBytesTimeoutMs?: number;
}

/** The model cannot be used: {@link Models.check} returns the same failure. */
export class ModelUnusableError extends Error {
  readonly failure: Failure;
  constructor(failure: Failure) {
    super(failure.message);
    this.failure = failure;
  }
}

const PROVIDERS: Readonly<Record<string, HttpProvider | 'scripted' | 'replay'>> = {
  anthropic: 'anthropic',
  gemini: 'google',
  google: 'google',
  openai: 'openai',
  'openai-chat': 'openai-chat',
  'openai-compatible': 'openai-compatible',
  replay: 'replay',
  scripted: 'scripted',
};

/** Creates the models of this package, by `provider/name`. See docs/guides/models.md. */
export function createModels(options: ModelsOptions = {}): Models {
  const clock = options.clock ?? wallClock;
  const env = options.env ?? process.env;
  const pathOf = (file: string) => (isAbsolute(file) ? file : resolve(options.baseFolder ?? process.cwd(), file));
  const reads = new FileReads();
  const scripts: Scripts = options.readScript
    ? readScripts(options.readScript)
    : new KeptFiles(SCRIPT_FILE, clock, reads);
  const journalFiles = new KeptFiles(JOURNAL_FILE, clock, reads);
  const journals: Journals = options.readJournal
    ? readJournals(options.readJournal)
    : (name, refuse) => journalFiles.load(pathOf(name), name, refuse);
  // Only sessions without a restriction of roots use the cache directly. For others the cached file is checked again.
  const isOpen = ({ roots }: HostRules) => roots === 'any';
  const allowedScripts = (rules: HostRules): Scripts => ({
    kept: (path) => (isOpen(rules) ? scripts.kept(path) : undefined),
    // Checked before the file is opened, and again for the opened file, because a link may have changed in between.
    load: async (path, name) => {
      const isKnown = options.readScript !== undefined || (isOpen(rules) && scripts.kept(path) !== undefined);
      return (
        (isKnown ? null : await refusedFile(rules, 'script', path, name)) ??
        scripts.load(path, name, (real) => refusedRealPath(rules, 'script', real, name))
      );
    },
  });
  const allowedJournals =
    (rules: HostRules): Journals =>
    async (name) => {
      const path = pathOf(name);
      const isKnown = options.readJournal !== undefined || (isOpen(rules) && journalFiles.kept(path) !== undefined);
      return (
        (isKnown ? null : await refusedFile(rules, 'journal', path, name)) ??
        journals(name, (real) => refusedRealPath(rules, 'journal', real, name))
      );
    };
  const limits = {
    firstByteMs: options.firstByteTimeoutMs ?? 120_000,
    betweenBytesMs: options.betweenBytesTimeoutMs ?? 60_000,
  };

  const own = findOwnModels(options.own ?? {}, limits, clock);

  return {
    async check(settings: ModelSettings, rules = OPEN_RULES): Promise<Failure | null> {
      const ownProblem = own.check(settings.name);
      if (ownProblem !== undefined) return refusedName(settings.name, rules) ?? ownProblem;
      const found = find(settings, env, rules, options.publicFetch);
      if ('code' in found) return found;
      const { provider, model } = found;
      const read =
        provider === 'scripted'
          ? await allowedScripts(rules).load(pathOf(model), model)
          : provider === 'replay'
            ? await allowedJournals(rules)(model)
            : found;
      return 'code' in read ? read : null;
    },
    resolve(settings: ModelSettings, rules = OPEN_RULES): Model {
      const ownModel = own.resolve(settings.name);
      if (ownModel !== undefined) {
        const refused = refusedName(settings.name, rules);
        if (refused) throw new ModelUnusableError(refused);
        return ownModel;
      }
      const found = find(settings, env, rules, options.publicFetch);
      if ('code' in found) throw new ModelUnusableError(found);
      const { provider, model } = found;
      if (provider === 'scripted') return scriptedModel(allowedScripts(rules), pathOf(model), model, clock);
      if (provider === 'replay') return replayModel(model, allowedJournals(rules));
      return providerModel(connect(found as Endpoint, options.publicFetch), limits, clock);
    },
  };
}

type Found = Endpoint | { readonly provider: 'scripted' | 'replay'; readonly model: string };

function refusedName(name: string, rules: HostRules): Failure | null {
  const refused = modelProblem(rules, name);
  return refused && { code: refused.code, message: refused.message, retryable: false };
}

function find(
  settings: ModelSettings,
  env: Environment,
  rules: HostRules,
  publicFetch: typeof globalThis.fetch | undefined,
): Found | Failure {
  const refused = refusedName(settings.name, rules);
  if (refused) return refused;
  const slash = settings.name.indexOf('/');
  const name = slash < 0 ? settings.name : settings.name.slice(0, slash);
  const model = slash < 0 ? '' : settings.name.slice(slash + 1);
  const provider = Object.hasOwn(PROVIDERS, name) ? PROVIDERS[name] : undefined;
  if (!provider) {
    const known = Object.keys(PROVIDERS).join(', ');
    const message = `unknown provider ${JSON.stringify(name)}; known providers: ${known}`;
    return { code: 'provider_unknown', message, retryable: false };
  }
  if (provider === 'scripted' || provider === 'replay') return { provider, model };
  const endpoint = endpointOf(provider, model, settings, env, rules);
  if ('code' in endpoint || !endpoint.isUnlisted || publicFetch) return endpoint;
  const message = `base_url: this host connects only to origins of its policy; policy: add ${new URL(endpoint.baseUrl).origin} to origins`;
  return { code: 'not_allowed_by_policy', message, retryable: false };
}
