/**
 * The required configuration of every stream, bucket and object store. They are created and verified from this table.
 */
import {
  BLOBS_STREAM,
  JOURNAL_STREAMS,
  PARTITIONS_PER_JOURNAL_STREAM,
  PERSONA_SERVICE_BOUNDS,
  STREAMS,
  subjects,
} from '@coxswain/protocol';
import { nanos } from '@nats-io/nats-core';

/** Members of a stream's configuration that Coxswain sets, with the server's names; durations are nanoseconds. */
export interface StreamSpec {
  readonly name: string;
  readonly [member: string]: unknown;
}

/** The kinds of stored data that can have a size limit. */
export const LIMITED = ['commands', 'journals', 'snapshots', 'files', 'registry'] as const;
/** One kind of stored data with a size limit. */
export type Limited = (typeof LIMITED)[number];

/** The stream settings that an operator may choose. */
export interface StreamSettings {
  /**
   * Maximum bytes of all streams of a kind together; 0: no limit. Without this object, existing streams keep their
   * limits. Without a member, the streams of that kind keep their limit, or get the default if they have none.
   */
  readonly maxBytes?: Readonly<Partial<Record<Limited, number>>> | undefined;
  /** Number of replicas of every stream, 1 to 5. Without it, existing streams keep theirs, and new ones get 1. */
  readonly replicas?: number | undefined;
  /** Switches off the compression of existing streams. Without it they keep theirs. New streams have none. */
  readonly uncompress?: boolean | undefined;
}

const minute = nanos(60_000);

/** The configuration of all streams, buckets and the object store. The first one is the timer stream. */
export function streamSpecs(settings: StreamSettings = {}): readonly StreamSpec[] {
  return specsOf(settings.replicas ?? 1).map((spec) => ({
    ...spec,
    ...limitsOf(spec.name, settings),
    ...(spec.storage === 'file' ? { compression: 'none' } : {}),
  }));
}

/** Default limit of the command stream, bytes. So a flood of commands while no host runs does not fill the disk. */
const COMMANDS_MAX_BYTES = 256 * 1024 * 1024;
/** Maximum queued commands per session and verb, so that one session's commands do not use up the stream. */
const COMMANDS_PER_SUBJECT_MAX = 4_096;
/** Default limit of the registry, bytes: announcements, pauses and remembered rules of all tenants. */
const REGISTRY_MAX_BYTES = 256 * 1024 * 1024;
/** Maximum size of one key of the registry with its headers: the longest announcement is that of a persona. */
const REGISTRY_KEY_MAX_BYTES = PERSONA_SERVICE_BOUNDS.announcementMaxBytes + 32 * 1024;

/** The kind of limited data in a stream; null if the stream has no limit. */
export function limitedBy(stream: string): Limited | null {
  if (stream === STREAMS.commands) return 'commands';
  if (stream === STREAMS.snapshots) return 'snapshots';
  if (stream === BLOBS_STREAM) return 'files';
  if (stream === `KV_${STREAMS.registry}`) return 'registry';
  return JOURNAL_STREAMS.includes(stream) ? 'journals' : null;
}

/** The members of a stream's configuration that limit its size; none if the stream has no limit. */
export function limitMembers(stream: string): readonly string[] {
  return Object.keys(limitsOf(stream, {}));
}

/**
 * A full stream of commands, records, files or keys rejects new messages: acknowledged ones must not be deleted to make
 * room (docs/adr/limit-the-registry-as-a-whole.md).
 * Snapshots are a cache, so a full stream deletes the oldest ones.
 */
function limitsOf(stream: string, { maxBytes = {} }: StreamSettings): Readonly<Record<string, unknown>> {
  switch (limitedBy(stream)) {
    case 'commands':
      return {
        max_bytes: maxBytes.commands ?? COMMANDS_MAX_BYTES,
        max_msgs_per_subject: COMMANDS_PER_SUBJECT_MAX,
        discard: 'new',
        discard_new_per_subject: true,
      };
    case 'journals':
      return { max_bytes: Math.ceil((maxBytes.journals ?? 0) / JOURNAL_STREAMS.length), discard: 'new' };
    case 'snapshots':
      return { max_bytes: maxBytes.snapshots ?? 0 };
    case 'files':
      return { max_bytes: maxBytes.files ?? 0 };
    case 'registry':
      return { max_bytes: maxBytes.registry ?? REGISTRY_MAX_BYTES, max_msg_size: REGISTRY_KEY_MAX_BYTES };
    case null:
      return {};
  }
}

