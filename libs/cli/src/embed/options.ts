/** The options of `startCoxswain` and their strict validation: an error names the invalid option. */
import type { HookSource } from '@coxswain/adapter-hooks';
import type { OwnModels } from '@coxswain/adapter-models';
import { InvalidOptionError, type PersonaDefinition, type Tool } from '@coxswain/client';
import type { StopPredicates } from '@coxswain/ports';
import { type HostPolicyInput, ModelName, TenantId } from '@coxswain/protocol';
import { nearestWord } from '@coxswain/protocol/nearest-word';

/** A tool with any arguments. */
// biome-ignore lint/suspicious/noExplicitAny: each tool has arguments of its own
export type EmbeddedTool = Tool<any>;

/** Options for Coxswain within a program. */
export interface CoxswainOptions {
  /**
   * Where sessions are stored.
   * - `embedded`, the default: a NATS server of this program with its state directory. Sessions survive the program.
   * - `memory`: in this process only. Sessions end with it.
   * - Otherwise the address of a NATS server, such as `nats://host:4222`, or several addresses separated by commas.
   */
  readonly bus?: 'embedded' | 'memory' | (string & {}) | undefined;
  /** Path of a key file for the address of a server. */
  readonly nkey?: string | undefined;
  /** The state directory. Default: `COX_STATE_DIR`, else the user's state directory, as for `cox up`. */
  readonly stateDir?: string | undefined;
  /** The tenant of the sessions. Default: the tenant of the key, else `default`. */
  readonly tenant?: string | undefined;
  /** The model of sessions and personas without one: `provider/name`. Default: `COX_MODEL`. */
  readonly model?: string | undefined;
  /**
   * Models of this program, keyed by their full names: language models of the AI SDK, or scripts. They replace models
   * of providers.
   */
  readonly models?: OwnModels | undefined;
  /** Tools that run in this process. They replace built-in tools with the same names. */
  readonly tools?: readonly EmbeddedTool[] | undefined;
  /** Hooks that run in this process. */
  readonly hooks?: HookSource | readonly HookSource[] | undefined;
  /** Personas that sessions can use by name: definitions, or paths of files, folders or modules. */
  readonly personas?: readonly (PersonaDefinition | string)[] | undefined;
  /** The root folder of sessions without one. Default: the working directory. */
  readonly root?: string | undefined;
  /** Functions that personas reference in `stop_when`. */
  readonly stopPredicates?: StopPredicates | undefined;
  /** Limits on the requests of senders on the bus. */
  readonly policy?: HostPolicyInput | undefined;
  /** API keys of providers and other settings. Default: `process.env`. */
  readonly env?: NodeJS.ProcessEnv | undefined;
}

type Check = (value: unknown) => string | null;

const text: Check = (value) => (typeof value === 'string' && value.trim() !== '' ? null : 'must be a text');
const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

const CHECKS: Readonly<Record<keyof CoxswainOptions, Check>> = {
  bus: busProblem,
  nkey: text,
  stateDir: text,
  tenant: (value) => (TenantId.safeParse(value).success ? null : 'must be 1 to 64 characters of A-Z a-z 0-9 _ -'),
  model: modelName,
  models: modelsProblem,
  tools: (value) => listProblem(value, (one) => (isObject(one) ? null : 'must be a result of defineTool()')),
  hooks: (value) => (Array.isArray(value) ? listProblem(value, hooksProblem) : hooksProblem(value)),
  personas: (value) =>
    listProblem(value, (one) =>
      isObject(one) || text(one) === null ? null : 'must be a result of definePersona(), or a path',
    ),
  root: text,
  stopPredicates: (value) =>
    isObject(value) && Object.values(value).every((one) => typeof one === 'function')
      ? null
      : 'must be an object of functions by their names',
  policy: (value) => (isObject(value) && !Array.isArray(value) ? null : 'must be an object'),
  env: (value) => (isObject(value) ? null : 'must be an object of variables, as process.env'),
};

/** Checks the options. @throws InvalidOptionError naming the first one that is unknown, invalid or contradicts another one. */
export function checkOptions(options: CoxswainOptions): void {
  if (!isObject(options) || Array.isArray(options))
    throw new InvalidOptionError('startCoxswain takes an object of options', 'options');
  for (const [name, value] of Object.entries(options)) {
    if (!Object.hasOwn(CHECKS, name)) {
      const meant = nearestWord(name, Object.keys(CHECKS));
      throw new InvalidOptionError(`there is no option ${name}${meant ? `; did you mean ${meant}?` : ''}`, name);
    }
    const problem = value === undefined ? null : CHECKS[name as keyof CoxswainOptions](value);
    if (problem !== null) throw new InvalidOptionError(`${name}: ${problem}`, name);
  }
  const { bus = 'embedded', nkey, stateDir, policy } = options;
  if (nkey !== undefined && (bus === 'embedded' || bus === 'memory'))
    throw new InvalidOptionError(`nkey: needs the address of a NATS server, not bus: '${bus}'`, 'nkey');
  if (bus !== 'memory') return;
  if (stateDir !== undefined) throw new InvalidOptionError("stateDir: bus: 'memory' stores nothing", 'stateDir');
  if (policy !== undefined)
    throw new InvalidOptionError("policy: bus: 'memory' has no sender but this program", 'policy');
}

function busProblem(value: unknown): string | null {
  if (value === 'embedded' || value === 'memory') return null;
  const isAddress =
    typeof value === 'string' && value.split(',').every((one) => /^(nats|tls):\/\/\S/i.test(one.trim()));
  // The message does not quote the value, because an address may contain a token.
  return isAddress
    ? null
    : 'must be "embedded", "memory" or the address of a NATS server: nats://host:4222 or tls://host:4222';
}

function modelName(value: unknown): string | null {
  return ModelName.safeParse(value).success ? null : 'must be provider/name';
}

function modelsProblem(value: unknown): string | null {
  if (!isObject(value) || Array.isArray(value)) return 'must be an object of models by their names';
  for (const [name, model] of Object.entries(value)) {
    const problem = modelName(name);
    if (problem !== null) return `the name "${name}" ${problem}`;
    const isModel =
      isObject(model) &&
      'doStream' in model &&
      (model as { specificationVersion?: unknown }).specificationVersion === 'v3';
    if (!isModel && !(isObject(model) && 'turns' in model))
      return `${name}: must be a language model of the AI SDK (specification v3), or a script with turns`;
  }
  return null;
}

function hooksProblem(value: unknown): string | null {
  return (isObject(value) && !Array.isArray(value)) || text(value) === null
    ? null
    : 'must be a result of defineHooks(), or the path of a module or manifest';
}

function listProblem(value: unknown, problemOf: Check): string | null {
  if (!Array.isArray(value)) return 'must be a list';
  for (const [index, one] of value.entries()) {
    const problem = problemOf(one);
    if (problem !== null) return `[${index}] ${problem}`;
  }
  return null;
}
