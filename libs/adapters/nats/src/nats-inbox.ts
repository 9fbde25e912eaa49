/**
 * The inbox port on the command stream. Pinned consumers of the partitions deliver notifications; the commands
 * themselves are read from the stream.
 */
import { setTimeout } from 'node:timers/promises';
import {
  createStreamReader,
  inboxPrefixOf,
  onConnectionChange,
  STATUS,
  type StoredMessage,
  statusOf,
  wireOf,
} from '@coxswain/bus';
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
  commandStreamIncarnation,
  ensureConsumers,
  PIN_GROUP,
  partitionConsumer,
  repairConsumers,
  type StreamsGoneError,
  strayConsumer,
} from './command-consumers.ts';
import { type StalledConsumers, watchForStalledConsumers } from './stalled-consumers.ts';

/** The pseudo-partition of the consumer of unroutable commands. */
const STRAYS = PARTITIONS;
/** Interval of {@link PartitionPull.tick}, milliseconds: well within the second that a pin lasts. */
const tickMs = 400;

/** Maximum deliveries of one pull. */
const pullBatch = 256;
/** Expiry of a pull that renews a pin, milliseconds: as long as the pin. */
const pinnedPullMs = 1_000;
/**
 * Expiry of a pull without a pin, milliseconds. If the server loses the pull together with the consumer's leader, the
 * next pull follows after about this time.
 */
const waitingPullMs = 5_000;

/** Number of pulls without responders after which the consumer counts as missing, not as starting. */
const ticksUntilMissing = 5;

/** Maximum commands per request while an inbox is read. */
const readBatch = 128;
/** Pauses before the retries of a read that does not find a notified command, milliseconds. */
const lookAgainMs = [10, 50];

/**
 * Creates the inbox of one host. Precondition: the streams exist ({@link ensureStreams}).
 * @param onGone called once if the command stream was deleted or recreated. The inbox is unusable then.
 * @throws NatsUnavailableError, NatsRefusedError; StreamNotFoundError if the command stream does not exist.
 */
