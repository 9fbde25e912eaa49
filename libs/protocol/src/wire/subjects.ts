/**
 * Every subject of the bus. No other file contains one, except the subjects of the object store (object-store.ts) and
 * of the JetStream API. Subjects below `cox.<tenant>.` are for clients and workers of a tenant. Subjects of hosts have
 * other roots, so that no tenant name reaches them.
 */
import type { ServedKind } from '../served/heartbeats.ts';
import { TOOL_NAME_PATTERN } from '../tools/calls.ts';
import { ID_PATTERN, SessionId, type SessionRef, TenantId } from './ids.ts';
import { cutText } from './unicode-text.ts';

/** Partitions of the command stream. */
export const PARTITIONS = 64;

/** FNV-1a, 32 bit (http://www.isthe.com/chongo/tech/comp/fnv/), of an ASCII text: each code unit is one byte. */
export function fnv1a32(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}

/** The partition of a session, from 0, as nats-server's `partition()` computes it. */
export function partitionOf(sessionId: string): number {
  return fnv1a32(sessionId) % PARTITIONS;
}

/** Verbs of commands that only hosts and workers may publish. */
export const INTERNAL_VERBS = [
  'timer',
  'start_child',
  'cancel_child',
  'child_ended',
  'message',
  'call_outcome',
  'feedback',
  'session_failed',
] as const;

// Checks one token of a subject. The ids of a session reference are checked when the reference is created.
function token(text: string, pattern: RegExp = ID_PATTERN): string {
  if (!pattern.test(text)) throw new TypeError(`${JSON.stringify(cutText(text, 64))} cannot stand in a subject`);
  return text;
}

const SERVED_NAMES: Readonly<Record<ServedKind, RegExp>> = {
  tools: TOOL_NAME_PATTERN,
  personas: ID_PATTERN,
  hooks: ID_PATTERN,
};

/** The token of a kind in the subjects of its requests. */
const SERVED_ROOTS: Readonly<Record<ServedKind, string>> = { tools: 'tool', personas: 'persona', hooks: 'hook' };

/**
 * The filter of a service's requests, or with the name `*` of all services of the kind. It fits every version of a
 * persona.
 */
function servedBase(kind: ServedKind, tenant: string, name: string): string {
  return `cox.${TenantId.parse(tenant)}.${SERVED_ROOTS[kind]}.${oneOrAll(name)}${kind === 'personas' ? '.*' : ''}`;
}

const oneOrAll = (name: string): string => (name === '*' ? name : token(name, TOOL_NAME_PATTERN));

/**
 * Subjects that look like a command and have too few or too many tokens. No stream stores them, so their sender would
 * get no error. Hosts subscribe to them and answer with one (answer-misaddressed.ts in libs/adapters/nats). The server
 * rejects subjects with an empty token.
 */
export const MISADDRESSED_COMMANDS = ['cox.*.session', 'cox.*.session.*', 'cox.*.session.*.*.>'] as const;

