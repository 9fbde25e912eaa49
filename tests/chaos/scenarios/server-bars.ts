/** Figures of scenarios in which servers are struck: how long nobody could write, and what publishers were told. */
import type { Measures } from '../measures.ts';
import type { Bar } from '../scenario.ts';
import { usualBars } from './usual-bars.ts';

/** @param stallMs the longest time for which a session may stand still. */
export function serverBars(measures: Measures, stallMs?: number): Bar[] {
  return [
    ...usualBars(measures, stallMs),
    { what: 'publishes that ended in an error, and were made again', value: measures.unacknowledged, unit: '' },
    { what: 'receipts that did not come in time', value: measures.noReceipt, unit: '' },
    { what: 'records', value: measures.records, unit: '' },
  ];
}
