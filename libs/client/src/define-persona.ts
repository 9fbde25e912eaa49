/** Declares a persona in code. The compiler checks it by its type, and its schema at run time. */
import {
  type BudgetPointName,
  CoxswainError,
  type ExactHandler,
  type HookHandler,
  type HookPointName,
  type HookPointOf,
} from '@coxswain/protocol';
import type { OutputOf, OutputSource, TypedPersona } from './output-schema.ts';
import { type PersonaSettings, readPersonaDefinition } from './persona-form.ts';
import { withHandlers } from './persona-handlers.ts';

/** A persona definition has an unknown key or an invalid value. The message names the path. */
export class PersonaDefinitionError extends CoxswainError {
  constructor(message: string) {
    super('persona_invalid', message);
  }
}

type WrittenHook = NonNullable<PersonaSettings['hooks']>[number];
type WrittenFinish = Exclude<NonNullable<PersonaSettings['onFinish']>, string>;
type AnyPointName = HookPointName | BudgetPointName;

/** A hook of a persona with its handler. */
export type PersonaHookDefinition = {
  [N in AnyPointName]: Omit<WrittenHook, 'event' | 'handler'> & {
    readonly event: N;
    readonly handler: HookHandler<HookPointOf<N>>;
  };
}[AnyPointName];

/** A persona in code: the members of a persona file in camelCase. Handlers of hooks can be functions. */
export type PersonaDefinition = Omit<PersonaSettings, 'hooks' | 'onFinish' | 'output'> & {
  /** The schema of the final answer: Zod 4 or JSON Schema. */
  readonly output?: OutputSource | undefined;
  readonly hooks?: readonly (PersonaHookDefinition | WrittenHook)[] | undefined;
  readonly onFinish?:
    | PersonaSettings['onFinish']
    | HookHandler<'post_finish'>
    | (Omit<WrittenFinish, 'handler'> & { readonly handler: HookHandler<'post_finish'> });
};

/**
 * Declares a persona: `startSession({ persona: definePersona({ name: 'reviewer', … }) })`. The compiler rejects a
 * misspelt key at any depth. Functions of its hooks run in the process that serves it, with `servePersona` or
 * `cox serve personas`.
 * @returns its argument after validation. With functions or a Zod schema it is a copy with names and JSON Schema
 *   instead; `servePersona` finds the functions of the copy.
 * @throws PersonaDefinitionError naming the path and, for an unknown key, the nearest known one.
 */
export function definePersona<const P extends PersonaDefinition>(
  persona: P & ExactPersona<P, Unhooked> & ExactHooksOf<P>,
): DefinedPersona<P> {
  const read = readPersonaDefinition(persona);
  const name = typeof persona === 'object' && persona !== null ? JSON.stringify(persona.name)?.slice(0, 80) : undefined;
  const said = name === undefined ? 'the persona' : `the persona ${name}`;
  if (!read.ok) throw new PersonaDefinitionError(`${said}: ${read.problems.join('; ')}`);
  const defined = read.definition === persona ? persona : withHandlers<P>(read);
  return defined as unknown as DefinedPersona<P>;
}

/** A validated definition; {@link TypedPersona} carries the type of its output. */
type DefinedPersona<P> = Omit<P, 'hooks' | 'onFinish' | 'output'> &
  PersonaSettings &
  (P extends { readonly output: infer Schema } ? TypedPersona<OutputOf<Schema>> : unknown);

/**
 * A persona without its hooks: they are checked separately, because each point defines the return type of its handlers.
 */
type Unhooked = Omit<PersonaSettings, 'hooks' | 'onFinish' | 'output'> & {
  readonly hooks?: unknown;
  readonly onFinish?: unknown;
  readonly output?: unknown;
};

/** Rejects unknown keys of hooks and of their handlers' return values. */
type ExactHooksOf<P> = {
  readonly [K in keyof P]: K extends 'hooks'
    ? P[K] extends readonly unknown[]
      ? ExactList<P[K]>
      : P[K]
    : K extends 'onFinish'
      ? ExactFinish<P[K]>
      : P[K];
};
// A separate type parameter: TypeScript maps the elements of a list only for a bare type parameter.
type ExactList<Hooks extends readonly unknown[]> = { readonly [I in keyof Hooks]: ExactHook<Hooks[I]> };
type ExactHook<Hook> = {
  readonly [K in keyof Hook]: K extends keyof WrittenHook
    ? K extends 'handler'
      ? ExactHandlerOf<Hook[K], Hook>
      : Hook[K]
    : never;
};
type ExactHandlerOf<Handler, Hook> = Hook extends { readonly event: infer N extends AnyPointName }
  ? ExactHandler<Handler, HookPointOf<N>>
  : Handler;
type ExactFinish<Finish> = Finish extends (...given: never) => unknown
  ? ExactHandler<Finish, 'post_finish'>
  : Finish extends object
    ? {
        readonly [K in keyof Finish]: K extends keyof WrittenFinish
          ? K extends 'handler'
            ? ExactHandler<Finish[K], 'post_finish'>
            : Finish[K]
          : never;
      }
    : Finish;

/** Maps each key that the shape does not have to `never`, at any depth. For a union, a key of any member is known. */
type ExactPersona<Given, Shape> = unknown extends Shape
  ? Given
  : Given extends (...given: never) => unknown
    ? Given
    : Given extends readonly (infer _)[]
      ? { readonly [I in keyof Given]: ExactPersona<Given[I], ItemOf<Shape>> }
      : Given extends object
        ? string extends KeysOf<Extract<Shape, object>>
          ? { readonly [K in keyof Given]: ExactPersona<Given[K], ValueOf<Extract<Shape, object>, K>> }
          : {
              readonly [K in keyof Given]: K extends KeysOf<Extract<Shape, object>>
                ? ExactPersona<Given[K], ValueOf<Extract<Shape, object>, K>>
                : never;
            }
        : Given;
type KeysOf<T> = T extends readonly unknown[] ? never : T extends unknown ? keyof T : never;
type ItemOf<T> = T extends readonly (infer Item)[] ? Item : never;
type ValueOf<T, K> = T extends readonly unknown[]
  ? never
  : T extends unknown
    ? K extends keyof T
      ? T[K]
      : string extends keyof T
        ? T[keyof T]
        : never
    : never;
