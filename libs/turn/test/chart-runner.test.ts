/** The compiled runner: the same as XState on every chart that it accepts, and no other chart is accepted. */
import { afterEach, describe, expect, test } from 'vitest';
import {
  Actor,
  type AnyStateMachine,
  and,
  assign,
  isMachineSnapshot,
  pathToStateValue,
  setup,
  transition,
} from 'xstate';
import { compileChart } from '../src/machine/chart-runner.ts';
import { emptyState, SessionActor, type SessionState, selectChartRunner, turnMachine } from '../src/mod.ts';
import { started } from './moves.ts';

const usual = selectChartRunner('compiled');
selectChartRunner(usual);
afterEach(() => void selectChartRunner(usual));

type Context = SessionState['context'];

const parts = setup({
  types: { context: {} as Context, events: {} as { readonly type: string } },
  actions: { evolve: assign(({ context }) => ({ n: context.n + 1 })), other: () => undefined },
  actors: {},
  delays: { later: 10 },
  guards: {
    isOdd: ({ context }: { readonly context: Context }) => context.n % 2 === 1,
    isLarge: ({ context }: { readonly context: Context }) => context.n > 2,
    both: and(['isOdd', 'isLarge']),
  },
});

const compile = (machine: AnyStateMachine) =>
  compileChart(machine as unknown as typeof turnMachine, (context) => ({ ...context, n: context.n + 1 }));

test('CHART-1, CHART-2: a chart that is changed runs as XState runs it, in each state and for each event', () => {
  const machine = parts.createMachine({
    initial: 'idle',
    context: emptyState('s1').context,
    on: { anywhere: { actions: 'evolve' }, back: { target: '.idle', actions: 'evolve' } },
    states: {
      idle: { on: { go: [{ guard: 'isLarge', target: 'work.busy', actions: 'evolve' }, { target: 'work' }] } },
      work: {
        initial: 'opening',
        on: { back: { target: 'work', actions: 'evolve' }, anywhere: {} },
        states: {
          opening: { on: { go: { target: 'busy', actions: 'evolve' }, back: { guard: 'isOdd' } } },
          busy: { always: { guard: 'isOdd', target: '#end' }, on: { go: { guard: 'isLarge', actions: 'evolve' } } },
        },
      },
      closing: { id: 'end', always: { guard: 'isLarge', target: 'idle' }, on: { go: { target: 'closing' } } },
    },
  });
  const chart = compile(machine);
  expect([...chart.leaves]).toEqual(['idle', 'work.opening', 'work.busy', 'closing']);
  for (const leaf of chart.leaves) {
    for (const type of ['go', 'back', 'anywhere', 'unknown']) {
      for (const n of [0, 1, 2, 3, 4]) {
        const value = pathToStateValue(leaf.split('.'));
        const before = machine.resolveState({ value, context: { ...emptyState('s1').context, n } });
        // A state at rest: XState moves on from any other also for an event that it ignores.
        if (transition(machine, before, { type: 'unknown' })[0].value !== before.value) continue;
        const [expected] = transition(machine, before, { type });
        const after = chart.apply(before as unknown as SessionState, { type } as never);
        expect([after.value, after.context.n], `${type} in ${leaf}, n ${n}`).toEqual([
          expected.value,
          expected.context.n,
        ]);
      }
    }
  }
});

test.each(['compiled', 'xstate'] as const)('CHART-3: %s runs as an XState actor on snapshots of XState', (runner) => {
  selectChartRunner(runner);
  const session = new SessionActor('s1');
  session.step(started(), 1, 0);
  expect(session.actor).toBeInstanceOf(Actor);
  expect(isMachineSnapshot(session.state)).toBe(true);
  expect([session.state.matches('provisioning'), session.state.hasTag('wait')]).toEqual([true, true]);
});

describe('CHART-4: a chart is rejected for', () => {
  const context = emptyState('s1').context;
  test.each<[string, AnyStateMachine]>([
    ['the state type parallel', parts.createMachine({ context, type: 'parallel', states: { a: {}, b: {} } })],
    [
      'the state type history',
      parts.createMachine({ context, initial: 'a', states: { a: {}, h: { type: 'history' } } }),
    ],
    ['the state type final', parts.createMachine({ context, initial: 'a', states: { a: { type: 'final' } } })],
    ['entry or exit actions', parts.createMachine({ context, initial: 'a', states: { a: { entry: 'other' } } })],
    ['entry or exit actions', parts.createMachine({ context, exit: 'other' })],
    ['invocations', parts.createMachine({ context, invoke: { src: parts.createMachine({ context }) } as never })],
    ['delayed transitions', parts.createMachine({ context, after: { later: { actions: 'evolve' } } })],
    ['the event *', parts.createMachine({ context, on: { '*': { actions: 'evolve' } } })],
    ['the event call.*', parts.createMachine({ context, on: { 'call.*': { actions: 'evolve' } } })],
    ['an action other than evolve', parts.createMachine({ context, on: { go: { actions: 'other' } } })],
    ['an action other than evolve', parts.createMachine({ context, on: { go: { actions: ['evolve', 'evolve'] } } })],
    ['a guard that is not', parts.createMachine({ context, on: { go: { guard: () => true, actions: 'evolve' } } })],
    ['a guard that is not', parts.createMachine({ context, on: { go: { guard: 'both', actions: 'evolve' } } })],
    ['an eventless', parts.createMachine({ context, always: { guard: 'isOdd', actions: 'evolve' } })],
  ])('%s', (feature, machine) => {
    expect(() => compile(machine)).toThrow(`the compiled runner does not implement ${feature}`);
  });
});

test('CHART-5: a selected runner applies to new actors, and to one that rested', () => {
  const session = new SessionActor('s1');
  const before = session.actor;
  expect(selectChartRunner('xstate')).toBe(usual);
  expect(session.actor).toBe(before);
  session.releaseMemory();
  expect(session.actor.logic).toBe(turnMachine);
  expect(selectChartRunner('compiled')).toBe('xstate');
  expect(new SessionActor('s2').actor.logic).not.toBe(turnMachine);
});
