import type { Session } from '@coxswain/client';
import { ID_PATTERN, type JournalRecord } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import type { Principal } from '../src/auth/principal.ts';
import { deriveIds, rejectOtherCommand, rejectReusedId } from '../src/idempotency.ts';
import { LimitedReads } from '../src/limited-reads.ts';

const alice: Principal = { name: 'alice', tenant: 'default', scopes: new Set(), expiresAt: null };

const request = { address: 'POST /v1/sessions', body: { prompt: 'go' } };

test('the same key and request give the same ids, which are ids', () => {
  const ids = deriveIds('order-17', alice, request);
  expect(deriveIds('order-17', alice, request)).toEqual(ids);
  for (const id of Object.values(ids)) expect(id).toMatch(ID_PATTERN);
});

test('another request under the same key is another start of the same session, and so is told from the first', () => {
  const [one, other] = [request, { ...request, body: {} }].map((asked) => deriveIds('k', alice, asked));
  expect(other?.sessionId).toBe(one?.sessionId);
  expect(other?.startId).not.toBe(one?.startId);
});

test('a command is known by its key and its address, whatever its body', () => {
  const of = (address: string, body: unknown) => deriveIds('k', alice, { address, body }).commandId;
  expect(of('POST /v1/sessions/a/steer', 1)).toBe(of('POST /v1/sessions/a/steer', 2));
  expect(of('POST /v1/sessions/a/steer', 1)).not.toBe(of('POST /v1/sessions/b/steer', 1));
});

test('a key is its holder’s own', () => {
  const ids = [alice, { ...alice, name: 'bob' }, { ...alice, tenant: 'other' }].map((who) =>
    deriveIds('k', who, request),
  );
  expect(new Set(ids.map(({ sessionId }) => sessionId)).size).toBe(3);
});

test.each(['', ' ', 'a b', 'ü', 'x'.repeat(256)])('%j is no key', (key) => {
  expect(() => deriveIds(key, alice, request)).toThrow('idempotency-key');
});

test('a body that is nested beyond writing is refused, and is no fault of the gateway', () => {
  const body = JSON.parse(`${'['.repeat(50_000)}${']'.repeat(50_000)}`) as unknown;
  expect(() => deriveIds('k', alice, { ...request, body })).toThrow('nested too deep');
});

describe('a command that the bus has already under a key', () => {
  const cancelled = (n: number, command_id: string, reason: string) =>
    ({ n, input: { type: 'command', verb: 'cancel', command_id, body: { reason } } }) as unknown as JournalRecord;
  /** A session whose journal has some records now; the others come when it is followed. */
  const withRecords = (stored: readonly JournalRecord[], coming: readonly JournalRecord[] = []) => {
    const asked: number[] = [];
    const session = {
      id: 's',
      async *journal() {
        for (const record of stored) yield { record };
      },
      async *records({ from }: { readonly from: number }) {
        asked.push(from);
        yield* coming;
      },
    } as unknown as Session;
    return { session, asked };
  };
  const repeated = { commandId: 'c', verb: 'cancel', body: { reason: 'go' } } as const;
  const reads = new LimitedReads(1, 0);

  test('is the same where the session has recorded the same, and another where not', async () => {
    await rejectOtherCommand(reads, withRecords([cancelled(1, 'c', 'go')]).session, repeated);
    await expect(
      rejectOtherCommand(reads, withRecords([cancelled(1, 'c', 'stop')]).session, repeated),
    ).rejects.toMatchObject({ code: 'idempotency_key_reused' });
  });

  test('may be recorded a moment later: what was read is not read again', async () => {
    const { session, asked } = withRecords(
      [cancelled(1, 'a', 'x'), cancelled(2, 'b', 'y')],
      [cancelled(3, 'c', 'stop')],
    );
    await expect(rejectOtherCommand(reads, session, repeated)).rejects.toMatchObject({
      code: 'idempotency_key_reused',
    });
    expect(asked).toEqual([3]);
  });

  test('is not said to be the same where nobody has recorded it', async () => {
    await expect(
      rejectOtherCommand(reads, withRecords([cancelled(1, 'a', 'x')]).session, repeated),
    ).rejects.toMatchObject({
      code: 'idempotency_key_undecided',
      status: 409,
      more: { field: 'idempotency-key', headers: { 'retry-after': '2' } },
    });
  });

  test('is another where another verb has its id', async () => {
    const { session } = withRecords([cancelled(1, 'c', 'go')]);
    const suspended = { commandId: 'c', verb: 'suspend', body: { reason: 'go' } } as const;
    await expect(rejectOtherCommand(reads, session, suspended)).rejects.toMatchObject({
      code: 'idempotency_key_reused',
    });
  });

  test('is looked for in so many journals at once, and no more', async () => {
    const one = new LimitedReads(1, 0);
    await one.acquire();
    await expect(
      rejectOtherCommand(one, withRecords([cancelled(1, 'c', 'go')]).session, repeated),
    ).rejects.toMatchObject({ code: 'gateway_busy' });
  });

  test('under an id of the request’s is refused where the session has recorded another, and waits for no record', async () => {
    const recorded = withRecords([cancelled(1, 'c', 'stop')]);
    await expect(rejectReusedId(reads, recorded.session, repeated)).rejects.toMatchObject({
      code: 'command_id_reused',
      status: 422,
      more: { field: 'command_id', sessionId: 's' },
    });
    await rejectReusedId(reads, withRecords([cancelled(1, 'c', 'go')]).session, repeated);
    const { session, asked } = withRecords([cancelled(1, 'a', 'x')], [cancelled(2, 'c', 'stop')]);
    await rejectReusedId(reads, session, repeated);
    expect(asked).toEqual([]);
    const busy = new LimitedReads(1, 0);
    await busy.acquire();
    await rejectReusedId(busy, recorded.session, repeated);
  });

  test('that is a start is compared without the trace of its request', async () => {
    const body = { prompt: 'go', model: 'm/m' };
    const input = { type: 'command', verb: 'start', command_id: 'c', body: { ...body, trace: '00-1-2-01' } };
    const { session } = withRecords([{ n: 1, input } as unknown as JournalRecord]);
    await rejectReusedId(reads, session, { commandId: 'c', verb: 'start', body });
    await expect(
      rejectReusedId(reads, session, { commandId: 'c', verb: 'start', body: { ...body, prompt: 'come' } }),
    ).rejects.toMatchObject({ code: 'command_id_reused' });
  });
});
