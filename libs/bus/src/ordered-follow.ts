/**
 * Follows a stream in order, across restarts of servers.
 *
 * The library recreates a consumer that the server has lost, but still counts the messages that it requested from the
 * lost one. It then requests too few from the new one, or none until heartbeats are missed. So this module opens its
 * own consumer after the last message instead.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Consumer, DeliverPolicy, type JsMsg, jetstream } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/nats-core';
import { busErrorOf, NatsUnavailableError, StreamNotFoundError } from './errors.ts';
import { retryRequest, within } from './retry-while-unavailable.ts';

/** The stream and the messages to read. */
export interface OrderedSource {
  readonly nc: NatsConnection;
  readonly stream: string;
  readonly options: {
    readonly filter_subjects: string;
    readonly deliver_policy?: DeliverPolicy;
    readonly opt_start_seq?: number;
    readonly headers_only?: boolean;
  };
}

/** The number of messages to buffer for a slow reader. */
export interface Buffering {
  readonly max_messages: number;
}

/**
 * Options that limit the wait after a lost pull request to two to three heartbeats; the library's default is 45
 * seconds. A reader of stored messages waits for it. The next message of a live reader may be hours away.
 */
const STORED = { expires: 5_000, idle_heartbeat: 1_000 };
const LIVE = { expires: 30_000, idle_heartbeat: 2_000 };

/** Readers renew a lost consumer within seconds, so a longer silence means that JetStream is unreachable. */
const SILENT_FOR_MS = 40_000;
/** After this time without a message, the consumer is asked whether more messages are due. */
const LOOKED_EVERY_MS = 1_000;
/** The number of looks without a delivery: then the replica cannot read the next message. */
const SILENT_LOOKS_MAX = 5;
/** The pause between two attempts to open a consumer. */
const PAUSE_MS = 250;

/** Opens a consumer. @throws StreamNotFoundError, NatsUnavailableError after ten seconds. */
export function orderedConsumer({ nc, stream, options }: OrderedSource): Promise<Consumer> {
  // A copy, because the library modifies the options.
  return retryRequest(() => jetstream(nc).consumers.get(stream, { ...options }));
}

/** Deletes a consumer; failures are ignored. */
export async function dropConsumer(consumer: Consumer): Promise<void> {
  try {
    await consumer.delete();
  } catch {
    // It expires a few minutes after its last request. Deleting it only frees it earlier.
  }
}

/**
 * Yields stored messages, then live ones, until the signal aborts or the connection closes. It renews a lost consumer.
 * @param first The first consumer.
 */
export function liveMessages(
  source: OrderedSource,
  first: Consumer,
  buffering: Buffering,
  signal?: AbortSignal,
): AsyncGenerator<JsMsg, void, undefined> {
  return messagesOf(source, first, { ...LIVE, ...buffering }, signal);
}

/**
 * Yields the messages stored for a consumer until none is pending, and deletes the consumer. A damaged replica may skip
 * messages or end early: the caller compares the messages with the count of the leader.
 * @throws NatsUnavailableError if the connection closes, or the next message takes longer than forty seconds.
 */
export async function* storedMessages(
  source: OrderedSource,
  consumer: Consumer,
  buffering: Buffering,
): AsyncGenerator<JsMsg, void, undefined> {
  const { num_pending: waiting } = await consumer.info(true);
  if (waiting === 0) return dropConsumer(consumer);
  const nothingLeft = new AbortController();
  let delivered = 0;
  let silentLooks = 0;
  // Pending messages may be deleted before their delivery, or be unreadable on this replica.
  const look = () =>
    void consumer.info().then(
      (info) => {
        const isAtEnd = info.num_pending === 0 && info.delivered.consumer_seq <= delivered;
        if (isAtEnd || ++silentLooks >= SILENT_LOOKS_MAX) nothingLeft.abort();
      },
      // The reader has its own timeout for a store that does not respond.
      () => undefined,
    );
  const messages = messagesOf(source, consumer, { ...STORED, ...buffering }, nothingLeft.signal);
  for await (const message of failWhenSilent(messages, look)) {
    delivered = message.info.deliverySequence;
    silentLooks = 0;
    yield message;
    if (message.info.pending === 0) return;
  }
  // Otherwise a connection that closes meanwhile would make part of a stream look like the whole.
  if (!nothingLeft.signal.aborted && source.nc.isClosed())
    throw new NatsUnavailableError('the connection is closed', { isFinal: true });
}

