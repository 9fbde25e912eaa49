/**
 * Tools that require an approval themselves. Their answer is in the journal: every journal of these tests is replayed
 * at its end, without the tools.
 */
import { APPROVAL_CHECK_MS, type JsonObject } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { hook, returns } from './fake-hooks.ts';
import { ask, call, say } from './fake-model.ts';
import type { FakeTool } from './fake-tools.ts';
import { type TestBed, testBed } from './test-bed.ts';

const over100: FakeTool = { needsApproval: ({ args }) => (args.amount as number) > 100 };

/** A model that calls one refund, which every rule allows. */
async function refund(tool: FakeTool, amount: number, more: Partial<Pick<TestBed['hooks'], 'registrations'>> = {}) {
  const bed = testBed();
  bed.tools = { refund: tool };
  const rewrites = returns({ args: { amount: 4_000 } });
  Object.assign(bed.hooks, { handlers: { rewrites }, ...more });
  bed.models.answers = [ask(call('a', 'refund', { amount })), say('Done.')];
  await bed.host();
  await bed.start();
  await bed.time.advance(1_000);
  return bed;
}

const asked = async (bed: TestBed) => (await bed.eventsOf('approval_requested')).map((event) => event.requested_by);
const ran = (bed: TestBed) => bed.toolSource.runs.map(({ args }) => args as JsonObject);

test.each<[string, FakeTool, number, readonly string[]]>([
  ['a tool that always asks', { needsApproval: true }, 1, ['rule:needs_approval']],
  ['a function that returns true', over100, 101, ['rule:needs_approval']],
  ['a function that returns false', over100, 100, []],
  ['a function that rejects', { needsApproval: () => Promise.reject(new Error('broken')) }, 1, ['rule:needs_approval']],
])('%s: a rule that allows the call does not waive the question', async (_, tool, amount, requested) => {
  const bed = await refund(tool, amount);
  expect(await asked(bed)).toEqual(requested);
  expect(ran(bed)).toEqual(requested.length > 0 ? [] : [{ amount }]);
  if (requested.length === 0) return;
  await bed.send('approve', { call_id: 'a', decision: 'allow' });
  await bed.time.advance(1_000);
  expect(ran(bed)).toEqual([{ amount }]);
});

test('a function that does not answer in time: a person is asked', async () => {
  const bed = await refund({ needsApproval: () => new Promise(() => undefined) }, 1);
  expect(await asked(bed)).toEqual([]);
  await bed.time.advance(APPROVAL_CHECK_MS);
  expect(await asked(bed)).toEqual(['rule:needs_approval']);
});

test('an answer after the cancelled run has closed its tools does not open them again', async () => {
  const bed = testBed();
  bed.tools = { refund: over100 };
  bed.models.answers = [{ calls: [call('a', 'refund', { amount: 1 })], delayMs: 20_000, deaf: true }];
  await bed.host();
  await bed.start();
  await bed.send('cancel');
  await bed.time.advance(30_000);
  expect(bed.toolSource.specs).toHaveLength(1);
  expect(bed.toolSource.openNow).toBe(0);
});

test('arguments that a hook rewrites: the tool answers for these, and not for those before', async () => {
  const raised = await refund(over100, 40, { registrations: [hook('PreToolUse', 'rewrites')] });
  expect(await asked(raised)).toEqual(['rule:needs_approval']);
  const lowered: FakeTool = { needsApproval: ({ args }) => (args.amount as number) < 100 };
  const bed = await refund(lowered, 40, { registrations: [hook('PreToolUse', 'rewrites')] });
  expect([await asked(bed), ran(bed)]).toEqual([[], [{ amount: 4_000 }]]);
});

test('a rule that denies the call is stricter', async () => {
  const bed = testBed();
  bed.tools = { refund: { needsApproval: true } };
  bed.models.answers = [ask(call('a', 'refund')), say('Done.')];
  await bed.host();
  await bed.start({ permissions: { rules: [{ tool: 'refund', action: 'deny' }], default: 'allow' } });
  await bed.time.advance(1_000);
  expect(await asked(bed)).toEqual([]);
  expect(await bed.eventsOf('call_ended')).toMatchObject([{ status: 'denied', denial: { by: 'rule' } }]);
});
