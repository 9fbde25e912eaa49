/** Which test shows that an actor cannot reach an asset. Roles come from the role table, scopes from the gateway. */
import { SYSTEM_ROLES, type SystemRole, TENANT_ROLES, type TenantRole } from '@coxswain/adapter-nats';
import { SCOPES, type Scope } from '../../services/gateway/src/auth/principal.ts';
import type { LinkedTest } from './linked-tests.ts';

/** What is protected: `docs/guides/threat-model.md` has the reasons. */
export const ASSETS = [
  'files of the host',
  'environment',
  'keys',
  'data of other tenants',
  'approvals',
  'availability',
] as const;
/** See {@link ASSETS}. */
export type Asset = (typeof ASSETS)[number];

/** Actors that have no role and no scope. */
const OUTSIDERS = [
  'no key',
  'other tenant',
  'tool worker',
  'hostile MCP server',
  'hostile model provider',
  'hostile repository',
  'hostile content',
] as const;
/** Who attacks. */
export type Actor = (typeof OUTSIDERS)[number] | `role ${SystemRole | TenantRole}` | `scope ${Scope}`;

/** All actors that need a row. */
export const ACTORS: readonly Actor[] = [
  ...OUTSIDERS,
  ...[...SYSTEM_ROLES, ...TENANT_ROLES].map((role) => `role ${role}` as const),
  ...SCOPES.map((scope) => `scope ${scope}` as const),
];

const test = (file: string, title: string): LinkedTest => ({ file, title });
const e2e = (name: string, title: string) => test(`tests/e2e/${name}.test.ts`, title);
const session = (name: string, title: string) => test(`libs/session/test/${name}.test.ts`, title);
const protocol = (name: string, title: string) => test(`libs/protocol/test/${name}.test.ts`, title);
const adapter = (name: string, file: string, title: string) =>
  test(`libs/adapters/${name}/test/${file}.test.ts`, title);
const here = (name: string, title: string) => test(`tests/security/${name}.test.ts`, title);

/** Tests that more than one cell links. */
const T = {
  rights: e2e('roles', '%s may do what its role says, and nothing else'),
  admin: e2e('roles', 'admin may do everything in the account of the streams, and nothing outside it'),
  noKey: e2e('roles', 'a connection without a key is rejected'),
  steers: e2e('roles', 'reaches nothing else: no schedule, no header, no reply, no receipt, no id leads further'),
  reads: e2e('tenant-reads', '%s of one tenant reads nothing of another'),
  hears: e2e('tenant-reads', '%s of one tenant hears nothing of another'),
  tenants: e2e('tenants', 'the key of a %s of one tenant sends and hears nothing of the other'),
  fields: here('request-fields', 'an attack by $leaf is refused by the field $field'),
  waysIn: here('ways-in', '%s: refused, and logged by the host with its field'),
  runner: e2e('host-policy', 'a token that may only run reaches nothing of the host'),
  routes: here('routes', '%s needs %s: no token and no other scope opens it'),
  allows: e2e('gateway', 'who may start and not approve starts nothing that allows calls by itself'),
  ceiling: session('policy', 'run_command waits for a decision, whatever rules the persona and the start have'),
  noDelete: e2e('deletion', 'the admin deletes, of any tenant; hosts and a tenant’s users do not'),
  flood: e2e(
    'flooding',
    'of 400 invalid steers 64 leave a record; each is answered, none waits in the store, and a valid steer is taken',
  ),
  quotas: session(
    'quotas',
    'other senders continue until the tenant’s rate is exceeded; a run can still be cancelled then',
  ),
  quotaTenant: session('quotas', 'quotas are separate for each tenant'),
  pending: e2e(
    'state-at-its-bounds',
    'get_state answers with 1 MiB of queued steers, from memory and from the snapshot; one byte more is pending_full',
  ),
  worker: e2e(
    'auth-tools',
    'a worker with the key of one tool answers no other’s calls, announces no other, publishes no command',
  ),
  hooksAlone: e2e(
    'auth-tools',
    'a hook service cannot empty the registry by a header, nor hear questions outside its group',
  ),
  personasAlone: e2e('auth-personas', 'keys of other roles serve nobody'),
  longRequests: test(
    'tests/contracts/nats-personas.test.ts',
    'the address of a long request gives no hint of another one’s: every tenant may publish there',
  ),
  removed: e2e('own-keys', 'a key that is taken away lets nobody in, and ends who is in; the others of its role stay'),
  receipts: e2e('tenants', 'no receipt goes to an inbox of another tenant, nor of a host'),
  otherTenant: e2e('gateway', 'another tenant’s session is not there'),
  injection: here('prompt-injection', 'writes no mark of the host'),
  editedDenied: session('edited-calls', 'a refund that a person raises from 40 to 4,000'),
  remembered: session('approvals', 'applies to one root and one definition: a session with another one asks again'),
  logs: adapter('log', 'service-log', 'a secret stands in no line, in whatever field, message or error it came'),
  hostFiles: adapter(
    'tools',
    'policy',
    'files of the host are refused below a root that contains them, and its other files are not',
  ),
  privateFetch: adapter(
    'tools',
    'policy',
    'the guarded fetch asks no address of this machine, and follows no redirect',
  ),
  commandEnv: adapter('tools', 'run-command', 'of a command holds what the host says and no secrets'),
  approveless: e2e(
    'approvals-beyond-one-call',
    'a command sees none of what could approve: neither the bus, nor a key, nor the secret of the webhook',
  ),
} as const;

