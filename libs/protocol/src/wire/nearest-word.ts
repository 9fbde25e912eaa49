/**
 * Suggestions for misspelt words.
 */

/** The candidate with the most similar spelling, or null if none is similar enough to suggest. */
export function nearestWord<T extends string>(word: string, candidates: Iterable<T>): T | null {
  // Bounds the cost of a long word.
  const asked = word.slice(0, 48);
  let best: T | null = null;
  let bestDistance = Number.POSITIVE_INFINITY;
  for (const candidate of candidates) {
    const distance = candidate.startsWith(asked) && asked !== '' ? 1 : editDistance(asked, candidate);
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  if (best === null || bestDistance >= best.length) return null;
  return bestDistance <= Math.max(2, Math.floor(best.length / 2)) ? best : null;
}

/** Levenshtein distance (https://en.wikipedia.org/wiki/Levenshtein_distance), with one row. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitute = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(substitute, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[b.length] as number;
}
