/** A nats-server that lets in only the users of `cox admin auth`, each with the rights of its role. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findServer } from '@coxswain/adapter-embedded-server';
import {
  connectionTo,
  connectNats,
  readSeedFile,
  SYSTEM_ROLES,
  type SystemRole,
  type TenantRole,
} from '@coxswain/adapter-nats';
import { type BusClient, connect as connectClient } from '@coxswain/client';
import { errors, type NatsConnection } from '@nats-io/nats-core';
import { Child, cox, SESSIONS_MAIN } from './child.ts';
import { scratchFolder } from './scratch.ts';
import { TRUSTED_BUS } from './trusted-bus.ts';
import { until } from './until.ts';

/** Whose key: a role's, or a tool worker's own. */
export type KeyOwner = SystemRole | TenantRole | `workers/${string}`;

/** The server and the keys to it. */
export interface GuardedBus {
  readonly url: string;
  /** The folder that `cox admin auth` has written. */
  readonly keys: string;
  /** The file of a role's key; of a tenant's role where a tenant is named, `default` for its own. */
  file(role: KeyOwner, tenant?: string): string;
  /** The environment that lets a program in as a role. */
  env(role: KeyOwner, tenant?: string): NodeJS.ProcessEnv;
  /** A bare connection with the rights of a role. It ends with the bus. */
  as(role: KeyOwner, tenant?: string): Promise<NatsConnection>;
  client(role: TenantRole, tenant?: string): Promise<BusClient>;
  /** What the server has refused, as it tells: one line for each. */
  refusals(): Promise<string[]>;
  /** Has the server read its configuration again. */
  reload(): Promise<void>;
  /** Kills the server and starts it again on its store; clients come back by themselves. */
  restart(): Promise<void>;
  /** A session host, with the first key of hosts or another file. */
  startHost(keyFile?: string): Promise<Child>;
  stop(): Promise<void>;
}

/** Starts one, with its streams made by the admin. */
export async function startGuardedBus(
  tenants: readonly string[] = ['default'],
  more: readonly string[] = [],
): Promise<GuardedBus> {
  const { NATS_URL: _, ...env } = process.env;
  const found = await findServer({ env });
  if (found.kind !== 'binary') throw new Error('a server binary was asked for');
  const folder = await scratchFolder('guarded');
  const keys = join(folder, 'auth');
  const written = await cox([
    'admin',
    'auth',
    '--out',
    keys,
    ...tenants.flatMap((tenant) => ['--tenant', tenant]),
    ...more,
  ]);
  if (written.code !== 0) throw new Error(`cox admin auth: ${written.told}`);
  const config = join(keys, 'test.conf');
  const log = join(folder, 'server.log');
  await writeFile(
    config,
    `listen: "127.0.0.1:-1"\nports_file_dir: ${JSON.stringify(folder)}\nlog_file: ${JSON.stringify(log)}\n` +
      // The server's own max_payload, 1 MiB: everything has to fit it.
      `max_control_line: 65536\njetstream { store_dir: ${JSON.stringify(folder)} }\ninclude "accounts.conf"\n`,
  );
  const start = () => spawn(found.path, ['-c', config], { stdio: 'ignore' });
  const server = start();
  const url = await until('the server to say where it listens', () => portsIn(folder, server, log));
  // Started again it is where it was.
  await writeFile(config, (await readFile(config, 'utf8')).replace('127.0.0.1:-1', new URL(url).host));
  const bus = guardedBus(url, keys, folder, log, server, start);
  const streams = await cox(['admin', 'streams', '--nats', url], { env: bus.env('admin') });
  if (streams.code !== 0) throw new Error(`cox admin streams: ${streams.told}`);
  return bus;
}

const isSystemRole = (role: string) => SYSTEM_ROLES.some((one) => one === role);

function guardedBus(
  url: string,
  keys: string,
  folder: string,
  log: string,
  first: ChildProcess,
  start: () => ChildProcess,
): GuardedBus {
  let server = first;
  const open: { close(): Promise<void> }[] = [];
  const file = (role: string, tenant = 'default') =>
    isSystemRole(role) ? join(keys, `${role}.nk`) : join(keys, 'tenants', tenant, `${role}.nk`);
  const env = (role: string, tenant?: string) => ({ NATS_URL: url, NATS_NKEY: file(role, tenant) });
  return {
    url,
    keys,
    file,
    env,
    async as(role, tenant) {
      const credentials = await readSeedFile(file(role, tenant));
      const nc = await connectNats(connectionTo({ servers: url, credentials }));
      open.push(nc);
      return nc;
    },
    async client(role, tenant) {
      const client = await connectClient({ servers: url, ...(await readSeedFile(file(role, tenant))) });
      open.push(client);
      return client;
    },
    async refusals() {
      const lines = (await readFile(log, 'utf8')).split('\n');
      return lines.filter((line) => / Violation /.test(line));
    },
    async reload() {
      const reloads = async () => (await readFile(log, 'utf8')).split('Reloaded server configuration').length;
      const before = await reloads();
      server.kill('SIGHUP');
      await until('the server to read its configuration again', async () => (await reloads()) > before);
    },
    async restart() {
      const exited = once(server, 'exit');
      server.kill('SIGKILL');
      await exited;
      server = start();
    },
    async startHost(keyFile = file('host')) {
      const host = new Child(SESSIONS_MAIN, [], {
        env: { ...TRUSTED_BUS, NATS_URL: url, NATS_NKEY: keyFile, COX_STATE_DIR: folder },
      });
      await host.says('session host is up');
      return host;
    },
    async stop() {
      await Promise.all(open.map((one) => one.close()));
      const exited = once(server, 'exit');
      server.kill('SIGKILL');
      await exited;
    },
  };
}

async function portsIn(folder: string, server: ChildProcess, log: string): Promise<string | null> {
  if (server.exitCode !== null) throw new Error(`the server refuses the configuration: ${await readFile(log, 'utf8')}`);
  const file = (await readdir(folder)).find((name) => name.endsWith('.ports'));
  if (file === undefined) return null;
  try {
    const { nats } = JSON.parse(await readFile(join(folder, file), 'utf8')) as { nats: string[] };
    return nats[0] ?? null;
  } catch {
    // It is being written.
    return null;
  }
}

/** What the server refuses to this connection from now on: `publish SUBJECT`, `subscription SUBJECT`. It fills as the server tells. */
export function refusalsOf(nc: NatsConnection): Set<string> {
  const refused = new Set<string>();
  void (async () => {
    for await (const status of nc.status()) {
      if (status.type === 'error' && status.error instanceof errors.PermissionViolationError)
        refused.add(`${status.error.operation} ${status.error.subject}`);
    }
  })();
  return refused;
}
