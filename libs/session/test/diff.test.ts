/**
 * Diffs: the first difference of two journals, and the differences of each turn.
 */
import { expect, test } from 'vitest';
import { diffJournals } from '../src/mod.ts';
import { crewBed, delegate } from './crew-bed.ts';
import { hook, returns } from './fake-hooks.ts';
import { ask, call, say } from './fake-model.ts';
import type { FakeTool } from './fake-tools.ts';
import { ASKING, type TestBed, testBed } from './test-bed.ts';

async function* journal(bed: TestBed, session: string) {
  yield* await bed.records(session);
}
const diff = (bed: TestBed, a: string, b: string) => diffJournals(journal(bed, a), journal(bed, b));

async function vetoed(bed: TestBed) {
  bed.tools = { exec: {} };
  bed.hooks.registrations = [hook('PreToolUse', 'policy')];
  bed.hooks.handlers = { policy: returns({ deny: 'not on a Friday' }) };
  bed.models.answers = [ask(call('c1', 'exec', { command: 'ls' })), say('so be it')];
  await bed.host();
  await bed.start();
}

test('an unchanged fork equals its origin, although a host owns it', async () => {
  const bed = testBed();
  await vetoed(bed);
  const { length } = await bed.records();
  await bed.send('start', { fork: { session: 's1', n: length } }, { session: 'f1' });
  const { first, differences, a, b } = await diff(bed, 's1', 'f1');
  expect([a.records, b.records]).toEqual([length, length + 1]);
  expect([first, differences]).toEqual([null, []]);
  // The records after the claim are compared with the origin's next record.
  bed.models.answers = [say('more'), say('more'), say('most')];
  for (const session of ['s1', 'f1']) await bed.send('prompt', 'and now', { session });
  expect((await diff(bed, 's1', 'f1')).first).toBe(null);
  await bed.send('prompt', 'and then', { session: 'f1' });
  const later = await bed.records('f1');
  expect((await diff(bed, 's1', 'f1')).first).toMatchObject({
    n: [null, later.findLastIndex(({ input }) => input.type === 'command') + 1],
    is: [null, 'a prompt'],
  });
});

test('a fork at a veto with the other verdict differs in verdict, result and answer', async () => {
  const bed = testBed();
  await vetoed(bed);
  bed.models.answers = [ask(call('c1', 'exec', { command: 'ls' })), say('done')];
  await bed.send(
    'start',
    { fork: { session: 's1', n: 4, changes: { verdicts: { policy: true } } } },
    { session: 'f1' },
  );
  const { first, differences } = await diff(bed, 's1', 'f1');
  expect(first).toMatchObject({
    n: [4, 4],
    path: '/input/answers/0/raw',
    a: { deny: 'not on a Friday' },
    b: true,
    is: ['the hook returns at PreToolUse (policy)', 'the hook returns at PreToolUse (policy)'],
  });
  expect(differences.map(({ turn, what, of, a, b }) => [turn, what, of, a, b])).toEqual([
    [1, 'verdict', 'policy PreToolUse c1', '{"kind":"deny","reason":"not on a Friday"}', '{"kind":"no_objection"}'],
    [1, 'result', 'c1', expect.stringMatching(/^denied/), 'ok: exec ran'],
    [2, 'answer', null, 'so be it', 'done'],
  ]);
});

test('two sessions with the same content do not differ, whatever their command ids', async () => {
  const bed = testBed();
  await vetoed(bed);
  await bed.time.advance(5_000);
  await bed.start({}, { session: 'twin', id: 'other' });
  expect(await diff(bed, 's1', 'twin')).toMatchObject({ first: null, differences: [], more: 0 });
});

test('times of timers and suspensions, and the epochs of calls, are no difference', async () => {
  const bed = testBed();
  const build: FakeTool = {
    traits: { long_running: true },
    run: async () => ({ status: 'accepted', result: { content: [], is_error: false } }),
  };
  bed.tools = { build, ask: {} };
  const work = async (session: string, effect_id: string, epoch: number, duration_ms: number) => {
    const result = { content: [{ type: 'text', text: 'built' }], is_error: false };
    const outcome = { call_id: 'c1', effect_id, epoch, status: 'ok', result, duration_ms };
    await bed.send('call_outcome', outcome, { session });
    await bed.send('suspend', { for_ms: 3_600_000 }, { session });
    await bed.time.advance(60_000);
  };
  const permissions = { ...ASKING, expire_after_ms: 60_000 };
  const builds = ask(call('c1', 'build'));
  const rest = [ask(call('c2', 'ask')), say('done')];
  const first = await bed.host();
  bed.models.answers = [builds, ...rest];
  await bed.start({ permissions });
  await work('s1', '3-0', 1, 1_000);
  // Another host claims the twin before its call.
  bed.models.answers = [{ ...builds, delayMs: 1_000 }, ...rest];
  await bed.start({ permissions }, { session: 'twin' });
  first.abandon();
  await bed.host();
  await bed.time.advance(30_000);
  await work('twin', '4-0', 2, 2_000);
  expect(await diff(bed, 's1', 'twin')).toMatchObject({ first: null, differences: [], more: 0 });
});

test('different child ids are no difference: in forks, in forks of forks, and in equal sessions', async () => {
  const bed = crewBed();
  // Failures name the child, and the fork's journal contains the ids of its own and of its origin's children.
  bed.parts = {
    lead: [delegate(['mate', 'sound'], ['cook', 'cook']), delegate(['cook', 'again']), say('all done')],
    mate: [say('done')],
    cook: [say('', { fail: { code: 'model_failed', message: 'no gas' } })],
  };
  await bed.crewHost();
  await bed.begin('lead');
  await bed.time.advance(1_000);
  expect(await bed.childrenOf()).toHaveLength(3);
  let origin = 's1';
  for (const fork of ['f1', 'f2']) {
    const { length: n } = await bed.records(origin);
    await bed.send('start', { fork: { session: origin, n } }, { session: fork });
    expect(await diff(bed, 's1', fork)).toMatchObject({ first: null, differences: [], more: 0 });
    origin = fork;
  }
  await bed.begin('lead', {}, 'twin');
  await bed.time.advance(1_000);
  expect(await bed.childrenOf('twin')).not.toEqual(await bed.childrenOf());
  expect(await diff(bed, 's1', 'twin')).toMatchObject({ first: null, differences: [], more: 0 });
});

test('another prompt, another outcome', async () => {
  const bed = testBed();
  await vetoed(bed);
  bed.models.answers = [say('', { fail: { code: 'model_unavailable', message: 'gone' } })];
  await bed.start({ prompt: 'good evening' }, { session: 'other' });
  const { first, differences } = await diff(bed, 's1', 'other');
  expect(first).toMatchObject({ n: [1, 1], path: '/input/body/prompt' });
  expect(differences.filter(({ turn }) => turn === 0)).toEqual([
    { run: 1, turn: 0, what: 'prompt', of: null, a: 'hello', b: 'good evening' },
    { run: 1, turn: 0, what: 'outcome', of: null, a: 'end_turn', b: 'error: model_unavailable: gone' },
  ]);
});
