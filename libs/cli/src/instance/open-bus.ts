/**
 * Opens the bus that a command needs, for as long as the command runs.
 *
 * An instance may end while others use it: a `cox run` that started one ends with its run. Sessions and stored
 * commands outlive it, so whoever still needs a bus opens one again and goes on.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type ConnectNatsOptions,
  connectionTo,
  parseConnectionUrl,
  readConnection,
  stateDirOwner,
} from '@coxswain/adapter-nats';
import { type BusClient, connect, InvalidOptionError } from '@coxswain/client';
import type { TenantId } from '@coxswain/protocol';
import { CliError, EXIT, usageError } from '../line/cli-error.ts';
import type { Invocation } from '../line/command-spec.ts';
import { writeNotice } from '../line/output.ts';
import type { EmbeddedInstance } from './embedded.ts';
import { type BusAddress, describeSource, findBus } from './find-bus.ts';
import { type ChosenManifest, chooseManifest, manifestNotice, manifestOf } from './manifest.ts';
import { namedTenant } from './named-tenant.ts';
import { policyOf } from './policy.ts';
import { untilPrepared } from './until-prepared.ts';
import { whoActs } from './who-acts.ts';
import { whyUnreachable } from './why-unreachable.ts';

/** A bus that is open. */
export interface OpenBus {
  /** Its tenant is the one that the command speaks of. */
  readonly client: BusClient;
  readonly stateDir: string;
  /** What was joined; null where this process runs the instance. May hold credentials. */
  readonly address: BusAddress | null;
  /** Set where no instance was running and this process runs one. */
  readonly embedded: EmbeddedInstance | null;
  /** The manifest that is used where this process hosts sessions. */
  readonly manifest: ChosenManifest | undefined;
  /** Whether sessions on this bus may be worked on while it is open: not where a server was started for reading alone. */
  readonly hosted: boolean;
  /** Aborts when the instance on this machine has ended. A server elsewhere is waited for instead. */
  readonly gone: AbortSignal;
  /** Whether a `cox up` runs the instance: it may be restarted. */
  readonly mayReturn: boolean;
  close(): Promise<void>;
}

/** Another process that is just starting or ending an instance is waited for so long. */
const SETTLED_WITHIN_MS = 20_000;
const LOOKED_AGAIN_MS = 100;
const WATCHED_EVERY_MS = 500;
/** A restart of `cox up` takes seconds. Until then a command that it served starts no instance of its own. */
const RETURNS_WITHIN_MS = 10_000;
const REOPENED_MAX = 8;
/** How often a task is repeated without a sign that the instance has ended: it may have been restarted at the same address. */
const UNANSWERED_REPEATS_MAX = 1;

/** Their standard input carries a protocol, which an answer would be read from. */
const OF_PROTOCOLS: readonly string[] = ['acp', 'mcp'];

type Where = Pick<Invocation, 'command' | 'flags' | 'env'>;

/**
 * Runs a task with an open bus and closes it, whatever happens. If the instance ends meanwhile, the task is run again
 * on a new one: it must be safe to repeat, and leave or fail soon after `gone` has aborted. It is also run again, once, if the instance
 * did not respond and belongs to a `cox up`.
 * @param services whether an instance that this process has to start is to work on sessions, or only to be read and
 *   written to.
 */
export async function withBus<T>(where: Where, services: boolean, task: (bus: OpenBus) => Promise<T>): Promise<T> {
  let mayReturn = false;
  let unanswered = 0;
  for (let reopened = 0; ; reopened++) {
    if (mayReturn) await untilReturned(where);
    const bus = await openBus(where, services, reopened === 0);
    mayReturn = bus.mayReturn;
    try {
      return await task(bus);
    } catch (error) {
      if (reopened >= REOPENED_MAX) throw error;
      if (bus.gone.aborted) continue;
      if (!mayReturn || codeOf(error) !== 'nats_unreachable' || unanswered >= UNANSWERED_REPEATS_MAX) throw error;
      unanswered += 1;
    } finally {
      await bus.close();
    }
  }
}

/** Waits until an instance runs on the state folder again, within bounds. */
async function untilReturned({ flags, env }: Where): Promise<void> {
  const untilMs = performance.now() + RETURNS_WITHIN_MS;
  const isAway = async () => (await findBus(flags, env)).address === null;
  if (!(await isAway())) return;
  process.stderr.write(`cox up has ended; waiting ${RETURNS_WITHIN_MS / 1_000} s for its restart\n`);
  while ((await isAway()) && performance.now() < untilMs) await sleep(LOOKED_AGAIN_MS);
}

