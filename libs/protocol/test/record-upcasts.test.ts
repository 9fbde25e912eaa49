/**
 * Records of earlier versions: converted step by step to the newest, or rejected by their version.
 */
import { describe, expect, test } from 'vitest';
import {
  BlobMissingError,
  blobRefsOf,
  decodeRecord,
  RECORD_VERSION,
  RecordUnreadableError,
  RecordVersionUnknownError,
  UPCASTS,
  type Upcast,
} from '../src/mod.ts';

const today = {
  v: RECORD_VERSION,
  session_id: 's1',
  n: 1,
  epoch: 1,
  attempt: 'host',
  prev_hash: '0'.repeat(64),
  at: '2030-01-01T00:00:00.000Z',
  input: { type: 'owned', epoch: 1, host: 'host' },
  events: [{ type: 'owned', epoch: 1, host: 'host' }],
  state: 'stopped',
  effects_open: [],
};
const encode = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));

/** Invented versions: two versions ago the writer was `by`; one version ago the time was a number. */
const { attempt, at, ...rest } = today;
const twoAgo = { ...rest, v: RECORD_VERSION - 2, by: attempt, time: Date.parse(at) };
const oneAgo = { ...rest, v: RECORD_VERSION - 1, attempt, time: Date.parse(at) };
const steps: ReadonlyMap<number, Upcast> = new Map<number, Upcast>([
  [RECORD_VERSION - 2, ({ by, ...others }) => ({ ...others, attempt: by })],
  [RECORD_VERSION - 1, ({ time, ...others }) => ({ ...others, at: new Date(time as number).toISOString() })],
]);

test('there is one upcast from each released version before the newest', () => {
  const earlier = Array.from({ length: RECORD_VERSION - 1 }, (_, index) => index + 1);
  expect([...UPCASTS.keys()].sort((a, b) => a - b)).toEqual(earlier);
});

test('a record passes all upcasts from its own version on', () => {
  expect(decodeRecord(encode(twoAgo), undefined, steps)).toEqual(today);
  expect(decodeRecord(encode(oneAgo), undefined, steps)).toEqual(today);
  expect(decodeRecord(encode(today), undefined, steps)).toEqual(today);
});

test('its large fields are put back before the first upcast', () => {
  const ref = { sha256: 'a'.repeat(64), bytes: 4 };
  const stored = encode({ ...twoAgo, by: ref, blobs: ['/by'] });
  expect(blobRefsOf(stored, steps)).toEqual([ref]);
  expect(decodeRecord(stored, () => 'host', steps)).toEqual(today);
  expect(() => decodeRecord(stored, () => undefined, steps)).toThrow(BlobMissingError);
});

describe('it is rejected', () => {
  const refusal = (record: object, upcasts: ReadonlyMap<number, Upcast>) => {
    try {
      return decodeRecord(encode(record), undefined, upcasts);
    } catch (error) {
      return error;
    }
  };

  test('if an upcast is missing, also in the middle', () => {
    const last = new Map([...steps].slice(1));
    const first = new Map([...steps].slice(0, 1));
    for (const known of [last, first, new Map()])
      expect(refusal(twoAgo, known)).toBeInstanceOf(RecordVersionUnknownError);
    expect(refusal(oneAgo, last)).toEqual(today);
  });

  test('with the version of a later release, or an invalid version', () => {
    expect(refusal({ ...today, v: RECORD_VERSION + 1 }, steps)).toBeInstanceOf(RecordVersionUnknownError);
    expect(refusal({ ...today, v: RECORD_VERSION - 0.5 }, steps)).toBeInstanceOf(RecordVersionUnknownError);
    expect(refusal({ ...today, v: '1' }, steps)).not.toBeInstanceOf(RecordVersionUnknownError);
    expect(refusal({ ...today, v: '1' }, steps)).toBeInstanceOf(RecordUnreadableError);
  });

  test('if the result is not a record', () => {
    expect(refusal({ ...twoAgo, more: 1 }, steps)).toMatchObject({
      code: 'record_unreadable',
      message: expect.stringContaining('record 1 does not fit version'),
    });
  });
});
