/** Where a step of the slider leads. */

/** The record that is shown after a step; null for what happens now, which lies at the newest. */
export function sliderStep(at: number | null, newest: number, by: 1 | -1): number | null {
  if (newest === 0) return null;
  const next = Math.max(1, Math.min(at ?? newest, newest) + by);
  return next >= newest ? null : next;
}
