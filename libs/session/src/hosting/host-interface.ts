/** The interface of a session host: its ports, its options, and its functions. */
import type { ActiveSessions, HostChannel, Ids, SessionIndex, TenantUsage } from '@coxswain/ports';
import type {
  AnswerPieces,
  AnswerPlace,
  HostLiveness,
  Quotas,
  SessionRef,
  SessionStatus,
  TenantId,
} from '@coxswain/protocol';
import type { CommitBounds } from '../journal/append-record.ts';
import type { RunnerPorts } from '../runner/runner-ports.ts';

/** The ports of a host. */
export interface HostPorts extends Omit<RunnerPorts, 'quotas'> {
  /** Measures tenants, for quotas of sessions and stored bytes. */
  readonly usage?: TenantUsage | undefined;
  readonly ids: Ids;
  readonly hostChannel: HostChannel;
  readonly active: ActiveSessions;
  /** Without it, lists are read from the journals. */
  readonly index?: SessionIndex | undefined;
}

/** The options of a host. Every member has a default. */
export interface HostOptions {
  /** A name for people, 1 to 64 characters of A-Z a-z 0-9 _ -. The incarnation's id is unique in any case. Default `host`. */
  readonly name?: string;
  /** The number of records between two snapshots. Default 32. */
  readonly snapshotEvery?: number;
  /** The idle time after which a session is passivated. Default 30,000. */
  readonly passivateAfterMs?: number;
  /** The time between two searches for idle sessions. Default 5,000. */
  readonly sweepEveryMs?: number;
  /** Serves exactly these partitions. Without it the alive hosts share all partitions. */
  readonly partitions?: readonly number[];
  /** The heartbeat and lease of hosts. All hosts of a bus need the same. */
  readonly liveness?: HostLiveness;
  /** How often and how long an append without an answer is repeated. */
  readonly commitBounds?: CommitBounds;
  /** The quotas of a tenant. Without it nothing is limited. */
  readonly quotas?: (tenant: TenantId) => Quotas;
}

/** A host of sessions. */
export interface SessionHost {
  /** The id of this incarnation. Records hold it in `attempt`, with a generation (`RunnerOptions.host`). */
  readonly id: string;
  /**
   * Joins the hosts, opens the inbox, and claims the sessions with work in its partitions, some at a time. Resolves when
   * the host receives commands.
   * @returns `found`: the number of sessions that may have work, and are being claimed.
   */
  start(): Promise<{ readonly found: number }>;
  /**
   * The status of a session after its newest stored record, or null for an unknown one. A caller that has read a record
   * gets a status that includes it, also while the host waits for that record's acknowledgement.
   * @throws errors of `loadSession` (journal/load-session.ts), if the host has to read the journal.
   */
  status(ref: SessionRef): Promise<SessionStatus | null>;
  /**
   * The text after a reader's place in the newest answer of a session. Empty if no answer streams here, and null if the
   * session is not in this host's memory: it may be in another host's.
   * @param from the reader's place; null for the whole answer.
   */
  answer(ref: SessionRef, from: AnswerPlace | null): AnswerPieces | null;
  /** Whether the host has its lease: it hears its own heartbeat, so hosts reach each other. */
  readonly isHeard: boolean;
  /** The name under which other hosts know this host now. */
  readonly peerName: string;
  /** Why the index of sessions cannot be written now, one sentence; null if it works. */
  readonly indexProblem: string | null;
  /** The number of sessions in memory. */
  readonly live: number;
  /** Stops in order: takes no command, starts no model call. Calls in flight may end within `graceMs`. Default 10,000. */
  stop(graceMs?: number): Promise<void>;
  /** Leaves all sessions at once, like a crash. For a host that cannot stop in order, and for simulations. */
  abandon(): void;
}
