/**
 * Follows a session's events over HTTP, with reconnects.
 *
 * E1  Records are dense: repeated ones are skipped, a missing one is an error. A reconnect continues after the last
 *     record.
 * E2  Backpressure: while the caller is busy, nothing is read, and the gateway may close the connection.
 * E3  Before the first connection it gives up after ten seconds without a response. Later it retries without a time
 *     limit, with pauses, also while the program's function returns no token.
 * E4  It ends at once when the signal aborts, the caller stops or the client closes. On a closed client it throws.
 */
import {
  AnswerCursor,
  Delta,
  decodeRecord,
  EVENT_STREAM_LIVENESS,
  type JournalRecord,
  type SessionRef,
} from '@coxswain/protocol';
import { CoxswainError, InvalidOptionError, JournalGapError } from '../client-errors.ts';
import type { JournalStart, WatchItem } from '../transport.ts';
import { EventStreamParser, type ServerSentEvent } from './event-stream.ts';
import { type GatewayRequests, linked, mayPass, READ_WITHIN_MS, retryAfterOf, unreached } from './gateway-requests.ts';
import { Pauses, pause } from './pauses.ts';
import { errorOf, ProblemError, problemOf } from './problem-errors.ts';

/** Where reading starts, and whether deltas are included. */
export interface FollowOptions {
  readonly from: JournalStart;
  readonly deltas: boolean;
  readonly signal: AbortSignal | undefined;
}

/**
 * Follows a session by the rules at the top of the file. Waits for a session that does not exist yet. `connected` is
 * true after connecting and with each heartbeat of the gateway. It is false when the connection is lost, at the latest
 * `silenceMaxMs` of EVENT_STREAM_LIVENESS after the last byte. Then it reconnects.
 */
export async function* followSession(
  requests: GatewayRequests,
  ref: SessionRef,
  { from, deltas, signal }: FollowOptions,
): AsyncGenerator<WatchItem, void, undefined> {
  requests.closing.throwIfClosed();
  const leaving = new AbortController();
  const unlink = linked(leaving, signal, requests.closing);
  const pauses = new Pauses();
  const place: Place = { next: from, seen: false, retryMs: 0, answer: new AnswerCursor() };
  let answeredAtMs: number | null = null;
  const startedAtMs = performance.now();
  try {
    while (!leaving.signal.aborted) {
      let asksForMs = 0;
      // A gateway that does not know the session yet is still connected.
      let isConnected = false;
      try {
        for await (const item of connected(requests, ref, place, deltas, leaving.signal)) {
          answeredAtMs = performance.now();
          if (item.connected === undefined) pauses.reset();
          yield item;
        }
      } catch (error) {
        if (leaving.signal.aborted) return;
        const passes = mayPass(error) || (answeredAtMs !== null && isTokenMissing(error, requests));
        if (!passes && !isNotThereYet(error) && !isOtherToken(error, requests)) throw toClientError(error);
        if (passes && answeredAtMs === null && performance.now() - startedAtMs >= READ_WITHIN_MS)
          throw toClientError(error);
        if (isNotThereYet(error)) answeredAtMs = performance.now();
        asksForMs = retryAfterOf(error);
        isConnected = isNotThereYet(error);
      }
      if (!leaving.signal.aborted) yield { connected: isConnected };
      // The delay that the gateway requested, randomized so that its clients do not all reconnect at once.
      await pause(pauses.next(Math.max(asksForMs, Math.random() * place.retryMs)), leaving.signal);
    }
  } finally {
    unlink();
    leaving.abort();
  }
}

interface Place {
  next: JournalStart;
  /** Whether a record was seen: then a new connection continues after it. */
  seen: boolean;
  /** The reconnect delay that the gateway requested, in milliseconds. */
  retryMs: number;
  /** The position in the running answer: a new connection repeats the answer from its first character. */
  readonly answer: AnswerCursor;
}

/** One connection, until it is lost. Yields `connected` after connecting and for each heartbeat. */
async function* connected(
  requests: GatewayRequests,
  ref: SessionRef,
  place: Place,
  deltas: boolean,
  leaving: AbortSignal,
): AsyncGenerator<WatchItem, void, undefined> {
  const connection = new AbortController();
  const unlink = linked(connection, leaving);
  try {
    const answer = await requests.open(
      {
        path: `/v1/sessions/${ref.sessionId}/events`,
        query: { from: place.next, ...(deltas ? {} : { deltas: 'false' }) },
        headers: {
          accept: 'text/event-stream',
          ...(place.seen && typeof place.next === 'number' ? { 'last-event-id': String(place.next - 1) } : {}),
        },
      },
      connection,
    );
    yield { connected: true };
    for await (const event of eventsOf(answer, connection, place)) {
      const item = event === null ? { connected: true } : itemOf(event, ref, place);
      if (item) yield item;
    }
  } finally {
    unlink();
    // Also if the caller stops in the middle: buffered data is discarded.
    connection.abort();
  }
}

