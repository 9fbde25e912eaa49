/** Sets of integers as runs, so that the used turns of a long script stay a few characters: `0-41,43`. */

/** Disjoint runs `[first, last]` in ascending order. No two of them are adjacent. */
export type Ranges = readonly (readonly [first: number, last: number])[];

/** Formats a set: `0-41,43`. */
export function printRanges(ranges: Ranges): string {
  return ranges.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)).join(',');
}

/** Parses the output of {@link printRanges}. Invalid runs are ignored. */
export function parseRanges(text: string): Ranges {
  const ranges: [number, number][] = [];
  for (const run of text.split(',')) {
    const match = /^(\d+)(?:-(\d+))?$/.exec(run);
    if (match) ranges.push([Number(match[1]), Number(match[2] ?? match[1])]);
  }
  return ranges;
}

/** Adds one member to a set. */
export function withMember(ranges: Ranges, member: number): Ranges {
  const result: [number, number][] = [];
  let [first, last] = [member, member];
  let placed = false;
  for (const run of ranges) {
    if (run[1] < first - 1) result.push([run[0], run[1]]);
    else if (run[0] > last + 1) {
      if (!placed) result.push([first, last]);
      placed = true;
      result.push([run[0], run[1]]);
    } else [first, last] = [Math.min(first, run[0]), Math.max(last, run[1])];
  }
  if (!placed) result.push([first, last]);
  return result;
}
