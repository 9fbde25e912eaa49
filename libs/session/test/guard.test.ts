/**
 * The guard: receipts of senders, prompts of models, and the effect of a crash.
 */
import type { HookReply, HookRequest } from '@coxswain/ports';
import { textOf } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { type Handler, hook, silent } from './fake-hooks.ts';
import { ask, call, say } from './fake-model.ts';
import { taking } from './fake-tools.ts';
import { type TestBed, testBed } from './test-bed.ts';

/** Blocks texts with a secret, after a delay. */
function guard(bed: TestBed, takesMs: number): Handler {
  return async ({ payload }: HookRequest, signal): Promise<HookReply> => {
    await bed.time.clock().sleep(payload.origin === 'prompt' ? 0 : takesMs, signal);
    const isSecret = String(payload.prompt).includes('secret');
    return { status: 'returned', raw: isSecret ? { block: true, reason: 'it holds a secret' } : true };
  };
}

/** A host with the guard, and a session whose first answer takes a second. */
async function guarded(takesMs = 100): Promise<TestBed> {
  const bed = testBed();
  bed.hooks.registrations = [hook('user_prompt_submit', 'secrets')];
  bed.hooks.handlers = { secrets: guard(bed, takesMs) };
  bed.models.answers = [say('first', { delayMs: 1_000 }), say('second')];
  await bed.host();
  await bed.start();
  return bed;
}

const shown = (bed: TestBed) => (bed.models.requests.at(-1)?.messages ?? []).map(textOf);

test('a steer that hooks allow is accepted, then delivered, and the model sees it', async () => {
  const bed = await guarded();
  const id = await bed.send('steer', { body: 'look to port' });
  expect(bed.told(id)).toEqual(['accepted']);
  await bed.time.advance(5_000);
  expect(bed.told(id)).toEqual(['accepted', 'delivered iteration_end']);
  expect(shown(bed)).toContain('look to port');
});

test.each(['steer', 'followup'])(
  'a %s that is blocked is reported with the reason, and no model sees it',
  async (verb) => {
    const bed = await guarded();
    const id = await bed.send(verb, { body: 'the secret is 1234' });
    await bed.time.advance(5_000);
    expect(bed.told(id)).toEqual(['accepted', 'blocked']);
    expect(bed.receipts.find(({ stage }) => stage === 'blocked')).toMatchObject({
      reason: 'secrets: it holds a secret',
    });
    expect(await bed.lines()).toContain(`injection_blocked ${id}: secrets: it holds a secret`);
    expect(bed.models.requests.flatMap(({ messages }) => messages.map(textOf)).join()).not.toContain('1234');
    expect(bed.models.requests).toHaveLength(1);
  },
);

test('an interrupt whose verdict comes late still stops the call', async () => {
  const bed = testBed();
  bed.hooks.registrations = [hook('user_prompt_submit', 'secrets')];
  bed.hooks.handlers = { secrets: guard(bed, 2_000) };
  bed.models.answers = [{ ...ask(call('c1', 'read')), delayMs: 1_000 }, say('stopped')];
  await bed.host();
  await bed.start();
  await bed.send('steer', { body: 'stop', mode: 'interrupt' });
  await bed.time.advance(10_000);
  expect(bed.toolSource.runs).toEqual([]);
  expect(await bed.lines()).toContain('call_ended c1 skipped');
});

test('a guard that never answers fails closed at its timeout', async () => {
  const bed = await guarded();
  bed.hooks.handlers = { secrets: silent };
  const id = await bed.send('steer', { body: 'look to port' });
  await bed.time.advance(10_000);
  expect(bed.told(id)).toEqual(['accepted', 'blocked']);
  expect(await bed.lines()).toContain('agent_end end_turn');
});

test('a guard that was asked when the host died is asked again by the next one', async () => {
  const bed = testBed();
  bed.hooks.registrations = [hook('user_prompt_submit', 'secrets')];
  bed.hooks.handlers = { secrets: guard(bed, 500) };
  bed.models.answers = [ask(call('c1', 'slow')), say('done')];
  bed.tools = { slow: { traits: { idempotent: true }, run: taking(2_000) } };
  const first = await bed.host({ name: 'first' });
  await bed.start();
  const id = await bed.send('steer', { body: 'look to port' });
  first.abandon();
  await bed.host({ name: 'second' });
  await bed.time.advance(20_000);
  const asked = bed.hooks.asked.filter(({ payload }) => payload.origin === 'steer');
  expect(asked).toHaveLength(2);
  expect((await bed.lines()).filter((line) => line === `guard_ended ${id} allowed`)).toHaveLength(1);
  expect(bed.told(id)).toEqual(['accepted', 'delivered post_tool_dispatch']);
});

test('a steer to an ended session is checked by hooks at the start of the next run', async () => {
  const bed = await guarded();
  await bed.time.advance(5_000);
  const asked = bed.hooks.asked.length;
  const id = await bed.send('steer', { body: 'the secret is 1234' });
  expect(bed.hooks.asked).toHaveLength(asked);
  expect(bed.receipts.at(-1)).toMatchObject({ stage: 'accepted', pending_for_next_run: true });
  await bed.send('prompt', 'go on');
  await bed.time.advance(5_000);
  expect(bed.told(id)).toEqual(['accepted pending', 'blocked']);
});
