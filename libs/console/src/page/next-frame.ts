/** Schedules rendering for the next animation frame. */

/** The longest wait for a frame. Browsers draw none for a hidden page, and may stop for a visible one. */
const FRAME_WITHIN_MS = 250;

/**
 * Calls back once: in the next animation frame, or by a timer if the browser draws none in time.
 * @returns a function that cancels the call.
 */
export function onNextFrame(render: () => void): () => void {
  const cancel = () => {
    cancelAnimationFrame(frame);
    clearTimeout(timer);
  };
  const once = () => {
    cancel();
    render();
  };
  const frame = requestAnimationFrame(once);
  const timer = setTimeout(once, FRAME_WITHIN_MS);
  return cancel;
}
