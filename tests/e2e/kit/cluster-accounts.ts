/**
 * One cluster of three real servers for all buses of a run. Each bus gets an account of its own, so that no host takes up
 * the sessions of another file; accounts are taken once, across processes.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startCluster } from '../../cluster/cluster.ts';

/** Where the processes of a run find the cluster that was started for it. */
const CLUSTER_PLACE = 'COX_E2E_CLUSTER';
/** More than the buses of any run: an account that nobody uses costs a line. */
const ACCOUNTS = 256;
/** A server looks for it from the folder of its own configuration, which is one below. */
const ACCOUNTS_FILE = 'accounts.conf';
/** Known to nobody but the servers of a run, which listen on loopback. */
const PASSWORD = 'of-the-tests';

interface Place {
  readonly servers: readonly string[];
  /** Holds a folder for each account that is taken. */
  readonly taken: string;
}

/** Starts the cluster and says in the environment where it is, for this process and those that it starts. */
export async function startAccountCluster(): Promise<{ stop(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'cox-e2e-cluster-'));
  const taken = join(folder, 'taken');
  await mkdir(taken);
  await writeFile(join(folder, ACCOUNTS_FILE), accountsConfig());
  const cluster = await startCluster({ folder, include: `../${ACCOUNTS_FILE}` });
  const place: Place = { servers: cluster.servers, taken };
  process.env[CLUSTER_PLACE] = JSON.stringify(place);
  return {
    async stop() {
      delete process.env[CLUSTER_PLACE];
      await cluster.stop();
      await rm(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** Takes an account that nobody has had. @returns all addresses of the cluster, with the account's user in them. */
export async function clusterAccount(): Promise<string> {
  const said = process.env[CLUSTER_PLACE];
  if (said === undefined)
    throw new Error('no cluster was started for this run: run vitest with the configuration of the repository');
  const { servers, taken } = JSON.parse(said) as Place;
  for (let account = 0; account < ACCOUNTS; account++) {
    if (!(await claim(join(taken, String(account))))) continue;
    return servers.map((url) => url.replace('nats://', `nats://${userOf(account)}:${PASSWORD}@`)).join(',');
  }
  throw new Error(`all ${ACCOUNTS} accounts of the cluster are taken`);
}

async function claim(folder: string): Promise<boolean> {
  try {
    await mkdir(folder);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

const userOf = (account: number) => `bus-${account}`;

function accountsConfig(): string {
  const accounts = Array.from(
    { length: ACCOUNTS },
    (_, account) =>
      `  "${userOf(account)}": { jetstream: enabled, users: [ { user: "${userOf(account)}", password: "${PASSWORD}" } ] }`,
  );
  return `accounts {\n${accounts.join('\n')}\n}\n`;
}
