/**
 * The points of steps and of hand-offs, as seen by their hooks.
 */
import {
  type ConsultOutcome,
  HOOK_PAYLOADS,
  HOOK_RETURNS,
  type HookPoint,
  type HookRegistration,
  type JsonObject,
  SessionEvent,
  sessionRef,
} from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { consultHooks } from '../src/effects/consult-hooks.ts';
import { FakeHooks, type Handler, hook, returns, silent } from './fake-hooks.ts';
import { VirtualTime } from './virtual-time.ts';

/** The payload of each, without the common members. */
const SHOWN: { readonly [P in HookPoint]?: JsonObject } = {
  PreStep: { step: { name: 'draft', args: { topic: 'rocks' } } },
  PostStep: { step: { name: 'draft', args: { topic: 'rocks' }, output: 'a draft' } },
  OnHandoffEmitted: { to: 'reviewer', brief: 'look at this' },
};

const payloadOf = (point: HookPoint): JsonObject => ({
  event: point,
  session: { id: 's1' },
  persona: 'mate',
  turn: 2,
  ...SHOWN[point],
});

/** Calls two hooks of a point, the first with this handler. */
async function consulted(
  point: HookPoint,
  first: Handler,
  more: Partial<HookRegistration> = {},
): Promise<ConsultOutcome & { readonly asked: readonly string[] }> {
  const time = new VirtualTime();
  const hooks = new FakeHooks();
  hooks.handlers = { first };
  const consult = {
    ref: sessionRef('s1'),
    effectId: '7-0',
    point,
    registrations: [hook(point, 'first', more), hook(point, 'second')],
    failOpen: more.on_error === 'fail_open' ? ['first'] : [],
    payload: payloadOf(point),
    tool: undefined,
    needsApproval: async () => false,
    isRunAborting: () => false,
    transcript: () => [],
    onFeedback: () => {},
  };
  const outcome = consultHooks(hooks, time.clock(), consult, new AbortController().signal);
  await time.advance(60_000);
  return { ...(await outcome), asked: hooks.asked.map(({ registration }) => registration.id) };
}

const TAPED = Object.keys(SHOWN) as HookPoint[];

describe.each(TAPED)('%s', (point) => {
  const denies = (HOOK_RETURNS.deny.points as readonly HookPoint[]).includes(point);

  test('has a strict payload', () => {
    const schema = HOOK_PAYLOADS[point];
    expect(schema.safeParse(payloadOf(point)).error).toBeUndefined();
    expect(schema.safeParse({ ...payloadOf(point), more: 1 }).success).toBe(false);
    for (const key of Object.keys(payloadOf(point))) {
      const { [key]: _, ...rest } = payloadOf(point);
      expect(schema.safeParse(rest).success, `without ${key}`).toBe(false);
    }
  });

  test(denies ? 'a refusal ends the chain' : 'nobody can refuse', async () => {
    const { answers, asked } = await consulted(point, returns({ deny: 'not now' }));
    expect(asked).toEqual(['first']);
    expect(answers).toMatchObject([
      denies ? { verdict: { kind: 'deny', reason: 'not now' } } : { failure: { code: 'verdict_not_allowed' } },
      { hook: 'second', not_run: true },
    ]);
  });

  test('a time-out is one by the registration’s own time, and on_error decides', async () => {
    const open = await consulted(point, silent, { timeout_ms: 40, on_error: 'fail_open' });
    expect(open.answers).toMatchObject([{ failure: { code: 'hook_timeout' } }, { verdict: { kind: 'no_objection' } }]);
    const closed = await consulted(point, silent, { timeout_ms: 40 });
    expect(closed.answers).toMatchObject([{ failure: { message: 'no answer within 40 ms' } }, { not_run: true }]);
  });

  test('questions and answers are on the tape in order', async () => {
    const { answers } = await consulted(point, returns({ body: 'mind the rocks' }));
    const call = { type: 'hook_call', hook: 'first', point, effect_id: '7-0', payload: payloadOf(point) };
    const tape = [call, ...answers.map((answer) => ({ type: 'hook_returned', point, effect_id: '7-0', ...answer }))];
    for (const event of tape) expect(SessionEvent.safeParse(event).error).toBeUndefined();
    expect(answers[0]).toMatchObject({ raw: { body: 'mind the rocks' }, reminders: [{ body: 'mind the rocks' }] });
  });
});

test('a later hook of a step sees the result of an earlier one', async () => {
  const args = await consulted('PreStep', returns({ args: { topic: 'sands' } }));
  expect(args.answers[1]?.payload).toMatchObject({ step: { name: 'draft', args: { topic: 'sands' } } });
  const output = await consulted('PostStep', returns({ output: 'another draft' }));
  expect(output.answers[1]?.payload).toMatchObject({ step: { output: 'another draft' } });
});
