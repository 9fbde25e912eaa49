/**
 * Every port in memory: the bus of a program that embeds Coxswain without NATS, and of tests. Several hosts may share
 * one bus; fences, pins and redelivery hold between them as they do on NATS. Nothing outlives the process.
 */
import type {
  ActiveSessions,
  Blobs,
  Clock,
  CommandInbox,
  CommandSender,
  HostLine,
  Journal,
  Publisher,
  Purge,
  Snapshots,
  StoredRecord,
  Timers,
} from '@coxswain/ports';
import { type Delta, type Receipt, type SessionRef, subjects } from '@coxswain/protocol';
import { createListeners } from './listeners.ts';
import { createMemoryCommands } from './memory-commands.ts';
import { createMemoryActiveSessions, createMemoryHostLines } from './memory-hosts.ts';
import { createMemoryJournal } from './memory-journal.ts';
import { createMemoryPurge } from './memory-purge.ts';
import { createMemoryBlobs, createMemorySnapshots } from './memory-storage.ts';
import { createMemoryTimers } from './memory-timers.ts';
import { createSystemClock } from './system-clock.ts';

/** The bus was used after it had been closed. */
export class MemoryBusClosedError extends Error {
  override readonly name = 'MemoryBusClosedError';
  readonly code = 'journal_unavailable';
  constructor() {
    super('the memory bus is closed');
  }
}

/** A bus in memory. Watchers' handlers return at once and do not throw; each is called in a microtask of its own. */
export interface MemoryBus {
  readonly journal: Journal;
  readonly sender: CommandSender;
  readonly snapshots: Snapshots;
  readonly blobs: Blobs;
  readonly timers: Timers;
  readonly publisher: Publisher;
  readonly active: ActiveSessions;
  readonly purge: Purge;
  /** The ports of one session host that the bus has, with an inbox and a host channel of its own. */
  hostPorts(): MemoryHostPorts;
  /** A host's end of the line between the hosts of this bus. */
  createHostLine(): HostLine;
  /** An inbox for one host. For each partition one open inbox is pinned; when it closes, the next takes over. */
  createInbox(): CommandInbox;
  /**
   * Publishes as any client of a bus could: any subject, any bytes. A subject that is no command goes nowhere.
   * @returns the position at which the command stream has stored it, or null.
   */
  publish(subject: string, payload: Uint8Array, headers?: Readonly<Record<string, string>>): number | null;
  /** Hears of each record of a session after it is durable. @returns a function that ends it. */
  subscribeEvents(ref: SessionRef, handler: (record: StoredRecord) => void): () => void;
  /** Hears a session's deltas. @returns a function that ends it. */
  subscribeDeltas(ref: SessionRef, handler: (delta: Delta) => void): () => void;
  /** Hears the receipts sent to a subject. @returns a function that ends it. */
  subscribeReceipts(subject: string, handler: (receipt: Receipt) => void): () => void;
  /** Ends deliveries, timers and subscriptions, so that the process can end. Every later use of a port rejects. */
  close(): void;
}

/** What a session host has from the bus. */
export type MemoryHostPorts = Pick<
  MemoryBus,
  'journal' | 'snapshots' | 'timers' | 'blobs' | 'active' | 'publisher' | 'sender'
> & { readonly inbox: CommandInbox; readonly hostLine: HostLine };

/** Makes an empty bus. `clock` says when timers are due and deliveries are made again. */
export function createMemoryBus(clock: Clock = createSystemClock()): MemoryBus {
  let closed = false;
  const assertOpen = () => {
    if (closed) throw new MemoryBusClosedError();
  };
  const events = createListeners<StoredRecord>();
  const deltas = createListeners<Delta>();
  const receipts = createListeners<Receipt>();
  const commands = createMemoryCommands(clock, assertOpen);
  const timers = createMemoryTimers(clock, commands.storeTimer, assertOpen);
  const journal = createMemoryJournal((ref, record) => events.tell(subjects.events(ref), record), assertOpen);
  const snapshots = createMemorySnapshots(assertOpen);
  const blobs = createMemoryBlobs(clock, assertOpen);
  const bus: MemoryBus = {
    journal,
    sender: commands.sender,
    snapshots,
    blobs,
    purge: createMemoryPurge({ journal, snapshots, timers, blobs, clock }),
    timers: { schedule: timers.schedule },
    publisher: {
      delta: (ref, delta) => deltas.tell(subjects.deltas(ref), delta),
      receipt: (subject, receipt) => receipts.tell(subject, receipt),
    },
    active: createMemoryActiveSessions(assertOpen),
    hostPorts() {
      const { snapshots, timers, blobs, active, publisher, sender } = bus;
      const shared = { journal, snapshots, timers, blobs, active, publisher, sender };
      return { ...shared, inbox: bus.createInbox(), hostLine: bus.createHostLine() };
    },
    createHostLine: createMemoryHostLines(clock),
    createInbox: commands.createInbox,
    publish: commands.publish,
    subscribeEvents: (ref, handler) => events.add(subjects.events(ref), handler),
    subscribeDeltas: (ref, handler) => deltas.add(subjects.deltas(ref), handler),
    subscribeReceipts: (subject, handler) => receipts.add(subject, handler),
    close() {
      closed = true;
      commands.close();
      timers.close();
      events.clear();
      deltas.clear();
      receipts.clear();
    },
  };
  return bus;
}