export async function createNatsInbox(
  nc: NatsConnection,
  log: Log,
  onGone: (error: StreamsGoneError) => void = () => undefined,
): Promise<CommandInbox> {
  const wire = wireOf(nc);
  const reader = createStreamReader(wire, STREAMS.commands);
  const incarnation = await commandStreamIncarnation(nc);
  const pulls = new Map<number, PartitionPull>();
  let handlers: InboxHandlers | null = null;
  let timer: NodeJS.Timeout | null = null;
  let stalled: StalledConsumers | null = null;
  let endListening: () => void = () => undefined;
  let connected = true;
  /** Number of calls of `close`. */
  let closes = 0;
  let endMisaddressed: () => void = () => undefined;
  const repair = repairConsumers(nc, log, incarnation, () => handlers !== null, onGone);

  function start(p: number): void {
    const consumer = consumerName(p);
    const refused = (error: Error) => log.error({ consumer, error }, 'deliveries of a partition cannot be received');
    pulls.set(
      p,
      startPartitionPull(nc, consumer, () => handlers, { missing: repair.start, refused }),
    );
  }

  /** Releases partitions: stops pulling, then unpins, so that a waiting host is pinned at once. */
  async function release(partitions: readonly number[]): Promise<void> {
    const pinned = partitions.filter((p) => {
      const held = pulls.get(p)?.stop() ?? false;
      pulls.delete(p);
      return held;
    });
    // Without a connection or a stream there is nothing to unpin; the pins expire within a second.
    if (nc.isClosed() || !connected || repair.isGone()) return;
    const payload = new TextEncoder().encode(JSON.stringify({ group: PIN_GROUP }));
    const unpinned = await Promise.allSettled(
      pinned.map((p) => wire.request(`$JS.API.CONSUMER.UNPIN.${STREAMS.commands}.${consumerName(p)}`, payload)),
    );
    for (const result of unpinned) {
      // The pin expires within a second.
      if (result.status === 'rejected') log.warn({ error: result.reason }, 'a partition could not be unpinned');
    }
  }

  return {
    incarnation,
    async open(newHandlers, partitions) {
      const wanted = new Set([...(partitions ?? Array.from({ length: PARTITIONS }, (_, p) => p)), STRAYS]);
      const closesBefore = closes;
      await ensureConsumers(nc, commandConsumers());
      // Closed meanwhile: pulls from now on would keep the partitions from other hosts, for as long as this host drains.
      if (closes > closesBefore) return;
      handlers = newHandlers;
      // Not awaited: a consumer without a leader answers no request, and must not delay the other partitions. It does not
      // reject.
      void release([...pulls.keys()].filter((p) => !wanted.has(p)));
      for (const p of wanted) if (!pulls.has(p)) start(p);
      if (timer === null) {
        endMisaddressed = answerMisaddressed(nc, () => handlers);
        timer = setInterval(() => {
          for (const pull of pulls.values()) pull.tick();
        }, tickMs);
        // The timer does not keep the process alive; an open connection does.
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
        // An empty batch is usually correct, but a replica's 404 does not prove it: confirm it with the leader.
        if (stored.length === 0) stored = listOf(await reader.leaderNext(subject, afterSeq + 1));
        return stored.map((message) => commandOf(ref, message));
      }
      const commands: StoredCommand[] = [];
      let last = afterSeq;
      do {
        let found = await reader.gaplessBatch(subject, last + 1, readBatch);
        // The replica may lag behind the notification, or be damaged and skip the command, or the command may be
        // deleted. So ask the leader. If another server sent the notification, even the leader may not have applied the
        // command yet: each server applies committed messages at its own pace.
        for (const pauseMs of [0, ...lookAgainMs]) {
          if (found.some(({ seq }) => seq <= untilSeq)) break;
          // The leader has a later command, so it had the notified one too: that one was deleted.
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
      closes++;
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

/** Callbacks of a partition pull. Contract: they return at once and do not throw. */
interface PullProblems {
  /** The consumer did not respond to {@link ticksUntilMissing} pulls. */
  missing(): void;
  /** The subscription failed, for example for lack of permission: no delivery will arrive. */
  refused(error: Error): void;
}

/** One partition that is being pulled. */
interface PartitionPull {
  /** Renews the pin if it is held; otherwise pulls again when the last pull is about to expire. */
  tick(): void;
  /** Pulls at once. For a restored connection: the server has dropped the earlier pulls. */
  restart(): void;
  /**
   * Stops pulling, and rejects (NAK) unacknowledged deliveries, so that the server redelivers them at once.
   * @returns whether it holds the pin. The caller must then release the pin.
   */
  stop(): boolean;
}

/**
 * Pulls one partition's deliveries through a pinned consumer, and notifies the host of each command by its subject.
 *
 * The pin lasts one second from the last pull that names it. Deliveries do not renew it. After it has expired, the
 * server answers a pull that names it with 423, but only when the next message arrives. The library's own `consume`
 * then waits for missed heartbeats, half a minute. So this code sends the pulls itself: each tick renews a held pin,
 * and a lost pin is dropped at once.
 * @param handlers those of the open inbox. Without any, a delivery stays unacknowledged.
 */
function startPartitionPull(
  nc: NatsConnection,
  consumer: string,
  handlers: () => InboxHandlers | null,
  problems: PullProblems,
): PartitionPull {
  const pullSubject = `$JS.API.CONSUMER.MSG.NEXT.${STREAMS.commands}.${consumer}`;
  const inbox = `${createInbox(inboxPrefixOf(nc))}.`;
  const unacknowledged = new Map<number, string>();
  let pin: string | null = null;
  // Part of the pulls' reply subject: it identifies late answers to pulls of an earlier pin.
  let generation = 0;
  let pullAgainAtMs = 0;
  let deliveredSincePull = 0;
  let unanswered = 0;
  const waitingPull = pullRequest(waitingPullMs, null);
  let pinnedPull = waitingPull;

  const subscription = nc.subscribe(`${inbox}*`, {
    callback(error, message) {
      if (error) problems.refused(error);
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
    const ack = () => {
      if (unacknowledged.get(seq) === reply) unacknowledged.delete(seq);
      // On a closed connection no acknowledgement is possible: the server redelivers the message to another host.
      if (!nc.isClosed()) nc.publish(reply);
    };
    const { subject } = message;
    const address = parseStoredCommand(subject);
    if (address) handlers()?.notify({ ref: address.ref, seq, isTimer: address.isTimer, ack });
    else handlers()?.unroutable({ subject, seq, receiptTo: message.headers?.get(HEADERS.receiptTo) || undefined, ack });
  }

  function answered(message: Msg): void {
    const status = statusOf(message);
    if (message.subject !== inbox + generation) return;
    if (status === STATUS.wrongPin && pin !== null) {
      pin = null;
      generation += 1;
      // The server redelivers them, maybe to another host, whose acknowledgements do not arrive here.
      unacknowledged.clear();
      pull();
    } else if (status === STATUS.requestEnded) {
      // The next tick pulls again. Without this pause, a stream without a leader would receive a storm of requests.
      pullAgainAtMs = 0;
    } else if (status === STATUS.noResponders) {
      pullAgainAtMs = 0;
      unanswered += 1;
      // A starting server accepts clients before it has loaded its consumers.
      if (unanswered % ticksUntilMissing === 0) problems.missing();
    } else {
      unanswered = 0;
    }
  }

  function pull(): void {
    if (nc.isClosed()) return;
    deliveredSincePull = 0;
    // One tick early, so that the server always has a pull.
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
      // Unsubscribe before the NAKs: in the other order the redeliveries would arrive here.
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

/** The stream sequence in a delivery's reply subject. It has 9 tokens, or 11 and more with a domain and an account. */
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
  // A stored subject that cannot be parsed is unroutable, and no session's filter matches it.
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