/** Subjects and filters, and functions that build them. */
export const subjects = {
  /** Commands, as clients publish them. */
  command: (ref: SessionRef, verb: string) => `cox.${ref.tenant}.session.${ref.sessionId}.${token(verb)}`,
  /**
   * The deduplication id (`Nats-Msg-Id`) of a command with an id of its sender. It is unique in the stream, so it names
   * tenant and session.
   */
  commandMessageId: (ref: SessionRef, commandId: string) => `${ref.tenant}.${ref.sessionId}.${commandId}`,
  /** The subjects of the command stream: commands of all tenants and sessions. */
  commands: 'cox.*.session.*.*',
  /**
   * The filter for unroutable commands. Only they keep a `cox.` subject in the command stream: its transform does not apply
   * to an id that is a literal wildcard. A consumer with {@link subjects.commands} as its filter would miss a literal
   * `>`. It would also keep the server from deleting messages that other consumers acknowledge (seen on nats-server
   * 2.15.1).
   */
  unroutableCommands: 'cox.>',
  /** A stored command, after the subject transform of the stream. */
  storedCommand: (ref: SessionRef, verb: string) =>
    `cox-cmd.${partitionOf(ref.sessionId)}.${ref.tenant}.${ref.sessionId}.${verb}`,
  /** The destination of the subject transform. */
  storedCommandTransform: `cox-cmd.{{partition(${PARTITIONS},2)}}.{{wildcard(1)}}.{{wildcard(2)}}.{{wildcard(3)}}`,
  /** The inbox of a session: its stored commands and due timers. */
  inbox: (ref: SessionRef) => `cox-cmd.${partitionOf(ref.sessionId)}.${ref.tenant}.${ref.sessionId}.>`,
  /** All stored commands of a partition. */
  partition: (p: number) => `cox-cmd.${p}.>`,
  /** All stored commands. */
  storedCommands: 'cox-cmd.>',
  /** The journal of a session: its records, one per message. */
  journal: (ref: SessionRef) => `cox-jrn.${partitionOf(ref.sessionId)}.${ref.tenant}.${ref.sessionId}`,
  /** All journals. */
  journals: 'cox-jrn.*.*.*',
  /** All journals of a partition. */
  partitionJournals: (p: number) => `cox-jrn.${p}.*.*`,
  /** All journals of a tenant. */
  tenantJournals: (tenant: string) => `cox-jrn.*.${TenantId.parse(tenant)}.*`,
  /** Live records: each record, right after it is stored. Not stored under this subject. */
  events: (ref: SessionRef) => `cox.${ref.tenant}.events.${ref.sessionId}`,
  /** The republish destination of the journal streams. */
  eventsRepublish: 'cox.{{wildcard(2)}}.events.{{wildcard(3)}}',
  /** Live deltas: pieces of a running answer. Not stored. */
  deltas: (ref: SessionRef) => `cox.${ref.tenant}.deltas.${ref.sessionId}`,
  /** Queries about a session. */
  query: (ref: SessionRef, what: string) => `cox.${ref.tenant}.query.${ref.sessionId}.${what}`,
  /** The subscription of the hosts for queries, in a queue group. */
  queries: 'cox.*.query.*.*',
  /** The second subscription of every host: only the host that runs a session has its running answer. */
  answerQueries: 'cox.*.query.*.get_answer',
  /** Requests for a large field, by the SHA-256 of its bytes. */
  largeField: (tenant: string, sha256: string) => `cox.${TenantId.parse(tenant)}.large.${token(sha256)}`,
  /** The subscription of the hosts for large fields. */
  largeFields: 'cox.*.large.*',
  /** Snapshots of a session. */
  snapshot: (ref: SessionRef) => `cox-snap.${partitionOf(ref.sessionId)}.${ref.tenant}.${ref.sessionId}`,
  /** The snapshots of a partition. */
  snapshotsOf: (partition: number) => `cox-snap.${partition}.*.*`,
  /** All snapshots. */
  snapshots: 'cox-snap.*.*.*',
  /** The entry of a session in the index of sessions. */
  sessionEntry: (ref: SessionRef) => `cox-ses.${partitionOf(ref.sessionId)}.${ref.tenant}.${ref.sessionId}`,
  /** The entries of all sessions. */
  sessionEntries: 'cox-ses.*.*.*',
  /** The entries of a tenant's sessions. */
  tenantEntries: (tenant: string) => `cox-ses.*.${TenantId.parse(tenant)}.*`,
  /** The schedule of one timer. A second message on the subject replaces it. */
  timerSchedule: (ref: SessionRef, timerId: string) =>
    `cox-tmr.${partitionOf(ref.sessionId)}.${ref.tenant}.${ref.sessionId}.set.${token(timerId)}`,
  /** The message of a schedule when it is due; the command stream sources it from here. */
  timerDue: (ref: SessionRef, timerId: string) =>
    `cox-tmr.${partitionOf(ref.sessionId)}.${ref.tenant}.${ref.sessionId}.due.${token(timerId)}`,
  /** All timers of a session, set and due. */
  sessionTimers: (ref: SessionRef) => `cox-tmr.${partitionOf(ref.sessionId)}.${ref.tenant}.${ref.sessionId}.*.*`,
  /** All timers, set and due. */
  timers: 'cox-tmr.*.*.*.*.*',
  /** All due timers. Their own token separates them from schedules, because filters match whole tokens. */
  timersDue: 'cox-tmr.*.*.*.due.*',
  /**
   * A due timer in the command stream. It has one token more than a stored command of a client, so a client cannot
   * forge a timer.
   */
  timerCommandTransform: 'cox-cmd.{{wildcard(1)}}.{{wildcard(2)}}.{{wildcard(3)}}.timer.{{wildcard(4)}}',
  /** Requests of a tenant for its keys of one kind in a bucket. A session host answers. */
  tenantKeys: (tenant: string, bucket: string, kind: string) =>
    `cox.${TenantId.parse(tenant)}.keys.${token(bucket)}.${token(kind)}`,
  /** The subscription of the hosts for requests of tenants for their keys. */
  allTenantKeys: 'cox.*.keys.*.*',
  /** Calls of a bus tool, in its queue group. */
  tool: (tenant: string, name: string) => `cox.${TenantId.parse(tenant)}.tool.${token(name, TOOL_NAME_PATTERN)}`,
  /**
   * Steps of one version of a served persona, calls of its tools and questions to its hooks, in its queue group.
   * `version` is its short form for subjects.
   */
  persona: (tenant: string, name: string, version: string) =>
    `cox.${TenantId.parse(tenant)}.persona.${token(name)}.${token(version)}`,
  /** Questions to the hooks of a service, in its queue group. */
  hook: (tenant: string, service: string) => `cox.${TenantId.parse(tenant)}.hook.${token(service)}`,
  /**
   * Requests to one instance of a service, such as a call that moves there. `served` is the subject of its requests.
   */
  requestTo: (served: string, instance: string) => `${served}.to.${token(instance)}`,
  /** Orders about a request, to every instance of a service. */
  orders: (served: string) => `${served}.all`,
  /** Orders about a request, to one instance of a service. */
  orderTo: (served: string, instance: string) => `${served}.at.${token(instance)}`,
  /** The announcement of a tool, a persona or a hook service: a key of the registry. `kind`: tools, personas, hooks. */
  announcement: (kind: ServedKind, tenant: string, name: string) =>
    `$KV.${STREAMS.registry}.${token(kind)}.${TenantId.parse(tenant)}.${token(name, SERVED_NAMES[kind])}`,
  /** All announcements of a kind. */
  announcements: (kind: ServedKind) => `$KV.${STREAMS.registry}.${token(kind)}.*.*`,
  /** The heartbeat of an instance of a tool, a persona or a hook service: a key of the bucket `cox_hosts`. */
  heartbeat: (kind: ServedKind, tenant: string, name: string, instance: string) =>
    `$KV.${STREAMS.hosts}.${token(kind)}.${TenantId.parse(tenant)}.${token(name, SERVED_NAMES[kind])}.${token(instance)}`,
  /** The heartbeats of all instances of a kind. */
  heartbeats: (kind: ServedKind) => `$KV.${STREAMS.hosts}.${token(kind)}.*.*.*`,
  /** The mark of a paused persona: a key of the registry, deleted when the persona continues. */
  personaPause: (tenant: string, name: string) =>
    `$KV.${STREAMS.registry}.paused-personas.${TenantId.parse(tenant)}.${token(name)}`,
  /** The marks of all paused personas. */
  personaPauses: '$KV.cox_registry.paused-personas.*.*',
  /** A rule that a persona remembers: a key of the registry. */
  rememberedRule: (tenant: string, rule: { readonly persona: string; readonly session: string; readonly id: string }) =>
    `$KV.${STREAMS.registry}.permissions.${TenantId.parse(tenant)}.${[rule.persona, rule.session, rule.id].map((name) => token(name)).join('.')}`,
  /** All remembered rules of a persona, or of all personas (`*`). */
  rememberedRulesOf: (tenant: string, persona: string) =>
    `$KV.${STREAMS.registry}.permissions.${TenantId.parse(tenant)}.${oneOrAll(persona)}.*.*`,
  /** Notifications of calls that wait for an approval. */
  approvals: (tenant: string, sessionId: string) => `cox.${TenantId.parse(tenant)}.approvals.${token(sessionId)}`,
  /** The heartbeat of a host: a key of the bucket `cox_hosts`. */
  hostBeat: (host: string) => `$KV.${STREAMS.hosts}.host.${token(host)}`,
  /** The heartbeats of all hosts. */
  hostBeats: '$KV.cox_hosts.host.*',
  /** Notifications to a host of commands for the sessions that it owns. */
  hostRing: (host: string) => `cox-host.ring.${token(host)}`,
  /** Requests to the retention job for the time within which it purges. */
  retention: 'cox-retention.within',
  /** Notifications to all hosts that a host has left a session, or does not have it. */
  hostReleases: 'cox-host.released',
  /** The note of a session with unfinished work: a key of the bucket `cox_active`. */
  activeSession: (ref: SessionRef) =>
    `$KV.${STREAMS.active}.${partitionOf(ref.sessionId)}.${ref.tenant}.${ref.sessionId}`,
  /** The notes of all sessions with unfinished work in a partition. */
  activeSessions: (p: number) => `$KV.${STREAMS.active}.${p}.*.*`,
} as const;

