/**
 * Records: a round trip keeps every record, and invalid ones are rejected by name.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  BlobMissingError,
  blobRefsOf,
  canonicalJson,
  decodeRecord,
  GENESIS_HASH,
  type JournalRecord,
  RecordUnreadableError,
  SessionDeletedError,
  type SessionEvent,
} from '../src/mod.ts';

const record: JournalRecord = {
  v: 1,
  session_id: 's1',
  n: 3,
  epoch: 1,
  attempt: 'host-1',
  prev_hash: GENESIS_HASH,
  at: '2026-11-21T00:00:00.000Z',
  cursor: { stream: 'COX_COMMANDS', created: '1', seq: 7 },
  input: { type: 'command', verb: 'steer', command_id: 'm', body: { body: 'x', mode: 'finish_step' } },
  events: [
    { type: 'steering_received', command_id: 'm', body: 'x', mode: 'finish_step', at: '2026-11-21T00:00:00.000Z' },
  ],
  state: { assistant_streaming: 'streaming' },
  effects_open: ['2-0'],
};

const encode = (value: unknown) => new TextEncoder().encode(canonicalJson(value));
const changed = (change: object) => encode({ ...record, ...change });

describe('a record', () => {
  test('round-trips', () => {
    expect(decodeRecord(encode(record))).toEqual(record);
  });

  test('may lack a cursor, and may have a state without a child', () => {
    const { cursor: _, ...rest } = record;
    expect(decodeRecord(encode({ ...rest, state: 'stopped' }))).toEqual({ ...rest, state: 'stopped' });
  });

  test('is sealed to the same bytes again, with any arguments and metadata', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue({ stringUnit: 'binary' })), (body) => {
        const events: SessionEvent[] = [
          { type: 'call_started', call_id: 'c', tool: 't', args: body as never, effect_id: '3-0' },
        ];
        const bytes = changed({ input: { ...record.input, body }, events });
        expect(canonicalJson(decodeRecord(bytes))).toBe(new TextDecoder().decode(bytes));
      }),
    );
  });
});

describe('a record is unreadable', () => {
  test.each([
    ['that is not JSON', new TextEncoder().encode('{'), 'is not JSON'],
    ['with a byte order mark', new TextEncoder().encode('\ufeff{"v":1}'), 'begins with a byte order mark'],
    ['that is not UTF-8', new Uint8Array([0xff]), 'is not JSON'],
    ['that is a list', encode([]), 'is not a JSON object'],
    ['that is null', encode(null), 'is not a JSON object'],
    ['of a later version', changed({ v: 2, n: 7 }), 'record 7 is of version 2, which is not known'],
    ['of a later version, in other members', changed({ v: 2, n: 'seven', blobs: 2 }), 'a record is of version 2'],
    ['without a version', encode({ ...record, v: undefined }), 'is of version undefined'],
    ['with a member that nobody knows', changed({ bogus: 1 }), 'does not fit version 1: unknown key "bogus"'],
    ['with a misspelt member', changed({ prev_hsh: 'x' }), 'unknown key "prev_hsh"; did you mean "prev_hash"?'],
    ['without a member', encode({ ...record, attempt: undefined }), 'attempt: is missing'],
    ['whose number is not one', changed({ n: 0 }), 'n: must be more than 0'],
    ['whose number is a text', changed({ n: '1' }), 'n: must be a number, not a text'],
    ['whose hash is not one', changed({ prev_hash: 'x' }), 'prev_hash: must fit'],
    ['whose time is not one', changed({ at: 'yesterday' }), 'at: must be a time'],
    ['with an event that nobody knows', changed({ events: [{ type: 'slept' }] }), 'events'],
    ['with an event that has a member too many', changed({ events: [{ ...record.events[0], mood: 'good' }] }), 'mood'],
    ['with an event that lacks one', changed({ events: [{ type: 'steering_received' }] }), 'command_id'],
    ['with an input that nobody knows', changed({ input: { type: 'weather' } }), 'input'],
    [
      'with an outcome of no effect id',
      changed({ input: { type: 'close_outcome', effect_id: 'x', notes: [] } }),
      'input',
    ],
  ])('%s', (_name, bytes, says) => {
    expect(() => decodeRecord(bytes)).toThrow(RecordUnreadableError);
    expect(() => decodeRecord(bytes)).toThrow(says);
  });
});

describe('large fields', () => {
  const ref = { sha256: 'a'.repeat(64), bytes: 70_000 };
  const stored = changed({ events: [{ ...record.events[0], body: ref }], blobs: ['/events/0/body'] });

  test('are listed by a record', () => {
    expect(blobRefsOf(stored)).toEqual([ref]);
    expect(blobRefsOf(encode(record))).toEqual([]);
  });

  test('are put back at their positions', () => {
    const read = decodeRecord(stored, (asked) => (asked.sha256 === ref.sha256 ? 'the whole text' : undefined));
    expect(read.events[0]).toMatchObject({ body: 'the whole text' });
  });

  test('that are not requested are replaced by a note', () => {
    expect(decodeRecord(stored).events[0]).toMatchObject({
      body: expect.stringContaining('70000 bytes, stored apart'),
    });
  });

  test('that are missing are reported as such: the record itself may be intact', () => {
    expect(() => decodeRecord(stored, () => undefined)).toThrow(BlobMissingError);
    expect(() => decodeRecord(stored, () => undefined)).toThrow(`in record ${record.n} `);
  });

  test.each([
    ['at nothing', ['/events/9/body']],
    ['at what every object has', ['/constructor/name']],
    ['at what is no reference', ['/session_id']],
    ['nowhere', ['']],
    ['in no list', 'x'],
  ])('may not be referenced at %s', (_name, blobs) => {
    expect(() => decodeRecord(changed({ blobs }))).toThrow(RecordUnreadableError);
  });
});

test('an unreadable record is named by its kind in messages', () => {
  const tombstone = {
    tombstone: 1 as const,
    session_id: 's',
    deleted_at: '2026-01-01T00:00:00.000Z',
    records: 1,
    last_hash: GENESIS_HASH,
  };
  expect(`${new SessionDeletedError(tombstone)}`).toMatch(/^SessionDeletedError: /);
  expect(`${new BlobMissingError('gone')}`).toBe('BlobMissingError: gone');
});
