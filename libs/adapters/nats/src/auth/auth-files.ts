/** The files of an installation's keys: the server's accounts, a file for each key, and which is for whom. */
import { systemSubjects, tenantSubjects } from '@coxswain/protocol';
import { type AuthSettings, ROLES, SYSTEM_ROLES, type SystemRole, TENANT_ROLES, type TenantRole } from './roles.ts';
import { newKey, seedFile } from './seed-file.ts';
import { serverAccounts } from './server-accounts.ts';
import { type ToolWorkerKey, workerInboxPrefix } from './tool-workers.ts';

/** One file, by its path in the folder. */
export interface AuthFile {
  readonly path: string;
  readonly text: string;
  readonly role?: SystemRole | TenantRole;
  readonly tenant?: string | undefined;
  /** Of the role `tools`: the worker whose own key it is. */
  readonly worker?: ToolWorkerKey | undefined;
  readonly publicKey?: string;
  /** Secret. */
  readonly seed?: string;
}

/** Makes new keys for every role and tenant, and all files. */
export function authFiles(settings: AuthSettings): AuthFile[] {
  const keys = [
    ...SYSTEM_ROLES.map((role) => keyFile(role, `${role}.nk`, systemSubjects.inboxPrefix(role))),
    ...settings.tenants.flatMap((tenant) =>
      TENANT_ROLES.map((role) =>
        keyFile(role, `tenants/${tenant}/${role}.nk`, tenantSubjects.inboxPrefix(tenant, role), tenant),
      ),
    ),
    ...(settings.workers ?? []).map((worker) =>
      keyFile(
        'tools',
        `tenants/${worker.tenant}/workers/${worker.name}.nk`,
        workerInboxPrefix(worker),
        worker.tenant,
        worker,
      ),
    ),
  ];
  const keyOf = (role: SystemRole | TenantRole, tenant?: string, worker?: string) =>
    keys.find((one) => one.role === role && one.tenant === tenant && one.worker?.name === worker)?.publicKey as string;
  return [
    { path: 'README.md', text: readme(keys) },
    { path: 'accounts.conf', text: `${WRITTEN}${serverAccounts(settings, keyOf)}` },
    { path: 'server.conf', text: SERVER },
    ...keys,
  ];
}

function keyFile(
  role: SystemRole | TenantRole,
  path: string,
  inboxPrefix: string,
  tenant?: string,
  worker?: ToolWorkerKey,
): AuthFile {
  const { seed, publicKey } = newKey();
  const whose = worker ? `the tool worker ${worker.name}` : role;
  return { path, text: seedFile(whose, { seed, inboxPrefix, tenant }), role, tenant, worker, publicKey, seed };
}

const WRITTEN = '# Written by cox auth. It holds public keys only: the secrets are in the files *.nk.\n';

const SERVER = `# A server that takes these users and nobody else: nats-server -c server.conf
# For more than one machine add tls { } and cluster { }; this file is only an example.
listen: "127.0.0.1:4222"
max_payload: 2097152
max_control_line: 65536
jetstream {
  store_dir: "./jetstream"
}
include "accounts.conf"
`;

function readme(keys: readonly AuthFile[]): string {
  return [
    '# Keys of a bus',
    '',
    '`accounts.conf` is for the nats-server: include it in its configuration (`server.conf` is an example). Each other file is',
    'the secret of one role. Give each program the one file that it needs, and nobody two:',
    '',
    '```',
    'NATS_URL=nats://bus:4222 NATS_NKEY=host.nk cox serve sessions',
    '```',
    '',
    'First of all the admin makes the streams: `NATS_NKEY=admin.nk cox streams --nats nats://bus:4222`.',
    '',
    '| file | public key | for |',
    '|---|---|---|',
    ...keys.map(({ path, publicKey, role, worker }) => {
      const what = worker
        ? `A worker that serves ${worker.tools.join(', ')} and no other tool.`
        : ROLES[role as keyof typeof ROLES];
      return `| ${path} | ${publicKey} | ${what} |`;
    }),
    '',
  ].join('\n');
}
