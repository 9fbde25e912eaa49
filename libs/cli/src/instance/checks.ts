/** What `cox doctor` looks at. Nothing here changes anything, fetches anything or shows a secret. */

import { randomUUID } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import {
  connectionTo,
  connectNats,
  findServer,
  listHosts,
  makeFolder,
  minimumServerVersion,
  NatsRefusedError,
  NatsUnavailableError,
  serverVersionAtLeast,
} from '@coxswain/adapter-nats';
import { type BusClient, NoHostError, newSessionId, SessionNotFoundError, type StreamPresence } from '@coxswain/client';
import type { Flags } from '../line/flags.ts';
import { KEY_VARIABLES, keysFound } from '../run/start-body.ts';
import { counted } from '../terminal/counted.ts';
import { type BusAddress, findBus } from './find-bus.ts';
import { connectTo } from './open-bus.ts';

/** One thing that was looked at. */
export interface Check {
  readonly name: string;
  /** `warning`: it works, but something is worth knowing. */
  readonly status: 'ok' | 'warning' | 'failed';
  readonly message: string;
}

const NODE_MINIMUM = [20, 19] as const;

/** Looks at everything, in the order in which one would mend it. */
export async function* checks(flags: Flags, env: NodeJS.ProcessEnv): AsyncGenerator<Check> {
  yield nodeCheck(process.versions.node);
  const { address, stateDir } = await findBus(flags, env);
  yield await stateDirCheck(stateDir);
  const port = flags.whole('port', { min: 1, max: 65_535 });
  if (port !== undefined) yield await portCheck(port);
  if (address) yield* busChecks(address, env);
  else yield* serverChecks(stateDir, env);
  yield keysCheck(env);
}

/** Whether this Node is new enough. */
export function nodeCheck(version: string): Check {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const enough = major > NODE_MINIMUM[0] || (major === NODE_MINIMUM[0] && minor >= NODE_MINIMUM[1]);
  return {
    name: 'node',
    status: enough ? 'ok' : 'failed',
    message: enough ? `node ${version}` : `node ${version} is older than ${NODE_MINIMUM.join('.')}`,
  };
}

async function stateDirCheck(stateDir: string): Promise<Check> {
  const probe = join(stateDir, `.doctor-${randomUUID()}`);
  try {
    await makeFolder(stateDir);
    await writeFile(probe, '');
    await rm(probe);
    return { name: 'state_dir', status: 'ok', message: `state folder ${stateDir} can be written` };
  } catch (error) {
    return { name: 'state_dir', status: 'failed', message: (error as Error).message };
  }
}

function portCheck(port: number): Promise<Check> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error) => {
      resolve({ name: 'port', status: 'failed', message: `port ${port} cannot be used: ${error.message}` });
    });
    server.listen(port, '127.0.0.1', () => {
      server.close(() => resolve({ name: 'port', status: 'ok', message: `port ${port} is free` }));
    });
  });
}

async function* serverChecks(stateDir: string, env: NodeJS.ProcessEnv): AsyncGenerator<Check> {
  yield { name: 'instance', status: 'ok', message: `nothing runs on ${stateDir}; cox up or cox run starts it` };
  try {
    // A check fetches nothing; what would be fetched is said.
    const found = await findServer({ env: { ...env, NATS_URL: undefined, COX_FETCH: 'never' } });
    if (found.kind === 'binary') {
      const message = `nats-server ${found.version} from ${found.source}: ${found.path}`;
      yield { name: 'nats_server', status: 'ok', message };
    }
  } catch (error) {
    const { code, message } = error as Error & { code?: string };
    const fetched = code === 'nats_server_not_found' && env.COX_FETCH !== 'never';
    yield fetched
      ? { name: 'nats_server', status: 'warning', message: 'no nats-server here yet; the first start fetches one' }
      : { name: 'nats_server', status: 'failed', message };
  }
}

async function* busChecks(address: BusAddress, env: NodeJS.ProcessEnv): AsyncGenerator<Check> {
  let client: BusClient;
  try {
    client = await connectTo(address, env);
  } catch (error) {
    yield { name: 'bus', status: 'failed', message: (error as Error).message };
    return;
  }
  try {
    const { serverVersion, jetstream, streams } = await client.busInfo();
    const newEnough = serverVersionAtLeast(serverVersion, minimumServerVersion);
    yield {
      name: 'bus',
      status: newEnough && jetstream ? 'ok' : 'failed',
      message: !newEnough
        ? `the server is ${serverVersion}; ${minimumServerVersion} or newer is needed`
        : `nats-server ${serverVersion}, named by ${address.source}${jetstream ? '' : ', has no JetStream'}`,
    };
    for (const stream of streams) yield streamCheck(stream);
    yield await hostCheck(client, address);
  } catch (error) {
    yield { name: 'bus', status: 'failed', message: (error as Error).message };
  } finally {
    await client.close();
  }
}

/** Whether a stream is there, with as many copies as it is to have. */
export function streamCheck({ name, present, messages, copies, current }: StreamPresence): Check {
  const check = `stream_${name}`;
  if (!present)
    return {
      name: check,
      status: 'warning',
      message: `stream ${name} is missing; cox streams or a session host makes it`,
    };
  const lacks =
    current < copies ? `, of which ${copies - current} ${copies - current === 1 ? 'is' : 'are'} not up to date` : '';
  const message = `stream ${name}: ${counted(messages, 'message')}, ${copies === 1 ? '1 copy' : `${copies} copies`}${lacks}`;
  return { name: check, status: lacks === '' ? 'ok' : 'warning', message };
}

async function hostCheck(client: BusClient, address: BusAddress): Promise<Check> {
  try {
    // A session that cannot exist: any answer shows that somebody answers.
    await client.session(newSessionId()).state();
  } catch (error) {
    if (error instanceof NoHostError) {
      const message = 'no session host answers; sessions rest until one runs: cox up --nats URL';
      return { name: 'host', status: 'warning', message };
    }
    if (!(error instanceof SessionNotFoundError)) throw error;
  }
  const hosts = await liveHosts(address);
  const message =
    hosts.length === 0
      ? 'a session host answers'
      : `${counted(hosts.length, 'session host')} ${hosts.length === 1 ? 'lives' : 'live'}: ${hosts.slice(0, HOSTS_TOLD_MAX).join(', ')}`;
  return { name: 'host', status: 'ok', message };
}

const HOSTS_TOLD_MAX = 64;

/** The hosts, by what they say of themselves; none where this user may not hear it, as clients may not. */
async function liveHosts(address: BusAddress): Promise<readonly string[]> {
  const nc = await connectNats({ ...connectionTo(address), name: 'cox-doctor' });
  try {
    return await listHosts(nc);
  } catch (error) {
    if (error instanceof NatsRefusedError || error instanceof NatsUnavailableError) return [];
    throw error;
  } finally {
    await nc.close();
  }
}

function keysCheck(env: NodeJS.ProcessEnv): Check {
  const found = keysFound(env);
  return found.length > 0
    ? { name: 'keys', status: 'ok', message: `keys found: ${found.join(', ')}` }
    : {
        name: 'keys',
        status: 'warning',
        message: `no provider key is set (${Object.keys(KEY_VARIABLES).join(', ')}); scripted and local models need none`,
      };
}
