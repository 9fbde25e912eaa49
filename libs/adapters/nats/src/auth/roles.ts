/**
 * Who may do what on the bus. Hosts and the admin share an account with the streams; whoever else there is belongs to a tenant,
 * whose account reaches the streams' only by what is listed here.
 *
 * A1: Only the streams' account has streams. The server answers a request wherever its sender says: within one account, a
 *     steer that asks to be acknowledged on a journal's subject would have the server write there.
 * A2: What a user may is listed; nothing else is allowed. A subject that names a tenant names the user's own.
 */
import {
  HOOK_QUEUE_GROUP,
  INJECTION_VERBS,
  INTERNAL_VERBS,
  JOURNAL_STREAMS,
  MISADDRESSED_COMMANDS,
  STREAMS,
  subjects,
  systemSubjects,
  tenantSubjects,
  VERBS,
} from '@coxswain/protocol';
import { personaPassages, personaRights } from './persona-services.ts';
import { TOOL_ANSWERS_EXPIRE, type ToolWorkerKey, toolPassages, toolRights } from './tool-workers.ts';

/** What a user's connection may send and hear. */
export interface RoleRights {
  readonly publish: readonly string[];
  /** Subjects; `<subject> <queue group>` where it is heard in that group only. */
  readonly subscribe: readonly string[];
  /** May answer what it is asked, this often and this long after. */
  readonly answers?: { readonly max: number; readonly expires: string };
}

/** A role of the bus itself: of every tenant. */
export type SystemRole = 'admin' | 'host' | 'retention';
/** A role within a tenant. */
export type TenantRole = 'gateway' | 'viewer' | 'steerer' | 'approver' | 'operator' | 'hooks' | 'tools' | 'personas';

