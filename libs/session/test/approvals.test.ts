/** Approvals on running sessions: what a persona remembers goes from one session to the next, and notices are given. */
import { createMemoryRememberedRules } from '@coxswain/adapter-memory';
import type { ApprovalNotices, RememberedRules } from '@coxswain/ports';
import { type ApprovalNotice, type JsonObject, type RememberedRule, TenantId } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { ask, call, say } from './fake-model.ts';
import { ASKING, testBed } from './test-bed.ts';

const tenant = TenantId.parse('default');

describe('remember: persona', () => {
  test('is stored for later sessions, and repeated until the store acknowledges it', async () => {
    const bed = testBed();
    bed.tools = { ask: {} };
    const store = createMemoryRememberedRules();
    let refused = 2;
    const rememberedRules: RememberedRules = {
      of: store.of,
      keep: (...rule) => (refused-- > 0 ? Promise.reject(new Error('no answer')) : store.keep(...rule)),
    };
    bed.models.answers = [ask(call('a', 'ask')), say('Done.')];
    await bed.host({}, { rememberedRules });
    await bed.start({ permissions: ASKING });
    await bed.send('approve', { call_id: 'a', decision: 'allow', remember: 'persona' }, { id: 'r1' });
    await bed.time.advance(5_000);
    const rule = (await bed.eventsOf('permission_remembered'))[0]?.rule as RememberedRule;
    expect(rule).toMatchObject({ persona: 'assistant', source: 'built_in', root: '/work' });
    expect(await store.of(tenant, rule)).toEqual([rule]);
    await bed.send('revoke', { command_id: 'r1' });
    await bed.time.advance(1_000);
    expect(await store.of(tenant, rule)).toEqual([]);
  });

  test('applies to one root and one definition: a session with another one asks again', async () => {
    const bed = testBed();
    bed.tools = { ask: {} };
    bed.models.answers = [ask(call('a', 'ask')), say('Done.'), ...[2, 3, 4, 5].map((n) => ask(call(`a${n}`, 'ask')))];
    await bed.host({}, { rememberedRules: createMemoryRememberedRules() });
    await bed.start({ permissions: ASKING });
    await bed.send('approve', { call_id: 'a', decision: 'allow', remember: 'persona' }, { id: 'r1' });
    await bed.time.advance(1_000);
    const ruling = async (session: string, settings: JsonObject) => {
      await bed.start({ permissions: ASKING, ...settings }, { session });
      await bed.time.advance(1_000);
      return (await bed.eventsOf('approval_requested', session)).length === 0 ? 'runs' : 'asks';
    };
    expect(await ruling('s2', {})).toBe('runs');
    expect(await ruling('s3', { root: '/elsewhere' })).toBe('asks');
    expect(await ruling('s4', { persona: { name: 'assistant', prompt: 'Do as I say.' } })).toBe('asks');
  });

  test('prevents the start if it cannot be read: a deny rule must never be missed', async () => {
    const bed = testBed();
    const rememberedRules: RememberedRules = {
      of: () => Promise.reject(new Error('no answer')),
      keep: async () => undefined,
    };
    await bed.host({}, { rememberedRules });
    await bed.start({});
    expect(await bed.eventsOf('run_failed')).toMatchObject([{ error: { code: 'provision_failed' } }]);
  });
});

describe('a notice', () => {
  test('describes the pending call, redacted, under its own id, and is recorded', async () => {
    const bed = testBed();
    bed.tools = { ask: {} };
    const given: [string, ApprovalNotice][] = [];
    const approvalNotices: ApprovalNotices = {
      async deliver(id, notice) {
        given.push([id, notice]);
        return { status: 'delivered', attempts: 1 };
      },
    };
    bed.models.answers = [ask(call('a', 'ask', { password: 'hunter2' })), say('Done.')];
    await bed.host({}, { approvalNotices });
    await bed.start({ permissions: ASKING });
    await bed.time.advance(1_000);
    expect(given).toHaveLength(1);
    expect(given[0]?.[1].data).toMatchObject({ session_id: 's1', call_id: 'a', args: { password: '[redacted]' } });
    expect(await bed.lines()).toContain('approval_notified a delivered');
  });
});

test('a model reads that a person edited the arguments of its call, before the result', async () => {
  const bed = testBed();
  bed.tools = { ask: {} };
  bed.models.answers = [ask(call('a', 'ask')), say('Done.')];
  await bed.host();
  await bed.start({ permissions: ASKING });
  await bed.send('approve', { call_id: 'a', decision: 'allow', args: { path: 'safe' }, actor: 'ann' });
  await bed.time.advance(1_000);
  const shown = bed.models.requests.at(-1)?.messages.find(({ role }) => role === 'tool');
  expect(shown?.role === 'tool' && shown.note).toMatch(
    /^\[ann \(a person\) edited the arguments .*\{"path":"safe"\}\]/,
  );
});
