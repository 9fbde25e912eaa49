/** An event of a session, as a statechart is told of it. */
import type { SessionEvent } from '@coxswain/protocol';
import type { ChartEvent } from '../statechart/chart-path.ts';

/** Its name, and the state in which it was taken, where it names that. */
export function chartEvent(event: SessionEvent): ChartEvent {
  // A checkpoint names its seam, and seams are states; but for one, which is passed in several.
  const within = event.type === 'loop_checkpoint' && event.kind !== 'pre_tool_dispatch' ? event.kind : undefined;
  return { type: event.type, within };
}
