/** The target of a step of the slider. */

/** The record to show after a step; null for the live view, which is at the newest record. */
export function sliderStep(at: number | null, newest: number, by: 1 | -1): number | null {
  if (newest === 0) return null;
  const next = Math.max(1, Math.min(at ?? newest, newest) + by);
  return next >= newest ? null : next;
}
