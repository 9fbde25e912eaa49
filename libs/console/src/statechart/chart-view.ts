/**
 * The visible part of a statechart: some states are expanded, others collapsed. Transitions between the same boxes
 * share an arrow.
 */
import { around, type ChartIndex, entered, shortName } from './chart.ts';

/** A box. */
export interface ViewNode {
  readonly id: string;
  readonly label: string;
  /** `any` represents every state as the source of a transition, `initial` the start. */
  readonly kind: 'state' | 'any' | 'initial';
  readonly tags: readonly string[];
  /** Whether it has hidden child states. */
  readonly closed: boolean;
  /** Whether it can be expanded or collapsed. */
  readonly compound: boolean;
  readonly children: readonly ViewNode[];
}

/** An arrow. */
export interface ViewEdge {
  readonly id: string;
  readonly from: string;
  readonly to: string;
  /** Its transitions as `event [guard]`, each once. */
  readonly reasons: readonly string[];
}

/** The visible boxes and arrows. */
export interface ChartView {
  readonly nodes: readonly ViewNode[];
  readonly edges: readonly ViewEdge[];
}

/** The id of the box that represents every state. */
export const ANYWHERE = '*';

/** The paths of all states with child states. */
export function compoundPaths({ states }: ChartIndex): string[] {
  return [...states.values()]
    .filter(({ path, states: within }) => path !== '' && within.length > 0)
    .map(({ path }) => path);
}

/** The view with these states expanded. States within a collapsed one are hidden. */
export function viewOf(index: ChartIndex, open: ReadonlySet<string>): ChartView {
  const { root } = index.chart;
  const edges = new Map<string, { from: string; to: string; reasons: string[] }>();
  for (const state of index.states.values()) {
    for (const { event, guard, target } of state.transitions) {
      if (target === null) continue;
      const from = state.path === '' ? ANYWHERE : drawnFor(index, open, state.path);
      const to = drawnFor(index, open, target);
      // Transitions within a collapsed state are not visible.
      if (from === to) continue;
      const id = edgeId(from, to);
      const edge = edges.get(id) ?? { from, to, reasons: [] };
      edges.set(id, edge);
      const reason = `${event === '' ? 'at once' : event}${guard === null ? '' : ` [${guard}]`}`;
      if (!edge.reasons.includes(reason)) edge.reasons.push(reason);
    }
  }
  const nodes: ViewNode[] = root.states.map(({ path }) => nodeOf(index, open, path));
  const initials = [root, ...index.states.values()].filter(({ path }, at) => at === 0 || open.has(path));
  const drawnEdges: ViewEdge[] = [...edges].map(([id, edge]) => ({ id, ...edge }));
  for (const { path, initial } of initials) {
    if (initial === null || (path !== '' && drawnFor(index, open, path) !== path)) continue;
    const dot = initialId(path);
    if (path === '') nodes.push(initialNode(dot));
    drawnEdges.push({ id: edgeId(dot, initial), from: dot, to: initial, reasons: [] });
  }
  if (drawnEdges.some(({ from }) => from === ANYWHERE))
    nodes.push({
      id: ANYWHERE,
      label: 'from anywhere',
      kind: 'any',
      tags: [],
      closed: false,
      compound: false,
      children: [],
    });
  return { nodes, edges: drawnEdges };
}

/** The box that shows a state: its own, or that of the outermost collapsed state around it. */
export function drawnFor(index: ChartIndex, open: ReadonlySet<string>, path: string): string {
  let drawn = path;
  for (const one of around(index, path)) if (one !== '' && one !== path && !open.has(one)) drawn = one;
  return drawn;
}

/** The id of the arrow between two boxes. */
export function edgeId(from: string, to: string): string {
  return `${from}→${to}`;
}

/** The arrow of a step; null if the step stays within one box. */
export function edgeFor(
  index: ChartIndex,
  open: ReadonlySet<string>,
  { from, to }: { readonly from: string; readonly to: string },
  drawn: ReadonlySet<string>,
): string | null {
  const target = drawnFor(index, open, to);
  // A transition may belong to a state around the one that it was taken from.
  for (const path of around(index, from)) {
    const source = path === '' ? ANYWHERE : drawnFor(index, open, path);
    // A transition to a state with child states ends at its border.
    for (const around1 of around(index, target)) {
      if (around1 !== target && entered(index, around1) !== to) continue;
      const id = edgeId(source, around1);
      if (drawn.has(id)) return id;
    }
  }
  return null;
}

function initialId(path: string): string {
  return `(${path})`;
}

function initialNode(id: string): ViewNode {
  return { id, label: '', kind: 'initial', tags: [], closed: false, compound: false, children: [] };
}

function nodeOf(index: ChartIndex, open: ReadonlySet<string>, path: string): ViewNode {
  const state = index.states.get(path);
  const within = state?.states ?? [];
  const isOpen = within.length > 0 && open.has(path);
  const children = isOpen ? within.map((child) => nodeOf(index, open, child.path)) : [];
  if (isOpen && state?.initial != null) children.push(initialNode(initialId(path)));
  return {
    id: path,
    label: shortName(path),
    kind: 'state',
    tags: state?.tags ?? [],
    closed: within.length > 0 && !isOpen,
    compound: within.length > 0,
    children,
  };
}
