/** Generates the accounts of a nats-server's configuration from the roles. */
import { type Keyring, type RingKey, userToken } from './keyring.ts';
import {
  type AuthSettings,
  askedOf,
  heardBy,
  type Passage,
  passagesOf,
  type RoleRights,
  SYSTEM_ROLES,
  systemRights,
  TENANT_ROLES,
  tenantRights,
} from './roles.ts';
import { toolRights, workerInboxPrefix } from './tool-workers.ts';

/** The name of the streams' account. */
export const STREAMS_ACCOUNT = 'COX';

/** The name of a tenant's account. */
export function tenantAccount(tenant: string): string {
  return `${STREAMS_ACCOUNT}-${tenant}`;
}

const STORE_API = '$JS.API.';

/**
 * Generates the `accounts` block of the configuration:
 * https://docs.nats.io/running-a-nats-service/configuration/securing_nats/accounts
 */
export function serverAccounts({ settings, keys }: Keyring): string {
  const { tenants } = settings;
  const passages = new Map<string, { readonly passage: Passage; readonly accounts: string[] }>();
  for (const tenant of tenants) {
    for (const passage of tenantPassages(tenant, settings)) {
      const known = passages.get(passage.subject) ?? { passage, accounts: [] };
      known.accounts.push(tenantAccount(tenant));
      passages.set(passage.subject, known);
    }
  }
  const lines = [
    'accounts {',
    `  ${quoted(STREAMS_ACCOUNT)} {`,
    '    jetstream: enabled',
    ...listOf(
      'users',
      keys.flatMap((key) => {
        const role = SYSTEM_ROLES.find((one) => one === key.role);
        return role ? userLines(userToken(key), key.public_key, systemRights(role)) : [];
      }),
    ),
    ...listOf('exports', [
      ...[...passages.values()].map(
        ({ passage, accounts }) =>
          `{ service: ${quoted(passage.subject)}${responseOf(passage)}, accounts: [${accounts.map(quoted).join(', ')}] }`,
      ),
      ...tenants.flatMap((tenant) =>
        heardBy(tenant).map(
          (subject) => `{ stream: ${quoted(subject)}, accounts: [${quoted(tenantAccount(tenant))}] }`,
        ),
      ),
    ]),
    ...listOf(
      'imports',
      tenants.flatMap((tenant) =>
        askedOf(tenant).map(({ subject }) => imported('service', tenantAccount(tenant), subject)),
      ),
    ),
    '  }',
    ...tenants.flatMap((tenant) => tenantLines(tenant, settings, keys)),
    '}',
  ];
  return `${lines.join('\n')}\n`;
}

function tenantLines(tenant: string, settings: AuthSettings, keys: readonly RingKey[]): string[] {
  return [
    `  ${quoted(tenantAccount(tenant))} {`,
    ...listOf(
      'users',
      keys.filter((key) => key.tenant === tenant).flatMap((key) => tenantUserLines(tenant, settings, key)),
    ),
    ...listOf(
      'exports',
      askedOf(tenant).map(
        (passage) =>
          `{ service: ${quoted(passage.subject)}${responseOf(passage)}, threshold: ${quoted(passage.threshold)}, ` +
          `accounts: [${quoted(STREAMS_ACCOUNT)}] }`,
      ),
    ),
    ...listOf('imports', [
      ...tenantPassages(tenant, settings).map(({ subject }) => imported('service', STREAMS_ACCOUNT, subject)),
      ...heardBy(tenant).map((subject) => imported('stream', STREAMS_ACCOUNT, subject)),
    ]),
    '  }',
  ];
}

function tenantUserLines(tenant: string, settings: AuthSettings, key: RingKey): string[] {
  if (key.worker !== undefined) {
    const worker = settings.workers?.find((one) => one.tenant === tenant && one.name === key.worker);
    // The worker's tools are unknown. So the key gets no permissions, and never those of the role for all tools.
    if (!worker) return [];
    return userLines(
      `worker ${worker.name}`,
      key.public_key,
      toolRights(tenant, workerInboxPrefix(worker), worker.tools),
    );
  }
  const role = TENANT_ROLES.find((one) => one === key.role);
  return role ? userLines(userToken(key), key.public_key, tenantRights(role, tenant, settings, userToken(key))) : [];
}

/**
 * The subjects that any role of the tenant reaches; each user's permissions restrict them further. No two overlap: the
 * server delivers a request once for each import that matches it. The JetStream API is imported as a whole: the server
 * gives each account without streams its own API, which reports that there are none. Only an import of the whole API
 * replaces it.
 */
function tenantPassages(tenant: string, settings: AuthSettings): Passage[] {
  const reached = TENANT_ROLES.flatMap((role) => passagesOf(role, tenant, settings));
  const all: Passage[] = [{ subject: `${STORE_API}>`, answers: 'many' }, ...reached];
  const unique = [...new Map(all.map((passage) => [passage.subject, passage])).values()];
  return unique.filter(
    ({ subject }) => !unique.some((other) => other.subject !== subject && covers(other.subject, subject)),
  );
}

/** Whether a subject with wildcards matches all that another one matches. */
function covers(wide: string, narrow: string): boolean {
  const wanted = wide.split('.');
  const given = narrow.split('.');
  const isAlike = wanted.every(
    (token, at) => token === '>' || token === given[at] || (token === '*' && given[at] !== '>'),
  );
  return isAlike && (wanted.at(-1) === '>' ? given.length >= wanted.length : given.length === wanted.length);
}

function imported(kind: 'service' | 'stream', account: string, subject: string): string {
  return `{ ${kind}: { account: ${quoted(account)}, subject: ${quoted(subject)} } }`;
}

function responseOf({ answers }: Passage): string {
  return answers === 'many' ? ', response: stream' : '';
}

function userLines(role: string, key: string, { publish, subscribe, answers }: RoleRights): string[] {
  return [
    `# ${role}`,
    '{',
    `  nkey: ${key}`,
    '  permissions: {',
    ...listOf('publish', publish.map(quoted)).map((line) => line.slice(2)),
    ...listOf('subscribe', subscribe.map(quoted)).map((line) => line.slice(2)),
    ...(answers ? [`    allow_responses: { max: ${answers.max}, expires: ${quoted(answers.expires)} }`] : []),
    '  }',
    '}',
  ];
}

function listOf(name: string, items: readonly string[]): string[] {
  return [`    ${name}: [`, ...items.map((item) => `      ${item}`), '    ]'];
}

/** Quotes a string. Without quotes, the server could parse it as a number or a variable. */
function quoted(text: string): string {
  return JSON.stringify(text);
}
