/** A registry of hook handlers that run in this process. */

import { runHandler } from '@coxswain/handlers/load';
import type { HookHandlers, HookQuestion, HookReply, HookRequest, Hooks } from '@coxswain/ports';
import {
  type AnyHandler,
  BOUNDS,
  type CamelCased,
  CoxswainError,
  type ExactHandler,
  type HookDefinitions,
  type HookEntry,
  type HookHandler,
  type HookPoint,
  type HookPointName,
  type HookPointOf,
  type HookRegistration,
  type HookRegistrationInput,
  type HookSettings,
  type HookTable,
  pathFromWire,
  pathText,
  type RegistrationProblem,
  readRegistration,
  registeredTwice,
  toWire,
  WrittenRegistration,
  type Wrong,
} from '@coxswain/protocol';

/** Removes a registration. Calls after the first have no effect. */
export type Unregister = () => void;

type PersonaPoint = 'PreStep' | 'PostStep' | Extract<HookPoint, `On${string}`>;
type SessionPoint = Exclude<HookPoint, PersonaPoint | 'PreToolUse' | 'PostToolUse'>;
/** Both spellings of these points. The name of a budget point may include the percentage. */
type NameOf<P extends HookPoint> =
  | { [N in HookPointName]: HookPointOf<N> extends P ? N : never }[HookPointName]
  | ('OnBudgetThreshold' extends P ? `OnBudgetThreshold(${number})` : never);

/** The options of every surface: an id, the priority, the timeout, and the effect of a failure. */
export type HookOptions = Partial<Pick<HookSettings, 'id' | 'priority' | 'timeoutMs' | 'onError'>>;

/** A hook on tools: a glob for their names, or a condition on the payload. */
export interface ToolHook extends HookOptions {
  readonly pattern: string;
  /** Denies every matching call with this reason, without a handler. */
  readonly deny?: string;
  /** The maximum length of a result in characters. */
  readonly maxOutput?: number;
  readonly pre?: HookHandler<'PreToolUse'>;
  readonly post?: HookHandler<'PostToolUse'>;
}

/** Checks the type of a tool hook: neither the hook nor the return values of its handlers may have unknown keys. */
type ExactToolHook<Hook> = {
  readonly [K in keyof Hook]: K extends 'pre'
    ? ExactHandler<Hook[K], 'PreToolUse'>
    : K extends 'post'
      ? ExactHandler<Hook[K], 'PostToolUse'>
      : K extends keyof ToolHook
        ? Hook[K]
        : Wrong<`a tool hook has no setting '${K & string}'`>;
};

/** Registers handlers, and runs them. Registration throws if anything in it is wrong. */
export interface HookRegistry extends Hooks, HookHandlers {
  /** The registrations, in registration order, for the sessions of every tenant. */
  table(): HookTable;
  /** @throws HookRegistrationError, as all methods that register. */
  registerToolHook<Hook extends ToolHook>(hook: Hook & ExactToolHook<Hook>): Unregister;
  registerPersonaHook<N extends NameOf<PersonaPoint>, H extends HookHandler<HookPointOf<N>>>(
    personaPattern: string,
    point: N,
    handler: H & ExactHandler<H, HookPointOf<N>>,
    options?: HookOptions,
  ): Unregister;
  registerStepHook<N extends NameOf<PersonaPoint>, H extends HookHandler<HookPointOf<N>>>(
    personaPattern: string,
    stepName: string,
    point: N,
    handler: H & ExactHandler<H, HookPointOf<N>>,
    options?: HookOptions,
  ): Unregister;
  registerSessionHook<N extends NameOf<SessionPoint>, H extends HookHandler<HookPointOf<N>>>(
    event: N,
    handler: H & ExactHandler<H, HookPointOf<N>>,
    options?: HookOptions,
  ): Unregister;
  registerSessionHook<N extends NameOf<SessionPoint>, H extends HookHandler<HookPointOf<N>>>(
    event: N,
    pattern: string,
    handler: H & ExactHandler<H, HookPointOf<N>>,
    options?: HookOptions,
  ): Unregister;
  /** Registers a handler at seams of these kinds: one, a list, or `*` for all. */
  registerCheckpointHook<H extends HookHandler<'loop_checkpoint'>>(
    kinds: string | readonly string[] | undefined,
    handler: H & ExactHandler<H, 'loop_checkpoint'>,
    options?: HookOptions,
  ): Unregister;
  /** Registers all definitions of `defineHooks`, or none of them. */
  registerAll(definitions: HookDefinitions): Unregister;
  /** Registers one hook in the form of a file, with names in snake_case, and its handler. */
  register(written: Partial<HookRegistrationInput>, handler: AnyHandler | undefined): Unregister;
}

interface Entry {
  readonly registration: HookRegistration;
  readonly handler: AnyHandler | undefined;
}

