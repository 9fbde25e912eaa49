/** The inbox port on the command stream: doorbells from pinned consumers, the commands themselves by direct get. */
import type { CommandInbox, InboxHandlers, Log, StoredCommand } from '@coxswain/ports';
import { HEADERS, PARTITIONS, parseStoredCommand, type SessionRef, STREAMS, subjects } from '@coxswain/protocol';
import type { Msg, NatsConnection } from '@nats-io/nats-core';
import { commandConsumers, ensureConsumers, PIN_GROUP, partitionConsumer, strayConsumer } from './command-consumers.ts';
import { commandStreamIncarnation } from './command-stream.ts';
import { onConnectionChange } from './connection-changes.ts';
import { type PartitionPull, startPartitionPull, tickMs } from './partition-pull.ts';
import { createStreamReader, type StoredMessage } from './stream-reader.ts';
import { wireOf } from './wire.ts';

/** The number under which the consumer of strays is kept beside the partitions'. */
const STRAYS = PARTITIONS;
/** Commands per request while an inbox is read. */
const readBatch = 128;

/**
 * An inbox for one host. The streams are there already ({@link ensureStreams}).
 * @throws NatsUnavailableError, NatsRefusedError where there is no command stream.
 */
export async function createNatsInbox(nc: NatsConnection, log: Log): Promise<CommandInbox> {
  const wire = wireOf(nc);
  const reader = createStreamReader(wire, STREAMS.commands);
  const incarnation = await commandStreamIncarnation(wire);
  const pulls = new Map<number, PartitionPull>();
  let mending = false;
  let handlers: InboxHandlers | null = null;
  let timer: NodeJS.Timeout | null = null;
  let endListening: () => void = () => undefined;

  function delivered(message: Msg, seq: number, ack: () => void): void {
    if (!handlers) return;
    const address = parseStoredCommand(message.subject);
    if (address) handlers.ring({ ref: address.ref, seq, ack });
    else
      handlers.stray({
        subject: message.subject,
        seq,
        receiptTo: message.headers?.get(HEADERS.receiptTo) || undefined,
        ack,
      });
  }

  /** Somebody deleted consumers. All are looked after in one go, as they seldom go alone. */
  function mend(): void {
    if (mending || !handlers) return;
    mending = true;
    // Owned by the inbox: it settles within the wire's bounds, and where it fails a later pull asks for it again.
    void ensureConsumers(nc, commandConsumers())
      .then(() => log.warn({}, 'consumers of the command stream were missing and have been made again'))
      .catch((error: unknown) => log.warn({ error }, 'consumers of the command stream are missing'))
      .finally(() => {
        mending = false;
      });
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
    if (nc.isClosed()) return;
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
        timer = setInterval(() => {
          for (const pull of pulls.values()) pull.tick();
        }, tickMs);
        // The connection keeps the process alive while it matters.
        timer.unref();
        endListening = onConnectionChange(nc, {
          restored() {
            for (const pull of pulls.values()) pull.restart();
          },
        });
      }
      await nc.flush();
    },
    async read(ref, afterSeq, untilSeq) {
      const subject = subjects.inbox(ref);
      const commands: StoredCommand[] = [];
      let last = afterSeq;
      do {
        // Most often one command waits, and one direct get brings it.
        let found = commands.length === 0 ? listOf(await reader.next(subject, last + 1)) : [];
        if (commands.length > 0) found = await reader.batch(subject, last + 1, readBatch);
        // The replica lags behind the doorbell, or that command is gone: the leader knows.
        if (found.length === 0) found = listOf(await reader.leaderNext(subject, last + 1));
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
  };
}
