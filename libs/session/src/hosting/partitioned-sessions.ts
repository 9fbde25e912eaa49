/** The sessions of a host, as its partitions see them. */
import type { ActiveSession } from '@coxswain/ports';
import type { SessionRef } from '@coxswain/protocol';
import type { RunnerNotification } from '../runner/runner-ports.ts';

/** The functions of a host's sessions that its partitions call. */
export interface PartitionedSessions {
  /** Whether the session is in this host's memory. */
  isHere(ref: SessionRef): boolean;
  /** Notifies the session of a command. */
  notify(notification: RunnerNotification): void;
  /**
   * Claims a session that may have work, and that no other host owns. Resolves when the session continues, when it has no
   * work or cannot be read now, or when waiting takes too long. Contract: does not reject.
   */
  claim(session: ActiveSession): Promise<void>;
  /**
   * The number of a session's newest record, if it has effects that some host should continue: `openWorkAt`
   * (journal/has-open-work.ts). Null otherwise, and for a damaged or deleted session. Rejects where the store cannot be
   * read.
   */
  openWorkAt(ref: SessionRef): Promise<number | null>;
  /** Leaves the sessions of these partitions to their next hosts, each when it is drained, or after ten seconds. */
  transfer(partitions: ReadonlySet<number>): void;
  /** Drops the leftovers of the sessions that the predicate selects; leftovers.ts lists when. */
  dropLeftovers(isObsolete: (ref: SessionRef) => boolean): void;
  /** The host has exactly these partitions from now on. */
  assigned(partitions: ReadonlySet<number>): void;
  /** Wakes all sessions: the host may start effects again. */
  wakeAll(): void;
  /** Leaves all sessions at once. The host itself continues. */
  abandonSessions(): void;
}
