/**
 * Instances of every kind of served work that are killed or frozen, as real processes: a sample, and with `COX_NIGHTLY`
 * 100 pieces of each kind in each cell, the limit of waiting times, and a table. `COX_SERVED_RUNS` is another number.
 * `tests/contracts/served-matrix.test.ts` runs the same matrix on virtual time.
 */
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { createRandom } from '../simulation/random.ts';
import { startBus, type TestBus } from './kit/bus.ts';
import { removeScratch } from './kit/scratch.ts';
import { kindsOf, openServedPorts, ServedFleet, type ServedPorts } from './kit/served-fleet.ts';
import { FAILURES, type Judged, MOMENTS, runRound, WAIT_MAX_MS } from './kit/served-rounds.ts';

vi.setConfig({ testTimeout: 3_600_000 });

const { COX_NIGHTLY, COX_SERVED_RUNS, COX_SEED } = process.env;
const wanted = Number(COX_SERVED_RUNS ?? (COX_NIGHTLY ? 100 : 1));
const isSample = wanted === 1;
/** Work that another instance runs does not count: a cell needs several rounds. */
const ROUNDS_MAX = isSample ? 1 : wanted;
const ASKS = isSample ? 2 : 16;
/** Also longer than the silence after which work is lost, milliseconds. */
const FROZEN_MS = isSample ? [4_000] : [500, 2_000, 5_000, 17_000];
/** In `npm test` the machine is busy: only a session that waits without end fails. */
const SLOWER = isSample ? 10 : 1;
const FLEETS = [2, 3].flatMap((instances) => FAILURES.map((failure) => ({ instances, failure })));
const sample = FLEETS.filter(({ instances, failure }) => (instances === 2) === (failure === 'frozen'));

let bus: TestBus;
let ports: ServedPorts;
const fleets: ServedFleet[] = [];
const rows: object[] = [];

beforeAll(async () => {
  bus = await startBus();
  ports = await openServedPorts(bus);
});
afterAll(async () => {
  if (!isSample) console.table(rows);
  await Promise.all(fleets.map((fleet) => fleet.stop()));
  await ports?.close();
  await bus?.stop();
  await removeScratch();
});

test.concurrent.each(isSample ? sample : FLEETS)(
  'every kind of work ends once and in time while one of $instances instances is $failure',
  async ({ instances, failure }) => {
    const fleet = await ServedFleet.start(bus, ports, `fleet-${instances}-${failure}`, instances);
    fleets.push(fleet);
    const kinds = kindsOf(fleet, ports) ?? [];
    const random = createRandom(Number(COX_SEED ?? 1)).fork(fleet.name);
    const judged: Judged[] = [];
    for (const moment of MOMENTS) {
      const isDone = () =>
        kinds.every((kind) => judged.filter((one) => one.kind === kind && one.moment === moment).length >= wanted);
      for (let round = 0; round < ROUNDS_MAX && !isDone(); round++)
        judged.push(...(await runRound(fleet, kinds, { failure, moment, asks: ASKS, frozenMs: FROZEN_MS }, random)));
    }
    for (const { title, isRepeatable } of kinds)
      for (const moment of MOMENTS) {
        const cell = judged.filter((one) => one.kind.title === title && one.moment === moment);
        const count = (holds: (one: Judged) => boolean) => cell.filter(holds).length;
        rows.push({
          work: title,
          cell: `1 of ${instances} ${failure} ${moment}`,
          pieces: cell.length,
          answered: count(({ ending }) => ending.status === 'answered'),
          lost: count(({ ending }) => ending.status === 'lost'),
          ...(isRepeatable
            ? { repeated: count(({ starts }) => starts > 1), late: count(({ isLate }) => isLate) }
            : { doubled: count(({ starts }) => starts > 1) }),
          'longest wait, s': (Math.max(0, ...cell.map(({ waitedMs }) => waitedMs)) / 1_000).toFixed(1),
        });
      }
    expect(judged.flatMap(({ broken }) => broken)).toEqual([]);
    // A process can be suspended after its last check, in the middle of a start. Then it starts what may run twice.
    expect(judged.filter(({ isLate }) => isLate).length).toBeLessThanOrEqual(judged.length / 1_000);
    const late = judged.filter(({ waitedMs }) => waitedMs > SLOWER * WAIT_MAX_MS);
    expect(late.map(({ kind, moment, waitedMs }) => `${kind.title}, ${moment}: ${waitedMs} ms`)).toEqual([]);
  },
);
