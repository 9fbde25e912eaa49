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
import type { AppendBounds } from '../journal/append-record.ts';
import type { RunnerPorts } from '../runner/runner-ports.ts';

/** The ports of a host. */
export interface HostPorts extends Omit<RunnerPorts, 'quotas'> {
  /** Measures tenants, for quotas of sessions and stored bytes. */
  readonly usage?: TenantUsage | undefined;
  readonly ids: Ids;
  readonly hostChannel: HostChannel;
  readonly active: ActiveSessions;
  /** Without it, the host writes no entries of its sessions. */
  readonly index?: SessionIndex | undefined;
}

/** The options of a host. Every member has a default. */
export interface HostOptions {
  /** A name for people, 1 to 64 characters of A-Z a-z 0-9 _ -. The incarnation's id is unique in any case. Default `host`. */
  readonly name?: string;
  /** A runner stores a snapshot after this many records, once the one before it is stored. Default 32. */
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
  readonly appendBounds?: AppendBounds;
  /** The quotas of a tenant. Without it nothing is limited. */
  readonly quotas?: (tenant: TenantId) => Quotas;
}

/** A host of sessions. */
export interface SessionHost {
  /** The id of this incarnation. Records hold it in `attempt`, followed by the generation unless that is 0. */
  readonly id: string;
  /**
   * Joins the hosts, opens the inbox, and claims the sessions in its partitions that may have work and no live owner,
   * some at a time. Resolves when the host receives commands. Rejects with the errors of the host channel.
   * @returns `found`: the number of these claims.
   */
  start(): Promise<{ readonly found: number }>;
  /**
   * The status of a session after its newest record; null for an unknown session. A caller that has read a record of
   * this host gets a status that includes it, also while the host waits for that record's acknowledgement. If another
   * host has taken the session over and this host does not know it yet, the status is that after this host's last
   * record.
   * @throws errors of `loadSession` (journal/load-session.ts), if the host has to read the journal.
   */
  status(ref: SessionRef): Promise<SessionStatus | null>;
  /**
   * The text and reasoning of a session's newest answer that a reader lacks, in bounded pieces ({@link AnswerPieces}).
   * Empty if no answer streams here, and null if the session is not in this host's memory: it may be in another host's.
   * @param from the reader's place; null, or a place in another answer, for all of the newest answer.
   */
  answer(ref: SessionRef, from: AnswerPlace | null): AnswerPieces | null;
  /** Whether the host has its lease: it hears its own heartbeat, so hosts reach each other. */
  readonly hasLease: boolean;
  /** The name under which other hosts know this host now. */
  readonly peerName: string;
  /** Why the index of sessions cannot be written now, one sentence; null if it works. */
  readonly indexProblem: string | null;
  /** The number of sessions in memory. */
  readonly live: number;
  /**
   * Stops in order: gets no more deliveries, starts no model call, and lets tool calls in flight end. Does not reject.
   * @param graceMs the time for calls, and for the tool connections to close. Default 10,000.
   */
  stop(graceMs?: number): Promise<void>;
  /** Leaves all sessions at once, like a crash. For a host that cannot stop in order, and for simulations. */
  abandon(): void;
}
