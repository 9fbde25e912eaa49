/**
 * Permissions on NATS. The system roles share the account of the streams. Every other user belongs to a tenant. A
 * tenant's account reaches the streams' account only by the subjects listed here.
 *
 * A1: Only the streams' account has streams. The server sends an acknowledgement to any reply subject that the sender
 *     names. Within one account, a steer with a journal's subject as reply subject would make the server write there.
 * A2: Permissions are allow lists. If a tenant's permission contains the name of a tenant, it is the user's own tenant.
 */
import {
  INJECTION_VERBS,
  INTERNAL_VERBS,
  JOURNAL_STREAMS,
  MISADDRESSED_COMMANDS,
  QUEUE_GROUPS,
  STREAMS,
  subjects,
  systemSubjects,
  tenantSubjects,
  VERBS,
} from '@coxswain/protocol';
import { personaPassages, personaRights } from './persona-services.ts';
import { REPORTS_EXPIRE, type ToolWorkerKey, toolPassages, toolRights } from './tool-workers.ts';

/** The permissions of a user: subjects to publish and to subscribe to. */
export interface RoleRights {
  readonly publish: readonly string[];
  /** Subjects; `<subject> <queue group>` if it may be subscribed to in that group only. */
  readonly subscribe: readonly string[];
  /** May reply to received messages: maximum replies per message (-1: no limit), and the time limit. */
  readonly answers?: { readonly max: number; readonly expires: string };
}

/** A system role: it is not bound to a tenant. */
export type SystemRole = 'admin' | 'host' | 'retention';
/** A role within a tenant. */
export type TenantRole = 'gateway' | 'viewer' | 'steerer' | 'approver' | 'operator' | 'hooks' | 'tools' | 'personas';

/** Descriptions of the roles, for the reference and for the README of the keys. */
export const ROLES: Readonly<Record<SystemRole | TenantRole, string>> = {
  admin:
    'Creates, changes and purges streams (`cox admin streams`), deletes sessions (`cox session delete`, `cox admin retention`); has all permissions in their account.',
  host: 'A session host: writes journals, snapshots, timers, files and remembered rules; reads commands; creates no stream except the bucket of heartbeats and the index of sessions.',
  retention:
    'The retention job (`cox serve retention`): purges records, timers, snapshots and files of deleted sessions, and sends `delete`; writes no journal.',
  gateway:
    'Acts for the users of the tenant: reads sessions, sends every command except delete; approves only with the permission.',
  viewer: 'Reads sessions: journals, live events, states.',
  steerer:
    'Sends messages to sessions (steer, remind, followup, revoke, replace) and follows live events; reads no journal.',
  approver: 'Reads sessions; approves and denies tool calls.',
  operator: 'Reads sessions and sends every command except delete.',
  hooks: 'A hook service: announces and answers hooks, reports its jobs.',
  tools:
    'A worker for every tool of the tenant: announces the tools, runs their calls, sends the outcomes of long calls.',
  personas: 'Serves personas of the tenant: announces them, runs their steps and calls, and answers their own hooks.',
};

/** All roles of a tenant. */
export const TENANT_ROLES = [
  'gateway',
  'viewer',
  'steerer',
  'approver',
  'operator',
  'hooks',
  'tools',
  'personas',
] as const satisfies readonly TenantRole[];
/** All system roles. */
export const SYSTEM_ROLES = ['admin', 'host', 'retention'] as const satisfies readonly SystemRole[];

/** The verbs of the commands that a role may send. */
export function verbsOf(role: TenantRole, settings: AuthSettings): readonly string[] {
  switch (role) {
    case 'steerer':
      return STEERING;
    case 'approver':
      return ['approve'];
    case 'operator':
      return CLIENT_VERBS;
    case 'gateway':
      return CLIENT_VERBS.filter((verb) => settings.gatewayApproves || verb !== 'approve');
    case 'hooks':
      return ['feedback'];
    case 'tools':
      return ['call_outcome'];
    case 'viewer':
    case 'personas':
      return [];
  }
}

/** Only the system roles `admin` and `retention` may send `delete`. */
const CLIENT_VERBS = VERBS.filter((verb) => verb !== 'delete');
const STEERING = [...INJECTION_VERBS, 'revoke', 'replace'] as const;

/** The settings of an installation. */
export interface AuthSettings {
  readonly tenants: readonly string[];
  /** Whether gateways may approve tool calls. Default false. */
  readonly gatewayApproves?: boolean | undefined;
  /** Tool workers with their own keys. Each key is restricted to the tools that the worker serves. */
  readonly workers?: readonly ToolWorkerKey[] | undefined;
}

const api = (what: string) => `$JS.API.${what}`;
const COMMANDS = STREAMS.commands;
const REGISTRY = `KV_${STREAMS.registry}`;
const HOSTS = `KV_${STREAMS.hosts}`;
const BLOBS = `OBJ_${STREAMS.blobs}`;