/** Options of a registry. */
export interface HookRegistryOptions {
  /** The prefix of generated ids, `<name>-<point>-<n>`. At most 32 characters of an id; `code` by default. */
  readonly name?: string;
  /** The origin of the registrations. Hooks of a manifest run before hooks in code of the same priority. */
  readonly source?: 'manifest' | 'code';
}

/** Creates an empty registry. */
export function createHookRegistry({ name = 'code', source }: HookRegistryOptions = {}): HookRegistry {
  let entries: readonly Entry[] = [];
  const listeners = new Set<() => void>();
  const given = new Map<string, number>();

  const replace = (next: readonly Entry[]) => {
    entries = next;
    for (const listener of [...listeners]) listener();
  };

  function nextId(point: string): string {
    for (;;) {
      const n = (given.get(point) ?? 0) + 1;
      given.set(point, n);
      const id = `${name}-${point}-${n}`;
      if (!entries.some(({ registration }) => registration.id === id)) return id;
    }
  }

  function entryOf({ id, ...written }: Partial<HookRegistrationInput>, handler: unknown): Entry {
    const point = /^\w*/.exec(String(written.point ?? ''))?.[0] ?? '';
    const read = readRegistration({ ...written, ...(source ? { source } : {}), id: id ?? nextId(point) });
    if (!read.ok) throw new HookRegistrationError(read.problem);
    const { deny, no_handler, returns } = read.registration;
    if (isClass(handler)) throw refusal('handler', 'it is a class; give a function');
    if (typeof handler !== 'function' && deny === undefined && returns === undefined && !no_handler)
      throw refusal('handler', `${read.registration.point} needs a function as its handler`);
    if (typeof handler === 'function' && deny !== undefined)
      throw refusal('deny', 'deny denies without a handler: give deny or a handler, not both');
    if (typeof handler === 'function' && returns !== undefined)
      throw refusal('returns', 'returns answers without a handler: give returns or a handler, not both');
    return { registration: read.registration, handler: handler as AnyHandler | undefined };
  }

  function add(added: readonly Entry[]): Unregister {
    const next = [...entries, ...added];
    const twice = registeredTwice(next.map(({ registration }) => registration));
    if (twice) throw refusal('id', `hook ${twice.id} is already registered at ${twice.point}`);
    if (next.length > BOUNDS.hooksMax) throw refusal('id', `there are ${BOUNDS.hooksMax} registrations, the maximum`);
    replace(next);
    return () => {
      const left = entries.filter((entry) => !added.includes(entry));
      if (left.length < entries.length) replace(left);
    };
  }

  const register: HookRegistry['register'] = (written, handler) => add([entryOf(written, handler)]);

  /**
   * Creates an entry for a registration in code.
   * @param settings with TypeScript names.
   * @param rest the other fields of the registration, with names as in files.
   */
  function entryInCode(settings: object, rest: Partial<HookRegistrationInput>, handler: unknown): Entry {
    const written = { ...asWritten(settings), ...rest };
    return inCallersNames(() => entryOf(written, handler));
  }

  const registerInCode = (settings: HookOptions = {}, rest: Partial<HookRegistrationInput>, handler: AnyHandler) =>
    add([entryInCode(settings, rest, handler)]);

  function registerSessionHook(
    event: string,
    patternOrHandler: string | HookHandler,
    handlerOrOptions?: HookHandler | HookOptions,
    options?: HookOptions,
  ): Unregister {
    const session = { surface: 'session', point: event } as const;
    if (typeof patternOrHandler !== 'string')
      return registerInCode(handlerOrOptions as HookOptions, session, patternOrHandler as AnyHandler);
    return registerInCode(options, { ...session, pattern: patternOrHandler }, handlerOrOptions as AnyHandler);
  }

  return {
    register,
    registerToolHook: (hook) => add(toolEntries(hook, entryInCode, nextId)),
    registerPersonaHook: (persona, point, handler, options) =>
      registerInCode(options, { surface: 'persona', point, persona }, handler as AnyHandler),
    registerStepHook: (persona, step, point, handler, options) =>
      registerInCode(options, { surface: 'step', point, persona, step }, handler as AnyHandler),
    registerSessionHook,
    registerCheckpointHook: (kinds = '*', handler, options) =>
      registerInCode(
        options,
        {
          surface: 'checkpoint',
          point: 'loop_checkpoint',
          kinds: typeof kinds === 'string' ? kinds : [...kinds],
        },
        handler as AnyHandler,
      ),
    registerAll: (definitions) =>
      add(
        definitionsOf(definitions).map(([settings, rest, handler, where]) =>
          placed(where, () => entryInCode(settings, rest, handler)),
        ),
      ),
    table: (): HookTable => entries.map(({ registration }) => registration),
    onChange(changed) {
      listeners.add(changed);
      return () => void listeners.delete(changed);
    },
    ask: (request, signal) => answer(entries, ownQuestion(request), signal),
    answer: (question, signal) => answer(entries, question, signal),
  };
}

