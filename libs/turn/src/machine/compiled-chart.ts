/**
 * The chart, compiled: for each state and each event the ways out, read once from XState's own parse of the machine.
 * XState works every event out anew (what is left, what is entered, in which order), and that was most of what an
 * event cost; a chart without regions, history, invokes and entry actions needs none of it.
 *
 * C1  The machine stays the only source: nothing of it is written down here a second time.
 * C2  Actors and snapshots are XState's; only the work between two snapshots is done here.
 * C3  XState's pure `transition()` is the measure: the tests of this package hold every step of both equal.
 * C4  What this file could not do as XState does is refused when it is loaded, not met at run time.
 */
import type { SessionContext } from '../core/context.ts';
import { evolve } from '../core/evolve.ts';
import type { PlacedEvent } from '../core/place.ts';
import { type SessionState, turnMachine } from './chart.ts';
import { leafOf } from './state.ts';

type Guard = (args: { readonly context: SessionContext; readonly event: PlacedEvent }) => boolean;

/** One way: out of a state, or, without a `leaf`, to stay in it. */
interface Way {
  readonly guard: Guard | null;
  readonly evolves: boolean;
  readonly leaf: string | null;
}

/** A state without children, and what leads out of it: its own ways before those of its parents, as XState asks them. */
interface Place {
  /** XState's snapshot of this state. Only the context differs from one to the next. */
  readonly snapshot: SessionState;
  readonly on: ReadonlyMap<string, readonly Way[]>;
  readonly always: readonly Way[];
}

type ChartNode = (typeof turnMachine)['root'];

type Transition = ChartNode['transitions'] extends Map<string, Array<infer T>> ? T : never;

const places: ReadonlyMap<string, Place> = new Map(
  nodesFrom(turnMachine.root)
    .filter(isLeaf)
    .map((node) => [nameOf(node), placeOf(node)]),
);

// Snapshots made here share their place's value, so that most events find their place by it.
const placeByValue: ReadonlyMap<unknown, Place> = new Map(
  [...places.values()].map((place) => [place.snapshot.value, place]),
);

/** Names of all states that a session can be in. */
export const LEAVES: ReadonlySet<string> = new Set(places.keys());

/**
 * The snapshot after an event, or the same one where its state does not take it. Null for events that are not the
 * chart's, which are XState's own.
 * @param entered where it is written down which states were entered, in order: the snapshot alone names the last.
 */
export function takeEvent(before: SessionState, event: PlacedEvent, entered?: string[]): SessionState | null {
  const from = placeByValue.get(before.value) ?? places.get(leafOf(before));
  const ways = from?.on.get(event.type);
  if (!from || !ways) return null;
  const way = firstOpen(ways, before.context, event);
  if (!way) return before;
  const context = way.evolves ? evolve(before.context, event) : before.context;
  let place = way.leaf === null ? from : placeAt(way.leaf);
  if (way.leaf !== null) entered?.push(way.leaf);
  for (let eventless = firstOpen(place.always, context, event); eventless; ) {
    place = placeAt(eventless.leaf as string);
    entered?.push(eventless.leaf as string);
    eventless = firstOpen(place.always, context, event);
  }
  return { ...place.snapshot, context };
}

function firstOpen(ways: readonly Way[], context: SessionContext, event: PlacedEvent): Way | undefined {
  for (let i = 0; i < ways.length; i++) {
    const way = ways[i] as Way;
    if (way.guard === null || way.guard({ context, event })) return way;
  }
  return undefined;
}

function placeAt(leaf: string): Place {
  const place = places.get(leaf);
  if (!place) throw new Error(`the chart has no state ${leaf}`);
  return place;
}

function nodesFrom(node: ChartNode): readonly ChartNode[] {
  return [node, ...Object.values(node.states).flatMap(nodesFrom)];
}

function isLeaf(node: ChartNode): boolean {
  const plain = node.entry.length + node.exit.length + node.invoke.length + node.after.length === 0;
  // C4: of these, XState would do something at run time that is not done here.
  if (!plain || !['atomic', 'compound'].includes(node.type)) throw new Error(`${node.id} cannot be compiled`);
  return node.type === 'atomic';
}

function placeOf(leaf: ChartNode): Place {
  const on = new Map<string, Way[]>();
  const always: Way[] = [];
  for (let node: ChartNode | undefined = leaf; node; node = node.parent) {
    for (const [type, transitions] of node.transitions) {
      const ways = on.get(type) ?? [];
      on.set(type, ways);
      ways.push(...transitions.map(wayOf));
    }
    for (const transition of node.always ?? []) {
      const way = wayOf(transition);
      if (way.evolves || way.leaf === null) throw new Error(`an eventless transition of ${node.id} cannot be compiled`);
      always.push(way);
    }
  }
  return { snapshot: turnMachine.resolveState({ value: stateValue(leaf), context: {} as SessionContext }), on, always };
}

function wayOf({ guard, actions, target, source }: Transition): Way {
  const guards: Readonly<Record<string, unknown>> = turnMachine.implementations.guards;
  const asked = guard === undefined ? null : guards[guard as string];
  const evolves = actions.length > 0;
  if (asked === undefined || (evolves && (actions.length > 1 || actions[0] !== 'evolve')) || (target?.length ?? 0) > 1)
    throw new Error(`a transition of ${source.id} cannot be compiled`);
  const to = target?.[0];
  return { guard: asked as Guard | null, evolves, leaf: to ? nameOf(firstLeaf(to)) : null };
}

function firstLeaf(node: ChartNode): ChartNode {
  const first = node.type === 'compound' ? node.initial.target[0] : undefined;
  return first ? firstLeaf(first) : node;
}

function nameOf(node: ChartNode): string {
  return node.path.join('.');
}

function stateValue({ path: [top = '', child] }: ChartNode): SessionState['value'] {
  return (child === undefined ? top : { [top]: child }) as SessionState['value'];
}
