/**
 * Traces that must not replay: each is a golden trace with one wrong thing in it, the smallest in which that thing can
 * be shown.
 */
import { canonicalJson } from '@coxswain/protocol';
import { readTrace } from './trace-files.ts';

/** One broken trace. */
export interface BrokenTrace {
  /** The file's name, in `broken/`. */
  readonly name: string;
  /** The golden trace that it was. */
  readonly of: string;
  /** What was done to it. */
  readonly was: string;
  /** The code of the error that replay must end with. */
  readonly code: 'replay_diverged' | 'blob_missing' | 'record_unreadable';
  /** The place of the record at which it must end. */
  readonly at: number;
  /** The member that must be named, where the wrong thing is one member. */
  readonly path?: string;
  readonly breakIt: (records: Uint8Array[]) => Uint8Array[];
}

type Members = { [key: string]: unknown };

/** See the top of the file. */
export const BROKEN_TRACES: readonly BrokenTrace[] = [
  {
    name: 'event-changed',
    of: 'cancel-while-provisioning',
    was: 'the run ended otherwise than it did',
    code: 'replay_diverged',
    at: 3,
    path: '/events/2/stop_reason',
    breakIt: changed(3, ({ events }) => {
      Object.assign((events as Members[])[2] as Members, { stop_reason: 'end_turn' });
    }),
  },
  {
    name: 'event-added',
    of: 'tools-not-opened',
    was: 'the failure is told twice',
    code: 'replay_diverged',
    at: 2,
    path: '/events/1/error',
    breakIt: changed(2, (record) => {
      const [first, ...rest] = record.events as Members[];
      record.events = [first, first, ...rest];
    }),
  },
  {
    name: 'input-changed',
    of: 'cancel-while-provisioning',
    was: 'the run was cancelled without a reason, and is said to have been cancelled for one',
    code: 'replay_diverged',
    at: 2,
    path: '/events/0/reason',
    breakIt: changed(2, ({ input }) => {
      (input as Members).body = { reason: 'rain' };
    }),
  },
  {
    name: 'state-changed',
    of: 'cancel-while-provisioning',
    was: 'the record leads to another state than its events do',
    code: 'replay_diverged',
    at: 2,
    path: '/state',
    breakIt: changed(2, (record) => {
      record.state = 'stopped';
    }),
  },
  {
    name: 'time-changed',
    of: 'cancel-while-provisioning',
    was: 'a record is a minute older than it was: nothing recomputes that, so the next record of the chain shows it',
    code: 'replay_diverged',
    at: 3,
    path: '/prev_hash',
    breakIt: changed(2, (record) => {
      record.at = '2029-12-31T23:59:00.000Z';
    }),
  },
  {
    name: 'record-missing',
    of: 'cancel-while-provisioning',
    was: 'the second of three records is not there',
    code: 'replay_diverged',
    at: 2,
    breakIt: ([first, , third]) => [first, third] as Uint8Array[],
  },
  {
    name: 'records-swapped',
    of: 'cancel-while-provisioning',
    was: 'the last two records have changed places',
    code: 'replay_diverged',
    at: 2,
    breakIt: ([first, second, third]) => [first, third, second] as Uint8Array[],
  },
  {
    name: 'record-repeated',
    of: 'cancel-while-provisioning',
    was: 'the second record is there twice',
    code: 'replay_diverged',
    at: 3,
    breakIt: ([first, second, third]) => [first, second, second, third] as Uint8Array[],
  },
  {
    name: 'not-canonical',
    of: 'cancel-while-provisioning',
    was: 'a record has the same value in other bytes: one space more',
    code: 'replay_diverged',
    at: 2,
    path: '',
    breakIt: (records) => replaced(records, 2, (text) => text.replace(',', ', ')),
  },
  {
    name: 'torn',
    of: 'cancel-while-provisioning',
    was: 'the last record ends in its middle',
    code: 'replay_diverged',
    at: 3,
    path: '',
    breakIt: (records) => replaced(records, 3, (text) => text.slice(0, text.length / 2)),
  },
  {
    name: 'other-version',
    of: 'tools-not-opened',
    was: 'a record says that a later release has written it',
    code: 'record_unreadable',
    at: 2,
    breakIt: changed(2, (record) => {
      record.v = 2;
    }),
  },
  {
    name: 'blob-missing',
    of: 'large-field',
    was: 'a record refers to bytes that nobody has',
    code: 'blob_missing',
    at: 1,
    breakIt: ([first]) =>
      replaced([first as Uint8Array], 1, (text) =>
        text.replace(/"sha256":"[0-9a-f]{64}"/g, `"sha256":"${'0'.repeat(64)}"`),
      ),
  },
];

/** Makes a broken trace from the golden one that lies in the folder. */
export function breakTrace({ of, breakIt }: BrokenTrace): Uint8Array[] {
  return breakIt(readTrace(of));
}

/** Changes one record, and writes it as canonical JSON again: only its meaning is wrong. */
function changed(n: number, change: (record: Members) => void): BrokenTrace['breakIt'] {
  return (records) =>
    replaced(records, n, (text) => {
      const record = JSON.parse(text) as Members;
      change(record);
      return canonicalJson(record);
    });
}

function replaced(records: readonly Uint8Array[], n: number, by: (text: string) => string): Uint8Array[] {
  return records.map((bytes, index) =>
    index === n - 1 ? Buffer.from(by(Buffer.from(bytes).toString('utf8')), 'utf8') : bytes,
  );
}