async function answer(entries: readonly Entry[], question: HookQuestion, signal: AbortSignal): Promise<HookReply> {
  const { id, point } = question.registration;
  const entry = entries.find(({ registration }) => registration.id === id && registration.point === point);
  if (!entry?.handler)
    return { status: 'failed', code: 'hook_unavailable', message: `no instance serves ${id} any longer` };
  return runHandler(entry.handler, question, signal);
}

// The session passes its own payload to the next handler and records it, so a handler gets a copy.
function ownQuestion({ transcript, messages, ...request }: HookRequest): HookQuestion {
  return {
    ...request,
    payload: structuredClone(request.payload),
    transcript: async () => transcript(),
    ...(messages ? { messages: async () => messages } : {}),
  };
}

function toolEntries(
  hook: ToolHook,
  entryOf: (settings: object, rest: Partial<HookRegistrationInput>, handler: unknown) => Entry,
  nextId: (point: string) => string,
): Entry[] {
  const { pre, post, deny, maxOutput, id, ...rest } = hook;
  refuseInternal(rest);
  const settings = { ...rest, id: id ?? nextId('tool') };
  const entries: Entry[] = [];
  if (pre !== undefined || deny !== undefined)
    entries.push(entryOf({ ...settings, deny }, { surface: 'tool', point: 'PreToolUse' }, pre));
  if (post !== undefined || maxOutput !== undefined) {
    const bare = post === undefined ? { no_handler: true as const } : {};
    entries.push(entryOf({ ...settings, maxOutput }, { ...bare, surface: 'tool', point: 'PostToolUse' }, post));
  }
  if (entries.length === 0) {
    // A misspelt setting is the likelier mistake.
    asWritten(rest);
    throw refusal('pre', 'a tool hook has pre, post, deny or maxOutput');
  }
  return entries;
}

type Definition = [settings: object, rest: Partial<HookRegistrationInput>, handler: unknown, where: string];

/** Adds the place of the definition in its module to the error of a registration. */
function placed(where: string, read: () => Entry): Entry {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof HookRegistrationError) || error.field === 'point') throw error;
    const { code, field, message } = error;
    throw new HookRegistrationError({ code, field, message: `${where}: ${message}` });
  }
}

function definitionsOf(definitions: HookDefinitions): Definition[] {
  return Object.entries(definitions).flatMap(([point, declared]) => {
    const list: readonly unknown[] = Array.isArray(declared) ? declared : [declared];
    return list.map((one, index): Definition => {
      const where = Array.isArray(declared) ? `${point}[${index}]` : point;
      if (typeof one === 'function') return [{}, { point }, one, where];
      if (typeof one !== 'object' || one === null)
        throw refusal(where, `it takes a function, an object with a handler, or a list of them`);
      const { handler, ...settings } = one as HookEntry<HookPoint>;
      refuseInternal(settings, where);
      const bare =
        handler === undefined && settings.maxOutput !== undefined && settings.returns === undefined
          ? { no_handler: true as const }
          : {};
      return [settings, { ...bare, point }, handler, where];
    });
  });
}

/** Converts settings in code to the form of a file. @throws HookRegistrationError for an unknown name. */
function asWritten(settings: object): Partial<HookRegistrationInput> {
  const form = toWire(WrittenRegistration, settings as CamelCased<HookRegistrationInput>);
  if (form.ok) return form.value;
  const field = pathText(form.path);
  throw new HookRegistrationError({ code: 'unknown_field', field, message: `${field}: ${form.words}` });
}

/** Converts names in the errors of a registration in code to TypeScript names. */
function inCallersNames<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof HookRegistrationError)) throw error;
    const { code, field: written, message } = error;
    const field = pathFromWire(WrittenRegistration, written);
    throw new HookRegistrationError({ code, field, message: message.replace(written, field) });
  }
}

// A class is a function that throws when it is called without `new`.
function isClass(handler: unknown): boolean {
  return typeof handler === 'function' && /^class\b/.test(Function.prototype.toString.call(handler));
}

/** Internal fields of a registration. Users cannot set them. */
const NOT_OF_MODULES = ['source', 'unavailable', 'no_handler', 'noHandler', 'point', 'surface'] as const;

function refuseInternal(written: object, where?: string): void {
  const stray = NOT_OF_MODULES.find((field) => Object.hasOwn(written, field));
  if (stray !== undefined) throw refusal(stray, 'no definition has this field', where);
}

function refusal(field: string, message: string, where?: string): HookRegistrationError {
  return new HookRegistrationError({
    code: 'invalid_field',
    field,
    message: `${where === undefined ? '' : `${where}: `}${field}: ${message}`,
  } satisfies RegistrationProblem);
}

/** Thrown at registration: the hook could not run, or would never run. */
export class HookRegistrationError extends CoxswainError {
  override readonly name = 'HookRegistrationError';
  declare readonly code: RegistrationProblem['code'];
  /** The invalid field. */
  readonly field: string;

  constructor({ code, field, message }: RegistrationProblem) {
    super(code, message);
    this.field = field;
  }
}
