/** Going through a path step by step: a record may have many steps, or none. A position is how many steps have been taken. */
import type { ChartStep } from './chart-path.ts';

/** The position after all steps of a record and of those before it. */
export function positionAfter(path: readonly ChartStep[], n: number): number {
  // Steps stand in the order of their records.
  let [low, high] = [0, path.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((path[middle] as ChartStep).n <= n) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The record that a position lies in: that of the step that was taken last, or of the first where none was. */
export function recordAt(path: readonly ChartStep[], position: number): number {
  return path[Math.max(0, position - 1)]?.n ?? 1;
}

/** What is known at a position. */
export interface StepMoment {
  /** The innermost state; null where there is no path. */
  readonly state: string | null;
  /** What has led there; null before the first step, and where it is not known. */
  readonly event: string | null;
}

/** The state at a position, and the event that led to it. */
export function momentAt(path: readonly ChartStep[], position: number): StepMoment {
  const taken = path[position - 1];
  return taken ? { state: taken.to, event: taken.event } : { state: path[0]?.from ?? null, event: null };
}
