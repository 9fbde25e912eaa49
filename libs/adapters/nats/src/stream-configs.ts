/** Every stream as it has to be. Streams, buckets and the object store are made and checked from this one table. */
import { BLOBS_STREAM, JOURNAL_STREAMS, PARTITIONS_PER_JOURNAL_STREAM, STREAMS, subjects } from '@coxswain/protocol';
import { nanos } from '@nats-io/nats-core';

/** Members of a stream's configuration that Coxswain sets, named as on the wire; durations are nanoseconds. */
export interface StreamSpec {
  readonly name: string;
  readonly [member: string]: unknown;
}

/** What streams hold, as far as its size can be limited. */
export const LIMITED = ['commands', 'journals', 'snapshots', 'files'] as const;
/** One kind of stored data with a size limit. */
export type Limited = (typeof LIMITED)[number];

/** The spare settings of an installation. */
export interface StreamSettings {
  /**
   * The most bytes that the streams of a kind may have together; 0: any number. Without the object existing streams keep
   * their limits. Without a member, streams of that kind keep a limit that they have, and get the default otherwise.
   */
  readonly maxBytes?: Readonly<Partial<Record<Limited, number>>> | undefined;
  /** Copies of every stream, 1 to 5. Without it those that are there stay as they are, and new ones get 1. */
  readonly replicas?: number | undefined;
  /** Switches the compression of existing streams off. Without it they keep it, and new ones have none. */
  readonly uncompress?: boolean | undefined;
}

const minute = nanos(60_000);

/** Where commands wait, where records are kept, and what stands around them. */
export function streamSpecs(settings: StreamSettings = {}): readonly StreamSpec[] {
  return specsOf(settings.replicas ?? 1).map((spec) => ({
    ...spec,
    ...limitsOf(spec.name, settings),
    ...(spec.storage === 'file' ? { compression: 'none' } : {}),
  }));
}

/** Commands that may wait by default, bytes: a flood while no host runs fills this, and no disk. */
const COMMANDS_MAX_BYTES = 256 * 1024 * 1024;
/** Commands of one verb that may wait for one session: one sender must not use all of it up for one. */
const COMMANDS_PER_SUBJECT_MAX = 4_096;

/** What is limited by a stream, or null. */
export function limitedBy(stream: string): Limited | null {
  if (stream === STREAMS.commands) return 'commands';
  if (stream === STREAMS.snapshots) return 'snapshots';
  if (stream === BLOBS_STREAM) return 'files';
  return JOURNAL_STREAMS.includes(stream) ? 'journals' : null;
}

/** The members of a stream's configuration that limit it, where it is limited. */
export function limitMembers(stream: string): readonly string[] {
  return Object.keys(limitsOf(stream, {}));
}

/**
 * A full stream refuses what is new: a command that was acknowledged, and a record, must not be deleted to make room. Snapshots
 * are a cache, of which the oldest go.
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
      // It would delete schedules that are still to come.
      max_age: 0,
      // The same schedule again replaces the one before.
      max_msgs_per_subject: 1,
      // Schedules and `new` do not go together.
      discard: 'old',
      allow_msg_schedules: true,
      // What has fired goes by its own time to live.
      allow_msg_ttl: true,
      // So that its replicas can be verified.
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
      // Whoever may publish a steer must not be able to make the server approve, or delete, by a header.
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
      // A mark of a session that has never started expires.
      allow_msg_ttl: true,
      allow_rollup_hdrs: false,
      num_replicas,
    },
    // Services of tenants write to these two: by a header one of them could have the server delete everybody's keys.
    // A host's beat is worth nothing after a restart of the server, so it need not touch the disk.
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

/** The journals of a stream's range of partitions. */
function journalSubjects(index: number): string[] {
  const first = index * PARTITIONS_PER_JOURNAL_STREAM;
  return Array.from({ length: PARTITIONS_PER_JOURNAL_STREAM }, (_, i) => subjects.partitionJournals(first + i));
}

/** A key-value bucket, as its clients expect the stream behind it to be (NATS ADR-8). */
function bucket(name: string, rest: Readonly<Record<string, unknown>>): StreamSpec {
  return {
    name: `KV_${name}`,
    subjects: [`$KV.${name}.>`],
    max_msgs_per_subject: 1,
    discard: 'new',
    deny_delete: true,
    allow_rollup_hdrs: true,
    allow_direct: true,
    // A key may go by a time to live of its own.
    allow_msg_ttl: true,
    ...rest,
  };
}
