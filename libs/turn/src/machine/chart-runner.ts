/**
 * The runners of the chart, which compute XState's snapshot after an event. A snapshot here is a state with its context, not
 * the stored snapshot of a session.
 *
 * XState resolves each event anew: the transition, the exited states, the entered states, their order. The chart has no
 * regions, history, invocations or entry actions, so most of this work has one result for each state. The compiled
 * runner looks that result up in a table. The plain runner is XState itself.
 *
 * CHART-1  The chart is written once, in `chart.ts`. The compiled runner reads its table from XState's parse of the chart.
 * CHART-2  Both runners give the same snapshots. XState's runner is the reference. Tests compare them: `chart-runner.test.ts`,
 *          and the golden traces. Nothing compares them at run time.
 * CHART-3  Both runners run as XState actors on XState's snapshots. Only the work between two snapshots differs.
 * CHART-4  A chart with a feature that the compiled runner does not implement is rejected when this module loads.
 * CHART-5  The runner is selected for the whole process. An existing actor keeps its runner until
 *          `SessionActor.releaseMemory` (actor.ts) drops it.
 *
 * What the compiled runner needs of XState beyond its documentation, with the function that relies on it. After an
 * upgrade, `test/xstate-assumptions.test.ts` names each one that no longer holds.
 *
 * XSTATE-1  `compileState`: `getNextTransitions` lists the transitions of a state before those of its ancestors, each in
 *           the order of the chart. An eventless transition has the event type ''.
 * XSTATE-2  `compileTransition`: a transition names its guard and its actions, and its targets are state nodes.
 * XSTATE-3  `compileTransition`: `machine.implementations.guards` holds the functions of named guards.
 * XSTATE-4  `firstLeaf`: a transition to a compound state enters its initial child, `initial.target[0]`.
 * XSTATE-5  `firstOpen`: the first transition whose guard passes is taken. If it has no target, the state stays, and
 *           the transitions of its ancestors are not tried.
 * XSTATE-6  `apply`: a guard gets the event and the context before it. A guard of an eventless transition gets the same
 *           event and the context after it.
 * XSTATE-7  `apply`: eventless transitions follow each accepted event until no guard passes.
 * XSTATE-8  `apply`: `assign` makes a new context with the returned members.
 * XSTATE-9  `apply`: two snapshots of one state differ in `context` only. A copy with another context is a valid snapshot.
 * XSTATE-10 `SessionActor.send`: an ignored event leaves the same context object.
 * XSTATE-11 `SessionActor.send`: an actor processes an event before `send` returns. An exception gives it a snapshot of
 *           status `error`, and observers of errors receive it.
 */
import { type ActorLogic, type AnyTransitionDefinition, getNextTransitions, pathToStateValue } from 'xstate';
import type { SessionContext } from '../core/context.ts';
import { evolve } from '../core/evolve.ts';
import type { PlacedEvent } from '../core/journal-place.ts';
import { type SessionState, turnMachine } from './chart.ts';
import { leafOf } from './state.ts';

type Chart = typeof turnMachine;

type ChartNode = Chart['root'];

type Guard = (args: { readonly context: SessionContext; readonly event: PlacedEvent }) => boolean;

/** The context after an event: a new object. */
type Reducer = (context: SessionContext, event: PlacedEvent) => SessionContext;

/** One transition. */
interface CompiledTransition {
  readonly guard: Guard | null;
  /** Whether it has the action `evolve`. */
  readonly evolves: boolean;
  /** The name of the state that it enters; null if it stays in its state. */
  readonly leaf: string | null;
}

/** A state without children, with its transitions and those of its ancestors. */
interface CompiledState {
  /** XState's snapshot of this state, with an empty context. */
  readonly snapshot: SessionState;
  readonly on: ReadonlyMap<string, readonly CompiledTransition[]>;
  readonly always: readonly CompiledTransition[];
}

/** A chart as a table of states and events. */
export interface CompiledChart {
  /** Names of the states that a session can be in. */
  readonly leaves: ReadonlySet<string>;
  /** XState's snapshot of the state with this name; null if the chart has no such state. */
  readonly stateNamed: (leaf: string, context: SessionContext) => SessionState | null;
  /**
   * The snapshot after an event; the same one if the state ignores the event.
   * @param entered receives the names of the entered states, in order.
   */
  readonly apply: (before: SessionState, event: PlacedEvent, entered?: string[]) => SessionState;
}

/**
 * Compiles a chart.
 * @param reduce what the chart's action `evolve` does.
 * @throws Error if the chart has a feature that the compiled runner does not implement (CHART-4).
 */
export function compileChart(chart: Chart, reduce: Reducer): CompiledChart {
  const nodes = nodesFrom(chart.root);
  for (const node of nodes) rejectUnsupported(node);
  const states: ReadonlyMap<string, CompiledState> = new Map(
    nodes.filter(({ type }) => type === 'atomic').map((node) => [leafName(node), compileState(chart, node)]),
  );
  // Snapshots made here share the value of their state, so most events find their state by identity.
  const stateByValue: ReadonlyMap<unknown, CompiledState> = new Map(
    [...states.values()].map((state) => [state.snapshot.value, state]),
  );

  function compiledState(leaf: string): CompiledState {
    const state = states.get(leaf);
    if (!state) throw new Error(`the chart has no state ${leaf}`);
    return state;
  }

  function apply(before: SessionState, event: PlacedEvent, entered?: string[]): SessionState {
    let state = stateByValue.get(before.value) ?? states.get(leafOf(before));
    const transitions = state?.on.get(event.type);
    const taken = transitions && firstOpen(transitions, before.context, event);
    if (!state || !taken) return before;
    const context = taken.evolves ? reduce(before.context, event) : before.context;
    if (taken.leaf !== null) {
      state = compiledState(taken.leaf);
      entered?.push(taken.leaf);
    }
    for (let next = firstOpen(state.always, context, event); next; next = firstOpen(state.always, context, event)) {
      state = compiledState(next.leaf as string);
      entered?.push(next.leaf as string);
    }
    return { ...state.snapshot, context };
  }

  function stateNamed(leaf: string, context: SessionContext): SessionState | null {
    const state = states.get(leaf);
    return state ? { ...state.snapshot, context } : null;
  }

  return { leaves: new Set(states.keys()), stateNamed, apply };
}

