/**
 * Stall detection: a model that repeats itself is notified, once per stall.
 */
import { BOUNDS, type Json, textOf } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { given, type Outcome, Session } from './given.ts';
import { answered, asked, call, type Move, prompted, provisioned, returned, running, toolsClosed } from './moves.ts';

const CALLS = BOUNDS.stallIdenticalCalls;
const TURNS = BOUNDS.stallTurnsWithoutNewResult;
const IDENTICAL = 'feedback_received feedback:1 stall:identical_calls';
const STALE = 'feedback_received feedback:1 stall:no_new_result';

let calls = 0;

/** A turn with one call and this result. */
function turn(args: Json, result = 'the same', tool = 'read'): Move {
  const id = `c${++calls}`;
  const content = [{ type: 'text' as const, text: result }];
  return [asked(call(id, tool, { args })), returned(id, 'ok', { result: { content, is_error: false } })];
}

const times = (count: number, move: (index: number) => Move): Move =>
  Array.from({ length: count }, (_, index) => move(index));

/** All notices of the environment. */
function notices(outcome: Outcome): string[] {
  return outcome.session.lines().filter((line) => line.startsWith('feedback_received'));
}

describe('identical calls in a row', () => {
  const same = (count: number) => given(running()).when(times(count, () => turn({ path: 'a' })));

  test(`below ${CALLS}: nothing is said`, () => {
    expect(notices(same(CALLS - 1))).toEqual([]);
  });

  test(`at ${CALLS}: the model is told before its next answer`, () => {
    given(
      running(),
      times(CALLS - 1, () => turn({ path: 'a' })),
    )
      .when(turn({ path: 'a' }))
      .thenIncludes(
        `turn_end ${CALLS}`,
        IDENTICAL,
        `turn_start ${CALLS + 1}`,
        'loop_checkpoint pre_compact inbox 1',
        'message_injected feedback:1 feedback at pre_compact',
      );
  });

  test(`over ${CALLS}: it is told once, not every turn`, () => {
    expect(notices(same(CALLS + 3))).toEqual([IDENTICAL]);
  });

  test('are equal for any order of their arguments', () => {
    const orders: Json[] = [
      { a: 1, b: { c: 2, d: 3 } },
      { b: { d: 3, c: 2 }, a: 1 },
      { b: { c: 2, d: 3 }, a: 1 },
    ];
    expect(notices(given(running()).when(...orders.map((args) => turn(args))))).toEqual([IDENTICAL]);
  });

  test('are counted within one answer as well', () => {
    const one = (id: string) => call(id, 'read', { args: { path: 'a' } });
    const outcome = given(running()).when(
      asked(one('x'), one('y'), one('z')),
      returned('x'),
      returned('y'),
      returned('z'),
    );
    expect(notices(outcome)).toEqual([IDENTICAL]);
  });

  test.each([
    ['another argument', turn({ path: 'b' })],
    ['another tool', turn({ path: 'a' }, 'the same', 'seq')],
  ])('%s in between restarts the count', (_name, other) => {
    const two = times(CALLS - 1, () => turn({ path: 'a' }));
    expect(notices(given(running()).when(two, other, two))).toEqual([]);
  });

  test('a second stall is reported again', () => {
    const stall = (path: string) => times(CALLS, () => turn({ path }));
    expect(notices(given(running()).when(stall('a'), stall('b')))).toEqual([
      IDENTICAL,
      'feedback_received feedback:2 stall:identical_calls',
    ]);
  });

  test('that never run are counted too: refused, unknown, unreadable', () => {
    const unreadable = () =>
      asked(call(`c${++calls}`, 'read', { args: null, problem: { code: 'invalid_call_arguments', message: 'No.' } }));
    expect(notices(given(running()).when(times(CALLS, unreadable)))).toEqual([IDENTICAL]);
  });

  test('of the previous run are forgotten', () => {
    const two = times(CALLS - 1, () => turn({ path: 'a' }));
    const again: Move = [answered(), toolsClosed, prompted(), provisioned()];
    expect(notices(given(running()).when(two, again, two))).toEqual([]);
  });
});

describe('turns without a new result', () => {
  // The calls differ, so that only their results are a stall. The first result is new.
  const stale = (count: number) =>
    given(running({ maxTurns: 100 })).when(
      turn({ n: -1 }),
      times(count, (n) => turn({ n })),
    );

  test(`below ${TURNS}: nothing is said`, () => {
    expect(notices(stale(TURNS - 1))).toEqual([]);
  });

  test(`at ${TURNS}: the model is told before its next answer`, () => {
    const outcome = stale(TURNS).thenIncludes(`turn_end ${TURNS + 1}`, STALE, `turn_start ${TURNS + 2}`);
    const said = outcome.session.steps.flatMap(({ events }) =>
      events.flatMap((event) => (event.type === 'message_injected' ? [textOf(event.message)] : [])),
    );
    expect(said).toEqual([expect.stringContaining(`For ${TURNS} turns no tool call has returned a new result`)]);
  });

  test(`over ${TURNS}: it is told once, not every turn`, () => {
    expect(notices(stale(TURNS + 5))).toEqual([STALE]);
  });

  test('a new result in between restarts the count', () => {
    const half = times(TURNS - 1, (n) => turn({ n }));
    expect(notices(given(running()).when(turn({ n: -1 }), half, turn({ n: 99 }, 'news'), half))).toEqual([]);
  });

  test('two alternating results are not new either', () => {
    const outcome = given(running({ maxTurns: 100 })).when(
      times(2 + TURNS, (n) => turn({ n }, n % 2 === 0 ? 'one' : 'other')),
    );
    expect(notices(outcome)).toEqual([STALE]);
  });

  test('the same text from another tool is new', () => {
    const outcome = given(running()).when(
      turn({ n: -1 }),
      times(TURNS - 1, (n) => turn({ n })),
      turn({ n: 99 }, 'the same', 'seq'),
    );
    expect(notices(outcome)).toEqual([]);
  });

  test('use bounded memory, for any run', () => {
    const session = new Session().make(running({ maxTurns: 10_000 }));
    for (let n = 0; n < BOUNDS.stallResultsRemembered + 20; n++) session.make(turn({ n }, `result ${n}`));
    expect(session.state.context.stall.results).toHaveLength(BOUNDS.stallResultsRemembered);
    expect(session.lines().filter((line) => line.startsWith('feedback'))).toEqual([]);
  });

  test('a second stall is reported again', () => {
    const stall = (result: string) => times(TURNS + 1, (n) => turn({ n, result }, result));
    const outcome = given(running({ maxTurns: 100 })).when(stall('one'), stall('other'));
    expect(notices(outcome)).toEqual([STALE, 'feedback_received feedback:2 stall:no_new_result']);
  });
});

describe('a permission rule that refuses', () => {
  const refused = (tool = 'forbidden') => asked(call(`c${++calls}`, tool, { args: { n: calls } }));

  test('is reported to the model once per run', () => {
    given(running())
      .when(refused())
      .thenIncludes('turn_end 1', 'feedback_received feedback:1 command_policy:rules[1]', 'turn_start 2')
      .when(refused())
      .thenCount('feedback_received', 1);
  });

  test('is reported again in the next run', () => {
    given(running(), refused(), answered(), toolsClosed, prompted(), provisioned())
      .when(refused())
      .thenIncludes('feedback_received feedback:2 command_policy:rules[1]');
  });
});
