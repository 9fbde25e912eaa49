/** The list of sessions, as far as it is wanted. */
import { expect, test } from 'vitest';
import type { WireListedSession } from '../src/browser-client.ts';
import { readSessions } from '../src/sessions/use-sessions.ts';

const all = Array.from({ length: 1_300 }, (_, at) => `s${at}`);
const listed = (session_id: string): WireListedSession => ({
  session_id,
  n: 1,
  at: '2026-01-01T00:00:00.000Z',
  state: 'stopped',
  stop_reason: 'end_turn',
});

/** A gateway that gives at most 500 at once, and whose newest session is written to between two pages. */
function gateway() {
  const asked: number[] = [];
  return {
    asked,
    async listSessions({ limit = 100, cursor = '0' }: { readonly limit?: number; readonly cursor?: string } = {}) {
      asked.push(limit);
      expect(limit).toBeLessThanOrEqual(500);
      const from = Number(cursor) - (cursor === '500' ? 1 : 0);
      const end = from + limit;
      return { sessions: all.slice(from, end).map(listed), next_cursor: end < all.length ? String(end) : null };
    },
  };
}

test('more than a page are read page by page, each once', async () => {
  const client = gateway();
  const { sessions, more } = await readSessions(client, 1_200, false);
  expect(sessions.map(({ session_id }) => session_id)).toEqual(all.slice(0, 1_200));
  expect(more).toBe(true);
  expect(client.asked[0]).toBe(500);
});

test('the last of them are the last', async () => {
  const { sessions, more } = await readSessions(gateway(), 5_000, false);
  expect(sessions).toHaveLength(1_300);
  expect(more).toBe(false);
});
