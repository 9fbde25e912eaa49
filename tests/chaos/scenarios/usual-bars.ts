/** Figures that every scenario tells. */
import type { Measures } from '../measures.ts';
import type { Bar } from '../scenario.ts';

/** @param stallMs the longest time for which a session may stand still. */
export function usualBars(measures: Measures, stallMs?: number): Bar[] {
  return [
    {
      what: 'worst stall of a session',
      value: measures.stalls?.worst ?? null,
      unit: 'ms',
      ...(stallMs === undefined ? {} : { atMost: stallMs }),
    },
    { what: 'stall, 99th percentile', value: measures.stalls?.p99 ?? null, unit: 'ms' },
    {
      what: 'longest time between records, work of models and tools included',
      value: measures.gaps?.worst ?? null,
      unit: 'ms',
    },
    { what: 'longest wait of a command for its record', value: measures.commandWaits?.worst ?? null, unit: 'ms' },
    { what: 'wait of a command, median', value: measures.commandWaits?.p50 ?? null, unit: 'ms' },
  ];
}
