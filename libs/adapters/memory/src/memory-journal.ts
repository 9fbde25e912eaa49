/**
 * The journal port in memory. An append succeeds only if its fencing token is the sequence of the session's last
 * record. All sessions share one sequence.
 */
import type { Journal, StoredRecord } from '@coxswain/ports';
import {
  BOUNDS,
  parseJournalSubject,
  partitionOf,
  RecordTooLargeError,
  type SessionRef,
  sessionRef,
  subjects,
} from '@coxswain/protocol';

/** A journal in memory, with the operations that a {@link Purge} needs. */
export interface MemoryJournal extends Journal {
  /** Deletes a session's records whose sequence is lower than `fence`. */
  deleteBefore(ref: SessionRef, fence: number): void;
  tenants(): readonly string[];
  all(): Iterable<StoredRecord & { readonly ref: SessionRef }>;
}

/** Creates an empty journal. `appended` is called with each record after it is stored. */
export function createMemoryJournal(
  appended: (ref: SessionRef, record: StoredRecord) => void,
  assertOpen: () => void,
): MemoryJournal {
  const bySession = new Map<string, StoredRecord[]>();
  const tenants = new Map<string, Set<string>>();
  let sequence = 0;

  const recordsOf = (ref: SessionRef): readonly StoredRecord[] => bySession.get(subjects.journal(ref)) ?? [];

  return {
    async append(ref, bytes, fence) {
      assertOpen();
      if (bytes.length > BOUNDS.recordMaxBytes) throw new RecordTooLargeError(bytes.length);
      const key = subjects.journal(ref);
      const records = bySession.get(key) ?? [];
      if ((records.at(-1)?.fence ?? 0) !== fence) return { status: 'refused' };
      sequence += 1;
      // A copy: the caller may reuse its buffer.
      const record: StoredRecord = { bytes: bytes.slice(), fence: sequence };
      records.push(record);
      if (records.length === 1) {
        bySession.set(key, records);
        const sessions = tenants.get(ref.tenant) ?? new Set();
        tenants.set(ref.tenant, sessions.add(ref.sessionId));
      }
      appended(ref, record);
      return { status: 'stored', fence: sequence };
    },
    async firstAfter(ref, fence) {
      assertOpen();
      const records = recordsOf(ref);
      return records[indexAfter(records, fence)] ?? null;
    },
    async *read(ref, fence = 0, upTo) {
      assertOpen();
      const records = recordsOf(ref);
      const end = upTo === undefined ? records.length : Math.min(indexAfter(records, upTo - 1) + 1, records.length);
      for (let i = indexAfter(records, fence); i < end; i++) yield records[i] as StoredRecord;
    },
    async last(ref) {
      assertOpen();
      return recordsOf(ref).at(-1) ?? null;
    },
    async *sessions(tenant) {
      assertOpen();
      for (const sessionId of [...(tenants.get(tenant) ?? [])]) yield sessionRef(sessionId, tenant);
    },
    async *sessionsOf(partition) {
      assertOpen();
      for (const [tenant, ids] of [...tenants]) {
        for (const sessionId of [...ids]) if (partitionOf(sessionId) === partition) yield sessionRef(sessionId, tenant);
      }
    },
    deleteBefore(ref, fence) {
      assertOpen();
      const key = subjects.journal(ref);
      const kept = recordsOf(ref).filter((record) => record.fence >= fence);
      if (bySession.has(key)) bySession.set(key, kept);
    },
    tenants: () => [...tenants.keys()],
    *all() {
      for (const [subject, records] of [...bySession]) {
        const ref = parseJournalSubject(subject);
        if (ref) for (const record of [...records]) yield { ...record, ref };
      }
    },
  };
}

function indexAfter(records: readonly StoredRecord[], fence: number): number {
  let low = 0;
  let high = records.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((records[middle] as StoredRecord).fence > fence) high = middle;
    else low = middle + 1;
  }
  return low;
}
