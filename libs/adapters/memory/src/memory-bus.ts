/**
 * An in-memory bus with the ports of a session host: for programs that embed Coxswain without NATS, and for tests.
 * Several hosts may share one bus. Fencing tokens, pinned partitions and redelivery work as on NATS. All data is lost
 * when the process ends.
 */
import type {
  ActiveSessions,
  Blobs,
  Clock,
  CommandInbox,
  CommandSender,
  HostChannel,
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
import { createMemoryActiveSessions, createMemoryHostChannels } from './memory-hosts.ts';
import { createMemoryJournal } from './memory-journal.ts';
import { createMemoryPurge } from './memory-purge.ts';
import { createMemoryBlobs, createMemorySnapshots } from './memory-storage.ts';
import { createMemoryTimers } from './memory-timers.ts';
import { createSystemClock } from './system-clock.ts';

/** A port was used after the bus was closed. */
export class MemoryBusClosedError extends Error {
  override readonly name = 'MemoryBusClosedError';
  readonly code = 'journal_unavailable';
  constructor() {
    super('the memory bus is closed');
  }
}

/** An in-memory bus. Contract: handlers return at once and do not throw. Each is called in its own microtask. */
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
  /** Creates the host channel of one host. All hosts of this bus share the channel. */
  createHostChannel(): HostChannel;
  /**
   * Creates the inbox of one host. For each partition one open inbox is pinned; when it closes, the next one is pinned.
   */
  createInbox(): CommandInbox;
  /**
   * Publishes like any client: any subject, any bytes. A message whose subject is not a command is dropped.
   * @returns the sequence in the command stream, or null for a dropped message.
   */
  publish(subject: string, payload: Uint8Array, headers?: Readonly<Record<string, string>>): number | null;
  /**
   * Calls the handler with each record of a session after the record is stored.
   * @returns a function that unsubscribes.
   */
  subscribeEvents(ref: SessionRef, handler: (record: StoredRecord) => void): () => void;
  /** Calls the handler with a session's deltas. @returns a function that unsubscribes. */
  subscribeDeltas(ref: SessionRef, handler: (delta: Delta) => void): () => void;
  /** Calls the handler with the receipts sent to a subject. @returns a function that unsubscribes. */
  subscribeReceipts(subject: string, handler: (receipt: Receipt) => void): () => void;
  /**
   * Ends deliveries, timers and subscriptions, so that the process can end. Later calls of the stores, the sender, the
   * timers and the inboxes fail with {@link MemoryBusClosedError}; an inbox can still be closed.
   */
  close(): void;
}

/** The ports of one session host. The inbox and the host channel are its own; the other ports are shared. */
export type MemoryHostPorts = Pick<
  MemoryBus,
  'journal' | 'snapshots' | 'timers' | 'blobs' | 'active' | 'publisher' | 'sender'
> & { readonly inbox: CommandInbox; readonly hostChannel: HostChannel };

/** Creates an empty bus. `clock` determines when timers are due and when deliveries are repeated. */
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
      return { ...shared, inbox: bus.createInbox(), hostChannel: bus.createHostChannel() };
    },
    createHostChannel: createMemoryHostChannels(clock),
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