/** Like {@link withBus}, for a task that cannot be repeated. */
export async function withBusOnce<T>(where: Where, services: boolean, task: (bus: OpenBus) => Promise<T>): Promise<T> {
  const bus = await openBus(where, services, true);
  try {
    return await task(bus);
  } finally {
    await bus.close();
  }
}

/** @param isFirst whether the command has asked nothing and shown nothing yet. */
async function openBus({ command, flags, env }: Where, services: boolean, isFirst: boolean): Promise<OpenBus> {
  const port = flags.whole('port', { min: 1, max: 65_535 });
  const found = services ? manifestOf(flags, env) : undefined;
  const mayAsk = isFirst && !OF_PROTOCOLS.includes(command);
  let manifest: ChosenManifest | undefined;
  const policy = services ? policyOf(flags, env) : undefined;
  const untilMs = Date.now() + SETTLED_WITHIN_MS;
  for (;;) {
    const { address, stateDir } = await findBus(flags, env);
    const tenant = namedTenant(flags, address);
    if (address && port !== undefined) refusePort(port, address);
    // Not within the attempt: what is refused here would be tried again.
    if (address && found) refuseElsewhere(flags, found.path, await manifestInUse(address, stateDir));
    // Nor is the user's answer within it: it may take longer than another process to settle.
    if (!address && found) manifest ??= await chooseManifest(flags, env, mayAsk);
    try {
      if (!address) return await startBus({ command, stateDir, port, services, env, manifest, policy, tenant });
      const bus = await joinBus(address, env, stateDir, tenant);
      if (!services || address.source !== 'state-dir' || (await isPrepared(bus, untilMs))) return bus;
    } catch (error) {
      // Between two looks another process has taken the state folder, or has just left it.
      const unsettled = address ? address.source === 'state-dir' : codeOf(error) === 'state_dir_in_use';
      if (!unsettled || Date.now() > untilMs) throw error;
      await sleep(LOOKED_AGAIN_MS);
    }
  }
}

/** Like {@link untilPrepared}. A bus that is not returned to the caller is closed. */
async function isPrepared(bus: OpenBus, untilMs: number): Promise<boolean> {
  let prepared = false;
  try {
    prepared = await untilPrepared(bus, untilMs);
  } finally {
    if (!prepared) await bus.close();
  }
  return prepared;
}

/** A port is that of a server that is started; where one runs already, it would be passed over in silence. */
function refusePort(port: number, address: BusAddress): void {
  const { servers, source } = address;
  const runs =
    source === 'state-dir' ? 'an instance already uses this state folder' : `${describeSource(address)} names a bus`;
  if (source === 'state-dir' && new URL(servers).port === String(port)) return;
  throw usageError(`--port ${port} applies to an embedded server, and ${runs}`);
}

/** The manifest of the process that runs the instance at an address; undefined if it uses none, or runs elsewhere. */
async function manifestInUse(address: BusAddress, stateDir: string): Promise<string | undefined> {
  try {
    const running = await readConnection(stateDir);
    // `NATS_URL` and `--nats` may name the same server.
    if (!running || parseConnectionUrl(address.servers).servers.join() !== running.url) return undefined;
    return (await stateDirOwner(stateDir))?.holder?.manifest;
  } catch {
    // Connecting reports what is wrong. Without an answer the notice is printed.
    return undefined;
  }
}

/**
 * Rejects `--manifest` where another process hosts the sessions. A manifest of the folder is ignored with a notice: its author must not
 * believe that it applies. There is no notice with `--quiet`, and none if the other process uses the same manifest.
 * @param inUse the manifest of the other process, if it is known.
 * @throws CliError `usage`
 */
export function refuseElsewhere(flags: Where['flags'], manifest: string, inUse: string | undefined): void {
  if (flags.on('manifest'))
    throw usageError(
      '--manifest needs its own session host, and another process hosts the sessions; stop that process, or start it with --manifest',
    );
  if (manifest !== inUse)
    writeNotice(`${manifest} is ignored: another process hosts the sessions and uses its own hooks\n`);
}