/** The events of a connection. Null for data that completes no event: a heartbeat, or a part of a large event. */
async function* eventsOf(
  answer: Response,
  connection: AbortController,
  place: Place,
): AsyncGenerator<ServerSentEvent | null, void, undefined> {
  if (answer.body === null) return;
  const reader = answer.body.getReader();
  const parser = new EventStreamParser();
  const decoder = new TextDecoder();
  const silence = new SilenceWatch(() => connection.abort());
  // Aborting a fetch may not reach a body that is being read: undici in Node 20 holds the request weakly. The read
  // would not end.
  const cancel = () => void reader.cancel().catch(() => undefined);
  connection.signal.addEventListener('abort', cancel, { once: true });
  try {
    for (;;) {
      silence.begin();
      const { done, value } = await reader.read().catch((error: unknown) => {
        throw unreached(error);
      });
      silence.end();
      if (done) return;
      const events = parser.take(decoder.decode(value, { stream: true }));
      place.retryMs = parser.retryMs ?? place.retryMs;
      if (events.length === 0) yield null;
      else yield* events;
    }
  } finally {
    silence.end();
    // Cancelling a stream that has ended does nothing.
    reader.cancel().catch(() => undefined);
  }
}

/**
 * Limits the time of a read. Silence counts only while this process runs: a busy or suspended process reads nothing.
 */
class SilenceWatch {
  readonly #lost: () => void;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(lost: () => void) {
    this.#lost = lost;
  }

  begin(): void {
    const { silenceMaxMs } = EVENT_STREAM_LIVENESS;
    const dueAtMs = performance.now() + silenceMaxMs;
    this.#timer = setTimeout(() => {
      // Data that arrived meanwhile is read before another timer fires.
      if (performance.now() - dueAtMs > LATE_MS) this.begin();
      else this.#lost();
    }, silenceMaxMs);
  }

  end(): void {
    clearTimeout(this.#timer);
  }
}

/** A timer that fires later than this was delayed by this process: the gateway need not be silent. */
const LATE_MS = 250;

function itemOf({ event, data }: ServerSentEvent, ref: SessionRef, place: Place): WatchItem | null {
  if (event === 'record') {
    const record = decodeRecord(new TextEncoder().encode(data));
    if (!isNext(record, ref, place)) return null;
    if (record.input.type === 'model_outcome') place.answer.end(record.input.effect_id);
    return { record };
  }
  if (event === 'delta') {
    const delta = Delta.safeParse(jsonOf(data));
    // Nothing depends on deltas. A newer gateway may send another shape.
    const fit = delta.success ? place.answer.take(delta.data) : 'seen';
    return typeof fit === 'string' ? null : { delta: fit };
  }
  if (event === 'problem') {
    const problem = jsonOf(data);
    const { status } = (problem ?? {}) as { readonly status?: unknown };
    throw new ProblemError(problemOf(typeof status === 'number' ? status : 500, problem), { inStream: true });
  }
  return null;
}

function isNext({ n }: JournalRecord, ref: SessionRef, place: Place): boolean {
  if (typeof place.next === 'number') {
    if (n < place.next) return false;
    if (n > place.next) throw new JournalGapError(ref.sessionId, place.next, n);
  }
  place.next = n + 1;
  place.seen = true;
  return true;
}

function jsonOf(data: string): unknown {
  try {
    return JSON.parse(data) as unknown;
  } catch (error) {
    throw new CoxswainError('answer_unreadable', `an event of the gateway is not JSON: ${(error as Error).message}`);
  }
}

function isNotThereYet(error: unknown): boolean {
  return error instanceof ProblemError && error.problem.code === 'session_not_found';
}

/** Whether a token expired during the connection and the program can provide a new one: then it reconnects. */
function isOtherToken(error: unknown, { renewsToken }: GatewayRequests): boolean {
  return renewsToken && error instanceof ProblemError && error.problem.code === 'unauthorized' && error.inStream;
}

/** Whether the program's function has no token now: it may need the network that this connection has lost. */
function isTokenMissing(error: unknown, { renewsToken }: GatewayRequests): boolean {
  return renewsToken && error instanceof InvalidOptionError && error.option === 'token' && error.cause !== undefined;
}

function toClientError(error: unknown): unknown {
  return error instanceof ProblemError ? errorOf(error.problem) : error;
}