/** Permissions for the temporary consumers that the library creates and deletes. */
const ownConsumer = (stream: string) => [api(`CONSUMER.INFO.${stream}.*`), api(`CONSUMER.DELETE.${stream}.*`)];

/** The permissions of a system role, in the streams' account. */
export function systemRights(role: SystemRole): RoleRights {
  const inbox = `${systemSubjects.inboxPrefix(role)}.>`;
  if (role === 'admin') return { publish: ['>'], subscribe: ['>'] };
  if (role === 'retention') return retentionRights(inbox);
  return {
    publish: [
      ...systemSubjects.written,
      ...systemSubjects.hostChannel,
      subjects.retention,
      ...systemSubjects.notifications,
      ...INTERNAL_VERBS.filter((verb) => verb !== 'timer').map((verb) => systemSubjects.command(verb)),
      // Receipts, and answers to other accounts.
      '_INBOX.>',
      '_R_.>',
      `$O.${STREAMS.blobs}.C.*`,
      `$O.${STREAMS.blobs}.M.*`,
      api('INFO'),
      api('STREAM.INFO.*'),
      // The bucket of heartbeats is in memory, so a restart of a single server deletes it. Hosts cannot start without
      // it.
      api(`STREAM.CREATE.${HOSTS}`),
      // Hosts create and fill the index of sessions again if it was deleted.
      api(`STREAM.CREATE.${STREAMS.sessions}`),
      api('STREAM.MSG.GET.*'),
      api('DIRECT.GET.>'),
      ...['LIST.', 'CREATE.', 'DELETE.', 'MSG.NEXT.', 'UNPIN.'].map((what) =>
        api(`CONSUMER.${what}${COMMANDS}${what === 'LIST.' ? '' : '.*'}`),
      ),
      `$JS.ACK.${COMMANDS}.>`,
      // For counting sessions by the headers of their snapshots.
      api(`CONSUMER.CREATE.${STREAMS.snapshots}.*.${subjects.snapshots}`),
      api(`CONSUMER.MSG.NEXT.${STREAMS.snapshots}.*`),
      api(`CONSUMER.DELETE.${STREAMS.snapshots}.*`),
      // For watching the registry. The server deletes the consumer of a watch that has ended.
      api(`CONSUMER.CREATE.${REGISTRY}.>`),
      `$JS.FC.${REGISTRY}.>`,
    ],
    subscribe: [
      inbox,
      ...systemSubjects.hostChannel,
      ...systemSubjects.instances,
      subjects.queries,
      subjects.largeFields,
      subjects.allTenantKeys,
      ...MISADDRESSED_COMMANDS,
    ],
  };
}

/**
 * The permissions of the retention job. It reads journals, notes of active sessions and files, and purges. The command
 * `delete` makes a host look at a session that is deleted already.
 */
function retentionRights(inbox: string): RoleRights {
  const purged = [...JOURNAL_STREAMS, STREAMS.snapshots, STREAMS.timers, BLOBS];
  const read = [...JOURNAL_STREAMS, `KV_${STREAMS.active}`, BLOBS];
  return {
    publish: [
      api('STREAM.INFO.*'),
      ...purged.map((stream) => api(`STREAM.PURGE.${stream}`)),
      ...read.flatMap((stream) => [
        api(`STREAM.MSG.GET.${stream}`),
        api(`DIRECT.GET.${stream}`),
        api(`DIRECT.GET.${stream}.>`),
      ]),
      `$O.${STREAMS.blobs}.M.*`,
      // The entries of deleted sessions in the session index.
      subjects.sessionEntries,
      systemSubjects.command('delete'),
    ],
    subscribe: [inbox, subjects.retention],
    answers: { max: 1, expires: '10s' },
  };
}

/** A subject that a tenant's account imports from the streams' account under the same name. */
export interface Passage {
  readonly subject: string;
  /** Replies per request. `many`: several. `none`: the message is a notification. */
  readonly answers: 'one' | 'many' | 'none';
}

const one = (subject: string): Passage => ({ subject, answers: 'one' });
const many = (subject: string): Passage => ({ subject, answers: 'many' });

/**
 * Reads of journals and of the session index. The subject of a request contains the filter, so permissions can restrict
 * it.
 */
function journalReads(tenant: string): Passage[] {
  const reads = (stream: string, filter: string) => [
    one(api(`STREAM.INFO.${stream}`)),
    one(api(`CONSUMER.CREATE.${stream}.*.${filter}`)),
    many(api(`CONSUMER.MSG.NEXT.${stream}.*`)),
    many(api(`DIRECT.GET.${stream}.${filter}`)),
    ...ownConsumer(stream).map(one),
  ];
  return [
    ...JOURNAL_STREAMS.flatMap((stream) => reads(stream, subjects.tenantJournals(tenant))),
    ...reads(STREAMS.sessions, subjects.tenantEntries(tenant)),
  ];
}

