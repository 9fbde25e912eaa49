/** The path of an arrow in SVG. */
import type { PlacedEdge } from './layout.ts';

const CORNER_PX = 6;

/**
 * The `d` attribute of a path along these points. Its corners are rounded, so that crossing arrows can be
 * distinguished.
 */
export function roundedWay(points: PlacedEdge['points']): string {
  const [first, ...rest] = points;
  if (!first) return '';
  let drawn = `M${first[0]} ${first[1]}`;
  let from = first;
  for (const [at, to] of rest.entries()) {
    const next = rest[at + 1];
    if (!next) {
      drawn += `L${to[0]} ${to[1]}`;
      break;
    }
    const before = toward(to, from);
    const after = toward(to, next);
    drawn += `L${before[0]} ${before[1]}Q${to[0]} ${to[1]} ${after[0]} ${after[1]}`;
    from = to;
  }
  return drawn;
}

type Point = readonly [x: number, y: number];

function toward(corner: Point, other: Point): Point {
  const [dx, dy] = [other[0] - corner[0], other[1] - corner[1]];
  const length = Math.hypot(dx, dy);
  const cut = Math.min(CORNER_PX, length / 2);
  return length === 0 ? corner : [corner[0] + (dx / length) * cut, corner[1] + (dy / length) * cut];
}