/** One cell: the tests that own it, or why there is no path from the actor to the asset. */
export type Cell = readonly LinkedTest[] | string;

/** A role of a tenant whose verbs have no body that names a thing of the host. */
const namesNothing = (approvals: Cell): Readonly<Record<Asset, Cell>> => ({
  'files of the host': [T.rights],
  environment: [T.rights],
  keys: [T.rights, T.removed],
  'data of other tenants': [T.reads, T.hears, T.tenants],
  approvals,
  availability: [T.noDelete, T.quotas, T.quotaTenant],
});
/** A role that may start sessions. */
const starts = (approvals: Cell): Readonly<Record<Asset, Cell>> => ({
  'files of the host': [T.fields, T.waysIn, T.hostFiles],
  environment: [T.fields, T.waysIn, T.commandEnv],
  keys: [T.fields, T.waysIn, T.removed, adapter('models', 'policy', '%s has no use of an address that is not listed')],
  'data of other tenants': [T.reads, T.hears, T.tenants, T.receipts],
  approvals,
  availability: [
    T.noDelete,
    T.quotas,
    T.quotaTenant,
    session('quotas', 'a tenant at its maximum of sessions starts no other, until the store reports fewer'),
  ],
});
/** A scope that has no route with a body that names a thing of the host. */
const onRoutes = (more: Partial<Record<Asset, Cell>> = {}): Readonly<Record<Asset, Cell>> => ({
  'files of the host': [T.routes],
  environment: [T.routes],
  keys: [T.routes, e2e('gateway', 'the file has no token in it')],
  'data of other tenants': [T.otherTenant],
  approvals: [T.routes],
  availability: [
    T.routes,
    test('services/gateway/test/app.test.ts', 'requests beyond the rate limit get 429 with retry-after'),
  ],
  ...more,
});
const TRUSTED = 'trusted with everything of its account (P1 of the threat model)';

