/**
 * Types that reject excess keys in handlers and definitions. TypeScript checks excess keys of object literals with a
 * declared type, but not of objects that a function returns. A misspelt optional key there would only fail at run time.
 */

import type { JsonObject } from '../wire/json.ts';
import type { BudgetPointName, CanonicalPointName, HookEntry, HookPointName, HookPointOf } from './hook-handlers.ts';
import type { HookPoint } from './hook-points.ts';
import type { HandlerReturn } from './hook-returns.ts';

/** Takes the place of a wrong definition: the compiler rejects the definition, and its message has the sentence. */
export interface Wrong<Sentence extends string> {
  readonly wrong: Sentence;
}

/**
 * The constraint on the definitions of a module. A valid definition keeps its type. A wrong definition, or its wrong
 * member, becomes {@link Wrong}.
 */
export type ExactHooks<Definitions> = {
  readonly [N in keyof Definitions]: N extends HookPointName | BudgetPointName
    ? ExactDefinition<Definitions[N], HookPointOf<N>>
    : Wrong<`there is no hook point '${N & string}'`>;
};

type ExactDefinition<Definition, P extends HookPoint> = Definition extends readonly unknown[]
  ? { readonly [Index in keyof Definition]: ExactOne<Definition[Index], P> }
  : ExactOne<Definition, P>;

type ExactOne<Definition, P extends HookPoint> = Definition extends (...given: never) => unknown
  ? ExactHandler<Definition, P>
  : {
      readonly [K in keyof Definition]: K extends 'handler'
        ? ExactHandler<Definition[K], P>
        : K extends keyof HookEntry<P>
          ? Definition[K]
          : Wrong<`a hook has no setting '${K & string}'`>;
    };

/** The constraint on a handler of a point: its own type, or {@link Wrong} if it can return an excess key. */
export type ExactHandler<Handler, P extends HookPoint> = Handler extends (...given: never) => infer Returned
  ? [ExcessKey<Awaited<Returned>, HandlerReturn<P>>] extends [never]
    ? Handler
    : [ExcessKey<Awaited<Returned>, HandlerReturn<P>>] extends [infer Excess]
      ? Wrong<`a return at ${CanonicalPointName<P>} has no key '${Excess & string}', or the key does not combine with the others`>
      : never
  : Handler;

/**
 * The excess keys of a value, at any depth: keys that the matching alternative does not have. An alternative of free
 * JSON accepts every key.
 */
type ExcessKey<Value, Alternatives> = 0 extends 1 & Value
  ? never
  : [JsonObject] extends [Alternatives]
    ? never
    : Value extends readonly (infer Member)[]
      ? ExcessKey<Member, MembersOf<Alternatives>>
      : Value extends object
        ? LeastExcess<ExcessByAlternative<Value, Alternatives>>
        : never;

type MembersOf<Alternatives> = Alternatives extends readonly (infer Member)[] ? Member : never;

/** For each alternative that the value matches: `true` if it has all keys of the value, otherwise the excess keys. */
type ExcessByAlternative<Value, Alternatives> = Alternatives extends readonly unknown[]
  ? never
  : Alternatives extends object
    ? Value extends Alternatives
      ? [ExcessIn<Value, Alternatives>] extends [never]
        ? true
        : ExcessIn<Value, Alternatives>
      : never
    : never;

/** Never if one alternative has all keys; otherwise the excess keys of all alternatives. */
type LeastExcess<Excess> = true extends Excess ? never : Excess & string;

// A key that is always undefined does not count: TypeScript adds such keys if a function returns several objects.
type ExcessIn<Value, Alternative> = {
  [K in keyof Value & string]-?: [Exclude<Value[K], undefined>] extends [never]
    ? never
    : K extends keyof Alternative
      ? ExcessKey<Value[K], Alternative[K]>
      : K;
}[keyof Value & string];
