/** Converts a view to a graph of elk, and its layout to a flat drawing. */

import { cutGraphemes } from '@coxswain/protocol';
import type { ELK, ElkExtendedEdge, ElkNode } from 'elkjs/lib/elk-api.js';
import type { ChartView, ViewEdge, ViewNode } from './chart-view.ts';

/** A box with its position, in pixels from the top left of the drawing. */
export interface PlacedNode {
  readonly node: ViewNode;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** An arrow with its points. */
export interface PlacedEdge {
  readonly edge: ViewEdge;
  readonly points: readonly (readonly [x: number, y: number])[];
  readonly label: { readonly text: string; readonly x: number; readonly y: number } | null;
}

/** A drawing. Boxes come before the boxes within them. */
export interface Drawing {
  readonly width: number;
  readonly height: number;
  readonly nodes: readonly PlacedNode[];
  readonly edges: readonly PlacedEdge[];
}

/** The character widths of the label fonts in statechart.css, in pixels. */
const STATE_CHAR_PX = 7.3;
const LABEL_CHAR_PX = 6;
const LABEL_MAX_CHARS = 28;
/** The height of a line of such a label, in pixels. */
export const LABEL_LINE_PX = 14;

/** The text of an arrow; it may have several lines. */
export type EdgeWords = (edge: ViewEdge) => string;

/** Lays out a view. @throws errors of the layout engine. */
export async function layOut(
  elk: Pick<ELK, 'layout'>,
  view: ChartView,
  words: EdgeWords = edgeLabel,
): Promise<Drawing> {
  return drawingOf(view, await elk.layout(elkGraph(view, words)));
}

/** The input of the layout engine. */
export function elkGraph(view: ChartView, words: EdgeWords = edgeLabel): ElkNode {
  return {
    id: 'chart',
    layoutOptions: {
      'elk.algorithm': 'layered',
      'elk.direction': 'DOWN',
      'elk.hierarchyHandling': 'INCLUDE_CHILDREN',
      'elk.edgeRouting': 'ORTHOGONAL',
      'elk.json.shapeCoords': 'ROOT',
      'elk.json.edgeCoords': 'ROOT',
      'elk.spacing.nodeNode': '22',
      'elk.spacing.edgeNode': '14',
      'elk.spacing.edgeEdge': '10',
      'elk.spacing.edgeLabel': '4',
      'elk.layered.spacing.nodeNodeBetweenLayers': '30',
      'elk.layered.spacing.edgeNodeBetweenLayers': '14',
      'elk.layered.spacing.edgeEdgeBetweenLayers': '10',
      'elk.layered.considerModelOrder.strategy': 'NODES_AND_EDGES',
      'elk.layered.cycleBreaking.strategy': 'MODEL_ORDER',
      'elk.layered.nodePlacement.strategy': 'NETWORK_SIMPLEX',
    },
    children: view.nodes.map(elkNode),
    edges: view.edges.map((edge) => elkEdge(edge, words(edge))),
  };
}

/** The short text of an arrow. */
export function edgeLabel({ reasons }: ViewEdge): string {
  const events = [...new Set(reasons.map((reason) => reason.replace(/ \[.*$/, '')))];
  const [first = ''] = events;
  const more = events.length > 1 ? ` +${events.length - 1}` : '';
  const room = LABEL_MAX_CHARS - more.length;
  return `${first.length > room ? `${cutGraphemes(first, room - 1)}…` : first}${more}`;
}

function elkNode(node: ViewNode): ElkNode {
  if (node.kind === 'initial') return { id: node.id, width: 10, height: 10 };
  const width = Math.round(node.label.length * STATE_CHAR_PX + (node.compound ? 44 : 28));
  if (node.children.length === 0) return { id: node.id, width, height: 30 };
  return {
    id: node.id,
    layoutOptions: {
      'elk.padding': '[top=40,left=14,bottom=14,right=14]',
      'elk.nodeSize.constraints': 'MINIMUM_SIZE',
      'elk.nodeSize.minimum': `(${width},60)`,
    },
    children: node.children.map(elkNode),
  };
}

function elkEdge(edge: ViewEdge, text: string): ElkExtendedEdge {
  const lines = text.split('\n');
  const longest = Math.max(...lines.map(({ length }) => length));
  const size = { width: Math.round(longest * LABEL_CHAR_PX) + 4, height: lines.length * LABEL_LINE_PX };
  return {
    id: edge.id,
    sources: [edge.from],
    targets: [edge.to],
    ...(text === '' ? {} : { labels: [{ text, ...size }] }),
  };
}

function drawingOf(view: ChartView, laidOut: ElkNode): Drawing {
  const placed = new Map<string, ElkNode>();
  const visit = (node: ElkNode): void => {
    placed.set(node.id, node);
    for (const child of node.children ?? []) visit(child);
  };
  visit(laidOut);
  const nodes: PlacedNode[] = [];
  const place = (node: ViewNode): void => {
    const { x = 0, y = 0, width = 0, height = 0 } = placed.get(node.id) ?? {};
    nodes.push({ node, x, y, width, height });
    for (const child of node.children) place(child);
  };
  for (const node of view.nodes) place(node);
  const edges = new Map((laidOut.edges ?? []).map((edge) => [edge.id, edge]));
  return {
    width: Math.ceil(laidOut.width ?? 0),
    height: Math.ceil(laidOut.height ?? 0),
    nodes,
    edges: view.edges.map((edge) => placedEdge(edge, edges.get(edge.id))),
  };
}

function placedEdge(edge: ViewEdge, laidOut: ElkExtendedEdge | undefined): PlacedEdge {
  const points = (laidOut?.sections ?? []).flatMap(({ startPoint, bendPoints = [], endPoint }) =>
    [startPoint, ...bendPoints, endPoint].map(({ x, y }) => [x, y] as const),
  );
  const label = laidOut?.labels?.[0];
  return {
    edge,
    points,
    label: label ? { text: label.text ?? '', x: label.x ?? 0, y: label.y ?? 0 } : null,
  };
}