const SHA256 = /^[0-9a-f]{64}$/;
const INBOXES_OF_TENANTS = '_INBOX.at.';

/**
 * Subjects that the permissions of a tenant's users may contain, as filters. Each contains the tenant, and the verb is
 * the last token, so that a user may be allowed to steer and not to approve.
 */
export const tenantSubjects = {
  /** Commands of one verb, to any session. */
  command: (tenant: string, verb: string) => `cox.${TenantId.parse(tenant)}.session.*.${token(verb)}`,
  /** Commands of every verb, to any session. */
  commands: (tenant: string) => `cox.${TenantId.parse(tenant)}.session.*.*`,
  queries: (tenant: string) => `cox.${TenantId.parse(tenant)}.query.*.*`,
  largeFields: (tenant: string) => `cox.${TenantId.parse(tenant)}.large.*`,
  /** Requests for lists of the tenant's keys, of every kind. */
  keys: (tenant: string) => `cox.${TenantId.parse(tenant)}.keys.*.*`,
  events: (tenant: string) => `cox.${TenantId.parse(tenant)}.events.*`,
  deltas: (tenant: string) => `cox.${TenantId.parse(tenant)}.deltas.*`,
  /** Notifications of calls that wait for an approval. */
  approvals: (tenant: string) => `cox.${TenantId.parse(tenant)}.approvals.*`,
  /** All requests to services of a kind, and all orders about these requests. */
  allRequests: (kind: ServedKind, tenant: string) => `cox.${TenantId.parse(tenant)}.${SERVED_ROOTS[kind]}.>`,
  /**
   * The requests to services of a kind, to the queue group or to one instance: subscribed to in the queue group
   * only. `name`: the name of one service; every one if absent.
   */
  requests: (kind: ServedKind, tenant: string, name = '*') =>
    ['', '.to.*'].map((rest) => `${servedBase(kind, tenant, name)}${rest}`),
  /** The orders about requests to services of a kind, to all instances or to one. `name` as in `requests`. */
  orders: (kind: ServedKind, tenant: string, name = '*') =>
    ['.all', '.at.*'].map((rest) => `${servedBase(kind, tenant, name)}${rest}`),
  /** The announcements of a kind, or of one name: keys of the registry. */
  announcements: (kind: ServedKind, tenant: string, name = '*') =>
    `$KV.${STREAMS.registry}.${kind}.${TenantId.parse(tenant)}.${oneOrAll(name)}`,
  /** The heartbeats of the instances of a kind, or of one name: keys of the bucket `cox_hosts`. */
  heartbeats: (kind: ServedKind, tenant: string, name = '*') =>
    `$KV.${STREAMS.hosts}.${kind}.${TenantId.parse(tenant)}.${oneOrAll(name)}.*`,
  /** Marks of paused personas: keys of the registry. */
  personaPauses: (tenant: string) => `$KV.${STREAMS.registry}.paused-personas.${TenantId.parse(tenant)}.*`,
  /** The prefix of the inboxes of a role: replies and receipts arrive there. */
  inboxPrefix: (tenant: string, role: string) => `${INBOXES_OF_TENANTS}${TenantId.parse(tenant)}.${token(role)}`,
  /** The inboxes of all roles of a tenant. */
  inboxes: (tenant: string) => `${INBOXES_OF_TENANTS}${TenantId.parse(tenant)}.>`,
} as const;

