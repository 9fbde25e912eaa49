/** The ports and options of a session runner. */
import type {
  CommandInbox,
  CommandNotification,
  Journal,
  Retention,
  Snapshots,
  StoredCommand,
  Timers,
} from '@coxswain/ports';
import type { Cursor } from '@coxswain/protocol';
import type { WorkerPorts } from '../effects/session-worker.ts';
import type { CommandQuotas } from '../hosting/command-quotas.ts';
import type { LoadLimit } from '../hosting/load-limit.ts';
import type { AppendBounds } from '../journal/append-record.ts';

/** The ports that a runner uses. */
export interface RunnerPorts extends WorkerPorts {
  /** The host's quotas. Without them nothing is limited. */
  readonly quotas?: CommandQuotas | undefined;
  readonly journal: Journal;
  readonly inbox: CommandInbox;
  readonly snapshots: Snapshots;
  readonly timers: Timers;
  /** Says within what time a deleted session is purged. Without it a deletion promises no time. */
  readonly retention?: Retention | undefined;
}

/** The options of a runner. */
export interface RunnerOptions {
  /**
   * The id of this host and its generation, as records hold them in `attempt`. The generation grows each time a runner of
   * the host leaves its session for another reason than `passivated` or `deleted`, also if the session is idle. Each
   * later runner then owns its session anew.
   */
  readonly host: string;
  /** Whether a record's `attempt` names this host, with any generation. */
  readonly isOwnRecord: (attempt: string) => boolean;
  /**
   * A snapshot is stored after this many records, once the one before it is stored. Others: `SessionRunner.keepSnapshot`,
   * and, on a host with metrics, `Host.#countAndSnapshot` for a session without a runner.
   */
  readonly snapshotEvery: number;
  readonly appendBounds?: AppendBounds | undefined;
  /**
   * Stores the host's note of the session (`ActiveSession` in libs/ports), unless it is stored. The runner appends no
   * record before. Rejects if the note is not stored.
   */
  readonly storeNote: () => Promise<void>;
  /** Stores the note once more, because the session has work again. */
  readonly storeNoteAgain: () => void;
  /** Bounds how many sessions the host loads at a time. */
  readonly loads: LoadLimit;
  /** Bounds how many transcripts the host reads at a time, of sessions that were loaded without one. */
  readonly transcripts: LoadLimit;
  /** Bounds how many journals the host reads at a time for spans that started on another host. */
  readonly traces: LoadLimit;
  /** Whether effects may start: the host has its lease, or knows no other host. */
  readonly mayStartEffects: () => boolean;
}

/**
 * A notification as a runner gets it. Without `ack`, another host has the delivery and has passed the notification on. That
 * host acknowledges the delivery once this one has left the session.
 */
export type RunnerNotification = Omit<CommandNotification, 'ack'> & Partial<Pick<CommandNotification, 'ack'>>;

/** The origin of an input: its place in the command stream. `command` is null for a timer. */
export interface InboxPlace {
  readonly cursor: Cursor;
  readonly command: StoredCommand | null;
}
