/**
 * A session's events over HTTP, however often the connection is lost.
 *
 * E1  Records are dense: one that was seen is left out, one that is missing is an error. It goes on behind the last one.
 * E2  Nothing is read ahead: while whoever asked is busy, the connection waits, and the gateway may cut it off.
 * E3  Before the first connection nobody may answer for ten seconds on end. Later it is tried for as long as it takes, with pauses.
 * E4  Whoever leaves does so at once: by the signal, by ending the loop, or by closing the client. On a closed client nothing
 *     is followed: that is an error.
 */
import {
  AnswerCursor,
  Delta,
  decodeRecord,
  EVENT_STREAM_LIVENESS,
  type JournalRecord,
  type SessionRef,
} from '@coxswain/protocol';
import { CoxswainError, JournalGapError } from '../client-errors.ts';
import type { JournalStart, WatchItem } from '../transport.ts';
import { EventStreamParser, type ServerSentEvent } from './event-stream.ts';
import { type GatewayRequests, linked, mayPass, READ_WITHIN_MS, retryAfterOf, unreached } from './gateway-requests.ts';
import { Pauses, pause } from './pauses.ts';
import { errorOf, ProblemError, problemOf } from './problem-errors.ts';

/** Where reading begins, and what is left out. */
export interface FollowOptions {
  readonly from: JournalStart;
  readonly deltas: boolean;
  readonly signal: AbortSignal | undefined;
}

/**
 * See the top of the file. A session that does not exist yet is waited for. `connected` is true when the connection is made and with each
 * heartbeat of the gateway, and false when it is lost: at the latest {@link EVENT_STREAM_LIVENESS.silenceMaxMs} after the last byte. The
 * connection is then made again.
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
      // A gateway that does not know the session yet is connected.
      let isConnected = false;
      try {
        for await (const item of connected(requests, ref, place, deltas, leaving.signal)) {
          answeredAtMs = performance.now();
          if (item.connected === undefined) pauses.reset();
          yield item;
        }
      } catch (error) {
        if (leaving.signal.aborted) return;
        const passes = mayPass(error);
        if (!passes && !isNotThereYet(error) && !isOtherToken(error, requests)) throw told(error);
        if (passes && answeredAtMs === null && performance.now() - startedAtMs >= READ_WITHIN_MS) throw told(error);
        if (isNotThereYet(error)) answeredAtMs = performance.now();
        asksForMs = retryAfterOf(error);
        isConnected = isNotThereYet(error);
      }
      if (!leaving.signal.aborted) yield { connected: isConnected };
      // As the gateway asks: all who have lost it come back, and not all at once.
      await pause(pauses.next(Math.max(asksForMs, Math.random() * place.retryMs)), leaving.signal);
    }
  } finally {
    unlink();
    leaving.abort();
  }
}

interface Place {
  next: JournalStart;
  /** Whether a record was seen: then the connection goes on behind it. */
  seen: boolean;
  /** Within which time whoever has lost the connection is to come back. */
  retryMs: number;
  /** How much of the running answer was seen: a new connection begins with its first character. */
  readonly answer: AnswerCursor;
}

/** One connection, until it is lost. `connected` when it was made, and for each heartbeat. */
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
    // Also where the caller has left in the middle: what is on its way is not waited for.
    connection.abort();
  }
}

/** The events of a connection. Null for bytes that end none: a heartbeat, or a part of a large one. */
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
  // The abort of a fetch may not reach a body that is read already (undici in Node 20 holds the request weakly): a read would not end.
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
    // Where it is over already there is nothing to end.
    reader.cancel().catch(() => undefined);
  }
}

/** Measures how long a read waits. Silence counts only while this process runs: a busy or sleeping one reads nothing. */
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
      // What came meanwhile is read before another timer fires.
      if (performance.now() - dueAtMs > LATE_MS) this.begin();
      else this.#lost();
    }, silenceMaxMs);
  }

  end(): void {
    clearTimeout(this.#timer);
  }
}

/** A timer that fires so late tells of this process, and not of the gateway. */
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
    // Nothing depends on deltas; a newer gateway's may have another shape.
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

/** A token that was over while the connection lasted is no reason to end, where there is a newer one to be had. */
function isOtherToken(error: unknown, { renewsToken }: GatewayRequests): boolean {
  return renewsToken && error instanceof ProblemError && error.problem.code === 'unauthorized' && error.inStream;
}

function told(error: unknown): unknown {
  return error instanceof ProblemError ? errorOf(error.problem) : error;
}