/** Subjects that only hosts and administrators of the bus may use, as filters. */
export const systemSubjects = {
  /** Journals, snapshots, index entries, timer schedules, notes of active sessions, remembered rules of personas. */
  written: [
    subjects.journals,
    subjects.snapshots,
    subjects.sessionEntries,
    'cox-tmr.*.*.*.set.*',
    `$KV.cox_active.*.*.*`,
    '$KV.cox_registry.permissions.*.*.*.*',
  ],
  /** Messages between hosts. */
  hostChannel: [subjects.hostBeats, subjects.hostRing('any').replace('any', '*'), subjects.hostReleases],
  /** Messages of hosts to the watchers of every tenant, and requests and orders to workers. */
  notifications: ['cox.*.deltas.*', 'cox.*.approvals.*', 'cox.*.hook.>', 'cox.*.tool.>', 'cox.*.persona.>'],
  /** Commands of one verb, of any tenant. */
  command: (verb: string) => `cox.*.session.*.${token(verb)}`,
  /** The heartbeats of the instances of every tenant's services. */
  instances: ['$KV.cox_hosts.hooks.*.*.*', '$KV.cox_hosts.tools.*.*.*', '$KV.cox_hosts.personas.*.*.*'],
  inboxPrefix: (role: string) => `_INBOX.${token(role)}`,
  /**
   * Requests of an instance of a service to the host that sent it work: for long requests and for data that hooks read.
   */
  callbacks: '_INBOX.host.*.c.*',
} as const;