/** The matrix. */
export const MATRIX: Readonly<Record<Actor, Readonly<Record<Asset, Cell>>>> = {
  'no key': {
    'files of the host': [T.noKey, T.routes],
    environment: [T.noKey, T.routes],
    keys: [T.noKey, e2e('gateway', 'whoever tries many tokens is slowed down')],
    'data of other tenants': [T.noKey, T.routes],
    approvals: [T.noKey, T.routes],
    availability: [
      T.noKey,
      e2e('gateway', 'no token, a wrong one, one that is over'),
      e2e('gateway-socket', 'no token, another site, no such session: refused before there is a connection'),
    ],
  },
  'other tenant': {
    'files of the host': [
      protocol('host-policy', 'the section of a tenant replaces the shared one and keeps the others'),
    ],
    environment: [T.fields],
    keys: [T.reads],
    'data of other tenants': [
      T.reads,
      T.hears,
      T.tenants,
      T.otherTenant,
      e2e('gateway-keys', 'another tenant sees nothing of it; one whose key the gateway does not have is not served'),
    ],
    approvals: [
      T.tenants,
      e2e('tenants', 'a hook service of one tenant can neither take nor empty what another has announced'),
    ],
    availability: [T.quotaTenant],
  },
  'tool worker': {
    'files of the host': [T.worker],
    environment: [T.worker],
    keys: [T.worker, e2e('own-keys', 'a tool service whose worker’s key is taken away ends, and says why')],
    'data of other tenants': [T.worker],
    approvals: [T.worker],
    availability: [
      e2e(
        'bus-tools-trouble',
        'calls move away from a frozen worker: an idempotent one that it runs, and any that it has not taken',
      ),
    ],
  },
  'hostile MCP server': {
    'files of the host': 'the host offers the server no roots, no sampling and no elicitation: it only answers',
    environment: [adapter('mcp', 'stdio', 'its environment is the safe one, and what it is given, expanded')],
    keys: [
      adapter('mcp', 'http', 'because it redirects to another origin, which gets no request and no header'),
      adapter('mcp', 'policy', 'a server that is not listed is asked by the guarded fetch alone'),
      adapter('mcp', 'policy', '%s is refused before anything is started'),
      adapter('mcp', 'stdio', 'what was filled in is not in a message, wherever the output of the server is cut'),
      adapter('mcp', 'http', 'a key that a server quotes is not in'),
    ],
    'data of other tenants': 'one connection serves one session',
    approvals: [T.injection],
    availability: [
      adapter('mcp', 'http', 'because it %s'),
      adapter('mcp', 'http', 'because its redirects within its origin do not end'),
      adapter('mcp', 'http', 'is read up to the bound of a message: %s'),
      adapter('mcp', 'http', 'is read up to the bound of an error'),
      adapter('mcp', 'http', 'a list of tools is read up to a number of bytes, not of pages alone'),
    ],
  },
  'hostile model provider': {
    'files of the host': [adapter('tools', 'root', '%s cannot leave the root:')],
    environment: [T.commandEnv],
    keys: [
      adapter('models', 'protocols', 'a redirect is an error at once: key and prompt go to no other address'),
      adapter(
        'models',
        'policy',
        'a compatible server that is not listed is asked by the guarded fetch, without a key',
      ),
      adapter('models', 'protocols', 'a key never stands in a failure'),
      adapter('models', 'stream-failure', 'a key is not in a message, wherever that is cut'),
    ],
    'data of other tenants': 'a provider gets the prompts of its own session only',
    approvals: [T.ceiling, T.approveless],
    availability: [
      adapter('models', 'wire', 'an answer that does not end is read up to a bound'),
      adapter('models', 'protocols', 'silence before the first byte is a time-out, and tried again'),
      adapter('models', 'protocols', '429 for ever ends as model_rate_limited after four requests'),
    ],
  },
  'hostile repository': {
    'files of the host': [
      test(
        'libs/cli/test/folder-trust.test.ts',
        'a manifest with its modules needs trust, and so does a persona that loosens a rule',
      ),
      test('libs/cli/test/persona-file.test.ts', 'may not have a %s that is a link to a file outside'),
      test('libs/cli/test/persona-file.test.ts', 'may not contain a link to a file outside'),
    ],
    environment: [
      test(
        'libs/cli/test/folder-trust.test.ts',
        'a named persona that needs trust is rejected without it; a path to it, and a harmless persona, are not',
      ),
    ],
    keys: [
      e2e('folder-trust', 'a host in the background refuses a manifest that has changed since the user trusted it'),
    ],
    'data of other tenants': 'a repository has no key of a bus before a person agrees to run its code',
    approvals: [test('libs/cli/test/folder-trust.test.ts', 'a persona needs trust that'), T.remembered],
    availability: [
      test('libs/ports/test/regular-file.test.ts', 'a pipe that nothing writes to, also through a symbolic link'),
    ],
  },
  'hostile content': {
    'files of the host': [
      adapter('tools', 'root', '%s cannot leave the root:'),
      adapter('tools', 'policy', 'a root at the top of the system reads nothing of the kernel’s'),
    ],
    environment: [T.commandEnv],
    keys: [T.privateFetch, adapter('tools', 'fetch-url', 'a name that leads to one is refused')],
    'data of other tenants': 'content is read within one session',
    approvals: [
      T.injection,
      session('messages', 'is rejected by the sender’s host with the reason, and ends no approval'),
    ],
    availability: [
      adapter('tools', 'fetch-url', 'a document without end is read up to the bound and no further'),
      adapter('tools', 'escape-sequences', 'output that is made to be slow: %s'),
      adapter('tools', 'files', 'a walk gives other work a turn within a folder, so that a cancellation arrives'),
    ],
  },
  'role admin': {
    'files of the host': [T.admin],
    environment: [T.admin],
    keys: [T.admin],
    'data of other tenants': TRUSTED,
    approvals: TRUSTED,
    availability: TRUSTED,
  },
  'role host': {
    'files of the host': TRUSTED,
    environment: TRUSTED,
    keys: [T.rights],
    'data of other tenants': TRUSTED,
    approvals: TRUSTED,
    availability: [T.rights, T.noDelete],
  },
  'role retention': {
    'files of the host': [T.rights],
    environment: [T.rights],
    keys: [T.rights],
    'data of other tenants': 'trusted to read and purge the journals of deleted sessions of each tenant',
    approvals: [T.rights],
    availability: [
      session('deletion', 'purges a deleted session within the promised time, and no session without a tombstone'),
    ],
  },
  'role gateway': starts([T.rights, T.ceiling]),
  'role viewer': namesNothing([T.rights]),
  'role steerer': { ...namesNothing([T.rights, T.steers]), availability: [T.flood, T.pending, T.noDelete] },
  'role approver': namesNothing([T.editedDenied, T.remembered]),
  'role operator': starts([T.editedDenied, T.ceiling]),
  'role hooks': namesNothing([T.hooksAlone]),
  'role tools': namesNothing([T.rights]),
  'role personas': {
    ...namesNothing([T.personasAlone]),
    'data of other tenants': [T.reads, T.hears, T.tenants, T.longRequests],
  },
  'scope read': onRoutes(),
  'scope run': onRoutes({
    'files of the host': [T.runner, T.fields, T.waysIn],
    environment: [T.runner, T.fields, T.waysIn],
    keys: [T.runner, T.fields, T.waysIn],
    approvals: [T.allows, protocol('start-allowances', '%s is an approval in advance'), T.ceiling],
  }),
  'scope steer': onRoutes({ availability: [T.routes, T.pending] }),
  'scope approve': onRoutes({ approvals: [T.editedDenied, T.remembered] }),
  'scope admin': {
    ...onRoutes(),
    'files of the host': [
      e2e('host-policy', 'the holder of an admin token configures the host of cox up, and not a shared one'),
      T.hostFiles,
    ],
    environment: [
      e2e('host-policy', 'the holder of an admin token configures the host of cox up, and not a shared one'),
    ],
    approvals: [T.editedDenied],
  },
};

