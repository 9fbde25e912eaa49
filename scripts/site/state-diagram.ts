/** Reads state diagrams as the pages write them: a small part of Mermaid's `stateDiagram-v2` (https://mermaid.js.org/syntax/stateDiagram.html). */
import type { ViewEdge, ViewNode } from '../../libs/console/src/statechart/chart-view.ts';

/** What a diagram has. */
export interface StateDiagram {
  readonly nodes: readonly ViewNode[];
  readonly edges: readonly ViewEdge[];
}

/** A line that is none of the part that is read. */
export interface UnreadLine {
  readonly unread: string;
}

/** A state while its diagram is read. */
interface OpenNode {
  readonly id: string;
  label: string;
  readonly kind: 'state' | 'initial';
  readonly children: OpenNode[];
}

/**
 * Reads one. Several arrows from one state to another become one that says them all.
 * @returns the first line that says what is not read: notes, final states, forks, directions, classes, other diagrams.
 */
export function readStateDiagram(source: string): StateDiagram | UnreadLine {
  const [head = '', ...lines] = source.split('\n').map((line) => line.trim());
  if (head !== 'stateDiagram-v2') return { unread: head };
  const top: OpenNode = { id: '', label: '', kind: 'state', children: [] };
  const states = new Map<string, OpenNode>();
  const edges = new Map<string, { readonly from: string; readonly to: string; readonly reasons: string[] }>();
  const around = [top];

  const stateOf = (id: string, label?: string): OpenNode => {
    const state = states.get(id) ?? { id, label: id, kind: 'state', children: [] };
    if (!states.has(id)) {
      states.set(id, state);
      around.at(-1)?.children.push(state);
    }
    if (label !== undefined) state.label = label;
    return state;
  };
  const begin = (): string => {
    const within = around.at(-1) ?? top;
    const id = `[*]${within.id}`;
    if (!within.children.some((child) => child.id === id))
      within.children.push({ id, label: '', kind: 'initial', children: [] });
    return id;
  };

  for (const line of lines) {
    const [, label, named] = /^state "([^"]+)" as (\w+)$/.exec(line) ?? [];
    const [, opened] = /^state (\w+) \{$/.exec(line) ?? [];
    const [, from, to, reason] = /^(\w+|\[\*\]) --> (\w+)(?: ?: ?(.+))?$/.exec(line) ?? [];
    if (named !== undefined) stateOf(named, label);
    else if (opened !== undefined) around.push(stateOf(opened));
    else if (from !== undefined && to !== undefined) {
      const ends = { from: from === '[*]' ? begin() : stateOf(from).id, to: stateOf(to).id };
      const id = `${ends.from} ${ends.to}`;
      const edge = edges.get(id) ?? { ...ends, reasons: [] };
      edges.set(id, edge);
      if (reason !== undefined) edge.reasons.push(reason);
    } else if (line === '}' && around.length > 1) around.pop();
    else if (line !== '') return { unread: line };
  }
  if (around.length > 1) return { unread: `state ${around.at(-1)?.id} { without its }` };
  return { nodes: top.children.map(viewNode), edges: [...edges].map(([id, edge]) => ({ id, ...edge })) };
}

function viewNode({ id, label, kind, children }: OpenNode): ViewNode {
  return { id, label, kind, tags: [], closed: false, compound: children.length > 0, children: children.map(viewNode) };
}
