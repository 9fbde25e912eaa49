/**
 * Pulls one partition's deliveries through a pinned consumer.
 *
 * The pin lasts one second from the last pull that names it; deliveries do not renew it, and once it has lapsed a
 * pull that names it is answered with 423 only when the next message comes. The library's own `consume` then waits
 * for missed heartbeats, half a minute, which is why pulls are made here: a pin that is held is renewed at each tick,
 * and one that is lost is let go at once.
 */
import { createInbox, type Msg, type NatsConnection } from '@nats-io/nats-core';
import { PIN_GROUP } from './command-consumers.ts';
import { STATUS, statusOf } from './nats-status.ts';
import { inboxPrefixOf } from './wire.ts';

/** How often {@link PartitionPull.tick} is called, milliseconds: well within the second that a pin lasts. */
export const tickMs = 400;

/** Deliveries that one pull asks for. */
const pullBatch = 256;
/** A pull that renews a pin need not outlive it. */
const pinnedPullMs = 1_000;
/** A pull that waits for its turn or for work. A pull that the server lost with its leader costs this much time. */
const waitingPullMs = 5_000;

/** Ticks without anybody to pull from, after which the consumer is taken to be missing rather than on its way. */
const ticksUntilMissing = 5;

/** What a partition tells. Contract: these return at once and do not throw. */
export interface PartitionHandlers {
  delivered(message: Msg, seq: number, ack: () => void): void;
  /** The consumer has not been there for some ticks. */
  missing(): void;
  /** The server does not let us listen: nothing will come. */
  refused(error: Error): void;
}

/** One partition that is being pulled. */
export interface PartitionPull {
  /** Renews what has to be renewed. */
  tick(): void;
  /** Pulls at once: what the server held for us is lost. */
  restart(): void;
  /**
   * Asks for no more, and hands back what was not acknowledged, to be delivered again at once.
   * @returns whether it holds the pin, which is then to be given back.
   */
  stop(): boolean;
}

/** Starts pulling from a consumer of a stream. */
export function startPartitionPull(
  nc: NatsConnection,
  stream: string,
  consumer: string,
  handlers: PartitionHandlers,
): PartitionPull {
  const pullSubject = `$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer}`;
  const inbox = `${createInbox(inboxPrefixOf(nc))}.`;
  const unacknowledged = new Map<number, string>();
  let pin: string | null = null;
  // Stands in the reply subject of pulls, so that a late answer to a pull of an earlier pin is known as such.
  let generation = 0;
  let pullAgainAtMs = 0;
  let deliveredSincePull = 0;
  let unanswered = 0;
  const waitingPull = pullRequest(waitingPullMs, null);
  let pinnedPull = waitingPull;

  const subscription = nc.subscribe(`${inbox}*`, {
    callback(error, message) {
      if (error) handlers.refused(error);
      else if (message.reply?.startsWith('$JS.ACK.')) deliver(message, message.reply);
      else answered(message);
    },
  });

  function deliver(message: Msg, reply: string): void {
    const held = message.headers?.get('Nats-Pin-Id') || null;
    if (held !== pin && held !== null) {
      pin = held;
      generation += 1;
      pinnedPull = pullRequest(pinnedPullMs, pin);
    }
    unanswered = 0;
    deliveredSincePull += 1;
    if (deliveredSincePull >= pullBatch / 2) pull();
    const seq = streamSequenceOf(reply);
    unacknowledged.set(seq, reply);
    handlers.delivered(message, seq, () => {
      if (unacknowledged.get(seq) === reply) unacknowledged.delete(seq);
      // Without a connection there is nobody to tell; the delivery is made again and is then only an acknowledgement.
      if (!nc.isClosed()) nc.publish(reply);
    });
  }

  function answered(message: Msg): void {
    const status = statusOf(message);
    if (message.subject !== inbox + generation) return;
    if (status === STATUS.wrongPin && pin !== null) {
      pin = null;
      generation += 1;
      pull();
    } else if (status === STATUS.requestEnded) {
      // Not at once: where nobody leads, asking again without a pause would be a storm.
      pullAgainAtMs = 0;
    } else if (status === STATUS.noResponders) {
      pullAgainAtMs = 0;
      unanswered += 1;
      // A server that starts lets clients in before it has read its consumers.
      if (unanswered % ticksUntilMissing === 0) handlers.missing();
    } else {
      unanswered = 0;
    }
  }

  function pull(): void {
    if (nc.isClosed()) return;
    deliveredSincePull = 0;
    // A tick early, so that there is always a pull at the server.
    pullAgainAtMs = performance.now() + waitingPullMs - tickMs;
    nc.publish(pullSubject, pin === null ? waitingPull : pinnedPull, { reply: inbox + generation });
  }

  pull();
  return {
    tick() {
      if (pin !== null || performance.now() >= pullAgainAtMs) pull();
    },
    restart: pull,
    stop() {
      // First nobody listens, then the deliveries go back: in the other order they would come here again.
      subscription.unsubscribe();
      if (!nc.isClosed()) for (const reply of unacknowledged.values()) nc.publish(reply, '-NAK');
      unacknowledged.clear();
      return pin !== null;
    },
  };
}

function pullRequest(expiresMs: number, pin: string | null): string {
  const request = { batch: pullBatch, expires: expiresMs * 1_000_000, group: PIN_GROUP };
  return JSON.stringify(pin === null ? request : { ...request, id: pin });
}

/** The stream sequence in a delivery's reply subject, of 9 tokens, or of 11 and more with domain and account in front. */
function streamSequenceOf(reply: string): number {
  const tokens = reply.split('.');
  return Number(tokens[tokens.length === 9 ? 5 : 7]);
}