/** The compiled chart of the turn machine. */
export const compiledChart: CompiledChart = compileChart(turnMachine, evolve);

/** The actor logic of a live session. */
export type ChartLogic = ActorLogic<SessionState, PlacedEvent, { readonly sessionId: string }>;

/** The name of a runner: `compiled`, the default, or `xstate`. */
export type ChartRunner = 'compiled' | 'xstate';

const runners: Readonly<Record<ChartRunner, ChartLogic>> = {
  compiled: {
    transition: (state, event) => compiledChart.apply(state, event),
    getInitialSnapshot: (scope, input) => turnMachine.getInitialSnapshot(scope, input),
    getPersistedSnapshot: (state, options) => turnMachine.getPersistedSnapshot(state, options),
  },
  xstate: turnMachine,
};

let selected: ChartRunner = 'compiled';

/**
 * Selects the runner of all actors that this process creates from now on.
 *
 * The journals of both runners are the same, byte for byte. Plain XState is slower. Tests select it, to show whether the
 * compiled runner causes a fault; no setting of a host does.
 * @returns the runner that was selected before.
 */
export function selectChartRunner(runner: ChartRunner): ChartRunner {
  const before = selected;
  selected = runner;
  return before;
}

/** The actor logic of the selected runner. */
export function chartLogic(): ChartLogic {
  return runners[selected];
}

function firstOpen(
  transitions: readonly CompiledTransition[],
  context: SessionContext,
  event: PlacedEvent,
): CompiledTransition | undefined {
  for (let i = 0; i < transitions.length; i++) {
    const transition = transitions[i] as CompiledTransition;
    if (transition.guard === null || transition.guard({ context, event })) return transition;
  }
  return undefined;
}

function compileState(chart: Chart, leaf: ChartNode): CompiledState {
  const snapshot = chart.resolveState({ value: pathToStateValue(leaf.path), context: {} as SessionContext });
  const on = new Map<string, CompiledTransition[]>();
  const always: CompiledTransition[] = [];
  for (const transition of getNextTransitions(snapshot)) {
    const { eventType, source } = transition;
    const compiled = compileTransition(chart, transition);
    if (eventType === '') {
      if (compiled.evolves || compiled.leaf === null)
        reject(source.id, 'an eventless transition that does not only move');
      always.push(compiled);
      continue;
    }
    if (eventType.includes('*') || eventType.startsWith('xstate.')) reject(source.id, `the event ${eventType}`);
    on.set(eventType, [...(on.get(eventType) ?? []), compiled]);
  }
  return { snapshot, on, always };
}

function compileTransition(
  chart: Chart,
  { guard, actions, target, source, eventType }: AnyTransitionDefinition,
): CompiledTransition {
  const where = `${source.id}, ${eventType || 'eventless'}`;
  const guards: Readonly<Record<string, unknown>> = chart.implementations.guards;
  const check = guard === undefined ? null : typeof guard === 'string' ? guards[guard] : undefined;
  // Guards that XState composes (`and`, `not`, `stateIn`) are functions with a member `check`.
  if (check !== null && (typeof check !== 'function' || 'check' in check))
    reject(where, 'a guard that is not a named function');
  if (actions.length > 1 || (actions.length === 1 && actions[0] !== 'evolve'))
    reject(where, 'an action other than evolve');
  if ((target?.length ?? 0) > 1) reject(where, 'more than one target');
  const to = target?.[0];
  return { guard: check as Guard | null, evolves: actions.length > 0, leaf: to ? leafName(firstLeaf(to)) : null };
}

function nodesFrom(node: ChartNode): readonly ChartNode[] {
  return [node, ...Object.values(node.states).flatMap(nodesFrom)];
}

function rejectUnsupported({ id, type, entry, exit, invoke, after }: ChartNode): void {
  if (type !== 'atomic' && type !== 'compound') reject(id, `the state type ${type}`);
  if (invoke.length > 0) reject(id, 'invocations');
  if (after.length > 0) reject(id, 'delayed transitions');
  if (entry.length + exit.length > 0) reject(id, 'entry or exit actions');
}

/** The state that a session is in once it has entered `node`. */
function firstLeaf(
  node: Pick<ChartNode, 'type' | 'path'> & { readonly initial: { readonly target: readonly ChartNode[] } },
): ChartNode {
  const first = node.type === 'compound' ? node.initial.target[0] : undefined;
  return first ? firstLeaf(first) : (node as ChartNode);
}

function leafName({ path }: Pick<ChartNode, 'path'>): string {
  return path.join('.');
}

function reject(where: string, feature: string): never {
  throw new Error(`the compiled runner does not implement ${feature} (${where})`);
}
