/**
 * The checks of `cox doctor`. They download nothing and print no secret. They change only the state directory: it is
 * created if it is missing, and a probe file is written and removed.
 */

import { randomUUID } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { basename, join, relative } from 'node:path';
import { findServer, serverSourceName } from '@coxswain/adapter-embedded-server';
import {
  checkReplicas,
  connectionTo,
  connectNats,
  createNatsRetention,
  listHosts,
  NatsRefusedError,
  NatsUnavailableError,
  type ReplicaFinding,
} from '@coxswain/adapter-nats';
import { type BusClient, NoHostError, newSessionId, SessionNotFoundError, type StreamPresence } from '@coxswain/client';
import {
  makeFolder,
  minimumServerVersion,
  readConnection,
  serverVersionAtLeast,
  systemTrouble,
} from '@coxswain/ports/discovery';
import { ERROR_CATALOGUE, isErrorCode, STREAMS } from '@coxswain/protocol';
import { type BusAddress, describeSource, findBus } from '../connection/mod.ts';
import {
  callerFolder,
  FolderTrust,
  manifestOf,
  PERSONAS_FOLDER,
  personaPaths,
  readPersona,
  stateDirOf,
  whatLiesAt,
} from '../folders/mod.ts';
import { connectTo } from '../instance/mod.ts';
import { CliError, EXIT, type Flags } from '../line/mod.ts';
import { KEY_VARIABLES, keysFound } from '../run/mod.ts';
import { counted } from '../terminal/mod.ts';
import { gatewayChecks } from './gateway-checks.ts';

/** The result of one check: the finding and its reason. Anything but `ok` has a remedy. */
export type Check = {
  readonly name: string;
  readonly message: string;
} & (
  | { readonly status: 'ok' }
  /** `warning`: it works, with something to know. */
  | { readonly status: 'warning' | 'failed'; readonly remedy: string }
);

/**
 * Runs all checks, in the order in which a person would fix the problems.
 * @throws CliError with exit code 2 for a mistake in the command line.
 */
export async function* checks(flags: Flags, env: NodeJS.ProcessEnv): AsyncGenerator<Check> {
  // The `cox` program rejects an older Node.
  yield { name: 'node', status: 'ok', message: `node ${process.versions.node}` };
  const stateDir = stateDirOf(flags, env);
  const { address, problem } = await busOrProblem(flags, env);
  const folder = await stateDirCheck(stateDir);
  yield folder;
  const context = address?.context;
  if (context) yield { name: 'context', status: 'ok', message: `the context ${context.name} is used: ${context.nats}` };
  if (problem) yield problem;
  else if (!address) yield nothingRuns(stateDir, folder.status === 'ok');
  const port = flags.whole('port', { min: 1, max: 65_535 });
  if (port !== undefined) yield await portCheck(port);
  if (address) yield* busChecks(address, env);
  else yield* serverChecks(env);
  // The gateway belongs to the state directory's own instance, even if the command names another bus.
  yield* gatewayChecks(stateDir, address?.pid ?? (await ownServer(stateDir)));
  yield* manifestChecks(flags, env);
  yield* personaChecks(callerFolder(env));
  yield await modelCheck(env);
  yield keysCheck(env, address);
  yield await versionsCheck();
}

/** The bus of the command, or the problem with it. Throws only for a mistake in the command line. */
async function busOrProblem(
  flags: Flags,
  env: NodeJS.ProcessEnv,
): Promise<{ readonly address: BusAddress | null; readonly problem: Check | null }> {
  try {
    return { address: (await findBus(flags, env)).address, problem: null };
  } catch (error) {
    if (error instanceof CliError && error.exitCode === EXIT.usage) throw error;
    const { code, message } = error as Error & { readonly code?: string };
    return { address: null, problem: { name: 'instance', status: 'failed', message, remedy: remedyOf(code) } };
  }
}

