/**
 * Edited calls on running sessions: the guards of a host refuse an edit, its sender is notified, and the call stays
 * pending. Every journal of these tests is replayed at its end.
 */
import type { JsonObject } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { type Handler, hook, returns, silent } from './fake-hooks.ts';
import { ask, call, say } from './fake-model.ts';
import { type TestBed, testBed } from './test-bed.ts';

/** Refuses a refund of more than 100. */
const atMost100: Handler = async ({ payload }) => {
  const { args } = payload.tool as { readonly args: { readonly amount: number } };
  return { status: 'returned', raw: args.amount > 100 ? { deny: 'over 100' } : undefined };
};
const LARGE = 'amount =~ "^[0-9]{3}"';

/** A refund of 40 with a pending approval. */
async function parked(
  given: Partial<Pick<TestBed['hooks'], 'registrations' | 'handlers'>> = {},
  start: JsonObject = {},
) {
  const bed = testBed();
  bed.tools = { refund: {} };
  Object.assign(bed.hooks, given);
  bed.models.answers = [ask(call('a', 'refund', { amount: 40 })), say('Done.')];
  const host = await bed.host();
  await bed.start({ permissions: { default: 'ask' }, ...start });
  await bed.time.advance(1_000);
  const edit = (more: JsonObject = {}) =>
    bed.send('approve', { call_id: 'a', decision: 'allow', args: { amount: 4_000 }, ...more }, { id: 'edit' });
  return { bed, host, edit };
}

const CLERK = { name: 'clerk', prompt: 'You refund.' };
const denying: JsonObject = {
  ...CLERK,
  permissions: { rules: [{ tool: 'refund', when: LARGE, action: 'deny' }], default: 'ask' },
};
const hooked: JsonObject = {
  ...CLERK,
  hooks: [{ event: 'pre_tool_use', pattern: `tool.args.${LARGE}`, deny: 'over 100' }],
};

describe('a refund that a person raises from 40 to 4,000', () => {
  test.each([
    ['a hook', { registrations: [hook('PreToolUse', 'limit')], handlers: { limit: atMost100 } }, {}, 'hook'],
    [
      'a deny without a handler',
      { registrations: [hook('PreToolUse', 'limit', { deny: 'over 100', pattern: `tool.args.${LARGE}` })] },
      {},
      'hook',
    ],
    ['a hook of the persona', {}, { persona: hooked }, 'hook'],
    ['a rule of the persona', {}, { persona: denying }, 'rule'],
    [
      'a rule of the start',
      {},
      { permissions: { rules: [{ tool: 'refund', when: LARGE, action: 'deny' }], default: 'ask' } },
      'rule',
    ],
  ])('is refused by %s, and still waits', async (_, given, start, by) => {
    const { bed, edit } = await parked(given, start);
    await edit();
    await bed.time.advance(1_000);
    expect(bed.told('edit')).toEqual(['rejected edited_call_denied']);
    expect(bed.receipts.at(-1)).toMatchObject({ field: 'args', detail: { by } });
    expect(bed.toolSource.runs).toEqual([]);
    await bed.send('approve', { call_id: 'a', decision: 'allow' });
    await bed.time.advance(1_000);
    expect(bed.toolSource.runs).toMatchObject([{ args: { amount: 40 } }]);
  });
});

describe('the receipt of an edit', () => {
  const asked = { registrations: [hook('PreToolUse', 'limit')], handlers: { limit: returns(undefined) } };

  test('is sent after the hooks have answered, and shows the remembered rule', async () => {
    const { bed, edit } = await parked(asked);
    let answer = () => {};
    bed.hooks.handlers = {
      limit: () => new Promise((resolve) => (answer = () => resolve({ status: 'returned', raw: undefined }))),
    };
    await edit({ remember: 'session' });
    expect(bed.told('edit')).toEqual([]);
    answer();
    await bed.time.advance(1_000);
    expect(bed.told('edit')).toEqual(['accepted']);
    expect(bed.receipts.at(-1)).toMatchObject({ detail: { remembered: { id: 'edit' } } });
  });

  test('is a rejection if hooks do not answer in time', async () => {
    const { bed, edit } = await parked(asked);
    bed.hooks.handlers = { limit: silent };
    await edit();
    await bed.time.advance(6_000);
    expect(bed.told('edit')).toEqual(['rejected edited_call_denied']);
    expect(bed.receipts.at(-1)?.message).toContain('no answer within 5000 ms');
  });

  test('is not that of the first decision', async () => {
    const { bed, edit } = await parked(asked);
    bed.hooks.handlers = { limit: silent };
    await edit();
    await bed.send('approve', { call_id: 'a', decision: 'deny' }, { id: 'first' });
    expect(bed.told('first')).toEqual(['accepted']);
    expect(bed.told('edit')).toEqual(['rejected already_decided']);
    const message = 'stopped before the hook answered: the approval was decided';
    expect((await bed.eventsOf('hook_returned')).at(-1)).toMatchObject({ failure: { message } });
    await bed.time.advance(10_000);
    expect((await bed.eventsOf('agent_end'))[0]).toMatchObject({ stop_reason: 'end_turn' });
  });

  test('comes from the next host if the first one dies meanwhile; hooks are asked again', async () => {
    const { bed, host, edit } = await parked(asked);
    bed.hooks.handlers = { limit: silent };
    await edit();
    host.abandon();
    bed.hooks.handlers = asked.handlers;
    await bed.host();
    await bed.time.advance(10_000);
    expect(bed.told('edit')).toEqual(['accepted']);
    expect(bed.toolSource.runs).toMatchObject([{ args: { amount: 4_000 } }]);
    expect(await bed.eventsOf('approval_decided')).toHaveLength(1);
  });
});
