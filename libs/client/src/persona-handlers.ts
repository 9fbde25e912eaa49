/** Converts a persona definition to a form that can be sent: names replace functions, and JSON Schema replaces Zod. */
import type { AnyHandler } from '@coxswain/protocol';
import { isValueSchema, type OutputSource, outputJsonSchema } from './output-schema.ts';

/** Functions of a persona by their path in its definition, or by their name. */
export type PersonaHandlers = Readonly<Record<string, AnyHandler>>;

/** A definition that can be sent, and its functions. */
export interface NamedHandlers {
  readonly definition: unknown;
  readonly handlers: PersonaHandlers;
}

/** Stores functions on a definition, hidden from JSON. The symbol is the same in every copy of this module. */
const HANDLERS = Symbol.for('coxswain.persona-handlers');

/** Stores the Zod schema of the output in the same way. */
const OUTPUT = Symbol.for('coxswain.persona-output');

/** The output schema of a definition as written; undefined without one, or for the name of a persona. */
export function outputSchemaOf(given: unknown): OutputSource | undefined {
  if (typeof given !== 'object' || given === null) return undefined;
  const { [OUTPUT]: kept, output } = given as { readonly [OUTPUT]?: OutputSource; readonly output?: unknown };
  return kept ?? (typeof output === 'object' && output !== null ? (output as OutputSource) : undefined);
}

/**
 * Replaces the functions of a definition by their paths, such as `hooks[0]`. The code of a handler is not part of the
 * persona's version; its hook point is. A Zod output schema becomes JSON Schema.
 * @throws OutputSchemaError if the output schema has no JSON Schema.
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
  // Other values are rejected by the schema of personas.
  const schema =
    typeof output === 'object' && output !== null ? outputJsonSchema(output as OutputSource, 'the persona') : output;
  if (Object.keys(handlers).length === before && schema === output) return { definition: given, handlers };
  const definition = { ...given, ...own, ...(output === undefined ? {} : { output: schema }) };
  const written = outputSchemaOf(given);
  if (written !== undefined && isValueSchema(written)) Object.defineProperty(definition, OUTPUT, { value: written });
  return { definition, handlers };
}

/** Stores the functions on a definition, so that this program can serve it. */
export function withHandlers<T extends object>({ definition, handlers }: NamedHandlers): T {
  return Object.defineProperty(definition as T, HANDLERS, { value: handlers });
}