async function joinBus(
  address: BusAddress,
  env: NodeJS.ProcessEnv,
  stateDir: string,
  tenant: TenantId,
): Promise<OpenBus> {
  const client = await connectTo(address, env, tenant);
  const gone = new AbortController();
  const isOurs = address.source === 'state-dir';
  const mayReturn = isOurs && (await stateDirOwner(stateDir).catch(() => undefined))?.holder?.passing === false;
  const timer = isOurs ? watchInstance(stateDir, gone) : undefined;
  const close = async () => {
    clearInterval(timer);
    await client.close();
  };
  const unhosted = { embedded: null, manifest: undefined, hosted: true };
  return { client, stateDir, address, ...unhosted, gone: gone.signal, mayReturn, close };
}

function watchInstance(stateDir: string, gone: AbortController): NodeJS.Timeout {
  let first: string | undefined;
  const look = async () => {
    const running = await readConnection(stateDir);
    // A server that is restarted keeps its address: the connection comes back by itself.
    const where = running && `${running.url} ${running.token}`;
    first ??= where;
    if (where === undefined || where !== first) gone.abort(new Error('the instance has ended'));
  };
  return setInterval(() => {
    // A file that cannot be read just now says nothing about the server.
    look().catch(() => undefined);
  }, WATCHED_EVERY_MS).unref();
}

async function startBus(options: {
  readonly command: string;
  readonly stateDir: string;
  readonly port: number | undefined;
  readonly services: boolean;
  readonly env: NodeJS.ProcessEnv;
  readonly manifest: ChosenManifest | undefined;
  readonly policy: string | undefined;
  readonly tenant: TenantId;
}): Promise<OpenBus> {
  const { startEmbedded } = await import('./embedded.ts');
  if (options.manifest) process.stderr.write(manifestNotice(options.manifest));
  const holder = { title: `cox ${options.command}`, passing: true, manifest: options.manifest?.path };
  const embedded = await startEmbedded({ ...options, holder });
  const gone = new AbortController();
  void embedded.server.exited.then(({ expected }) => {
    if (!expected) gone.abort(new Error('nats-server ended unexpectedly'));
  });
  try {
    const { url, token } = embedded.server;
    const client = await connect({
      servers: url,
      token,
      tenant: options.tenant,
      name: 'cox',
      actor: whoActs(options.env),
    });
    const close = async () => {
      try {
        await client.close();
      } finally {
        await embedded.stop();
      }
    };
    const { stateDir, services, manifest } = options;
    const own = { address: null, embedded, manifest, hosted: services, mayReturn: false };
    return { client, stateDir, ...own, gone: gone.signal, close };
  } catch (error) {
    await embedded.stop();
    throw error;
  }
}

/** Where a connection of one's own goes, beside the client's: to what was joined, else to the server that runs here. */
export function reachedAt({ address, embedded }: Pick<OpenBus, 'address' | 'embedded'>): ConnectNatsOptions {
  if (address) return connectionTo(address);
  if (!embedded) throw new Error('a bus that is neither joined nor run here');
  return { servers: embedded.server.url, token: embedded.server.token };
}

/**
 * Connects; what cannot be reached is told with what named it, and without its credentials.
 * @param env may say who acts.
 * @param tenant whose sessions; the key's, else `default`, when left out.
 */
export async function connectTo(
  address: BusAddress,
  env: NodeJS.ProcessEnv,
  tenant = address.context?.tenant ?? address.credentials?.tenant,
): Promise<BusClient> {
  const actor = whoActs(env);
  try {
    const { seed, inboxPrefix } = address.credentials ?? {};
    const { servers, token } = address;
    return await connect({ servers, token, seed, inboxPrefix, tenant, name: 'cox', actor });
  } catch (error) {
    if (error instanceof InvalidOptionError)
      throw new CliError(EXIT.usage, 'usage', `${describeSource(address)}: ${error.message}`);
    const named =
      address.source === 'state-dir' ? 'the running instance' : `the server that ${describeSource(address)} names`;
    throw new CliError(
      EXIT.error,
      'nats_unreachable',
      `nats_unreachable: ${named} cannot be used: ${whyUnreachable(error, { source: describeSource(address), servers: address.servers })}`,
    );
  }
}

function codeOf(error: unknown): unknown {
  return (error as { code?: unknown } | null)?.code;
}
