/**
 * Moves through a path step by step: a record may have many steps, or none. A position is the number of steps taken.
 */
import type { ChartStep } from './chart-path.ts';

/** The position after all steps of a record and of earlier ones. */
export function positionAfter(path: readonly ChartStep[], n: number): number {
  // Steps are in the order of their records.
  let [low, high] = [0, path.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((path[middle] as ChartStep).n <= n) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The record of a position: that of the last step taken, or of the first step before any was taken. */
export function recordAt(path: readonly ChartStep[], position: number): number {
  return path[Math.max(0, position - 1)]?.n ?? 1;
}

/** The state at a position. */
export interface StepMoment {
  /** The innermost state; null without a path. */
  readonly state: string | null;
  /** The event that led to it; null before the first step, and if it is unknown. */
  readonly event: string | null;
}

/** The state at a position, and the event that led to it. */
export function momentAt(path: readonly ChartStep[], position: number): StepMoment {
  const taken = path[position - 1];
  return taken ? { state: taken.to, event: taken.event } : { state: path[0]?.from ?? null, event: null };
}
