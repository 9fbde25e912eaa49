/**
 * Records hold the store's time, whatever the clock of the host that wrote them shows: a record is made before it is
 * stored, and not long before.
 */
import { BEGINNING_MS } from '../../../libs/session/test/virtual-time.ts';
import type { Checker } from './check.ts';

/** What a measurement over a slow bus cannot know. Clocks of hosts are off by ten minutes. */
const AHEAD_MAX_MS = 5_000;
/** Hosts stand still between making a record and sending it, and appends are tried again; but not for longer. */
const BEHIND_MAX_MS = 60_000;

/** See the top of the file. */
export const checkClocks: Checker = ({ session, records }, { history }) => {
  const storedMs = new Map<number, number>();
  for (const entry of history.entries)
    if (entry.what === 'stored' && entry.session === session) storedMs.set(entry.n, BEGINNING_MS + entry.atMs);
  return records.flatMap(({ n, at }) => {
    const offMs = Date.parse(at) - (storedMs.get(n) ?? Number.NaN);
    return offMs <= AHEAD_MAX_MS && offMs >= -BEHIND_MAX_MS ? [] : [`record ${n} is ${offMs} ms off the store's time`];
  });
};
