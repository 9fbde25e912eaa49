/**
 * The inbox port on the command stream: notifications from pinned consumers of the partitions, the commands themselves by direct
 * get.
 */
import { setTimeout } from 'node:timers/promises';
import type { CommandInbox, InboxHandlers, Log, StoredCommand } from '@coxswain/ports';
import {
  BOUNDS,
  HEADERS,
  PARTITIONS,
  parseStoredCommand,
  type SessionRef,
  STREAMS,
  subjects,
} from '@coxswain/protocol';
import { createInbox, type Msg, type NatsConnection } from '@nats-io/nats-core';
import { answerMisaddressed } from './answer-misaddressed.ts';
import {
  commandConsumers,
  ensureConsumers,
  PIN_GROUP,
  partitionConsumer,
  repairConsumers,
  type StreamsGoneError,
  strayConsumer,
} from './command-consumers.ts';
import { commandStreamIncarnation } from './command-stream.ts';
import { onConnectionChange } from './connection-changes.ts';
import { STATUS, statusOf } from './nats-status.ts';
import { type StalledConsumers, watchForStalledConsumers } from './stalled-consumers.ts';
import { createStreamReader, type StoredMessage } from './stream-reader.ts';
import { inboxPrefixOf, wireOf } from './wire.ts';

/** The number under which the consumer of strays is kept beside the partitions'. */
const STRAYS = PARTITIONS;
/** How often {@link PartitionPull.tick} is called, milliseconds: well within the second that a pin lasts. */
const tickMs = 400;

/** Deliveries that one pull asks for. */
const pullBatch = 256;
/** A pull that renews a pin need not outlive it. */
const pinnedPullMs = 1_000;
/** A pull that waits for its turn or for work. A pull that the server lost with its leader costs this much time. */
const waitingPullMs = 5_000;

/** Ticks without anybody to pull from, after which the consumer is taken to be missing rather than on its way. */
const ticksUntilMissing = 5;

/** Commands per request while an inbox is read. */
const readBatch = 128;
/** Pauses before a command that has rung and is not found is looked for again, milliseconds. */
const lookAgainMs = [10, 50];

/**
 * An inbox for one host. The streams are there already ({@link ensureStreams}).
 * @param onGone called once where the command stream was deleted, or is another one now: this inbox is of no use then.
 * @throws NatsUnavailableError, NatsRefusedError where there is no command stream.
 */
export async function createNatsInbox(
  nc: NatsConnection,
  log: Log,
  onGone: (error: StreamsGoneError) => void = () => undefined,
): Promise<CommandInbox> {
  const wire = wireOf(nc);
  const reader = createStreamReader(wire, STREAMS.commands);
  const incarnation = await commandStreamIncarnation(wire);
  const pulls = new Map<number, PartitionPull>();
  let handlers: InboxHandlers | null = null;
  let timer: NodeJS.Timeout | null = null;
  let stalled: StalledConsumers | null = null;
  let endListening: () => void = () => undefined;
  let connected = true;
  let endMisaddressed: () => void = () => undefined;
  const repair = repairConsumers(nc, log, incarnation, () => handlers !== null, onGone);

  function delivered(message: Msg, seq: number, ack: () => void): void {
    if (!handlers) return;
    const address = parseStoredCommand(message.subject);
    if (address) handlers.ring({ ref: address.ref, seq, isTimer: address.isTimer, ack });
    else
      handlers.stray({
        subject: message.subject,
        seq,
        receiptTo: message.headers?.get(HEADERS.receiptTo) || undefined,
        ack,
      });
  }

  function start(p: number): void {
    const consumer = consumerName(p);
    const refused = (error: Error) => log.error({ consumer, error }, 'deliveries of a partition cannot be received');
    pulls.set(p, startPartitionPull(nc, STREAMS.commands, consumer, { delivered, missing: repair.start, refused }));
  }

  /** Lets partitions go: stops pulling, then unpins, so that whoever waits is pinned at once. */
  async function release(partitions: readonly number[]): Promise<void> {
    const pinned = partitions.filter((p) => {
      const held = pulls.get(p)?.stop() ?? false;
      pulls.delete(p);
      return held;
    });
    // Without a server there is nobody to tell, and the pins lapse by themselves within a second.
    if (nc.isClosed() || !connected || repair.isGone()) return;
    const payload = new TextEncoder().encode(JSON.stringify({ group: PIN_GROUP }));
    const unpinned = await Promise.allSettled(
      pinned.map((p) => wire.request(`$JS.API.CONSUMER.UNPIN.${STREAMS.commands}.${consumerName(p)}`, payload)),
    );
    for (const result of unpinned) {
      // The pin lapses by itself within a second.
      if (result.status === 'rejected') log.warn({ error: result.reason }, 'a partition could not be unpinned');
    }
  }

  return {
    incarnation,
    async open(newHandlers, partitions) {
      const wanted = new Set([...(partitions ?? Array.from({ length: PARTITIONS }, (_, p) => p)), STRAYS]);
      await ensureConsumers(nc, commandConsumers());
      handlers = newHandlers;
      await release([...pulls.keys()].filter((p) => !wanted.has(p)));
      for (const p of wanted) if (!pulls.has(p)) start(p);
      if (timer === null) {
        endMisaddressed = answerMisaddressed(nc, () => handlers);
        timer = setInterval(() => {
          for (const pull of pulls.values()) pull.tick();
        }, tickMs);
        // The connection keeps the process alive while it matters.
        timer.unref();
        stalled = watchForStalledConsumers(nc, log, () => new Set([...pulls.keys()].map(consumerName)));
        endListening = onConnectionChange(nc, {
          lost() {
            connected = false;
          },
          restored() {
            connected = true;
            for (const pull of pulls.values()) pull.restart();
          },
        });
      }
      await nc.flush();
    },
    async read(ref, afterSeq, untilSeq) {
      const subject = subjects.inbox(ref);
      if (untilSeq === null) {
        let stored = await reader.gaplessBatch(subject, afterSeq + 1, BOUNDS.inboxCatchUpMax);
        // Nothing is most often the truth, and a 404 is no proof of it.
        if (stored.length === 0) stored = listOf(await reader.leaderNext(subject, afterSeq + 1));
        return stored.map((message) => commandOf(ref, message));
      }
      const commands: StoredCommand[] = [];
      let last = afterSeq;
      do {
        let found = await reader.gaplessBatch(subject, last + 1, readBatch);
        // The replica lags behind the notification, is damaged and steps over the command, or the command is gone: the leader
        // knows. Even that one may not have it yet where another server rang: what is committed is there for each of them in
        // its own time.
        for (const pauseMs of [0, ...lookAgainMs]) {
          if (found.some(({ seq }) => seq <= untilSeq)) break;
          // The leader has what came later, so it has had this command too, which is gone.
          if (pauseMs > 0 && found.length > 0) break;
          if (pauseMs > 0) await setTimeout(pauseMs);
          found = listOf(await reader.leaderNext(subject, last + 1));
        }
        for (const message of found) {
          commands.push(commandOf(ref, message));
          last = message.seq;
        }
        if (found.length === 0) break;
      } while (last < untilSeq);
      return commands;
    },
    async close() {
      if (timer) clearInterval(timer);
      timer = null;
      stalled?.stop();
      stalled = null;
      endMisaddressed();
      endMisaddressed = () => undefined;
      endListening();
      handlers = null;
      await release([...pulls.keys()]);
    },
  };
}