/** Names of streams and buckets. */
export const STREAMS = {
  commands: 'COX_COMMANDS',
  timers: 'COX_TIMERS',
  snapshots: 'COX_SNAPSHOTS',
  sessions: 'COX_SESSIONS',
  hosts: 'cox_hosts',
  registry: 'cox_registry',
  active: 'cox_active',
  blobs: 'cox_blobs',
} as const;

/** The kinds of keys that contain a tenant, by bucket. The first token of a key is the kind, the second the tenant. */
export const TENANT_KEYS: Readonly<Record<string, readonly string[]>> = {
  [STREAMS.registry]: ['hooks', 'tools', 'personas', 'paused-personas', 'permissions'],
  [STREAMS.hosts]: ['hooks', 'tools', 'personas'],
};

/**
 * Stream metadata: some blocks of the stream are compressed, from an earlier configuration. If the server is killed
 * with SIGKILL, such blocks of a replicated stream may be damaged.
 */
export const COMPRESSED_BLOCKS = 'coxswain_compressed_blocks';

/** Stream metadata during the rewrite of replicas: the number of replicas afterwards. */
export const REWRITE_REPLICAS = 'coxswain_rewrite_replicas';

/** Partitions of one journal stream. */
export const PARTITIONS_PER_JOURNAL_STREAM = 4;