/**
 * The attacks that broke into an earlier build, and the tests that fail if one of them works again. Rejections of the policy, of
 * secrets and of quotas are lines of the host's log; those of a session's own rules are records of its journal.
 */
export const FINDINGS: Readonly<Record<string, readonly LinkedTest[]>> = {
  'a variable of the host in a header': [
    T.fields,
    T.runner,
    adapter('mcp', 'policy', '%s is refused before anything is started'),
  ],
  'the root of the system': [
    T.runner,
    T.waysIn,
    adapter('tools', 'policy', 'a root at the top of the system reads nothing of the kernel’s'),
    session('policy', 'an imported journal gets the policy of the host that runs it, whatever root it names'),
  ],
  'the key of a provider at an address of the sender': [
    T.runner,
    T.waysIn,
    adapter('models', 'policy', '%s has no use of an address that is not listed'),
  ],
  'a password in an address': [
    T.waysIn,
    session(
      'policy',
      'a start with a literal secret is rejected and logged on every bus, and no line or receipt has the value',
    ),
    protocol('request-secrets', 'a secret in %s is rejected'),
  ],
  'a remembered approval in another root or for another persona': [T.remembered],
  'edited arguments past the guards': [
    T.editedDenied,
    test('libs/turn/test/edited-calls.test.ts', 'stays parked if a rule denies it; no hook is called'),
  ],
  'the registry of another tenant': [T.reads],
  'files that are not regular': [
    T.waysIn,
    test('libs/ports/test/regular-file.test.ts', 'a pipe that nothing writes to, also through a symbolic link'),
    adapter('models', 'named-files', 'is applied to the file that was opened, not to what the path led to before'),
  ],
  'more bytes of queued messages than a reply can carry': [T.pending],
  'a flood of invalid commands': [
    T.flood,
    session('rejections', 'of 400 %s 64 leave a record, and each gets its receipt'),
  ],
  'a flood of valid commands': [
    T.quotas,
    session(
      'quotas',
      'a sender above its rate is rejected without a record, and its command is accepted a second later under the same id',
    ),
    e2e('flooding', 'a full command stream rejects with quota_exceeded'),
  ],
  'a forged notice of the host': [
    T.injection,
    here('prompt-injection', 'is in the role and the mark of where it is from'),
  ],
  'a message of another session that ends an approval': [
    session('messages', 'is rejected by the receiver’s host, whatever the sender’s host allows'),
  ],
  'more rights for a child, a fork or a later run': [
    session(
      'policy',
      'a session of a restricted sender stays restricted: its tools, its fork and its next run on another host',
    ),
    session('policy', 'a child of a restricted session is restricted'),
  ],
  'a redirect to another address': [
    adapter('models', 'protocols', 'a redirect is an error at once: key and prompt go to no other address'),
    adapter('mcp', 'http', 'because it redirects to another origin, which gets no request and no header'),
    T.privateFetch,
  ],
};