/** The process id of the server on the state directory; undefined if none runs, or if it is unknown. */
async function ownServer(stateDir: string): Promise<number | undefined> {
  return (await readConnection(stateDir).catch(() => undefined))?.pid;
}

/** The versions of this installation, for bug reports and upgrades. */
async function versionsCheck(): Promise<Check> {
  // Loads the engine here, so that the checks of the bus do not wait for it.
  const { FORMAT_VERSIONS } = await import('@coxswain/session');
  const { version, machine_version, record_version, snapshot_version } = FORMAT_VERSIONS;
  return {
    name: 'versions',
    status: 'ok',
    message: `coxswain ${version}: turn machine ${machine_version}, journal records ${record_version}, snapshots ${snapshot_version}`,
  };
}

async function stateDirCheck(stateDir: string): Promise<Check> {
  const probe = join(stateDir, `.doctor-${randomUUID()}`);
  try {
    await makeFolder(stateDir);
    // A full disk can still store an empty file.
    await writeFile(probe, Buffer.alloc(PROBE_BYTES)).finally(() => rm(probe, { force: true }));
    return { name: 'state_dir', status: 'ok', message: `state folder ${stateDir} is writable` };
  } catch (error) {
    return {
      name: 'state_dir',
      status: 'failed',
      message: `state folder ${stateDir} is not writable: ${systemTrouble(error)}`,
      remedy:
        'correct its owner and permissions, free disk space, or name another folder with --state-dir or COX_STATE_DIR',
    };
  }
}

const PROBE_BYTES = 256 * 1024;

function nothingRuns(stateDir: string, isWritable: boolean): Check {
  const message = `no instance of cox up runs in ${stateDir}`;
  if (isWritable) return { name: 'instance', status: 'ok', message: `${message}; start one with cox up or cox run` };
  const remedy = 'correct the state folder first (see above), then start cox up or cox run';
  return { name: 'instance', status: 'warning', message: `${message}, and none can start`, remedy };
}

function portCheck(port: number): Promise<Check> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error) => {
      resolve({
        name: 'port',
        status: 'failed',
        message: `port ${port} cannot be used: ${error.message}`,
        remedy: 'use another --port, or omit it to use a free port',
      });
    });
    server.listen(port, '127.0.0.1', () => {
      server.close(() => resolve({ name: 'port', status: 'ok', message: `port ${port} is free` }));
    });
  });
}

async function* serverChecks(env: NodeJS.ProcessEnv): AsyncGenerator<Check> {
  try {
    // A check downloads nothing. It reports what a start would download.
    const found = await findServer({ env: { ...env, NATS_URL: undefined, COX_FETCH: 'never' } });
    if (found.kind === 'binary') {
      const message = `nats-server ${found.version} from ${serverSourceName(found.source)}: ${found.path}`;
      yield { name: 'nats_server', status: 'ok', message };
    }
  } catch (error) {
    const { code, message } = error as Error & { code?: string };
    const fetched = code === 'nats_server_not_found' && env.COX_FETCH !== 'never';
    yield fetched
      ? {
          name: 'nats_server',
          status: 'warning',
          message: 'nats-server is not installed; the first start downloads it',
          remedy:
            'nothing to do with network access; otherwise install nats-server and set COX_NATS_SERVER to its path',
        }
      : { name: 'nats_server', status: 'failed', message, remedy: remedyOf(code) };
  }
}

async function* busChecks(address: BusAddress, env: NodeJS.ProcessEnv): AsyncGenerator<Check> {
  let client: BusClient;
  try {
    client = await connectTo(address, env);
  } catch (error) {
    yield busFailure(address, error);
    return;
  }
  try {
    const { serverVersion, jetstream, streams } = await client.busInfo();
    const newEnough = serverVersionAtLeast(serverVersion, minimumServerVersion);
    yield busCheck(serverVersion, newEnough, jetstream, address);
    for (const stream of streams) yield streamCheck(stream);
    if (jetstream && newEnough) yield* replicaChecks(address);
    yield await hostCheck(client, address);
    yield* retentionChecks(address);
  } catch (error) {
    yield busFailure(address, error);
  } finally {
    await client.close();
  }
}

