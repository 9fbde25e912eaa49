/**
 * The return protocol in types: every return at every point, plain and with an excess key, synchronous and as a
 * promise, alone and in a union. Compared with the table of the parser: both accept the same, except a reminder without
 * an answer at the gate. There the parser denies the batch, and the compiler rejects the handler.
 */
import { expect, expectTypeOf, test } from 'vitest';
import type { CamelCased, ExactHandler, HookHandler, HookPoint, Message } from '../src/mod.ts';
import { HOOK_RETURNS, parseReturn } from '../src/mod.ts';

/** Whether a handler with this return type compiles at the point. */
type Compiles<P extends HookPoint, Returned> = (() => Returned) extends HookHandler<P> & ExactHandler<() => Returned, P>
  ? true
  : false;

type SessionPoint = Exclude<HookPoint, 'PreToolUse' | 'PostToolUse' | 'PreStep' | 'PostStep' | `On${string}`>;
type Ungated<P extends HookPoint> = Exclude<P, 'gate_tool_calls'>;
type PointsOf<Form extends keyof typeof HOOK_RETURNS> = (typeof HOOK_RETURNS)[Form]['points'][number];

/** One row per form: an example, and its valid points. */
interface Forms {
  nothing: [example: undefined, at: HookPoint];
  true: [example: true, at: HookPoint];
  false: [example: false, at: PointsOf<'veto'>];
  block: [example: { block: true; reason: string }, at: PointsOf<'veto'>];
  decision: [example: { decision: 'allow'; reason: string }, at: PointsOf<'decision'>];
  deny: [example: { deny: string }, at: PointsOf<'deny'>];
  args: [example: { args: { path: string } }, at: PointsOf<'args'>];
  string: [example: string, at: PointsOf<'result'>];
  result: [example: { result: string; isError: boolean }, at: PointsOf<'result'>];
  output: [example: { output: { any: string } }, at: PointsOf<'output'>];
  messages: [example: { messages: CamelCased<Message>[] }, at: PointsOf<'messages'>];
  gate: [example: { allow: boolean; reason: string }[], at: PointsOf<'gate'>];
  body: [example: { body: string; tags: string[] }, at: Ungated<HookPoint>];
  reminder: [example: { reminder: { body: string; ttlTurns: number } }, at: Ungated<HookPoint>];
  nothingBehind: [example: { reminder: { body: string }; then: true }, at: Ungated<HookPoint>];
  gateBehind: [example: { reminder: { body: string }; then: { allow: boolean }[] }, at: PointsOf<'gate'>];
  reminders: [example: { reminder: { body: string } }[], at: Ungated<SessionPoint>];
  job: [example: { job: { status: 'queued'; jobId: string } }, at: PointsOf<'job'>];
  number: [example: number, at: never];
  allow: [example: { allow: boolean }, at: never];
}

/** The same forms with an excess key, and with values of other types. */
interface WrongForms {
  block: { block: true; reson: string };
  decision: { decision: 'allow'; reson: string };
  deny: { deny: string; reason: string };
  args: { args: { path: string }; reason: string };
  denyAndArgs: { deny: string; args: { path: string } };
  result: { result: string; iserror: boolean };
  output: { output: string; reason: string };
  messages: { messages: CamelCased<Message>[]; reason: string };
  gate: { allow: boolean; reson: string }[];
  body: { body: string; tag: string[] };
  reminder: { reminder: { body: string; ttl: number } };
  besideReminder: { reminder: { body: string }; than: true };
  behindReminder: { reminder: { body: string }; then: { body: string; tag: string[] } };
  reminders: { reminder: { body: string; ttl: number } }[];
  job: { job: { status: 'queued'; jobId: string; paths: string[] } };
  deepInJob: { job: { status: 'queued'; jobId: string; retryHint: { retryable: boolean; after: number } } };
  blockType: { block: boolean };
  decisionType: { decision: string };
  denyType: { deny: boolean };
  argsType: { args: string };
  resultType: { result: number };
  messagesType: { messages: string[] };
  gateType: { allow: string }[];
  bodyType: { body: number };
  jobType: { job: string };
}

test('every return compiles at its points, and nowhere else', () => {
  type At<P extends HookPoint, Wrap extends 'sync' | 'async' | 'union'> = {
    [F in keyof Forms]: Compiles<
      P,
      Wrap extends 'sync' ? Forms[F][0] : Wrap extends 'async' ? Promise<Forms[F][0]> : Forms[F][0] | undefined
    >;
  };
  type Table = { [P in HookPoint]: { [F in keyof Forms]: P extends Forms[F][1] ? true : false } };
  expectTypeOf<{ [P in HookPoint]: At<P, 'sync'> }>().toEqualTypeOf<Table>();
  expectTypeOf<{ [P in HookPoint]: At<P, 'async'> }>().toEqualTypeOf<Table>();
  expectTypeOf<{ [P in HookPoint]: At<P, 'union'> }>().toEqualTypeOf<Table>();
});

test('with an excess key or another type it compiles nowhere', () => {
  type Nowhere = { [P in HookPoint]: { [F in keyof WrongForms]: false } };
  type Wrongly<P extends HookPoint> = { [F in keyof WrongForms]: Compiles<P, WrongForms[F]> };
  type Later<P extends HookPoint> = { [F in keyof WrongForms]: Compiles<P, Promise<WrongForms[F]>> };
  type AmongOthers<P extends HookPoint> = { [F in keyof WrongForms]: Compiles<P, WrongForms[F] | true> };
  expectTypeOf<{ [P in HookPoint]: Wrongly<P> }>().toEqualTypeOf<Nowhere>();
  expectTypeOf<{ [P in HookPoint]: Later<P> }>().toEqualTypeOf<Nowhere>();
  expectTypeOf<{ [P in HookPoint]: AmongOthers<P> }>().toEqualTypeOf<Nowhere>();
});

test('the compiler’s message names key and point', () => {
  type Handler = () => { block: true; reson: string };
  expectTypeOf<
    ExactHandler<Handler, 'user_prompt_submit'>['wrong']
  >().toEqualTypeOf<"a return at UserPromptSubmit has no key 'reson', or the key does not combine with the others">();
});

test('a return type that is unknown at compile time is accepted', () => {
  expectTypeOf<Compiles<'post_turn', never>>().toEqualTypeOf<true>();
  // biome-ignore lint/suspicious/noExplicitAny: it is what is tested
  expectTypeOf<Compiles<'post_turn', any>>().toEqualTypeOf<true>();
  expect(parseReturn('user_prompt_submit', JSON.parse('{"block": true, "reson": "no"}'))).toMatchObject({
    code: 'verdict_invalid',
    message: expect.stringContaining('"reson"'),
  });
  expect(HOOK_RETURNS.reminders.points.some((point) => /^On|^Pre[TS]|^Post[TS]/.test(point))).toBe(false);
});
