/** Event streams of a gateway, read by a parser that we did not write. */
import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { expect } from 'vitest';
import type { GatewayUnderTest } from './gateway.ts';

type Connected = Pick<GatewayUnderTest, 'raw'>;

/** An event stream, as an event source would see it. */
async function* events(
  on: Connected,
  path: string,
  { lastEventId, signal }: { lastEventId?: string | undefined; signal: AbortSignal },
): AsyncGenerator<EventSourceMessage> {
  const waiting: EventSourceMessage[] = [];
  const parser = createParser({ onEvent: (event) => waiting.push(event) });
  const headers = {
    accept: 'text/event-stream',
    ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
  };
  const answer = await on.raw(path, { headers, signal });
  expect(answer.status).toBe(200);
  expect(answer.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
  const decoder = new TextDecoder();
  for await (const chunk of answer.body as unknown as AsyncIterable<Uint8Array>) {
    parser.feed(decoder.decode(chunk, { stream: true }));
    yield* waiting.splice(0);
  }
}

/** Reads until the connection is given up, or the server ends it. */
export async function readEvents(
  on: Connected,
  path: string,
  lastEventId: string | undefined,
  enough: (event: EventSourceMessage) => boolean,
): Promise<EventSourceMessage[]> {
  const leaving = new AbortController();
  const seen: EventSourceMessage[] = [];
  try {
    for await (const event of events(on, path, { lastEventId, signal: leaving.signal })) {
      seen.push(event);
      if (enough(event)) break;
    }
  } finally {
    leaving.abort();
  }
  return seen;
}

/** Whether an event is the record of a session that has ended. */
export function isEnd(event: Pick<EventSourceMessage, 'event' | 'data'>): boolean {
  if (event.event !== 'record') return false;
  const { state } = JSON.parse(event.data) as { state: unknown };
  return state === 'stopped' || state === 'failed';
}

/**
 * Follows a session to its end, losing the connection again and again and coming back from the record that was seen last.
 * @param on which gateway is asked, by how many connections are to be lost yet.
 * @returns the numbers of the records, as they came.
 */
export async function readInPieces(
  on: (left: number) => Connected,
  path: string,
  disconnects: number,
): Promise<number[]> {
  const numbers: number[] = [];
  for (let left = disconnects; ; left--) {
    let until = left > 0 ? 1 + Math.floor(Math.random() * 12) : Number.POSITIVE_INFINITY;
    const seen = await readEvents(on(left), path, numbers.at(-1)?.toString(), (event) => --until <= 0 || isEnd(event));
    for (const { event, id: n } of seen) if (event === 'record') numbers.push(Number(n));
    const last = seen.at(-1);
    if (last && isEnd(last)) return numbers;
  }
}
