/**
 * Reads the messages of a stream in order, across restarts of servers.
 *
 * The library recreates a consumer that the server has lost, but still counts the messages that it requested from the
 * lost one. It then requests too few from the new one, or none until heartbeats are missed. So this module opens its
 * own consumer after the last message instead.
 */
import {
  type ConsumeOptions,
  type Consumer,
  DeliverPolicy,
  type JetStreamClient,
  type JsMsg,
} from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/nats-core';
import { askStore, isStreamNotFound, StoreUnavailableError } from './ask-store.ts';
import { BusNotPreparedError } from './client-errors.ts';

/** The stream and the messages to read. */
export interface OrderedSource {
  readonly bus: { readonly nc: NatsConnection; readonly js: JetStreamClient };
  readonly stream: string;
  readonly options: {
    readonly filter_subjects: string;
    readonly deliver_policy?: DeliverPolicy;
    readonly opt_start_seq?: number;
    readonly headers_only?: boolean;
  };
}

/** Opens a consumer. @throws BusNotPreparedError if the stream does not exist; StoreUnavailableError. */
export async function orderedConsumer({ bus, stream, options }: OrderedSource): Promise<Consumer> {
  try {
    // A copy, because the library modifies the options.
    return await askStore(() => bus.js.consumers.get(stream, { ...options }));
  } catch (error) {
    if (isStreamNotFound(error)) throw new BusNotPreparedError({ cause: error });
    throw error;
  }
}

/**
 * Yields messages until the signal aborts or the connection closes. The library fetches batches, so at most one batch
 * is buffered.
 * @param first The first consumer.
 */
export async function* messagesOf(
  source: OrderedSource,
  first: Consumer,
  options: ConsumeOptions,
  signal?: AbortSignal,
): AsyncGenerator<JsMsg, void, undefined> {
  let last: number | null = null;
  for (let consumer: Consumer | null = first; consumer; consumer = await reopened(source, last, signal)) {
    const messages = await consumer.consume({ ...options });
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
    } finally {
      signal?.removeEventListener('abort', stop);
      await messages.close();
      await watching;
      await dropConsumer(consumer);
    }
    if (!lost) return;
  }
}

/** Deletes a consumer; failures are ignored. */
export async function dropConsumer(consumer: Consumer): Promise<void> {
  try {
    await consumer.delete();
  } catch {
    // It expires a few minutes after its last request. Deleting it only frees it earlier.
  }
}

const PAUSE_MS = 250;

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
    if (signal?.aborted || source.bus.nc.isClosed()) return null;
    try {
      return await orderedConsumer({ ...source, options });
    } catch (error) {
      // A reader outlives restarts of its servers. It learned at its start whether the stream exists.
      if (!(error instanceof StoreUnavailableError || error instanceof BusNotPreparedError)) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}
