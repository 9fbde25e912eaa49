/** Draws the diagrams of a page as SVG, with the layout that the console has for its statecharts. */
import Elk from 'elkjs/lib/elk.bundled.js';
import type { ViewEdge } from '../../libs/console/src/statechart/chart-view.ts';
import { roundedWay } from '../../libs/console/src/statechart/edge-way.ts';
import {
  type Drawing,
  LABEL_LINE_PX,
  layOut,
  type PlacedEdge,
  type PlacedNode,
} from '../../libs/console/src/statechart/layout.ts';
import { escaped, fencesOf } from './markdown-page.ts';
import { readStateDiagram } from './state-diagram.ts';

/** The diagrams of a page. */
export interface Diagrams {
  /** SVG, by the source. */
  readonly drawn: ReadonlyMap<string, string>;
  /** Lines for which a diagram is not drawn. */
  readonly unread: readonly string[];
}

/** Beyond it, what an event asks for stands on a line of its own. */
const LINE_MAX_CHARS = 30;

/** Draws all of a page. @param text of the page, in Markdown. */
export async function drawDiagrams(text: string): Promise<Diagrams> {
  const drawn = new Map<string, string>();
  const unread: string[] = [];
  for (const fence of fencesOf(text).filter(({ language }) => language === 'mermaid')) {
    const source = fence.text.trimEnd();
    const diagram = readStateDiagram(source);
    if ('unread' in diagram) unread.push(diagram.unread);
    else drawn.set(source, svgOf(await layOut(new Elk.default(), diagram, edgeWords), `arrow-${drawn.size + 1}`));
  }
  return { drawn, unread };
}

/** All that leads along an arrow, a line each, or two. */
function edgeWords({ reasons }: ViewEdge): string {
  return reasons
    .map((reason) => (reason.length > LINE_MAX_CHARS ? reason.replaceAll(/ (?=\[)|(?<=,) /g, '\n') : reason))
    .join('\n');
}

/** @param arrow what the head of its arrows is called in the page. */
function svgOf({ width, height, nodes, edges }: Drawing, arrow: string): string {
  return `<svg aria-hidden="true" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">
<defs><marker id="${arrow}" viewBox="0 0 8 8" refX="7" refY="4" markerUnits="userSpaceOnUse" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0 8 4 0 8z"/></marker></defs>
${nodes.map(box).join('\n')}
${edges.map((edge) => way(edge, arrow)).join('\n')}
${edges.map(words).join('\n')}
</svg>`;
}

function box({ node, x, y, width, height }: PlacedNode): string {
  if (node.kind === 'initial') return `<circle cx="${x + width / 2}" cy="${y + height / 2}" r="${width / 2}"/>`;
  const rect = (kind: string) => `<rect class="${kind}" x="${x}" y="${y}" width="${width}" height="${height}" rx="6"/>`;
  const name = escaped(node.label);
  if (node.children.length > 0) return `${rect('around')}<text class="head" x="${x + 14}" y="${y + 22}">${name}</text>`;
  return `${rect('state')}<text class="name" x="${x + width / 2}" y="${y + height / 2 + 4}">${name}</text>`;
}

function way({ points }: PlacedEdge, arrow: string): string {
  return `<path class="way" d="${roundedWay(points)}" marker-end="url(#${arrow})"/>`;
}

function words({ label }: PlacedEdge): string {
  if (label === null) return '';
  const lines = label.text
    .split('\n')
    .map((line, at) => `<tspan x="${label.x + 2}" y="${label.y + 11 + at * LABEL_LINE_PX}">${escaped(line)}</tspan>`);
  return `<text class="words">${lines.join('')}</text>`;
}