function busCheck(version: string, newEnough: boolean, jetstream: boolean, address: BusAddress): Check {
  if (!newEnough)
    return {
      name: 'bus',
      status: 'failed',
      message: `nats-server ${version} is older than ${minimumServerVersion}, the oldest supported version`,
      remedy: `upgrade nats-server to ${minimumServerVersion} or newer`,
    };
  const message = `nats-server ${version}, named by ${describeSource(address)}`;
  if (jetstream) return { name: 'bus', status: 'ok', message };
  return {
    name: 'bus',
    status: 'failed',
    message: `${message}, runs without JetStream, which stores sessions`,
    remedy: 'enable JetStream: add a jetstream block to the configuration of the server, or start nats-server -js',
  };
}

function busFailure(address: BusAddress, error: unknown): Check {
  const { source } = address;
  const { code, message: text } = error as Error & { readonly code?: string };
  // The user is running `cox doctor` already.
  const message = text.replace(/; run cox doctor for more$/, '');
  if (code === 'nats_unreachable') {
    const own =
      source === '--nats'
        ? 'omit --nats'
        : source === 'NATS_URL'
          ? 'unset NATS_URL'
          : source === 'context'
            ? 'use no context (cox context use none)'
            : 'stop the instance that wrote it';
    const remedy = `make sure that a NATS server runs there and that this machine reaches it; or ${own} and start your own with cox up`;
    return { name: 'bus', status: 'failed', message, remedy };
  }
  const named = source === 'state-dir' ? '' : `; ${describeSource(address)} names the bus`;
  return { name: 'bus', status: 'failed', message, remedy: `${remedyOf(code)}${named}` };
}

/** The remedy for a code from the error catalogue, without the advice to run `cox doctor`. */
export function remedyOf(code: string | undefined): string {
  const known = code !== undefined && isErrorCode(code) ? ERROR_CATALOGUE[code].caller : null;
  return (known ?? 'make sure that the server runs and that this machine reaches it')
    .replace(/ ?`cox doctor`[^.]*\.| with `cox doctor`/g, '')
    .replace(/\.$/, '');
}

/** A stream above this share of its limit is reported, as in the alert rules. */
const NEARLY_FULL = 0.8;

/** Checks whether a stream exists, has free space, and has all its replicas up to date. */
export function streamCheck({
  name,
  present,
  messages,
  bytes,
  maxBytes,
  copies,
  current,
  atRisk,
}: StreamPresence): Check {
  const check = `stream_${name}`;
  if (!present)
    return {
      name: check,
      status: 'warning',
      message: `stream ${name} is missing: no session host has run on this bus yet, or the stream was deleted`,
      remedy: 'create it with cox admin streams, or start a session host',
    };
  const lacks =
    current < copies ? `, of which ${copies - current} ${copies - current === 1 ? 'is' : 'are'} not up to date` : '';
  const message = `stream ${name}: ${counted(messages, 'message')}, ${copies === 1 ? '1 copy' : `${copies} copies`}${lacks}`;
  if (maxBytes !== null && bytes >= maxBytes * NEARLY_FULL)
    return {
      name: check,
      status: bytes >= maxBytes ? 'failed' : 'warning',
      message: `${message}; it uses ${bytes} of ${maxBytes} bytes, and a full stream rejects new messages`,
      remedy:
        name === `KV_${STREAMS.registry}`
          ? 'remove the keys of the tenant that fills it, or raise the limit with cox admin streams --max-bytes'
          : 'delete sessions (cox admin retention), or raise the limit with cox admin streams --max-bytes',
    };
  if (lacks === '' && atRisk)
    return {
      name: check,
      status: 'warning',
      message: `${message}; its blocks are compressed, and kill -9 of a server can destroy that server's copy`,
      remedy: 'cox admin streams --rewrite',
    };
  if (lacks === '') return { name: check, status: 'ok', message };
  const remedy = 'make sure that every server of the cluster runs; replicas catch up automatically';
  return { name: check, status: 'warning', message, remedy };
}