/**
 * Blocks must not be compressed: with several replicas, nats-server damages them when it restarts after a kill -9
 * (docs/reports/nats-server-s2-blocks.md).
 */
function specsOf(num_replicas: number): readonly StreamSpec[] {
  return [
    {
      name: STREAMS.timers,
      subjects: [subjects.timers],
      storage: 'file',
      retention: 'limits',
      // A maximum age would delete schedules that are not yet due.
      max_age: 0,
      // Scheduling a timer again replaces the previous schedule.
      max_msgs_per_subject: 1,
      // Schedules do not work with `new`.
      discard: 'old',
      allow_msg_schedules: true,
      // A fired message expires by its own TTL.
      allow_msg_ttl: true,
      // The check of replicas reads by direct get.
      allow_direct: true,
      allow_rollup_hdrs: true,
      num_replicas,
    },
    {
      name: STREAMS.commands,
      subjects: [subjects.commands],
      subject_transform: { src: subjects.commands, dest: subjects.storedCommandTransform },
      sources: [
        {
          name: STREAMS.timers,
          subject_transforms: [{ src: subjects.timersDue, dest: subjects.timerCommandTransform }],
        },
      ],
      storage: 'file',
      retention: 'workqueue',
      duplicate_window: 10 * minute,
      allow_direct: true,
      // A client that may only steer must not make the server approve calls, or delete messages, by a header.
      allow_msg_schedules: false,
      allow_msg_ttl: false,
      allow_rollup_hdrs: false,
      num_replicas,
    },
    ...JOURNAL_STREAMS.map((name, index) => ({
      name,
      subjects: journalSubjects(index),
      republish: { src: subjects.journals, dest: subjects.eventsRepublish },
      storage: 'file',
      retention: 'limits',
      max_age: 0,
      allow_direct: true,
      allow_msg_ttl: false,
      allow_rollup_hdrs: false,
      num_replicas,
    })),
    {
      name: STREAMS.snapshots,
      subjects: [subjects.snapshots],
      storage: 'file',
      retention: 'limits',
      discard: 'old',
      max_msgs_per_subject: 2,
      allow_direct: true,
      num_replicas,
    },
    {
      name: STREAMS.sessions,
      subjects: [subjects.sessionEntries],
      storage: 'file',
      retention: 'limits',
      max_msgs_per_subject: 1,
      discard: 'old',
      allow_direct: true,
      // The empty message that removes the entry of a session without a journal expires.
      allow_msg_ttl: true,
      allow_rollup_hdrs: false,
      num_replicas,
    },
    // Tenants' services write to these two buckets. With a rollup header, one of them could delete the keys of all
    // tenants. Heartbeats have no value after a restart of the server, so they are kept in memory.
    bucket(STREAMS.hosts, { storage: 'memory', max_age: nanos(1_000), allow_rollup_hdrs: false, num_replicas }),
    bucket(STREAMS.registry, { storage: 'file', allow_rollup_hdrs: false, num_replicas }),
    bucket(STREAMS.active, { storage: 'file', num_replicas }),
    {
      name: BLOBS_STREAM,
      subjects: [`$O.${STREAMS.blobs}.C.>`, `$O.${STREAMS.blobs}.M.>`],
      storage: 'file',
      discard: 'new',
      allow_rollup_hdrs: true,
      allow_direct: true,
      num_replicas,
    },
  ];
}

/** The journal subjects of a stream's range of partitions. */
function journalSubjects(index: number): string[] {
  const first = index * PARTITIONS_PER_JOURNAL_STREAM;
  return Array.from({ length: PARTITIONS_PER_JOURNAL_STREAM }, (_, i) => subjects.partitionJournals(first + i));
}

/** The stream of a key-value bucket, as clients expect it (NATS ADR-8). */
function bucket(name: string, rest: Readonly<Record<string, unknown>>): StreamSpec {
  return {
    name: `KV_${name}`,
    subjects: [`$KV.${name}.>`],
    max_msgs_per_subject: 1,
    discard: 'new',
    deny_delete: true,
    allow_rollup_hdrs: true,
    allow_direct: true,
    // A key may have its own TTL.
    allow_msg_ttl: true,
    ...rest,
  };
}
