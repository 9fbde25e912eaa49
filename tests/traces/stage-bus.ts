/** What a stage stands on: the ports of a bus, and a way to publish as anybody could. */
import type {
  ActiveSessions,
  Blobs,
  CommandInbox,
  CommandSender,
  HostChannel,
  Journal,
  Publisher,
  Snapshots,
  Timers,
} from '@coxswain/ports';

/** A bus, in memory or real. */
export interface StageBus {
  readonly journal: Journal;
  readonly snapshots: Snapshots;
  readonly blobs: Blobs;
  readonly timers: Timers;
  readonly publisher: Publisher;
  readonly sender: CommandSender;
  readonly active: ActiveSessions;
  createHostChannel(): HostChannel;
  createInbox(): CommandInbox | Promise<CommandInbox>;
  /** Publishes as any client could. */
  publish(subject: string, payload: Uint8Array, headers?: Readonly<Record<string, string>>): unknown;
  /** Resolves when the bus has done what was asked of it by now, and all that follows without time passing. In memory one turn of the event loop is enough. */
  drained?(): Promise<void>;
  close(): void;
}
