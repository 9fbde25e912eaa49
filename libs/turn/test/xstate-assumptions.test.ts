/**
 * What the compiled runner needs of XState beyond its documentation: the list at the top of `chart-runner.ts`. Each
 * entry is tested alone, on a chart of its own, so that an upgrade of XState names what has changed.
 */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import {
  type AnyTransitionDefinition,
  assign,
  createActor,
  getMicrosteps,
  getNextTransitions,
  pathToStateValue,
  setup,
  transition,
} from 'xstate';

const RUNNER = 'libs/turn/src/machine/chart-runner.ts';

interface Asked {
  readonly guard: string;
  readonly count: number;
  readonly event: string;
}

/** Guards and the action of the charts below, and each question that XState asks a guard. */
function chartParts() {
  const asked: Asked[] = [];
  const guard =
    (name: string, passes: (count: number) => boolean) =>
    ({
      context,
      event,
    }: {
      readonly context: { readonly count: number };
      readonly event: { readonly type: string };
    }) => {
      asked.push({ guard: name, count: context.count, event: event.type });
      return passes(context.count);
    };
  const parts = setup({
    types: {
      context: {} as { readonly count: number; readonly kept: string },
      events: {} as { readonly type: string },
    },
    actions: { evolve: assign(({ context }) => ({ count: context.count + 1 })) },
    guards: {
      never: guard('never', () => false),
      always: guard('always', () => true),
      isOdd: guard('isOdd', (count) => count % 2 === 1),
    },
  });
  return { asked, parts };
}

/** A chart with a parent, a state that is entered by its parent, and eventless transitions. */
function smallChart() {
  const { asked, parts } = chartParts();
  const chart = parts.createMachine({
    initial: 'idle',
    context: { count: 0, kept: 'as it was' },
    on: { anywhere: { actions: 'evolve' }, first: { target: '.idle', actions: 'evolve' } },
    states: {
      idle: { tags: ['resting'], on: { go: { target: 'work', actions: 'evolve' } } },
      work: {
        initial: 'opening',
        on: { first: { target: 'closing', actions: 'evolve' } },
        states: {
          opening: {
            on: {
              first: [{ guard: 'never', target: 'busy' }, { guard: 'always' }, { target: 'busy' }],
              next: { target: 'busy', actions: 'evolve' },
            },
            always: { guard: 'never', target: 'busy' },
          },
          busy: { always: { guard: 'isOdd', target: '#end' } },
        },
      },
      closing: { id: 'end', always: { guard: 'always', target: 'closed' } },
      closed: {},
    },
  });
  const at = (...path: string[]) =>
    chart.resolveState({ value: pathToStateValue(path), context: { count: 0, kept: 'as it was' } });
  return { asked, chart, at };
}

const described = ({ eventType, guard, actions, target }: AnyTransitionDefinition) =>
  [eventType, guard ?? '-', actions.join(), target?.map(({ path }) => path.join('.')).join() ?? '-'].join(' ');

