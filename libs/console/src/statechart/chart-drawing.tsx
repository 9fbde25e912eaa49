/** Renders a laid-out statechart as SVG. */
import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import { around, type ChartIndex } from './chart.ts';
import type { ChartStep } from './chart-path.ts';
import { drawnFor, edgeFor } from './chart-view.ts';
import { roundedWay } from './edge-way.ts';
import type { Drawing, PlacedEdge, PlacedNode } from './layout.ts';

interface Marks {
  readonly active: ReadonlySet<string>;
  readonly visited: ReadonlySet<string>;
  readonly taken: ReadonlySet<string>;
  readonly last: string | null;
}

/** Renders the boxes and arrows of a layout, with marks for the active state and the path. */
export function ChartDrawing({
  index,
  open,
  drawing,
  active,
  path,
  zoom,
}: {
  readonly index: ChartIndex;
  readonly open: ReadonlySet<string>;
  readonly drawing: Drawing;
  readonly active: string | null;
  readonly path: readonly ChartStep[];
  readonly zoom: number;
}): VNode {
  const marks = useMemo(() => marksOf(index, open, drawing, active, path), [index, open, drawing, active, path]);
  const { width, height, nodes, edges } = drawing;
  const ordered = [...edges].sort((a, b) => rank(marks, a) - rank(marks, b));
  return (
    <svg
      class="chart"
      role="img"
      aria-label={`Statechart ${index.chart.id}. Current state: ${active ?? 'none'}.`}
      width={Math.round(width * zoom)}
      height={Math.round(height * zoom)}
      viewBox={`0 0 ${width} ${height}`}
    >
      <defs>
        {['plain', 'taken', 'last'].map((kind) => (
          <marker
            key={kind}
            id={`arrow-${kind}`}
            class={`arrow ${kind}`}
            viewBox="0 0 8 8"
            refX="7"
            refY="4"
            markerUnits="userSpaceOnUse"
            markerWidth={kind === 'last' ? 11 : 8}
            markerHeight={kind === 'last' ? 11 : 8}
            orient="auto-start-reverse"
          >
            <path d="M0 0 8 4 0 8z" />
          </marker>
        ))}
      </defs>
      {nodes.map((placed) => (
        <NodeBox key={placed.node.id} placed={placed} marks={marks} />
      ))}
      {ordered.map((placed) => (
        <EdgeLine key={placed.edge.id} placed={placed} kind={kindOf(marks, placed)} />
      ))}
    </svg>
  );
}

function NodeBox({ placed, marks }: { readonly placed: PlacedNode; readonly marks: Marks }) {
  const { node, x, y, width, height } = placed;
  if (node.kind === 'initial') return <circle class="initial" cx={x + 5} cy={y + 5} r={5} />;
  const isSeam = node.tags.includes('seam');
  const inner = node.children.length > 0;
  const classes = [
    'node',
    node.kind,
    inner ? 'open' : node.closed ? 'closed' : 'leaf',
    ...(isSeam ? ['seam'] : []),
    ...(marks.active.has(node.id) ? ['active'] : []),
    ...(marks.visited.has(node.id) ? ['visited'] : []),
  ];
  return (
    <g class={classes.join(' ')} data-state={node.id}>
      <title>{[node.id === '*' ? 'from anywhere' : node.id, ...node.tags].join(', ')}</title>
      <rect x={x} y={y} width={width} height={height} rx={isSeam ? 14 : 6} />
      <text x={x + (inner ? 14 : width / 2)} y={inner ? y + 22 : y + height / 2 + 4} class={inner ? 'head' : 'name'}>
        {node.label}
        {node.closed ? ' ▸' : ''}
      </text>
    </g>
  );
}

function EdgeLine({ placed, kind }: { readonly placed: PlacedEdge; readonly kind: 'plain' | 'taken' | 'last' }) {
  const { edge, points, label } = placed;
  if (points.length === 0) return null;
  return (
    <g class={`edge ${kind}`} data-edge={edge.id}>
      <title>{edge.reasons.join('\n')}</title>
      <path d={roundedWay(points)} marker-end={`url(#arrow-${kind})`} />
      {label && (
        <text x={label.x + 2} y={label.y + 11}>
          {label.text}
        </text>
      )}
    </g>
  );
}

function kindOf({ last, taken }: Marks, { edge }: PlacedEdge): 'plain' | 'taken' | 'last' {
  if (edge.id === last) return 'last';
  return taken.has(edge.id) ? 'taken' : 'plain';
}

function rank(marks: Marks, placed: PlacedEdge): number {
  return ['plain', 'taken', 'last'].indexOf(kindOf(marks, placed));
}

function marksOf(
  index: ChartIndex,
  open: ReadonlySet<string>,
  { edges }: Drawing,
  active: string | null,
  path: readonly ChartStep[],
): Marks {
  const drawn = new Set(edges.map(({ edge }) => edge.id));
  const boxes = (state: string) => around(index, drawnFor(index, open, state));
  const visited = new Set<string>();
  const taken = new Set<string>();
  let last: string | null = null;
  // Repeated steps are looked up once.
  const known = new Map<string, string | null>();
  for (const step of path) {
    const key = `${step.from}→${step.to}`;
    let edge = known.get(key);
    if (edge === undefined) {
      edge = edgeFor(index, open, step, drawn);
      known.set(key, edge);
      for (const state of [step.from, step.to]) for (const one of boxes(state)) visited.add(one);
    }
    if (edge === null) continue;
    taken.add(edge);
    last = edge;
  }
  return { active: new Set(active === null ? [] : boxes(active)), visited, taken, last };
}
