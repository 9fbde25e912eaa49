/**
 * Opens the bus that a command needs, and keeps it open while the command runs.
 *
 * An instance may stop while others use it: the instance of a `cox run` stops with its run. Sessions and stored
 * commands outlive the instance, so a command that still needs a bus opens one again and continues.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { stateDirOwner } from '@coxswain/adapter-embedded-server';
import { type ConnectNatsOptions, connectionTo, parseConnectionUrl } from '@coxswain/adapter-nats';
import { type BusClient, connect, InvalidOptionError } from '@coxswain/client';
import { readConnection } from '@coxswain/ports/discovery';
import type { TenantId } from '@coxswain/protocol';
import { actorName, type BusAddress, describeSource, findBus, namedTenant, whyUnreachable } from '../connection/mod.ts';
import { type ChosenManifest, chooseManifest, manifestNotice, manifestOf, policyOf } from '../folders/mod.ts';
import { CliError, EXIT, type Invocation, usageError, writeNotice } from '../line/mod.ts';
import { type EmbeddedInstance, startEmbedded } from './embedded.ts';
import { Reopenings } from './reopenings.ts';
import { untilPrepared } from './until-prepared.ts';

/** An open bus. */
export interface OpenBus {
  /** The client, with the tenant of the command. */
  readonly client: BusClient;
  readonly stateDir: string;
  /** The joined bus; null if this process runs the instance. May contain credentials. */
  readonly address: BusAddress | null;
  /** The instance in this process; null if another instance was joined. */
  readonly embedded: EmbeddedInstance | null;
  /** The manifest of a session host in this process. */
  readonly manifest: ChosenManifest | undefined;
  /**
   * Whether sessions on this bus are hosted while it is open. False if this process started a server only for reading.
   */
  readonly hosted: boolean;
  /** Aborts when the instance on this machine has ended. To a server elsewhere, the client reconnects instead. */
  readonly gone: AbortSignal;
  /** Whether a `cox up` runs the instance, so that it may be restarted. */
  readonly mayReturn: boolean;
  close(): Promise<void>;
}

/** The wait for another process that is starting or stopping an instance, in ms. */
const SETTLE_TIMEOUT_MS = 20_000;
const POLL_MS = 100;
const WATCH_POLL_MS = 500;
/**
 * A restart of `cox up` takes seconds. During this time, in ms, a command that it served starts no instance of its own.
 */
const RETURN_TIMEOUT_MS = 10_000;

/** Commands whose standard input carries a protocol, so that it cannot answer questions. */
const OF_PROTOCOLS: readonly string[] = ['acp', 'mcp'];

type Where = Pick<Invocation, 'command' | 'flags' | 'env'>;

/**
 * Runs a task with an open bus, and closes the bus in any case. If the instance ends meanwhile, the task runs again on
 * a new one. The task must be safe to repeat, and must end soon after `gone` aborts. It also runs again, once, if the
 * instance did not respond and belongs to a `cox up`.
 * @param services whether an instance started by this process hosts sessions. If false, sessions can be read and
 * commands stored.
 * @throws the error of the task; CliError `nats_unreachable` if one instance after another ends.
 */
export async function withBus<T>(where: Where, services: boolean, task: (bus: OpenBus) => Promise<T>): Promise<T> {
  const reopenings = new Reopenings();
  let mayReturn = false;
  for (let isFirst = true; ; isFirst = false) {
    if (mayReturn) await untilReturned(where);
    const bus = await openBus(where, services, isFirst);
    const openedMs = performance.now();
    mayReturn = bus.mayReturn;
    try {
      return await task(bus);
    } catch (error) {
      const openMs = performance.now() - openedMs;
      reopenings.takeError(error, { hasEnded: bus.gone.aborted, mayReturn, openMs });
    } finally {
      await bus.close();
    }
  }
}

/** Waits until an instance runs on the state directory again, for at most `RETURNS_WITHIN_MS`. */
async function untilReturned({ flags, env }: Where): Promise<void> {
  const untilMs = performance.now() + RETURN_TIMEOUT_MS;
  const isAway = async () => (await findBus(flags, env)).address === null;
  if (!(await isAway())) return;
  process.stderr.write(`cox up has ended; waiting ${RETURN_TIMEOUT_MS / 1_000} s for its restart\n`);
  while ((await isAway()) && performance.now() < untilMs) await sleep(POLL_MS);
}

/** Like {@link withBus}, for a task that must not be repeated. */
export async function withBusOnce<T>(where: Where, services: boolean, task: (bus: OpenBus) => Promise<T>): Promise<T> {
  const bus = await openBus(where, services, true);
  try {
    return await task(bus);
  } finally {
    await bus.close();
  }
}

