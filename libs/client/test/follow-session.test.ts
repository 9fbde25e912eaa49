/** Events over HTTP from a gateway that is a function: connections that break anywhere, repeat, skip, or end with a word. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import fc from 'fast-check';
import { afterEach, expect, test, vi } from 'vitest';
import { connect } from '../src/http.ts';

const RECORDS = readFileSync(
  resolve(import.meta.dirname, '../../../tests/traces/approval-allowed-and-denied.jsonl'),
  'utf8',
)
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(line) as { readonly n: number; readonly session_id: string });
const ALL = RECORDS.map(({ n }) => n);
const frame = (record: object & { n: number }) => `id: ${record.n}\nevent: record\ndata: ${JSON.stringify(record)}\n\n`;
const said = (problem: object) =>
  `event: problem\ndata: ${JSON.stringify({ title: '', detail: 'over', ...problem })}\n\n`;
const journal = RECORDS.map(frame).join('');

interface Asked {
  readonly from: string | null;
  readonly lastEventId: string | null;
  readonly authorization: string | null;
  /** Aborts when the connection is given up. */
  readonly signal: AbortSignal;
}

/** A session behind a gateway: what a connection is answered with, by what it asks for. */
async function sessionOf(
  answer: (asked: Asked, index: number) => Response | string | ReadableStream<Uint8Array>,
  token: string | (() => string) = 't',
) {
  const asked: Asked[] = [];
  const fetch = (async (input: string, init: RequestInit) => {
    const url = new URL(input);
    if (url.pathname === '/v1/whoami')
      return Response.json({ name: 'tester', tenant: 'default', scopes: ['read'], expires_at: null });
    const headers = new Headers(init.headers);
    asked.push({
      from: url.searchParams.get('from'),
      lastEventId: headers.get('last-event-id'),
      authorization: headers.get('authorization'),
      signal: init.signal as AbortSignal,
    });
    const given = answer(asked.at(-1) as Asked, asked.length - 1);
    return given instanceof Response ? given : new Response(given);
  }) as typeof globalThis.fetch;
  const client = await connect({ gateway: 'http://gw.test', token, fetch });
  return { session: client.session('s'), asked, client };
}

/** Reads until the last record of the trace was seen. */
async function numbersOf(session: { records(): AsyncIterable<{ readonly n: number }> }): Promise<number[]> {
  const numbers: number[] = [];
  for await (const { n } of session.records()) {
    numbers.push(n);
    if (n === RECORDS.length) break;
  }
  return numbers;
}

const behind = ({ lastEventId }: Asked) =>
  RECORDS.slice(Number(lastEventId ?? 0))
    .map(frame)
    .join('');

test('wherever connections break, each record comes once and in order', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 0, max: journal.length }), { maxLength: 4 }), async (cuts) => {
      const { session, asked } = await sessionOf((one, index) => behind(one).slice(0, cuts[index]));
      expect(await numbersOf(session)).toEqual(ALL);
      for (const { from, lastEventId } of asked)
        expect(lastEventId ?? 0).toEqual((lastEventId && String(Number(from) - 1)) || 0);
    }),
    { numRuns: 12 },
  );
});

test('what was seen is left out when it comes again; what is missing is told', async () => {
  const repeating = await sessionOf(() => journal + journal);
  expect(await numbersOf(repeating.session)).toEqual(ALL);
  const skipping = await sessionOf(() => frame(RECORDS[0] as never) + frame(RECORDS[2] as never));
  await expect(numbersOf(skipping.session)).rejects.toMatchObject({ name: 'JournalGapError', code: 'chain_broken' });
});

test('a gateway that stops is come back to; a session that is deleted is not', async () => {
  const stopping = said({ code: 'gateway_stopping', status: 503 });
  const first = frame(RECORDS[0] as never);
  const { session, asked } = await sessionOf((one, index) => (index === 0 ? first + stopping : behind(one)));
  expect(await numbersOf(session)).toEqual(ALL);
  expect(asked).toMatchObject([{ lastEventId: null }, { lastEventId: '1', from: '2' }]);
  const deleted = await sessionOf(() => first + said({ code: 'session_deleted', status: 410 }));
  await expect(numbersOf(deleted.session)).rejects.toMatchObject({ code: 'session_deleted' });
  expect(deleted.asked).toHaveLength(1);
});

test('a token function that fails while the connection is lost is called again', async () => {
  let calls = 0;
  const token = () => {
    // The first call is that of `connect`.
    if (++calls === 3) throw new Error('the sign-in server does not answer');
    return 't';
  };
  const { session } = await sessionOf((one, index) => (index === 0 ? frame(RECORDS[0] as never) : behind(one)), token);
  expect(await numbersOf(session)).toEqual(ALL);
  expect(calls).toBe(4);
  const failing = await sessionOf(
    () => journal,
    () => {
      if (++calls > 5) throw new Error('there is no token');
      return 't';
    },
  );
  await expect(numbersOf(failing.session)).rejects.toMatchObject({ code: 'invalid_option', option: 'token' });
});