/** Each assumption: the function that relies on it, and a check. */
const ASSUMPTIONS: Readonly<Record<string, readonly [relies: string, check: (message: string) => void]>> = {
  'XSTATE-1': [
    'compileState',
    (message) => {
      const listed = getNextTransitions(smallChart().at('work', 'opening'));
      expect(
        listed.map(({ source, eventType }) => `${source.path.join('.')}: ${eventType}`),
        message,
      ).toEqual([
        ...['first', 'first', 'first', 'next', ''].map((type) => `work.opening: ${type}`),
        'work: first',
        ': anywhere',
        ': first',
      ]);
    },
  ],
  'XSTATE-2': [
    'compileTransition',
    (message) => {
      const own = getNextTransitions(smallChart().at('work', 'opening')).slice(0, 4);
      expect(own.map(described), message).toEqual([
        'first never  work.busy',
        'first always  -',
        'first -  work.busy',
        'next - evolve work.busy',
      ]);
    },
  ],
  'XSTATE-3': [
    'compileTransition',
    (message) => {
      const { chart } = smallChart();
      const guards: Readonly<Record<string, unknown>> = chart.implementations.guards;
      expect(typeof guards.isOdd, message).toBe('function');
      const isOdd = guards.isOdd as (args: object) => boolean;
      const asks = (count: number) => isOdd({ context: { count }, event: { type: 'go' } });
      expect([asks(1), asks(2)], message).toEqual([true, false]);
    },
  ],
  'XSTATE-4': [
    'firstLeaf',
    (message) => {
      const { chart, at } = smallChart();
      expect(chart.root.states.work?.initial.target[0]?.path, message).toEqual(['work', 'opening']);
      expect(transition(chart, at('idle'), { type: 'go' })[0].value, message).toEqual({ work: 'opening' });
    },
  ],
  'XSTATE-5': [
    'firstOpen',
    (message) => {
      const { asked, chart, at } = smallChart();
      const [after] = transition(chart, at('work', 'opening'), { type: 'first' });
      expect(after.value, message).toEqual({ work: 'opening' });
      expect(
        asked.filter(({ event }) => event === 'first').map(({ guard }) => guard),
        message,
        // The last question is the eventless one of the state.
      ).toEqual(['never', 'always', 'never']);
    },
  ],
  'XSTATE-6': [
    'apply',
    (message) => {
      const { asked, chart, at } = smallChart();
      transition(chart, at('work', 'opening'), { type: 'next' });
      expect(asked[0], message).toEqual({ guard: 'isOdd', count: 1, event: 'next' });
      const before = chartParts();
      const guarded = before.parts.createMachine({
        context: { count: 0, kept: '' },
        on: { go: { guard: 'always', actions: 'evolve' } },
      });
      transition(guarded, guarded.resolveState({ value: {}, context: { count: 0, kept: '' } }), { type: 'go' });
      expect(before.asked, message).toEqual([{ guard: 'always', count: 0, event: 'go' }]);
    },
  ],
  'XSTATE-7': [
    'apply',
    (message) => {
      const { chart, at } = smallChart();
      const steps = getMicrosteps(chart, at('work', 'opening'), { type: 'next' });
      expect(
        steps.map(([{ value }]) => value),
        message,
      ).toEqual([{ work: 'busy' }, 'closing', 'closed']);
    },
  ],
  'XSTATE-8': [
    'apply',
    (message) => {
      const { chart, at } = smallChart();
      const before = at('idle');
      const [after] = transition(chart, before, { type: 'anywhere' });
      expect(after.context, message).toEqual({ count: 1, kept: 'as it was' });
      expect(before.context, message).toEqual({ count: 0, kept: 'as it was' });
    },
  ],
  'XSTATE-9': [
    'apply',
    (message) => {
      const { chart, at } = smallChart();
      const [after] = transition(chart, at('work', 'opening'), { type: 'first' });
      const resolved = at('work', 'opening');
      expect(Object.keys(after).sort(), message).toEqual(Object.keys(resolved).sort());
      // XState leaves out the history of a chart that has none, in one of two ways.
      for (const member of Object.keys(after) as (keyof typeof after)[])
        if (member !== 'context' && member !== 'historyValue')
          expect(after[member], `${message} (${member})`).toEqual(resolved[member]);
      const copy = { ...at('idle'), context: { count: 4, kept: '' } };
      expect([copy.matches('idle'), copy.hasTag('resting'), copy.can({ type: 'go' })], message).toEqual([
        true,
        true,
        true,
      ]);
      expect(transition(chart, copy, { type: 'go' })[0].context.count, message).toBe(5);
    },
  ],
  'XSTATE-10': [
    'SessionActor.send',
    (message) => {
      const { chart, at } = smallChart();
      const before = at('idle');
      expect(transition(chart, before, { type: 'next' })[0].context, message).toBe(before.context);
      expect(transition(chart, before, { type: 'unknown' })[0].context, message).toBe(before.context);
    },
  ],
  'XSTATE-11': [
    'SessionActor.send',
    (message) => {
      const { chart } = smallChart();
      const errors: unknown[] = [];
      const thrown = new Error('an exception of the reducer');
      const broken = createActor({
        transition: (state: ReturnType<typeof chart.resolveState>, { type }: { readonly type: string }) => {
          if (type === 'break') throw thrown;
          return { ...state, context: { ...state.context, count: 7 } };
        },
        getInitialSnapshot: (scope, input) => chart.getInitialSnapshot(scope, input as undefined),
        getPersistedSnapshot: (state) => state,
      });
      broken.subscribe({ error: (error) => errors.push(error) });
      broken.start();
      broken.send({ type: 'go' });
      expect(broken.getSnapshot().context.count, message).toBe(7);
      broken.send({ type: 'break' });
      expect([broken.getSnapshot().status, broken.getSnapshot().error, errors], message).toEqual([
        'error',
        thrown,
        [thrown],
      ]);
    },
  ],
};

describe('the compiled runner assumes of XState', () => {
  test.each(Object.entries(ASSUMPTIONS).map(([id, [relies, check]]) => ({ id, relies, check })))(
    '$id, in $relies',
    ({ id, relies, check }) => {
      check(`${id} no longer holds: read ${id} at the top of ${RUNNER}, then adapt ${relies}`);
    },
  );

  test('nothing that its list does not name', () => {
    const source = readFileSync(new URL('../src/machine/chart-runner.ts', import.meta.url), 'utf8');
    const listed = [...source.matchAll(/\* (XSTATE-\d+) +`([\w.]+)`/g)].map(([, id, relies]) => [id, relies]);
    expect(listed).toEqual(Object.entries(ASSUMPTIONS).map(([id, [relies]]) => [id, relies]));
  });
});
