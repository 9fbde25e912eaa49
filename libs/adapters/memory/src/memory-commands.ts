/**
 * The command stream in memory: a work queue with partitions, notifications, redelivery and a deduplication window.
 * Unacknowledged deliveries are limited as on NATS. Inboxes compete for partitions: one inbox at a time is pinned to
 * each.
 */
import type { Clock, CommandInbox, CommandSender, InboxHandlers, StoredCommand } from '@coxswain/ports';
import {
  BOUNDS,
  HEADERS,
  PARTITIONS,
  parsePublishedCommand,
  partitionOf,
  positionalCommandId,
  type SessionRef,
  STREAMS,
  subjects,
} from '@coxswain/protocol';
import { createAlarm } from './alarm.ts';

/** Time after which an unacknowledged delivery is repeated, milliseconds. */
const ackWaitMs = 3_000;
/** Maximum number of unacknowledged deliveries per partition. Further entries wait. */
const maxAckPending = 256;
/** Deduplication window: how long the stream remembers a command id, milliseconds. */
const dedupeWindowMs = 10 * 60 * 1_000;
/** The pseudo-partition of unroutable messages: those without a session. */
const STRAYS = PARTITIONS;

interface Headers {
  readonly commandId?: string | undefined;
  readonly receiptTo?: string | undefined;
  readonly actor?: string | undefined;
  readonly traceparent?: string | undefined;
  readonly restricted?: boolean | undefined;
  readonly isTimer?: true;
}

interface Entry {
  readonly seq: number;
  readonly subject: string;
  readonly partition: number;
  /** Null for an unroutable message. */
  readonly command: StoredCommand | null;
  readonly receiptTo: string | undefined;
  /** When the delivery is repeated, milliseconds since 1970; null while the entry is not in flight. */
  redeliverAtMs: number | null;
}

interface Partition {
  /** Entries that are not yet delivered to the pinned inbox, in stream order. */
  readonly waiting: Map<number, Entry>;
  inFlight: number;
  /** Open inboxes in the order in which they joined; the first is pinned. */
  readonly inboxes: MemberInbox[];
}

interface MemberInbox {
  handlers: InboxHandlers;
}

/** The command stream: senders, inboxes and timers access it through this interface. */
export interface MemoryCommands {
  readonly sender: CommandSender;
  /** Creates the inbox of one host. */
  createInbox(): CommandInbox;
  /**
   * Publishes like any client: any subject, any bytes. A message whose subject is not a command is dropped.
   * @returns the sequence at which it is stored, or null for a dropped message.
   */
  publish(subject: string, payload: Uint8Array, headers?: Readonly<Record<string, string>>): number | null;
  /** Stores a due timer. */
  storeTimer(ref: SessionRef, payload: Uint8Array): void;
  close(): void;
}