test('a token that is over ends it, unless there is a newer one to be had', async () => {
  const over = frame(RECORDS[0] as never) + said({ code: 'unauthorized', status: 401 });
  const fixed = await sessionOf(() => over);
  await expect(numbersOf(fixed.session)).rejects.toMatchObject({ name: 'ReadRefusedError', code: 'unauthorized' });
  let renewed = 0;
  const { session, asked } = await sessionOf(
    (one, index) => (index === 0 ? over : behind(one)),
    () => `t${renewed++}`,
  );
  expect(await numbersOf(session)).toEqual(ALL);
  expect(asked.map(({ authorization }) => authorization)).toEqual(['Bearer t1', 'Bearer t2']);
});

test('nothing is read ahead of whoever asks, and leaving ends the connection', async () => {
  let pulled = 0;
  let cancelled = false;
  const endless = new ReadableStream<Uint8Array>(
    {
      pull(out) {
        const record = RECORDS[pulled++];
        if (record) out.enqueue(new TextEncoder().encode(frame(record)));
      },
      cancel() {
        cancelled = true;
      },
    },
    { highWaterMark: 0 },
  );
  const { session } = await sessionOf(() => endless);
  for await (const { n } of session.records()) {
    expect(pulled).toBe(n);
    if (n === 3) break;
  }
  expect(pulled).toBe(3);
  expect(cancelled).toBe(true);
});

/** A connection on which the gateway says what the test says. */
function spoken() {
  let out: ReadableStreamDefaultController<Uint8Array> | null = null;
  const answer = ({ signal }: Asked) =>
    new ReadableStream<Uint8Array>({
      start(controller) {
        out = controller;
        signal.addEventListener('abort', () => controller.error(signal.reason));
      },
    });
  return { answer, say: (text: string) => out?.enqueue(new TextEncoder().encode(text)) };
}

afterEach(() => {
  vi.useRealTimers();
});

test('a connection that goes silent is lost and made again; heartbeats keep it', async () => {
  vi.useFakeTimers();
  const first = spoken();
  const { session, asked } = await sessionOf((one, index) => (index === 0 ? first.answer(one) : behind(one)));
  const heard: boolean[] = [];
  const numbers: number[] = [];
  const following = (async () => {
    for await (const { record, connected } of session.records({ deltas: true })) {
      if (connected !== undefined) heard.push(connected);
      if (record) numbers.push(record.n);
      if (record?.n === RECORDS.length) break;
    }
  })();
  await vi.advanceTimersByTimeAsync(0);
  first.say(frame(RECORDS[0] as never));
  for (let seconds = 0; seconds < 10; seconds++) {
    await vi.advanceTimersByTimeAsync(1_000);
    first.say(': still here\n\n');
  }
  await vi.advanceTimersByTimeAsync(2_400);
  expect([heard, asked.length]).toEqual([Array.from({ length: 11 }, () => true), 1]);
  await vi.advanceTimersByTimeAsync(200);
  expect(heard[11]).toBe(false);
  await vi.advanceTimersByTimeAsync(5_000);
  await following;
  expect(asked).toMatchObject([{ lastEventId: null }, { lastEventId: '1' }]);
  expect(numbers).toEqual(ALL);
});

test('a process that was asleep reads what has come before it gives the connection up', async () => {
  vi.useFakeTimers();
  const first = spoken();
  const { session, asked } = await sessionOf(first.answer);
  const heard: boolean[] = [];
  const leaving = new AbortController();
  const following = (async () => {
    for await (const { connected } of session.records({ deltas: true, signal: leaving.signal }))
      if (connected !== undefined) heard.push(connected);
  })();
  await vi.advanceTimersByTimeAsync(0);
  const asleep = vi.spyOn(performance, 'now');
  const wokenAt = performance.now() + 60_000;
  asleep.mockImplementation(() => wokenAt);
  await vi.advanceTimersByTimeAsync(2_500);
  first.say(': still here\n\n');
  await vi.advanceTimersByTimeAsync(0);
  asleep.mockRestore();
  expect([heard, asked.length]).toEqual([[true, true], 1]);
  leaving.abort();
  await following;
});

test('a client follows many sessions without a warning of a leak, and its closing ends them all', async () => {
  const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
  const { client } = await sessionOf(spoken().answer);
  const joined: boolean[] = [];
  const loops = Array.from({ length: 50 }, async (_, i) => {
    for await (const { connected } of client.session(`s${i}`).records({ deltas: true }))
      if (connected !== undefined) joined.push(connected);
  });
  await vi.waitFor(() => expect(joined).toHaveLength(50));
  await client.close();
  await Promise.all(loops);
  expect(warned).not.toHaveBeenCalled();
  warned.mockRestore();
});

test('on a closed client nothing is followed: each loop throws its error', async () => {
  const { session, asked, client } = await sessionOf(() => '');
  await client.close();
  for (const items of [session.records(), session.records({ deltas: true })])
    await expect(items.next()).rejects.toMatchObject({
      code: 'client_closed',
      message: 'the client was closed',
    });
  expect(asked).toEqual([]);
});