/** What a partition tells. Contract: these return at once and do not throw. */
interface PartitionHandlers {
  delivered(message: Msg, seq: number, ack: () => void): void;
  /** The consumer has not been there for some ticks. */
  missing(): void;
  /** The server does not let us listen: nothing will come. */
  refused(error: Error): void;
}

/** One partition that is being pulled. */
interface PartitionPull {
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

/**
 * Pulls one partition's deliveries through a pinned consumer.
 *
 * The pin lasts one second from the last pull that names it. Deliveries do not renew it. Once it has expired, the server answers
 * a pull that names it with 423, but only when the next message comes. The library's own `consume` then waits for missed
 * heartbeats, half a minute. So pulls are made here: each tick renews a pin that is held, and a lost one is dropped at once.
 */
function startPartitionPull(
  nc: NatsConnection,
  stream: string,
  consumer: string,
  handlers: PartitionHandlers,
): PartitionPull {
  const pullSubject = `$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer}`;
  const inbox = `${createInbox(inboxPrefixOf(nc))}.`;
  const unacknowledged = new Map<number, string>();
  let pin: string | null = null;
  // Part of the reply subject of pulls: it shows that a late answer belongs to a pull of an earlier pin.
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
      // Without a connection no acknowledgement is possible: the server delivers again, and then it is acknowledged.
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
      // The next tick pulls again: without a pause, a stream without a leader would get a storm of requests.
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
      // The subscription ends before the deliveries go back: in the other order they would arrive here again.
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

function consumerName(p: number): string {
  return (p === STRAYS ? strayConsumer() : partitionConsumer(p)).durable_name;
}

function listOf(message: StoredMessage | null): StoredMessage[] {
  return message ? [message] : [];
}

function commandOf(ref: SessionRef, { subject, seq, timeMs, data, headers }: StoredMessage): StoredCommand {
  // A stored subject that does not read is a stray, which no session's filter finds.
  const address = parseStoredCommand(subject);
  return {
    ref,
    verb: address?.verb ?? '',
    isTimer: address?.isTimer,
    payload: data,
    seq,
    storedAtMs: timeMs,
    commandId: headers.get(HEADERS.commandId) || undefined,
    receiptTo: headers.get(HEADERS.receiptTo) || undefined,
    actor: headers.get(HEADERS.actor) || undefined,
    traceparent: headers.get(HEADERS.traceparent) || undefined,
    restricted: headers.has(HEADERS.restricted) || undefined,
  };
}