/** Yields messages. At most `max_messages` are buffered. */
async function* messagesOf(
  source: OrderedSource,
  first: Consumer,
  options: Buffering & typeof STORED,
  signal?: AbortSignal,
): AsyncGenerator<JsMsg, void, undefined> {
  let last: number | null = null;
  for (let consumer: Consumer | null = first; consumer; consumer = await reopened(source, last, signal)) {
    // Requests more messages when half of the buffer is empty. By default, the library requests a quarter at a time.
    const threshold_messages = Math.ceil(options.max_messages / 2);
    const messages = await consumer.consume({ ...options, threshold_messages });
    const stop = () => messages.stop();
    signal?.addEventListener('abort', stop, { once: true });
    if (signal?.aborted) stop();
    let lost = false;
    const watching = (async () => {
      for await (const { type } of messages.status()) {
        if (type !== 'ordered_consumer_recreated') continue;
        lost = true;
        return stop();
      }
    })();
    try {
      // Also if it has stopped: an unread iterator does not report its end.
      for await (const message of messages) {
        if (signal?.aborted) return;
        last = message.seq;
        yield message;
        if (signal?.aborted) return;
      }
    } catch (error) {
      // The library gives up a consumer that has delivered nothing after 30 failed attempts to recreate it.
      lost = isOutlived(busErrorOf(error)) && !source.nc.isClosed();
      if (!lost) throw error;
    } finally {
      signal?.removeEventListener('abort', stop);
      await messages.close();
      await watching;
      await dropConsumer(consumer);
    }
    if (!lost) return;
  }
}

/** Opens another consumer after the last message, as soon as JetStream responds; null if the reader has stopped. */
async function reopened(
  source: OrderedSource,
  last: number | null,
  signal: AbortSignal | undefined,
): Promise<Consumer | null> {
  const options =
    last === null
      ? source.options
      : { ...source.options, deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: last + 1 };
  for (;;) {
    if (signal?.aborted || source.nc.isClosed()) return null;
    try {
      return await orderedConsumer({ ...source, options });
    } catch (error) {
      if (!isOutlived(error)) throw error;
    }
    await sleep(PAUSE_MS);
  }
}

/** Whether a reader continues after an error: it outlives restarts, and learned at its start whether the stream exists. */
function isOutlived(error: unknown): boolean {
  return error instanceof NatsUnavailableError || error instanceof StreamNotFoundError;
}

/**
 * Yields the items of a reader, and fails if the next one takes longer than forty seconds: the library would retry a
 * lost store indefinitely.
 * @param checkIfDue Called after every second of silence. It ends the items if no more are due.
 */
async function* failWhenSilent<T>(
  items: AsyncGenerator<T, void, undefined>,
  checkIfDue: () => void,
): AsyncGenerator<T, void, undefined> {
  let waits = false;
  const looking = setInterval(() => waits && checkIfDue(), LOOKED_EVERY_MS);
  try {
    for (;;) {
      waits = true;
      looking.refresh();
      const { done, value } = await within(SILENT_FOR_MS, items.next());
      waits = false;
      if (done) return;
      yield value;
    }
  } finally {
    clearInterval(looking);
    const ended = items.return();
    // A source that waits for a lost response ends with the connection.
    if (waits) ended.catch(() => undefined);
    else await ended;
  }
}
