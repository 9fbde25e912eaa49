/** Records of earlier shapes: read on into today's, step by step, or refused by their version. */
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

/** Made up: two versions ago the writer was `by`; in the one before today's the time was a number. */
const { attempt, at, ...rest } = today;
const twoAgo = { ...rest, v: RECORD_VERSION - 2, by: attempt, time: Date.parse(at) };
const oneAgo = { ...rest, v: RECORD_VERSION - 1, attempt, time: Date.parse(at) };
const steps: ReadonlyMap<number, Upcast> = new Map<number, Upcast>([
  [RECORD_VERSION - 2, ({ by, ...others }) => ({ ...others, attempt: by })],
  [RECORD_VERSION - 1, ({ time, ...others }) => ({ ...others, at: new Date(time as number).toISOString() })],
]);

test('there is one step from each version that was ever released before today’s', () => {
  const earlier = Array.from({ length: RECORD_VERSION - 1 }, (_, index) => index + 1);
  expect([...UPCASTS.keys()].sort((a, b) => a - b)).toEqual(earlier);
});

test('a record goes through all steps from its own version on', () => {
  expect(decodeRecord(encode(twoAgo), undefined, steps)).toEqual(today);
  expect(decodeRecord(encode(oneAgo), undefined, steps)).toEqual(today);
  expect(decodeRecord(encode(today), undefined, steps)).toEqual(today);
});

test('its large fields are put back where they were before any step', () => {
  const ref = { sha256: 'a'.repeat(64), bytes: 4 };
  const stored = encode({ ...twoAgo, by: ref, blobs: ['/by'] });
  expect(blobRefsOf(stored, steps)).toEqual([ref]);
  expect(decodeRecord(stored, () => 'host', steps)).toEqual(today);
  expect(() => decodeRecord(stored, () => undefined, steps)).toThrow(BlobMissingError);
});

describe('it is refused', () => {
  const refusal = (record: object, upcasts: ReadonlyMap<number, Upcast>) => {
    try {
      return decodeRecord(encode(record), undefined, upcasts);
    } catch (error) {
      return error;
    }
  };

  test('where a step is missing, also in the middle', () => {
    const last = new Map([...steps].slice(1));
    const first = new Map([...steps].slice(0, 1));
    for (const known of [last, first, new Map()])
      expect(refusal(twoAgo, known)).toBeInstanceOf(RecordVersionUnknownError);
    expect(refusal(oneAgo, last)).toEqual(today);
  });

  test('where it is of a later release, or of a version that is none', () => {
    expect(refusal({ ...today, v: RECORD_VERSION + 1 }, steps)).toBeInstanceOf(RecordVersionUnknownError);
    expect(refusal({ ...today, v: RECORD_VERSION - 0.5 }, steps)).toBeInstanceOf(RecordVersionUnknownError);
    expect(refusal({ ...today, v: '1' }, steps)).not.toBeInstanceOf(RecordVersionUnknownError);
    expect(refusal({ ...today, v: '1' }, steps)).toBeInstanceOf(RecordUnreadableError);
  });

  test('where it does not come out as a record', () => {
    expect(refusal({ ...twoAgo, more: 1 }, steps)).toMatchObject({
      code: 'record_unreadable',
      message: expect.stringContaining('record 1 does not fit version'),
    });
  });
});