/**
 * The journal streams in order, each with an equal range of partitions. The name contains the first partition. A stream
 * writes to the disk sequentially, so sessions in different streams do not wait for each other.
 */
export const JOURNAL_STREAMS: readonly string[] = Array.from(
  { length: PARTITIONS / PARTITIONS_PER_JOURNAL_STREAM },
  (_, index) => `COX_JOURNAL_${index * PARTITIONS_PER_JOURNAL_STREAM}`,
);

/** The stream that holds a session's journal. */
export function journalStreamOf(sessionId: string): string {
  return JOURNAL_STREAMS[Math.floor(partitionOf(sessionId) / PARTITIONS_PER_JOURNAL_STREAM)] as string;
}

/** Names of headers. */
export const HEADERS = {
  /** On a command: its id, if the body has none. */
  commandId: 'Cox-Command-Id',
  /** On a command: the inbox for its receipts. */
  receiptTo: 'Cox-Receipt-To',
  /** On a command: the name of the sender, if the body has no actor. */
  actor: 'Cox-Actor',
  /** On a command: apply the policy of the host, even if the host trusts the bus. The value is `1`. */
  restricted: 'Cox-Restricted',
  /** On an answer: the size of the whole, in bytes; for a list of keys, their number. */
  total: 'Cox-Total',
  /** On every part of a query's answer except the last. */
  more: 'Cox-More',
  /** On an empty answer: the code of the error catalogue. */
  error: 'Cox-Error',
  /** W3C Trace Context, on commands and on requests to workers. */
  traceparent: 'traceparent',
} as const;

/** The parsed subject of a published command; `ref` is null if an id is invalid. */
export interface PublishedCommandAddress {
  readonly ref: SessionRef | null;
  readonly verb: string;
}

/** Parses the subject of a published command; null if the command stream does not contain it. */
export function parsePublishedCommand(subject: string): PublishedCommandAddress | null {
  const [cox, tenant, session, sessionId, verb, ...rest] = subject.split('.');
  if (cox !== 'cox' || session !== 'session' || verb === undefined || rest.length > 0) return null;
  if (!ID_PATTERN.test(tenant ?? '') || !ID_PATTERN.test(sessionId ?? '')) return { ref: null, verb };
  return { ref: { tenant: TenantId.parse(tenant), sessionId: SessionId.parse(sessionId) }, verb };
}

/** The parsed subject of a stored command. */
export interface StoredCommandAddress {
  readonly ref: SessionRef;
  readonly verb: string;
  /** Whether the command is a due timer. Clients cannot store one. */
  readonly isTimer: boolean;
}

/** Parses the subject of a stored command; null if the transform did not apply or an id is invalid. */
export function parseStoredCommand(subject: string): StoredCommandAddress | null {
  const [root, , tenant, sessionId, verb, timerId, ...rest] = subject.split('.');
  if (root !== 'cox-cmd' || verb === undefined || rest.length > 0) return null;
  if (timerId !== undefined && (verb !== 'timer' || !ID_PATTERN.test(timerId))) return null;
  if (!ID_PATTERN.test(tenant ?? '') || !ID_PATTERN.test(sessionId ?? '')) return null;
  const ref = { tenant: TenantId.parse(tenant), sessionId: SessionId.parse(sessionId) };
  return { ref, verb, isTimer: timerId !== undefined };
}

/** The published subject of a stored command. Returns any other subject unchanged. */
export function publishedAs(subject: string): string {
  const [root, , tenant, sessionId, ...verb] = subject.split('.');
  return root === 'cox-cmd' ? ['cox', tenant, 'session', sessionId, ...verb].join('.') : subject;
}