/** Reads of large fields and files. The object store holds those of all tenants, by the hash of their bytes. */
function blobReads(tenant: string, settings: AuthSettings): readonly Passage[] {
  // Permission to read the store includes permission to list it. So with several tenants, hosts serve single fields by
  // hash.
  return settings.tenants.length > 1 ? [many(tenantSubjects.largeFields(tenant))] : blobPassages;
}

const blobPassages: readonly Passage[] = [one(api(`STREAM.INFO.${BLOBS}`)), one(api(`STREAM.MSG.GET.${BLOBS}`))];

/**
 * Reads one key of the registry. The subject of this request contains the key. Every other read has it in the body,
 * where no permission can restrict it. So tenants list keys through a session host.
 */
const keyRead = (keys: string) => many(api(`DIRECT.GET.${REGISTRY}.${keys}`));

/** The subjects of the streams' account that a tenant's role reaches. */
export function passagesOf(role: TenantRole, tenant: string, settings: AuthSettings): readonly Passage[] {
  const commands = verbsOf(role, settings).map((verb) => one(tenantSubjects.command(tenant, verb)));
  const asks = many(tenantSubjects.queries(tenant));
  switch (role) {
    case 'steerer':
      return [...commands, asks];
    case 'gateway':
      return [...commands, asks, ...journalReads(tenant), ...blobReads(tenant, settings)];
    case 'viewer':
    case 'approver':
      return [...commands, asks, ...journalReads(tenant), ...blobReads(tenant, settings)];
    case 'operator':
      return [
        ...commands,
        asks,
        ...journalReads(tenant),
        ...blobReads(tenant, settings),
        many(tenantSubjects.keys(tenant)),
        // Pausing and resuming personas.
        keyRead(tenantSubjects.personaPauses(tenant)),
        one(tenantSubjects.personaPauses(tenant)),
      ];
    case 'hooks':
      return [
        ...commands,
        // The ids of the tenant's other hook services.
        many(subjects.tenantKeys(tenant, STREAMS.registry, 'hooks')),
        keyRead(tenantSubjects.announcements('hooks', tenant)),
        one(tenantSubjects.announcements('hooks', tenant)),
        { subject: tenantSubjects.heartbeats('hooks', tenant), answers: 'none' },
        one(systemSubjects.callbacks),
      ];
    case 'tools':
      return toolPassages(tenant, ['*']);
    case 'personas':
      return personaPassages(tenant);
  }
}

/** The subjects that a tenant's account receives from the streams' account. */
export function heardBy(tenant: string): readonly string[] {
  return [
    tenantSubjects.events(tenant),
    tenantSubjects.deltas(tenant),
    tenantSubjects.approvals(tenant),
    tenantSubjects.inboxes(tenant),
  ];
}

/** The requests of hosts to a tenant's services and workers. `threshold` is the time limit of an answer. */
export function askedOf(tenant: string): readonly (Passage & { readonly threshold: string })[] {
  return [
    { subject: tenantSubjects.allRequests('hooks', tenant), answers: 'many', threshold: REPORTS_EXPIRE },
    { subject: tenantSubjects.allRequests('tools', tenant), answers: 'many', threshold: REPORTS_EXPIRE },
    { subject: tenantSubjects.allRequests('personas', tenant), answers: 'many', threshold: REPORTS_EXPIRE },
  ];
}

/**
 * The permissions of a role in its tenant's account.
 * @param user the name of the user in its inbox prefix; for an additional key it differs from the role.
 */
export function tenantRights(
  role: TenantRole,
  tenant: string,
  settings: AuthSettings,
  user: string = role,
): RoleRights {
  const prefix = tenantSubjects.inboxPrefix(tenant, user);
  if (role === 'tools') return toolRights(tenant, prefix, ['*']);
  if (role === 'personas') return personaRights(tenant, prefix);
  const inbox = `${prefix}.>`;
  const publish = passagesOf(role, tenant, settings).map(({ subject }) => subject);
  if (role === 'hooks')
    return {
      publish,
      subscribe: [
        inbox,
        // In the queue group only: a subscription outside of it would expose every question.
        ...tenantSubjects.requests('hooks', tenant).map((subject) => `${subject} ${QUEUE_GROUPS.hooks}`),
        ...tenantSubjects.orders('hooks', tenant),
      ],
      answers: { max: -1, expires: REPORTS_EXPIRE },
    };
  const heard = [tenantSubjects.events(tenant), tenantSubjects.deltas(tenant), tenantSubjects.approvals(tenant)];
  return { publish, subscribe: [inbox, ...heard] };
}