/** What a role is for, as the reference and the README of the keys say it. */
export const ROLES: Readonly<Record<SystemRole | TenantRole, string>> = {
  admin:
    'Creates, changes and purges streams (`cox admin streams`), deletes sessions (`cox session delete`, `cox admin retention`); has all permissions in their account.',
  host: 'A session host: writes journals, snapshots, timers, files and remembered rules; reads commands; creates no stream except the bucket of heartbeats.',
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
/** All roles of the bus itself. */
export const SYSTEM_ROLES = ['admin', 'host', 'retention'] as const satisfies readonly SystemRole[];

/** The verbs of a role, of those that clients have. */
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

/** Deleting is the admin's, whose rights are not bound to a tenant. */
const CLIENT_VERBS = VERBS.filter((verb) => verb !== 'delete');
const STEERING = [...INJECTION_VERBS, 'revoke', 'replace'] as const;

/** What an installation may decide. */
export interface AuthSettings {
  readonly tenants: readonly string[];
  /** Whether gateways may approve calls; by default they may not. */
  readonly gatewayApproves?: boolean | undefined;
  /** Tool workers with keys of their own, each for the tools that it serves. */
  readonly workers?: readonly ToolWorkerKey[] | undefined;
}

const api = (what: string) => `$JS.API.${what}`;
const COMMANDS = STREAMS.commands;
const REGISTRY = `KV_${STREAMS.registry}`;
const HOSTS = `KV_${STREAMS.hosts}`;
const BLOBS = `OBJ_${STREAMS.blobs}`;

/** Reads of a consumer that the library makes for itself and takes away again. */
const ownConsumer = (stream: string) => [api(`CONSUMER.INFO.${stream}.*`), api(`CONSUMER.DELETE.${stream}.*`)];

/** The rights of the roles in the streams' account. */
export function systemRights(role: SystemRole): RoleRights {
  const inbox = `${systemSubjects.inboxPrefix(role)}.>`;
  if (role === 'admin') return { publish: ['>'], subscribe: ['>'] };
  if (role === 'retention') return retentionRights(inbox);
  return {
    publish: [
      ...systemSubjects.written,
      ...systemSubjects.hostLine,
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
      // In memory, and so gone with a server that stands alone: hosts cannot begin without it.
      api(`STREAM.CREATE.${HOSTS}`),
      api('STREAM.MSG.GET.*'),
      api('DIRECT.GET.>'),
      ...['LIST.', 'CREATE.', 'DELETE.', 'MSG.NEXT.', 'UNPIN.'].map((what) =>
        api(`CONSUMER.${what}${COMMANDS}${what === 'LIST.' ? '' : '.*'}`),
      ),
      `$JS.ACK.${COMMANDS}.>`,
      // Counting sessions by the headers of their snapshots.
      api(`CONSUMER.CREATE.${STREAMS.snapshots}.*.${subjects.snapshots}`),
      api(`CONSUMER.MSG.NEXT.${STREAMS.snapshots}.*`),
      api(`CONSUMER.DELETE.${STREAMS.snapshots}.*`),
      ...[REGISTRY, BLOBS].flatMap((stream) => [
        api(`CONSUMER.CREATE.${stream}.>`),
        `$JS.FC.${stream}.>`,
        ...ownConsumer(stream),
      ]),
    ],
    subscribe: [
      inbox,
      ...systemSubjects.hostLine,
      ...systemSubjects.instances,
      subjects.queries,
      subjects.largeFields,
      subjects.allTenantKeys,
      ...MISADDRESSED_COMMANDS,
    ],
  };
}

/**
 * Reads journals, notes of active sessions and files, and purges. The command `delete` has a host look at a session that is deleted
 * already.
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
      // What lists show of a deleted session.
      subjects.sessionEntries,
      systemSubjects.command('delete'),
    ],
    subscribe: [inbox, subjects.retention],
    answers: { max: 1, expires: '10s' },
  };
}

/** One way from a tenant's account to the streams', by the subject that is the same in both. */
export interface Passage {
  readonly subject: string;
  /** `many`: one request has several answers. `none`: it is told, and not asked. */
  readonly answers: 'one' | 'many' | 'none';
}

const one = (subject: string): Passage => ({ subject, answers: 'one' });
const many = (subject: string): Passage => ({ subject, answers: 'many' });

/** Reads of journals and of the index of sessions. The subject of a request contains the consumer's filter, so the server can enforce it. */
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

/** Large fields and files. They lie together for all tenants, by the hash of their bytes. */
function blobReads(tenant: string, settings: AuthSettings): readonly Passage[] {
  // Whoever may read one from the store may list all: where tenants share it, hosts hand out what is asked for by its hash.
  return settings.tenants.length > 1 ? [many(tenantSubjects.largeFields(tenant))] : blobPassages;
}

const blobPassages: readonly Passage[] = [
  one(api(`STREAM.INFO.${BLOBS}`)),
  one(api(`STREAM.MSG.GET.${BLOBS}`)),
  one(api(`CONSUMER.CREATE.${BLOBS}.*.$O.${STREAMS.blobs}.C.*`)),
  one(`$JS.FC.${BLOBS}.>`),
  ...ownConsumer(BLOBS).map(one),
];

/**
 * Reads one key of the registry. The subject of the request names the key; every other form of a read names it in the body,
 * where no permission restricts it, so that tenants' keys list keys through a session host.
 */
const keyRead = (keys: string) => many(api(`DIRECT.GET.${REGISTRY}.${keys}`));

/** What a tenant's role reaches of the streams' account. */
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
        // Pausing a persona and letting it go on.
        keyRead(tenantSubjects.personaPauses(tenant)),
        one(tenantSubjects.personaPauses(tenant)),
      ];
    case 'hooks':
      return [
        ...commands,
        // The ids of the tenant's other hook services.
        many(subjects.tenantKeys(tenant, STREAMS.registry, 'hooks')),
        keyRead(tenantSubjects.hookServices(tenant)),
        one(tenantSubjects.hookServices(tenant)),
        { subject: tenantSubjects.hookInstances(tenant), answers: 'none' },
        one(systemSubjects.callbacks),
      ];
    case 'tools':
      return toolPassages(tenant, ['*']);
    case 'personas':
      return personaPassages(tenant);
  }
}

/** What a tenant hears of the streams' account. */
export function heardBy(tenant: string): readonly string[] {
  return [
    tenantSubjects.events(tenant),
    tenantSubjects.deltas(tenant),
    tenantSubjects.approvals(tenant),
    tenantSubjects.inboxes(tenant),
  ];
}

/** What a tenant's workers are asked by hosts. The time is how long an answer may take. */
export function askedOf(tenant: string): readonly (Passage & { readonly threshold: string })[] {
  return [
    ...tenantSubjects.hooks(tenant).map((subject) => ({ subject, answers: 'one', threshold: '1h' }) as const),
    { subject: tenantSubjects.tools(tenant), answers: 'many', threshold: TOOL_ANSWERS_EXPIRE },
    { subject: tenantSubjects.personas(tenant), answers: 'many', threshold: TOOL_ANSWERS_EXPIRE },
  ];
}

/**
 * The rights of a role in its tenant's account.
 * @param user what its inboxes are called by, for a further key of the role.
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
      // In the group alone: who listens beside it would be shown every question.
      subscribe: [inbox, ...tenantSubjects.hooks(tenant).map((subject) => `${subject} ${HOOK_QUEUE_GROUP}`)],
      answers: { max: 1, expires: '1h' },
    };
  const heard = [tenantSubjects.events(tenant), tenantSubjects.deltas(tenant), tenantSubjects.approvals(tenant)];
  return { publish, subscribe: [inbox, ...heard] };
}
