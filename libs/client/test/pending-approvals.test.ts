/** Pages of pending approvals, bounded in number and size. */
import type { SessionStatus } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import type { PlacedSession } from '../src/newest-sessions.ts';
import { type ApprovalPlace, type ApprovalsQuery, pageOfApprovals } from '../src/pending-approvals.ts';

/** The n-th session waits since the n-th second, with arguments of about 1 KiB. The index lists the newest first. */
const SESSIONS = 40;
async function* newestFirst(): AsyncGenerator<PlacedSession, void, undefined> {
  for (let n = SESSIONS; n > 0; n--) {
    const session_id = `s${n}`;
    const listing = {
      session_id,
      state: 'function_awaiting_approval',
      details: { persona: null },
      approvals: [waiting(n)],
    };
    yield { seq: n, sessionId: session_id, listing: async () => listing } as unknown as PlacedSession;
  }
}
function waiting(n: number): SessionStatus['approvals'][number] {
  const since = new Date(n * 1_000).toISOString();
  return { call_id: 'c', tool: 't', args: { text: 'x'.repeat(1_000) }, requested_by: 'policy', since };
}
const page = (query: ApprovalsQuery) => pageOfApprovals(newestFirst(), async () => null, query);

describe.each([
  { bound: 'number', limit: 7, maxBytes: 1024 * 1024, perPage: 7 },
  { bound: 'size', limit: 500, maxBytes: 3_000, perPage: 3 },
])('a page bounded in $bound', ({ limit, maxBytes, perPage }) => {
  test('has the longest pending approvals, and the next page continues after them', async () => {
    const seen: string[] = [];
    let after: ApprovalPlace | null = null;
    for (let more = true; more; ) {
      const found = await page({ after, limit, maxBytes });
      expect(found.approvals).toHaveLength(Math.min(perPage, SESSIONS - seen.length));
      seen.push(...found.approvals.map(({ session_id }) => session_id));
      after = found.approvals.at(-1) ?? null;
      more = found.more;
    }
    expect(seen).toEqual(Array.from({ length: SESSIONS }, (_, index) => `s${index + 1}`));
  });
});

test('an approval that exceeds the size is a page of its own', async () => {
  expect(await page({ after: null, limit: 500, maxBytes: 10 })).toMatchObject({
    approvals: [{ session_id: 's1' }],
    more: true,
  });
});
