/** The starts of listed sessions: which records are read, and which results are cached. */
import type { Client, WireSessionListing } from '@coxswain/client';
import { GENESIS_HASH, type JournalRecord, type SessionEvent } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { ACP_BOUNDS } from '../src/acp-bounds.ts';
import { findSessionStart, SessionStarts } from '../src/session-starts.ts';

const REJECTED = {
  type: 'command_rejected',
  command_id: 'c0',
  verb: 'start',
  code: 'model_not_given',
  message: 'none',
};
const PROMPT = {
  ...{ type: 'prompt_received', command_id: 'c1', settings: { root: '/work', model: 'a/b' } },
  messages: [{ role: 'user', content: [{ type: 'text', text: '\nCount the tides.\nAll of them.' }] }],
};

const journalOf = (...events: object[]): { readonly record: JournalRecord }[] =>
  events.map((event, index) => ({
    record: {
      ...{ v: 1, session_id: 's', n: index + 1, epoch: 1, attempt: 'a', prev_hash: GENESIS_HASH },
      at: '2026-01-01T00:00:00.000Z',
      input: { type: 'owned', epoch: 1, host: 'h' } as unknown as JournalRecord['input'],
      events: [event as SessionEvent],
      state: 'assistant_streaming',
      effects_open: [],
    },
  }));

async function* read<T>(items: readonly T[]): AsyncGenerator<T, void, undefined> {
  yield* items;
}

test('the start is found after rejected starts', async () => {
  expect(await findSessionStart(read(journalOf(REJECTED, REJECTED, PROMPT)))).toMatchObject({
    root: '/work',
    title: 'Count the tides.',
    model: 'a/b',
    isChild: false,
  });
});

test('the search ends at its bound', async () => {
  const rejected = (count: number) => Array.from({ length: count }, () => REJECTED);
  const { startWithinRecords: bound } = ACP_BOUNDS;
  expect(await findSessionStart(read(journalOf(...rejected(bound - 1), PROMPT)))).not.toBeNull();
  expect(await findSessionStart(read(journalOf(...rejected(bound), PROMPT)))).toBeNull();
});

test('a list has a session that is started after a rejected start, and reads it once', async () => {
  let journal = journalOf(REJECTED);
  let reads = 0;
  const client = {
    session: () => ({
      journal: () => {
        reads++;
        return read(journal);
      },
    }),
  } as unknown as Client;
  const listed = [{ session_id: 's' } as WireSessionListing];
  const starts = new SessionStarts();
  expect(await starts.of(client, listed)).toEqual([null]);
  journal = journalOf(REJECTED, PROMPT);
  expect(await starts.of(client, listed)).toMatchObject([{ root: '/work' }]);
  expect(await starts.of(client, listed)).toMatchObject([{ root: '/work' }]);
  expect(reads).toBe(2);
});
