/** The key files of an installation: the server's accounts, one file per key, and an overview of the keys. */
import { systemSubjects, TenantId, tenantSubjects } from '@coxswain/protocol';
import { type KeyPlace, type Keyring, keyFilePath, keyringText, type RingKey, userToken } from './keyring.ts';
import { type AuthSettings, ROLES, SYSTEM_ROLES, type SystemRole, TENANT_ROLES, type TenantRole } from './roles.ts';
import { newKey, seedFile } from './seed-file.ts';
import { serverAccounts } from './server-accounts.ts';
import { type ToolWorkerKey, workerInboxPrefix } from './tool-workers.ts';

/** One file. Files with a key also have its role, public key and seed. */
export interface AuthFile {
  /** Relative to the folder of the keys. */
  readonly path: string;
  readonly text: string;
  readonly role?: SystemRole | TenantRole;
  readonly tenant?: string | undefined;
  /** The name of an additional key of the role. */
  readonly name?: string | undefined;
  /** The worker that the key belongs to, if it is not for all tools. Only with the role `tools`. */
  readonly worker?: ToolWorkerKey | undefined;
  readonly publicKey?: string;
  /** The secret seed of the key. */
  readonly seed?: string;
}

/** Creates new keys for all system roles, tenants and workers, and all files of an installation. */
export function authFiles(settings: AuthSettings): AuthFile[] {
  const keys = [
    ...SYSTEM_ROLES.map((role) => newKeyFile({ role })),
    ...settings.tenants.flatMap((tenant) => TENANT_ROLES.map((role) => newKeyFile({ role, tenant }))),
    ...(settings.workers ?? []).map((worker) => newKeyFile({ role: 'tools', tenant: worker.tenant }, worker)),
  ];
  const ring: Keyring = { settings, keys: keys.map(ringKeyOf) };
  return [...ringFiles(ring), { path: 'server.conf', text: SERVER }, ...keys];
}

/** The files that list the keys. They are rewritten when a key is added or removed. */
export function ringFiles(ring: Keyring): AuthFile[] {
  return [
    { path: 'README.md', text: readme(ring) },
    { path: 'accounts.conf', text: `${WRITTEN}${serverAccounts(ring)}` },
    { path: 'keys.json', text: keyringText(ring) },
  ];
}

/** Creates a new key and its file. */
export function newKeyFile(place: KeyPlace, worker?: ToolWorkerKey): KeyFile {
  const { seed, publicKey } = newKey();
  const { role, tenant, name } = place;
  const whose = worker ? `the tool worker ${worker.name}` : userToken(place);
  const inboxPrefix = worker
    ? workerInboxPrefix(worker)
    : tenant === undefined
      ? systemSubjects.inboxPrefix(role)
      : tenantSubjects.inboxPrefix(tenant, userToken(place));
  const path = keyFilePath({ ...place, worker: worker?.name });
  return { path, text: seedFile(whose, { seed, inboxPrefix, tenant }), role, tenant, name, worker, publicKey, seed };
}

/** A file with a key. */
export type KeyFile = AuthFile & Required<Pick<AuthFile, 'role' | 'publicKey' | 'seed'>>;

function ringKeyOf({ path, role, tenant, worker, publicKey }: KeyFile): RingKey {
  return {
    role,
    ...(tenant === undefined ? {} : { tenant: TenantId.parse(tenant) }),
    ...(worker ? { worker: worker.name } : {}),
    file: path,
    public_key: publicKey,
  };
}

const WRITTEN = '# Written by cox admin auth. It contains only public keys: the secrets are in the files *.nk.\n';

const SERVER = `# A server for these users only: nats-server -c server.conf
# For several machines add tls { } and cluster { }; this file is only an example.
listen: "127.0.0.1:4222"
max_payload: 2097152
max_control_line: 65536
# The default of 2 s rejects busy clients, which stop reconnecting after the second rejection.
authorization { timeout: 30 }
jetstream {
  store_dir: "./jetstream"
}
include "accounts.conf"
`;

function readme({ settings, keys }: Keyring): string {
  return [
    '# Keys of a bus',
    '',
    '`accounts.conf` is for the nats-server: include it in its configuration (`server.conf` is an example). Each other file is',
    'the secret of one role. Give each program only the file that it needs:',
    '',
    '```',
    'NATS_URL=nats://bus:4222 NATS_NKEY=host.nk cox serve sessions',
    '```',
    '',
    'First create the streams with the key of the admin: `NATS_NKEY=admin.nk cox admin streams --nats nats://bus:4222`.',
    '',
    '| file | public key | for |',
    '|---|---|---|',
    ...keys.map(({ file, public_key, role, tenant, worker }) => {
      const served = settings.workers?.find((one) => one.tenant === tenant && one.name === worker);
      const what = served ? `A worker that serves ${served.tools.join(', ')} and no other tool.` : ROLES[role];
      return `| ${file} | ${public_key} | ${what} |`;
    }),
    '',
  ].join('\n');
}
