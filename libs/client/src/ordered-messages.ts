/**
 * Messages of a stream in their order, across servers that restart.
 *
 * The library makes its consumer anew where the server has lost it, but counts what it had asked the lost one for as still to
 * come, and so asks the new one for too little, or for nothing until heartbeats have been missed. So we read on with
 * a consumer of our own behind the last message.
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

/** What is read. */
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

/** A consumer where reading begins. @throws BusNotPreparedError where there is no such stream; StoreUnavailableError. */
export async function orderedConsumer({ bus, stream, options }: OrderedSource): Promise<Consumer> {
  try {
    // A copy of the options: the library writes into them.
    return await askStore(() => bus.js.consumers.get(stream, { ...options }));
  } catch (error) {
    if (isStreamNotFound(error)) throw new BusNotPreparedError({ cause: error });
    throw error;
  }
}

/**
 * Messages without end. The library fetches in batches, so what waits here is bounded by one batch.
 * @param first the consumer that reading begins with.
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
      // Also where it is stopped already: what has never been read does not say that it has closed.
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

/** Deletes it. */
export async function dropConsumer(consumer: Consumer): Promise<void> {
  try {
    await consumer.delete();
  } catch {
    // It ends by itself a few minutes after its last request; deleting it now is only tidier.
  }
}

const PAUSE_MS = 250;

/** Another consumer behind the last message, as soon as the store answers; null where nobody wants it any more. */
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
      // Whoever follows outlives its servers: it has been told where it began whether there are any.
      if (!(error instanceof StoreUnavailableError || error instanceof BusNotPreparedError)) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}
