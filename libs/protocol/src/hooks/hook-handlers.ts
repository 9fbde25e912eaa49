/**
 * Types of handlers: their payloads, their return values, and the definitions of a module.
 */

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
/** The name of a point in PascalCase, for people. */
export type CanonicalPointName<P extends HookPoint = HookPoint> = P extends Capitalize<P> ? P : Pascal<P>;
/** The alias of each point, in snake_case. */
type Aliases = { [P in HookPoint]: P extends Capitalize<P> ? Snake<P> : P };
type Names = { [P in HookPoint]: CanonicalPointName<P> };

/** A point: in PascalCase, or by its alias in snake_case. */
export type HookPointName = Names[HookPoint] | Aliases[HookPoint];
/** The name of the budget point with a percentage: `OnBudgetThreshold(80)`. */
export type BudgetPointName = `OnBudgetThreshold(${number})`;
/** The point that a name refers to. */
export type HookPointOf<N extends string> = N extends HookPoint
  ? N
  : N extends BudgetPointName
    ? 'OnBudgetThreshold'
    : { [P in HookPoint]: N extends Names[P] | Aliases[P] ? P : never }[HookPoint];

// Free JSON (arguments, outputs) does not become readonly: a handler may return parts of it, and the types of return
// values are not readonly.
type DeepReadonly<T> = [Json] extends [T]
  ? T
  : T extends readonly (infer Member)[]
    ? readonly DeepReadonly<Member>[]
    : T extends object
      ? { readonly [K in keyof T]: DeepReadonly<T[K]> }
      : T;

/** The payload of a handler: its own frozen copy, with members in camelCase. */
export type HandlerPayload<P extends HookPoint> = DeepReadonly<CamelCased<HookPayload<P>>>;

interface CommonContext {
  /** The id of the called registration. */
  readonly hook: string;
  readonly tenant: string;
  readonly session: { readonly id: string };
  readonly persona: string;
  readonly turn: number;
  /** At `PreStep` and `PostStep`. */
  readonly step: { readonly name: string; readonly args: Json } | undefined;
  /** The `tool` of the payload, at points whose payload has it. */
  readonly call: { readonly name: string; readonly args: JsonObject; readonly callId: string } | undefined;
  /**
   * Identifies this question to this hook: `<tenant>.<session>.<effect id>.<hook>`. Other hooks of the point have other
   * keys. A question that is repeated after a crash keeps its key.
   */
  readonly idempotencyKey: string;
  /** Aborts when the answer is no longer needed. */
  readonly signal: AbortSignal;
  /** The current messages of the model's view, as a copy. They may be long, so they are fetched on demand. */
  transcript(): Promise<readonly CamelCased<Message>[]>;
  /**
   * Sends the model a message in addition to the answer, as inbox feedback. The session records it, and the next model
   * request shows it. At most 2 KiB; the rest is cut. If the queue of the session is full, it is dropped and counted.
   */
  feedback(text: string): void;
}

/** The context of a call to a handler. Frozen. */
export type HookContext<P extends HookPoint = HookPoint> = CommonContext &
  (P extends 'transform_context'
    ? {
        /** The messages of the request, with the changes of earlier handlers. */
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

/** The members of a registration in code, without its point and handler. */
export type HookSettings = CamelCased<
  Omit<HookRegistrationInput, 'point' | 'surface' | 'unavailable' | 'no_handler' | 'source'>
>;

/** A handler with its settings. The handler is optional if `deny` or `maxOutput` is set. */
export type HookEntry<P extends HookPoint> = Partial<HookSettings> & { readonly handler?: HandlerOf<P> };

/** A handler, or a handler with its settings. */
export type HookDefinition<P extends HookPoint> = HandlerOf<P> | HookEntry<P>;

/** The handlers of a module by point: one, or a list. */
export type HookDefinitions = {
  readonly [N in HookPointName | BudgetPointName]?:
    | HookDefinition<HookPointOf<N>>
    | readonly HookDefinition<HookPointOf<N>>[];
};

/** A handler of any point. Its registration names the point. */
export type AnyHandler = (payload: HandlerPayload<HookPoint>, context: HookContext) => unknown;
