/** Converts an event of a session to an event of a statechart. */
import type { SessionEvent } from '@coxswain/protocol';
import type { ChartEvent } from '../statechart/chart-path.ts';

/** The type of the event, and the state in which it was taken if the event names it. */
export function chartEvent(event: SessionEvent): ChartEvent {
  // A checkpoint names its seam, and seams are states, except one seam that several states pass.
  const within = event.type === 'loop_checkpoint' && event.kind !== 'pre_tool_dispatch' ? event.kind : undefined;
  return { type: event.type, within };
}
