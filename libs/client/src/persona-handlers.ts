/** A definition as it is sent: names instead of the functions of its hooks, and the JSON Schema of its output. */
import type { AnyHandler } from '@coxswain/protocol';
import { type OutputSource, outputJsonSchema } from './output-schema.ts';

/** Functions, by what a definition has in the place of each. */
export type PersonaHandlers = Readonly<Record<string, AnyHandler>>;

/** A definition as it can be sent, and its code. */
export interface NamedHandlers {
  readonly definition: unknown;
  readonly handlers: PersonaHandlers;
}

/** Kept on a definition, unseen by JSON; for every copy of this module the same. */
const HANDLERS = Symbol.for('coxswain.persona-handlers');

/**
 * Takes the functions out of a definition. In the place of one stands where it was, `hooks[0]`: what a handler does is no part
 * of the persona's version, when it is asked is. An output schema of Zod becomes JSON Schema.
 * @throws OutputSchemaError where the output schema has none.
 */
export function namedHandlers(given: unknown): NamedHandlers {
  if (typeof given !== 'object' || given === null) return { definition: given, handlers: {} };
  const { hooks, onFinish, output } = given as {
    readonly hooks?: unknown;
    readonly onFinish?: unknown;
    readonly output?: unknown;
  };
  const handlers: Record<string, AnyHandler> = { ...(given as { readonly [HANDLERS]?: PersonaHandlers })[HANDLERS] };
  const before = Object.keys(handlers).length;
  const named = (value: unknown, name: string): unknown => {
    if (typeof value !== 'function') return value;
    handlers[name] = value as AnyHandler;
    return name;
  };
  const inHook = (hook: unknown, name: string): unknown =>
    typeof hook === 'object' && hook !== null && 'handler' in hook && typeof hook.handler === 'function'
      ? { ...hook, handler: named(hook.handler, name) }
      : hook;
  const own = {
    ...(Array.isArray(hooks) ? { hooks: hooks.map((hook, index) => inHook(hook, `hooks[${index}]`)) } : {}),
    ...(onFinish === undefined ? {} : { onFinish: inHook(named(onFinish, 'onFinish'), 'onFinish') }),
  };
  // A value that is no schema at all is for the schema of personas to refuse.
  const schema =
    typeof output === 'object' && output !== null ? outputJsonSchema(output as OutputSource, 'the persona') : output;
  if (Object.keys(handlers).length === before && schema === output) return { definition: given, handlers };
  return { definition: { ...given, ...own, ...(output === undefined ? {} : { output: schema }) }, handlers };
}

/** The definition, with its code at hand for whoever serves it in this program. */
export function withHandlers<T extends object>({ definition, handlers }: NamedHandlers): T {
  return Object.defineProperty(definition as T, HANDLERS, { value: handlers });
}