/** The invalid token of an unroutable command. @param subject as published or as stored. */
export function unroutableField(subject: string): 'tenant' | 'session' | 'verb' {
  const [, second, third, fourth, , ...rest] = subject.split('.');
  const [tenant = '', session = ''] = subject.startsWith('cox.') ? [second, fourth] : [third, fourth];
  if (!ID_PATTERN.test(tenant)) return 'tenant';
  // One token too many: the session id contains a dot.
  if (rest.length > 0 && subject.startsWith('cox.')) return 'session';
  return ID_PATTERN.test(session) ? 'verb' : 'session';
}

/** Parses the subject of a journal; null if it is invalid, or if its partition is not the one of the session. */
export function parseJournalSubject(subject: string): SessionRef | null {
  return sessionOfSubject('cox-jrn', subject);
}

/** Parses the subject of an entry of the index of sessions; null as in {@link parseJournalSubject}. */
export function parseSessionEntry(subject: string): SessionRef | null {
  return sessionOfSubject('cox-ses', subject);
}

function sessionOfSubject(expectedRoot: string, subject: string): SessionRef | null {
  const [root, partition, tenant, sessionId = '', ...rest] = subject.split('.');
  if (root !== expectedRoot || rest.length > 0) return null;
  if (!ID_PATTERN.test(tenant ?? '') || !ID_PATTERN.test(sessionId)) return null;
  if (partition !== String(partitionOf(sessionId))) return null;
  return { tenant: TenantId.parse(tenant), sessionId: SessionId.parse(sessionId) };
}

/**
 * Parses the subject of an active session's note; null if it is invalid, or if its partition is not the one of the
 * session.
 */
export function parseActiveSession(subject: string): SessionRef | null {
  const [kv, bucket, partition, tenant, sessionId = '', ...rest] = subject.split('.');
  if (kv !== '$KV' || bucket !== STREAMS.active || rest.length > 0) return null;
  if (!ID_PATTERN.test(tenant ?? '') || !ID_PATTERN.test(sessionId)) return null;
  if (partition !== String(partitionOf(sessionId))) return null;
  return { tenant: TenantId.parse(tenant), sessionId: SessionId.parse(sessionId) };
}

/** Parses the subject of a query; null if it is invalid. */
export function parseQuery(subject: string): { readonly ref: SessionRef; readonly what: string } | null {
  const [cox, tenant, query, sessionId, what, ...rest] = subject.split('.');
  if (cox !== 'cox' || query !== 'query' || what === undefined || rest.length > 0) return null;
  if (!ID_PATTERN.test(tenant ?? '') || !ID_PATTERN.test(sessionId ?? '')) return null;
  return { ref: { tenant: TenantId.parse(tenant), sessionId: SessionId.parse(sessionId) }, what };
}

/** Parses the subject of a request for a large field; null if it is invalid. @returns the hash. */
export function parseLargeField(subject: string): string | null {
  const [cox, tenant, large, sha256, ...rest] = subject.split('.');
  if (cox !== 'cox' || large !== 'large' || rest.length > 0 || !ID_PATTERN.test(tenant ?? '')) return null;
  return SHA256.test(sha256 ?? '') ? (sha256 as string) : null;
}

/**
 * Parses the subject of a request for a list of keys.
 * @returns the bucket, and the filter of the tenant's keys of that kind; null for an unknown bucket or kind, an invalid
 *   tenant, or another subject.
 */
export function parseTenantKeys(subject: string): { readonly bucket: string; readonly filter: string } | null {
  const [cox, tenant, keys, bucket = '', kind = '', ...rest] = subject.split('.');
  if (cox !== 'cox' || keys !== 'keys' || rest.length > 0 || !ID_PATTERN.test(tenant ?? '')) return null;
  const kinds = Object.hasOwn(TENANT_KEYS, bucket) ? TENANT_KEYS[bucket] : undefined;
  return kinds?.includes(kind) ? { bucket, filter: `$KV.${bucket}.${kind}.${tenant}.>` } : null;
}

