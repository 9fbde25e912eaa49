/**
 * Watches the registry for changes, across the loss of servers and of the connection.
 *
 * The watch of the library notices only after 60 to 90 seconds that a server has lost its consumer, and ends without an
 * error after 30 failed attempts to recreate one that has delivered nothing. Meanwhile a host would know no new hook and
 * no new pause. So this module has its own consumer, with frequent heartbeats, and replaces it until it is stopped.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  answerOf,
  failureOf,
  inboxPrefixOf,
  onConnectionChange,
  retryWhileUnavailable,
  type StoredMessage,
} from '@coxswain/bus';
import type { Log } from '@coxswain/ports';
import { STREAMS } from '@coxswain/protocol';
import {
  createInbox,
  type Msg,
  MsgHdrsImpl,
  type NatsConnection,
  nanos,
  nuid,
  type Subscription,
} from '@nats-io/nats-core';

const STREAM = `KV_${STREAMS.registry}`;
/** Interval of the server's heartbeats to an idle consumer, milliseconds. */
const HEARTBEAT_MS = 2_000;
/** After this silence a consumer counts as lost, milliseconds. */
const SILENT_MS = 3 * HEARTBEAT_MS;
/** The server deletes a consumer without a subscriber after this time, milliseconds. */
const UNUSED_MS = 60_000;
/** Timeout of a request for a consumer, milliseconds. */
const ANSWER_TIMEOUT_MS = 5_000;
/** The pause between two attempts to replace a consumer, milliseconds. */
const RETRY_PAUSE_MS = 1_000;

/** A key of the registry, or the marker of a removed key. */
export type WatchedKey = Pick<StoredMessage, 'subject' | 'seq' | 'data' | 'headers'>;

/**
 * Watches the registry keys that match a filter: first their current values, then changes. While NATS does not answer,
 * it retries, so that a service can start during an outage.
 * @param filter the filter, such as `$KV.cox_registry.tools.>`.
 * @param take receives each key, in the order of the stream. Contract: it returns at once and does not throw.
 * @returns a function that ends the watch.
 * @throws NatsUnavailableError after 45 seconds without an answer; at once if there is no registry.
 */
export async function watchRegistry(
  nc: NatsConnection,
  filter: string,
  log: Log,
  take: (key: WatchedKey) => void,
): Promise<() => void> {
  let subscription: Subscription | undefined;
  let isStopped = false;
  let isReplacing = false;
  let isConnected = true;
  /** The stream sequence of the last message. */
  let last = 0;
  /** The number of messages that the current consumer has delivered. */
  let delivered = 0;
  let heardMs = 0;

  async function open(): Promise<void> {
    subscription?.unsubscribe();
    const to = createInbox(inboxPrefixOf(nc));
    delivered = 0;
    heardMs = performance.now();
    const current = nc.subscribe(to, {
      callback(error, message) {
        if (current !== subscription) return;
        // After this, silence: the timer replaces the consumer and its subscription.
        if (error) return log.error({ filter, error }, 'changes of the registry cannot be received');
        heardMs = performance.now();
        if (message.subject === to ? isComplete(message) : isNext(message)) return;
        void replace();
      },
    });
    subscription = current;
    const name = nuid.next();
    const start =
      last > 0
        ? { deliver_policy: 'by_start_sequence', opt_start_seq: last + 1 }
        : { deliver_policy: 'last_per_subject' };
    const config = {
      ...start,
      name,
      deliver_subject: to,
      filter_subject: filter,
      ack_policy: 'none',
      flow_control: true,
      idle_heartbeat: nanos(HEARTBEAT_MS),
      inactive_threshold: nanos(UNUSED_MS),
      mem_storage: true,
      num_replicas: 1,
    };
    const request = JSON.stringify({ stream_name: STREAM, config, action: 'create' });
    const api = `$JS.API.CONSUMER.CREATE.${STREAM}.${name}.${filter}`;
    const { error } = answerOf(await nc.request(api, request, { timeout: ANSWER_TIMEOUT_MS }));
    if (error) throw failureOf('watching the registry', error);
  }

  /** Takes a key. @returns false if keys before it were lost. */
  function isNext(message: Msg): boolean {
    const { streamSeq, consumerSeq } = placeIn(message.reply ?? '');
    if (consumerSeq !== delivered + 1) return false;
    delivered = consumerSeq;
    last = streamSeq;
    take({
      subject: message.subject,
      seq: streamSeq,
      data: message.data,
      headers: message.headers ?? new MsgHdrsImpl(),
    });
    return true;
  }

  /** Reads a message of the server about the consumer. @returns false if the consumer or keys were lost. */
  function isComplete(message: Msg): boolean {
    if (message.headers?.code !== 100) return false;
    // Flow control: the server waits for an answer before it sends more.
    const stalled = message.headers.get('Nats-Consumer-Stalled');
    if (message.reply) message.respond();
    else if (stalled) nc.publish(stalled);
    const sent = message.headers.get('Nats-Last-Consumer');
    return sent === '' || Number(sent) === delivered;
  }

  /** Opens another consumer after the last message, as soon as NATS answers. Contract: does not reject. */
  async function replace(): Promise<void> {
    if (isReplacing) return;
    isReplacing = true;
    let failures = 0;
    while (isConnected && !isStopped && !nc.isClosed()) {
      try {
        await open();
        if (failures > 0) log.info({ filter }, 'the registry is watched again');
        break;
      } catch (error) {
        // Once as a warning: until it succeeds, this host learns of no new hook, tool or pause.
        const level = failures++ === 0 ? 'warn' : 'debug';
        log[level]({ filter, error: (error as Error).message }, 'the registry cannot be watched now; retrying');
        await sleep(RETRY_PAUSE_MS, undefined, { ref: false });
      }
    }
    isReplacing = false;
    if (isStopped) subscription?.unsubscribe();
  }

  try {
    await retryWhileUnavailable(open, log);
  } catch (error) {
    isStopped = true;
    subscription?.unsubscribe();
    throw error;
  }
  const timer = setInterval(() => {
    if (performance.now() - heardMs > SILENT_MS) void replace();
  }, HEARTBEAT_MS);
  timer.unref();
  const endListening = onConnectionChange(nc, {
    lost() {
      isConnected = false;
    },
    restored() {
      isConnected = true;
      void replace();
    },
  });
  return () => {
    isStopped = true;
    clearInterval(timer);
    endListening();
    subscription?.unsubscribe();
  };
}

/** The places in a delivery's reply subject. It has 9 tokens, or 11 and more with a domain and an account. */
function placeIn(reply: string): { readonly streamSeq: number; readonly consumerSeq: number } {
  const tokens = reply.split('.');
  const at = tokens.length === 9 ? 5 : 7;
  return { streamSeq: Number(tokens[at]), consumerSeq: Number(tokens[at + 1]) };
}