/** Creates an empty command stream. */
export function createMemoryCommands(clock: Clock, assertOpen: () => void): MemoryCommands {
  const incarnation = { stream: STREAMS.commands, created: String(Math.floor(clock.nowMs())) };
  const entries = new Map<number, Entry>();
  const bySession = new Map<string, Map<number, Entry>>();
  const partitions = Array.from(
    { length: PARTITIONS + 1 },
    (): Partition => ({ waiting: new Map(), inFlight: 0, inboxes: [] }),
  );
  // All deliveries have the same acknowledgement timeout, so insertion order is the order of redelivery.
  const inFlight = new Map<number, Entry>();
  const remembered = new Map<string, { readonly seq: number; readonly untilMs: number }>();
  let sequence = 0;

  const partitionAt = (p: number): Partition => partitions[p] as Partition;
  const alarm = createAlarm(clock, redeliver);

  function add(subject: string, ref: SessionRef | null, verb: string, payload: Uint8Array, headers: Headers): number {
    sequence += 1;
    const seq = sequence;
    const command = ref && { ref, verb, payload: payload.slice(), seq, storedAtMs: clock.nowMs(), ...headers };
    const partition = ref ? partitionOf(ref.sessionId) : STRAYS;
    const entry: Entry = { seq, subject, partition, command, receiptTo: headers.receiptTo, redeliverAtMs: null };
    entries.set(seq, entry);
    if (ref) {
      const key = subjects.inbox(ref);
      const inbox = bySession.get(key) ?? new Map<number, Entry>();
      bySession.set(key, inbox.set(seq, entry));
    }
    partitionAt(partition).waiting.set(seq, entry);
    pump(partition);
    return seq;
  }

  function pump(p: number): void {
    const partition = partitionAt(p);
    const holder = partition.inboxes[0];
    if (!holder) return;
    for (const entry of partition.waiting.values()) {
      if (partition.inFlight >= maxAckPending) return;
      partition.waiting.delete(entry.seq);
      partition.inFlight += 1;
      deliver(holder, entry);
    }
  }

  function deliver(holder: MemberInbox, entry: Entry): void {
    const { seq, command, subject, receiptTo } = entry;
    entry.redeliverAtMs = clock.nowMs() + ackWaitMs;
    inFlight.delete(seq);
    inFlight.set(seq, entry);
    alarm.setBy(entry.redeliverAtMs);
    const ack = () => remove(entry);
    // In a microtask, never within the publisher's call: on a real bus the network separates the two.
    queueMicrotask(() => {
      if (partitionAt(entry.partition).inboxes[0] !== holder || !entries.has(seq)) return;
      if (command) holder.handlers.notify({ ref: command.ref, seq, isTimer: command.isTimer, ack });
      else holder.handlers.unroutable({ subject, seq, receiptTo, ack });
    });
  }

  function redeliver(): void {
    const nowMs = clock.nowMs();
    for (const entry of [...inFlight.values()]) {
      const atMs = entry.redeliverAtMs ?? 0;
      if (atMs > nowMs) {
        alarm.setBy(atMs);
        return;
      }
      const holder = partitionAt(entry.partition).inboxes[0];
      if (holder) deliver(holder, entry);
    }
  }

  function remove(entry: Entry): void {
    if (!entries.delete(entry.seq)) return;
    if (entry.command) {
      const key = subjects.inbox(entry.command.ref);
      const inbox = bySession.get(key);
      inbox?.delete(entry.seq);
      if (inbox?.size === 0) bySession.delete(key);
    }
    const partition = partitionAt(entry.partition);
    partition.waiting.delete(entry.seq);
    if (inFlight.delete(entry.seq)) partition.inFlight -= 1;
    pump(entry.partition);
  }

  function join(inbox: MemberInbox, p: number): void {
    partitionAt(p).inboxes.push(inbox);
    pump(p);
  }

  function leave(inbox: MemberInbox, p: number): void {
    const partition = partitionAt(p);
    const place = partition.inboxes.indexOf(inbox);
    if (place < 0) return;
    partition.inboxes.splice(place, 1);
    if (place > 0) return;
    // Entries that the pinned inbox did not acknowledge wait again, ahead of later ones.
    const again = [...inFlight.values()].filter((entry) => entry.partition === p).sort((a, b) => a.seq - b.seq);
    const later = [...partition.waiting.values()];
    partition.waiting.clear();
    for (const entry of [...again, ...later]) partition.waiting.set(entry.seq, entry);
    for (const entry of again) {
      inFlight.delete(entry.seq);
      entry.redeliverAtMs = null;
    }
    partition.inFlight = 0;
    pump(p);
  }

  function createInbox(): CommandInbox {
    let member: MemberInbox | null = null;
    let held: ReadonlySet<number> = new Set();
    return {
      incarnation,
      async open(handlers, asked) {
        assertOpen();
        member ??= { handlers };
        member.handlers = handlers;
        const wanted = new Set([...(asked ?? Array.from({ length: PARTITIONS }, (_, p) => p)), STRAYS]);
        const before = held;
        held = wanted;
        for (const p of before) if (!wanted.has(p)) leave(member, p);
        for (const p of wanted) if (!before.has(p)) join(member, p);
      },
      async read(ref, afterSeq, untilSeq) {
        assertOpen();
        const inbox = bySession.get(subjects.inbox(ref));
        const commands: StoredCommand[] = [];
        for (const { seq, command } of inbox?.values() ?? []) if (seq > afterSeq && command) commands.push(command);
        return untilSeq === null ? commands.slice(0, BOUNDS.inboxCatchUpMax) : commands;
      },
      async close() {
        const leaving = member;
        const before = held;
        member = null;
        held = new Set();
        if (leaving) for (const p of before) leave(leaving, p);
      },
    };
  }

  const sender: CommandSender = {
    async send(ref, verb, payload, options = {}) {
      assertOpen();
      const { commandId } = options;
      if (commandId === undefined) {
        const seq = add(subjects.command(ref, verb), ref, verb, payload, options);
        return { seq, commandId: positionalCommandId(incarnation, seq) };
      }
      const nowMs = clock.nowMs();
      for (const [id, { untilMs }] of remembered) {
        if (untilMs > nowMs) break;
        remembered.delete(id);
      }
      const messageId = subjects.commandMessageId(ref, commandId);
      const known = remembered.get(messageId);
      if (known) return { seq: known.seq, commandId };
      const seq = add(subjects.command(ref, verb), ref, verb, payload, options);
      remembered.set(messageId, { seq, untilMs: nowMs + dedupeWindowMs });
      return { seq, commandId };
    },
  };

  return {
    sender,
    createInbox,
    publish(subject, payload, headers = {}) {
      assertOpen();
      const published = parsePublishedCommand(subject);
      if (!published) return null;
      return add(subject, published.ref, published.verb, payload, {
        commandId: headers[HEADERS.commandId],
        receiptTo: headers[HEADERS.receiptTo],
        actor: headers[HEADERS.actor],
        traceparent: headers[HEADERS.traceparent],
        restricted: headers[HEADERS.restricted] !== undefined || undefined,
      });
    },
    storeTimer(ref, payload) {
      add(subjects.command(ref, 'timer'), ref, 'timer', payload, { isTimer: true });
    },
    close() {
      alarm.stop();
      for (const partition of partitions) partition.inboxes.length = 0;
    },
  };
}