/** Reads every stream from every server that has a replica of it, and reports the problems of each stream. */
async function* replicaChecks(address: BusAddress): AsyncGenerator<Check> {
  const nc = await connectNats({ ...connectionTo(address), name: 'cox-doctor' });
  const servers = new Set<string>();
  let streams = 0;
  let isWhole = true;
  try {
    // All streams at once, so that the time limit of an unresponsive stream passes only once.
    for await (const checked of checkReplicas(nc, { atOnce: Number.POSITIVE_INFINITY })) {
      streams++;
      for (const server of checked.servers) servers.add(server);
      for (const finding of checked.findings) {
        isWhole = false;
        yield replicaCheck(finding);
      }
    }
    if (!isWhole) return;
    const read = servers.size === 0 ? '' : ` on ${[...servers].sort().join(', ')}`;
    yield { name: 'replicas', status: 'ok', message: `replicas of ${counted(streams, 'stream')} checked${read}` };
  } catch (error) {
    yield uncheckedReplicas(error);
  } finally {
    await nc.close();
  }
}

function uncheckedReplicas(error: unknown): Check {
  if (!(error instanceof NatsRefusedError || error instanceof NatsUnavailableError)) throw error;
  if (error.code === 'not_permitted')
    return {
      name: 'replicas',
      status: 'ok',
      message:
        'replicas not checked: this key has no permission to read every stream; session hosts check replicas in the background',
    };
  const remedy = 'make sure that every server of the cluster runs, then check again';
  return { name: 'replicas', status: 'warning', message: `replicas not checked: ${error.message}`, remedy };
}

/** The check for a finding about a replica. A replica that can recover automatically is a warning. */
export function replicaCheck({ stream, kind, message, remedy }: ReplicaFinding): Check {
  const isPassing = kind === 'lagging' || kind === 'offline' || kind === 'unchecked';
  return {
    name: `replicas_${stream}`,
    status: isPassing ? 'warning' : 'failed',
    message: `stream ${stream}: ${message}`,
    remedy,
  };
}

async function hostCheck(client: BusClient, address: BusAddress): Promise<Check> {
  try {
    // The session does not exist: any response proves that a host responds.
    await client.session(newSessionId()).state();
  } catch (error) {
    if (error instanceof NoHostError) {
      const message = 'no session host responds; sessions wait until one runs';
      return { name: 'host', status: 'warning', message, remedy: 'cox up --nats URL, or cox serve sessions' };
    }
    if (!(error instanceof SessionNotFoundError)) throw error;
  }
  const hosts = await liveHosts(address);
  const message =
    hosts.length === 0
      ? 'a session host responds'
      : `${counted(hosts.length, 'session host')} ${hosts.length === 1 ? 'is alive' : 'are alive'}: ${hosts.slice(0, HOSTS_TOLD_MAX).join(', ')}`;
  return { name: 'host', status: 'ok', message };
}

const HOSTS_TOLD_MAX = 64;

/** Whether deleted sessions are purged. Yields nothing for the key of a tenant, which may not ask. */
async function* retentionChecks(address: BusAddress): AsyncGenerator<Check> {
  if (address.credentials?.tenant !== undefined) return;
  const nc = await connectNats({ ...connectionTo(address), name: 'cox-doctor' });
  try {
    const within = await createNatsRetention(nc).purgesWithin();
    if (within)
      yield {
        name: 'retention',
        status: 'ok',
        message: `a retention job purges deleted sessions within ${within.recordsMs / 1_000} s`,
      };
    else
      yield {
        name: 'retention',
        status: 'warning',
        message: 'no retention job responds: records of deleted sessions stay in the store',
        remedy: 'start cox serve retention with the key retention.nk, or run cox admin retention regularly',
      };
  } finally {
    await nc.close();
  }
}

