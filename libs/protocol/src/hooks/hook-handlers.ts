/** Handlers as people write them: what one is given, what it may return, and how a module declares several. Types only. */

import type { Message } from '../journal/messages.ts';
import type { CamelCased } from '../wire/casing.ts';
import type { Json, JsonObject } from '../wire/json.ts';
import type { HookPayload } from './hook-payloads.ts';
import type { HookPoint } from './hook-points.ts';
import type { HandlerReturn } from './hook-returns.ts';
import type { HookRegistrationInput } from './read-registration.ts';

type Pascal<S extends string> = S extends `${infer Word}_${infer Rest}`
  ? `${Capitalize<Word>}${Pascal<Rest>}`
  : Capitalize<S>;
type SnakeTail<S extends string> = S extends `${infer Letter}${infer Rest}`
  ? Letter extends Lowercase<Letter>
    ? `${Letter}${SnakeTail<Rest>}`
    : `_${Lowercase<Letter>}${SnakeTail<Rest>}`
  : '';
type Snake<S extends string> = S extends `${infer Letter}${infer Rest}` ? `${Lowercase<Letter>}${SnakeTail<Rest>}` : '';
/** The name of a point for people, in PascalCase. */
export type CanonicalPointName<P extends HookPoint = HookPoint> = P extends Capitalize<P> ? P : Pascal<P>;
/** The alias of each point, in snake_case. */
type Aliases = { [P in HookPoint]: P extends Capitalize<P> ? Snake<P> : P };
type Names = { [P in HookPoint]: CanonicalPointName<P> };

/** A point: in PascalCase, or by its alias in snake_case. */
export type HookPointName = Names[HookPoint] | Aliases[HookPoint];
/** The point of a budget with its percentage. */
export type BudgetPointName = `OnBudgetThreshold(${number})`;
/** The point that a name means. */
export type HookPointOf<N extends string> = N extends HookPoint
  ? N
  : N extends BudgetPointName
    ? 'OnBudgetThreshold'
    : { [P in HookPoint]: N extends Names[P] | Aliases[P] ? P : never }[HookPoint];

// Arguments and outputs stay plain JSON: a handler hands parts of them back.
type DeepReadonly<T> = [Json] extends [T]
  ? T
  : T extends readonly (infer Member)[]
    ? readonly DeepReadonly<Member>[]
    : T extends object
      ? { readonly [K in keyof T]: DeepReadonly<T[K]> }
      : T;

/** What a handler of a point is given: a frozen copy of its own, with members in camelCase. */
export type HandlerPayload<P extends HookPoint> = DeepReadonly<CamelCased<HookPayload<P>>>;

interface CommonContext {
  /** The registration that is asked. */
  readonly hook: string;
  readonly tenant: string;
  readonly session: { readonly id: string };
  readonly persona: string;
  readonly turn: number;
  /** At points of a step. */
  readonly step: { readonly name: string; readonly args: Json } | undefined;
  /** At points of one call. */
  readonly call: { readonly name: string; readonly args: JsonObject; readonly callId: string } | undefined;
  /** The same when the same question is asked again after a crash. */
  readonly idempotencyKey: string;
  /** Aborts when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
  /** What models are shown now, a copy. It may be long, so it is made, or fetched, when it is asked for. */
  transcript(): Promise<readonly CamelCased<Message>[]>;
  /** Tells the model something beside the answer: durable, shown before its next answer; 2 KiB at most. */
  feedback(text: string): void;
}

/** What a handler knows of where it is asked. Frozen. */
export type HookContext<P extends HookPoint = HookPoint> = CommonContext &
  (P extends 'transform_context'
    ? {
        /** What the request would show, as the handlers before this one have left it. */
        messages(): Promise<readonly CamelCased<Message>[]>;
      }
    : unknown);

// biome-ignore lint/suspicious/noConfusingVoidType: a handler without a return statement says nothing, which is an answer
type Answered<P extends HookPoint> = HandlerReturn<P> | void;

type HandlerOf<P extends HookPoint> = (
  payload: HandlerPayload<P>,
  context: HookContext<P>,
) => Answered<P> | Promise<Answered<P>>;

/** A handler of a point: `HookHandler<'PreToolUse'>`. */
export type HookHandler<N extends HookPointName = HookPoint> = HandlerOf<HookPointOf<N>>;

/** What a registration in code may contain apart from its point and handler. */
export type HookSettings = CamelCased<
  Omit<HookRegistrationInput, 'point' | 'surface' | 'unavailable' | 'no_handler' | 'source'>
>;

/** A handler and when it is asked; without one where `deny` or `maxOutput` says it all. */
export type HookEntry<P extends HookPoint> = Partial<HookSettings> & { readonly handler?: HandlerOf<P> };

/** One handler, or one with its settings. */
export type HookDefinition<P extends HookPoint> = HandlerOf<P> | HookEntry<P>;

/** The handlers of a module, by point: one of them, or a list. */
export type HookDefinitions = {
  readonly [N in HookPointName | BudgetPointName]?:
    | HookDefinition<HookPointOf<N>>
    | readonly HookDefinition<HookPointOf<N>>[];
};

/** A handler whose point is known by its registration only. */
export type AnyHandler = (payload: HandlerPayload<HookPoint>, context: HookContext) => unknown;