/** @param isFirst whether the command has neither asked nor shown anything yet. */
async function openBus({ command, flags, env }: Where, services: boolean, isFirst: boolean): Promise<OpenBus> {
  const port = flags.whole('port', { min: 1, max: 65_535 });
  const found = services ? manifestOf(flags, env) : undefined;
  const mayAsk = isFirst && !OF_PROTOCOLS.includes(command);
  let manifest: ChosenManifest | undefined;
  const policy = services ? policyOf(flags, env) : undefined;
  const untilMs = Date.now() + SETTLE_TIMEOUT_MS;
  for (;;) {
    const { address, stateDir } = await findBus(flags, env);
    const tenant = namedTenant(flags, address);
    if (address && port !== undefined) refusePort(port, address);
    // Outside of the `try` block: a rejection here must not be retried.
    if (address && found) refuseElsewhere(flags, found.path, await manifestInUse(address, stateDir));
    // Also outside of it: the user's answer may take longer than `SETTLED_WITHIN_MS`.
    if (!address && found) manifest ??= await chooseManifest(flags, env, mayAsk);
    try {
      if (!address) return await startBus({ command, stateDir, port, services, env, manifest, policy, tenant });
      const bus = await joinBus(address, env, stateDir, tenant);
      if (!services || address.source !== 'state-dir' || (await isPrepared(bus, untilMs))) return bus;
    } catch (error) {
      // Another process has taken or left the state directory between two checks.
      const unsettled = address ? address.source === 'state-dir' : codeOf(error) === 'state_dir_in_use';
      if (!unsettled || Date.now() > untilMs) throw error;
      await sleep(POLL_MS);
    }
  }
}

/** Like {@link untilPrepared}, but closes a bus that the caller does not get. */
async function isPrepared(bus: OpenBus, untilMs: number): Promise<boolean> {
  let prepared = false;
  try {
    prepared = await untilPrepared(bus, untilMs);
  } finally {
    if (!prepared) await bus.close();
  }
  return prepared;
}

/**
 * Rejects `--port` if a server already runs: the flag would have no effect. The port of the running instance is
 * accepted.
 */
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
    // Connecting reports the problem. The notice is printed if the manifest is unknown.
    return undefined;
  }
}

/**
 * Rejects `--manifest` if another process hosts the sessions. A manifest of the folder is ignored with a notice, so
 * that its author knows. There is no notice with `--quiet`, and none if the other process uses the same manifest.
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
    // A restarted server keeps its address, and the connection recovers automatically.
    const where = running && `${running.url} ${running.token}`;
    first ??= where;
    if (where === undefined || where !== first) gone.abort(hasEnded('the instance'));
  };
  return setInterval(() => {
    // A file that cannot be read at the moment says nothing about the server.
    look().catch(() => undefined);
  }, WATCH_POLL_MS).unref();
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
  const holder = { title: `cox ${options.command}`, passing: true, manifest: options.manifest?.path };
  const embedded = await startEmbedded({ ...options, holder });
  if (options.manifest) process.stderr.write(manifestNotice(options.manifest));
  const gone = new AbortController();
  void embedded.server.exited.then(({ expected }) => {
    if (!expected) gone.abort(hasEnded('nats-server'));
  });
  try {
    const { url, token } = embedded.server;
    const client = await connect({
      servers: url,
      token,
      tenant: options.tenant,
      name: 'cox',
      actor: actorName(options.env),
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

/** Options for another connection to the same bus: to the joined bus, or to the server in this process. */
export function reachedAt({ address, embedded }: Pick<OpenBus, 'address' | 'embedded'>): ConnectNatsOptions {
  if (address) return connectionTo(address);
  if (!embedded) throw new Error('the bus has neither an address nor a server in this process');
  return { servers: embedded.server.url, token: embedded.server.token };
}

/**
 * Connects a client. An error names the source of the address, without its credentials.
 * @param env may contain the name of the actor.
 * @param tenant default: the tenant of the context, else of the key, else `default`.
 * @throws CliError `usage` for an invalid option; `nats_unreachable` if the bus cannot be used.
 */
export async function connectTo(
  address: BusAddress,
  env: NodeJS.ProcessEnv,
  tenant = address.context?.tenant ?? address.credentials?.tenant,
): Promise<BusClient> {
  const actor = actorName(env);
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

function hasEnded(what: string): CliError {
  return new CliError(EXIT.error, 'nats_unreachable', `nats_unreachable: ${what} has ended`);
}

function codeOf(error: unknown): unknown {
  return (error as { code?: unknown } | null)?.code;
}