/** The ids of the hosts that are alive; empty if this user may not list them, like clients. */
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

/** The manifest of hosts that would start here. Its handlers are not run. */
async function* manifestChecks(flags: Flags, env: NodeJS.ProcessEnv): AsyncGenerator<Check> {
  const found = manifestOf(flags, env);
  if (found === undefined) return;
  const { path } = found;
  const { inspectManifest, ManifestError } = await import('@coxswain/adapter-hooks');
  try {
    const { hooks, tools, digest } = await inspectManifest(path);
    const parts = [counted(hooks.length, 'hook'), ...(tools.length > 0 ? [counted(tools.length, 'tool export')] : [])];
    const message = `manifest ${path}: ${parts.join(', ')}`;
    const trust = new FolderTrust(callerFolder(env), env, false);
    if (found.isNamed || (await trust.has({ name: basename(path), digest })))
      yield { name: 'manifest', status: 'ok', message };
    else
      yield {
        name: 'manifest',
        status: 'warning',
        message: `${message}; not trusted, or changed after cox trust`,
        remedy: 'review it, then run cox trust; or name it with --manifest',
      };
  } catch (error) {
    if (!(error instanceof ManifestError)) throw error;
    yield { name: 'manifest', status: 'failed', message: `manifest ${error.message}`, remedy: remedyOf(error.code) };
  }
}

/** The personas of the current folder. Their code is not run. */
async function* personaChecks(folder: string): AsyncGenerator<Check> {
  const path = join(folder, PERSONAS_FOLDER);
  if ((await whatLiesAt(path)) === 'nothing') return;
  const paths = await personaPaths(path).catch(() => []);
  for (const file of paths.slice(0, PERSONAS_TOLD_MAX)) {
    try {
      const { persona } = await readPersona(file);
      yield { name: 'persona', status: 'ok', message: `persona ${persona.name} is valid: ${file}` };
    } catch (error) {
      const remedy = `fix the reported problem, then run cox persona check ${relative(folder, file)}`;
      yield { name: 'persona', status: 'failed', message: (error as Error).message, remedy };
    }
  }
}

const PERSONAS_TOLD_MAX = 64;

/** Whether the default model can be used. Sends nothing. */
async function modelCheck(env: NodeJS.ProcessEnv): Promise<Check> {
  const name = env.COX_MODEL?.trim();
  if (!name)
    return {
      name: 'model',
      status: 'ok',
      message: 'COX_MODEL is not set: name the model with --model or in a persona',
    };
  const { createModels } = await import('@coxswain/adapter-models');
  const failure = await createModels({ env, baseFolder: callerFolder(env) }).check({ name });
  if (!failure) return { name: 'model', status: 'ok', message: `COX_MODEL is ${name}` };
  const message = `COX_MODEL is ${name}, which cannot be used: ${failure.message}`;
  return { name: 'model', status: 'failed', message, remedy: remedyOf(failure.code) };
}

function keysCheck(env: NodeJS.ProcessEnv, address: BusAddress | null): Check {
  const found = keysFound(env);
  if (found.length > 0) return { name: 'keys', status: 'ok', message: `keys found: ${found.join(', ')}` };
  // On another bus, other hosts request the models.
  if (address !== null && address.source !== 'state-dir')
    return { name: 'keys', status: 'ok', message: 'no provider key is set here; session hosts use their own' };
  const variables = Object.keys(KEY_VARIABLES).join(', ');
  return {
    name: 'keys',
    status: 'warning',
    message: 'no provider key is set; scripted and local models need none',
    remedy: `set one of ${variables} for the models of its provider`,
  };
}
