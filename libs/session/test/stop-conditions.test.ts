/** Predicates in code: registered with the host, asked after a turn, their answers in the journal. */
import type { StopPredicates, StopQuestion } from '@coxswain/ports';
import { BOUNDS, textOf } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { ask, call, say } from './fake-model.ts';
import { refOf, testBed } from './test-bed.ts';

const mate = (...predicates: string[]) => ({
  persona: { name: 'mate', stop_when: predicates.map((predicate) => ({ predicate })) },
});

async function run(stopPredicates: StopPredicates, ...names: string[]) {
  const bed = testBed();
  bed.models.answers = [ask(call('c1', 'read')), say('done')];
  await bed.host({}, { stopPredicates });
  await bed.start(mate(...names));
  return bed;
}

test('a predicate sees the turn, and ends the run', async () => {
  const questions: StopQuestion[] = [];
  const bed = await run(
    {
      enough: (question) => {
        questions.push(question);
        return true;
      },
    },
    'enough',
  );
  expect((await bed.lines()).at(-1)).toBe('agent_end stop_condition');
  expect(questions).toHaveLength(1);
  expect(questions[0]).toMatchObject({ ref: refOf(), turn: 1 });
  expect(questions[0]?.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool']);
  expect(questions[0]?.messages.map((message) => textOf(message)).at(-1)).toBe('read ran');
});

describe('a predicate that fails counts as false:', () => {
  const broken: [string, StopPredicates, RegExp][] = [
    ['it throws', { p: () => Promise.reject(new Error('no disk')) }, /no disk/],
    [
      'it throws at once',
      {
        p: () => {
          throw new Error('no disk');
        },
      },
      /no disk/,
    ],
    ['it answers with what is no answer', { p: (() => 'yes') as never }, /string/],
    ['it answers with nothing', { p: (() => undefined) as never }, /undefined/],
  ];
  test.each(broken)('%s', async (_what, predicates, message) => {
    const bed = await run(predicates, 'p');
    expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
    const [answered] = await bed.eventsOf('stop_predicates_answered');
    expect(answered?.answers[0]).toMatchObject({ holds: false, failure: { code: 'predicate_failed' } });
    expect(answered?.answers[0]?.failure?.message).toMatch(message);
  });

  test('it does not answer within its time', async () => {
    const aborted: boolean[] = [];
    const bed = await run(
      {
        p: (_question, signal) => {
          signal.addEventListener('abort', () => aborted.push(true));
          return new Promise(() => {});
        },
      },
      'p',
    );
    await bed.time.advance(BOUNDS.predicateTimeoutMs - 1);
    expect((await bed.lines()).at(-1)).toBe('stop_predicates_asked p');
    await bed.time.advance(1);
    expect(await bed.lines()).toContain('stop_predicates_answered p failed');
    expect(aborted).toEqual([true]);
    await bed.time.advance(BOUNDS.predicateTimeoutMs);
    expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
  });
});

test('an unregistered predicate is rejected before the model is asked', async () => {
  const bed = await run({ other: () => true }, 'enough');
  expect(await bed.lines()).toContain('run_failed provisioning predicate_unknown');
  expect((await bed.eventsOf('run_failed'))[0]?.error.message).toMatch(/enough.*registered: other/);
  expect(bed.models.requests).toEqual([]);
});

test('names of Object.prototype are no predicates', async () => {
  const bed = await run({}, 'constructor');
  expect(await bed.lines()).toContain('run_failed provisioning predicate_unknown');
});

test('a question that a crash interrupted is asked again by the next host', async () => {
  const bed = testBed();
  bed.models.answers = [ask(call('c1', 'read')), say('done')];
  const first = await bed.host({}, { stopPredicates: { p: () => new Promise(() => {}) } });
  await bed.start(mate('p'));
  first.abandon();
  await bed.host({}, { stopPredicates: { p: () => true } });
  expect((await bed.lines()).at(-1)).toBe('agent_end stop_condition');
});

test('a cancel does not wait for a predicate', async () => {
  const bed = await run({ p: () => new Promise(() => {}) }, 'p');
  await bed.send('cancel');
  await bed.time.advance(BOUNDS.abortGraceMs);
  expect((await bed.lines()).at(-1)).toBe('agent_end cancelled');
});