/** The kind, the tenant and the name of a tool, a persona or a hook service, in a key. */
export interface ServedKey {
  readonly kind: ServedKind | 'paused-personas';
  readonly tenant: TenantId;
  readonly name: string;
  /** The instance of a heartbeat; undefined in a key of the registry. */
  readonly instance: string | undefined;
}

/**
 * Parses the subject of a key: of an announcement, of a heartbeat or of a persona's pause. Null if a token is invalid.
 * It does not check whether the bucket has such a key.
 */
export function parseServedKey(subject: string): ServedKey | null {
  const [kv, bucket = '', kind = '', tenant = '', name = '', instance, ...rest] = subject.split('.');
  const buckets: readonly string[] = [STREAMS.registry, STREAMS.hosts];
  if (kv !== '$KV' || !buckets.includes(bucket) || !isServedKeyKind(kind) || rest.length > 0) return null;
  const pattern = kind === 'paused-personas' ? ID_PATTERN : SERVED_NAMES[kind];
  if (!ID_PATTERN.test(tenant) || !pattern.test(name) || (instance !== undefined && !ID_PATTERN.test(instance)))
    return null;
  return { kind, tenant: TenantId.parse(tenant), name, instance };
}

function isServedKeyKind(kind: string): kind is ServedKey['kind'] {
  return kind === 'paused-personas' || Object.hasOwn(SERVED_NAMES, kind);
}

/** Parses the subject of a remembered rule of a persona: a key of the registry. Null if it is invalid. */
export function parseRememberedRule(
  subject: string,
): { readonly tenant: TenantId; readonly persona: string; readonly session: string; readonly id: string } | null {
  const [kv, bucket, permissions, tenant = '', persona = '', session = '', id = '', ...rest] = subject.split('.');
  if (kv !== '$KV' || bucket !== STREAMS.registry || permissions !== 'permissions' || rest.length > 0) return null;
  if (![tenant, persona, session, id].every((name) => ID_PATTERN.test(name))) return null;
  return { tenant: TenantId.parse(tenant), persona, session, id };
}

const INBOX_MAX_CHARS = 256;
/** The default prefix of NATS libraries is `_INBOX`. The permissions of a user may require `_INBOX_<name>` instead. */
const INBOX = /^_INBOX(_[A-Za-z0-9_-]+)?(\.[A-Za-z0-9_$-]+)+$/;

/** The form in which a server maps an inbox of another account. */
const PASSED_ON = /^_R_(\.[A-Za-z0-9]+)+$/;

/** Whether a subject may receive a reply: an inbox, or the subject that replaces an inbox of another account. */
export function isAnswerSubject(subject: string): boolean {
  return isInboxSubject(subject) || (subject.length <= INBOX_MAX_CHARS && PASSED_ON.test(subject));
}

/** Whether a subject is an inbox, `_INBOX.…` or `_INBOX_<name>.…`, without wildcards. */
export function isInboxSubject(subject: string): boolean {
  return subject.length <= INBOX_MAX_CHARS && INBOX.test(subject);
}

/**
 * Whether the inbox prefix of a connection belongs to a tenant's key. Such a key reads data of its tenant only, and no
 * stream as a whole.
 */
export function isTenantsInbox(prefix: string | undefined): boolean {
  return prefix?.startsWith(INBOXES_OF_TENANTS) ?? false;
}

/**
 * Whether a subject may receive receipts of a tenant's commands: any inbox except those of hosts and of other tenants.
 * The sender of a command chooses the subject, and a host may publish to every inbox.
 */
export function isReceiptSubject(subject: string, tenant: string): boolean {
  if (!isInboxSubject(subject)) return false;
  if (subject.startsWith(INBOXES_OF_TENANTS)) return subject.startsWith(`${INBOXES_OF_TENANTS}${tenant}.`);
  return !subject.startsWith(`${systemSubjects.inboxPrefix('host')}.`);
}
