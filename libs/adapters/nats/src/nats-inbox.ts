/** The inbox port on the command stream: doorbells from pinned consumers, the commands themselves by direct get. */
import { setTimeout } from 'node:timers/promises';
import type { CommandInbox, InboxHandlers, Log, StoredCommand } from '@coxswain/ports';
import {
  BOUNDS,
  HEADERS,
  MISADDRESSED_COMMANDS,
  PARTITIONS,
  parseStoredCommand,
  type SessionRef,
  STREAMS,
  subjects,
} from '@coxswain/protocol';
import type { Msg, NatsConnection, Subscription } from '@nats-io/nats-core';
import { commandConsumers, ensureConsumers, PIN_GROUP, partitionConsumer, strayConsumer } from './command-consumers.ts';
import { commandStreamIncarnation, StreamNotThereError } from './command-stream.ts';
import { onConnectionChange } from './connection-changes.ts';
import { type PartitionPull, startPartitionPull, tickMs } from './partition-pull.ts';
import { type StalledConsumers, watchForStalledConsumers } from './stalled-consumers.ts';
import { createStreamReader, type StoredMessage } from './stream-reader.ts';
import { wireOf } from './wire.ts';

/** The number under which the consumer of strays is kept beside the partitions'. */
const STRAYS = PARTITIONS;
/** The group of hosts of which one answers what is addressed to no session. */
const MISADDRESSED_QUEUE = 'cox-misaddressed';
const NOT_STORED = JSON.stringify({
  error: { code: 400, description: 'no session has this subject: cox.<tenant>.session.<id>.<verb>' },
});
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
  let mending = false;
  /** The log has been told that consumers are missing, and that has not ended since. */
  let warned = false;
  let handlers: InboxHandlers | null = null;
  let timer: NodeJS.Timeout | null = null;
  let stalled: StalledConsumers | null = null;
  let endListening: () => void = () => undefined;
  let connected = true;
  let gone = false;
  let misaddressed: readonly Subscription[] = [];

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

  /** What no stream takes is answered once, by one of the hosts, and is kept nowhere. */
  function listenForMisaddressed(): Subscription[] {
    return MISADDRESSED_COMMANDS.map((subject) =>
      nc.subscribe(subject, {
        queue: MISADDRESSED_QUEUE,
        callback: (error, message) => {
          if (error || !handlers) return;
          // Who waits for the store's acknowledgement is told what a stream would have said.
          if (message.reply) message.respond(NOT_STORED);
          const receiptTo = message.headers?.get(HEADERS.receiptTo) || undefined;
          handlers.stray({ subject: message.subject, seq: 0, receiptTo, ack: () => undefined });
        },
      }),
    );
  }

  /** Somebody deleted consumers. All are looked after in one go, as they seldom go alone. */
  function mend(): void {
    if (mending || gone || !handlers) return;
    mending = true;
    // Owned by the inbox: it settles within the wire's bounds, and where it fails a later pull asks for it again.
    void isStillThere()
      .then(async (there) => {
        if (!there) return leave();
        await ensureConsumers(nc, commandConsumers());
        log.warn({}, 'missing consumers of the command stream were recreated');
        warned = false;
      })
      .catch((error: Error) => {
        log[warned ? 'debug' : 'warn']({ error: error.message }, 'consumers of the command stream are missing');
        warned = true;
      })
      .finally(() => {
        mending = false;
      });
  }

  /** Positions in another incarnation of the stream mean nothing here. */
  async function isStillThere(): Promise<boolean> {
    try {
      return (await commandStreamIncarnation(wire)).created === incarnation.created;
    } catch (error) {
      if (error instanceof StreamNotThereError) return false;
      throw error;
    }
  }

  function leave(): void {
    if (gone) return;
    gone = true;
    const error = new StreamsGoneError();
    log.error({ code: error.code }, error.message);
    onGone(error);
  }

  function start(p: number): void {
    const consumer = consumerName(p);
    const refused = (error: Error) => log.error({ consumer, error }, 'deliveries of a partition cannot be received');
    pulls.set(p, startPartitionPull(nc, STREAMS.commands, consumer, { delivered, missing: mend, refused }));
  }

  /** Lets partitions go: stops pulling, then unpins, so that whoever waits is pinned at once. */
  async function release(partitions: readonly number[]): Promise<void> {
    const pinned = partitions.filter((p) => {
      const held = pulls.get(p)?.stop() ?? false;
      pulls.delete(p);
      return held;
    });
    // Without a server there is nobody to tell, and the pins lapse by themselves within a second.
    if (nc.isClosed() || !connected || gone) return;
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
        misaddressed = listenForMisaddressed();
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
      for (const subscription of misaddressed) subscription.unsubscribe();
      misaddressed = [];
      endListening();
      handlers = null;
      await release([...pulls.keys()]);
    },
  };
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

/** The streams were deleted, or deleted and created again, while a host used them: the journals of its sessions are lost. */
export class StreamsGoneError extends Error {
  override readonly name = 'StreamsGoneError';
  readonly code = 'streams_gone';
  constructor() {
    super(
      'the streams of the sessions were deleted while this host used them; restore a backup, or create new streams: cox admin streams, or a restart of the host',
    );
  }
}
