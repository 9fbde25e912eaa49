/** `cox up`. */
import { join } from 'node:path';
import { type ServerExit, serverSourceName, stateDirOwner } from '@coxswain/adapter-embedded-server';
import { connectionTo, connectionUrl, connectNats, parseConnectionUrl } from '@coxswain/adapter-nats';
import type { GatewayService } from '@coxswain/gateway';
import { DEFAULT_TENANT } from '@coxswain/protocol';
import { whyUnreachable } from '../connection/mod.ts';
import { answersFolder, chooseManifest, manifestNotice, policyOf, stateDirOf } from '../folders/mod.ts';
import {
  type EmbeddedInstance,
  gatewayOf,
  isOwnServer,
  keepAccess,
  pastedCommand,
  readKeptAccess,
  startEmbedded,
  startOnPort,
  whenFree,
} from '../instance/mod.ts';
import { CliError, type CommandRun, EXIT, type ExitCode, type Invocation, usageError } from '../line/mod.ts';
import { type ReportedBus, reportSessions } from '../run/mod.ts';
import {
  answerHealth,
  expectGatewayPort,
  gatewayLines,
  metricsAddressOf,
  metricsLine,
  metricsMember,
  type OwnGatewayOptions,
  ownGatewayPort,
  removeGatewayFile,
  serveUntilStopped,
  startOffersOf,
  startOwnGateway,
  stopSignal,
  upLog,
  writeGatewayFile,
} from '../service/mod.ts';
import { standardStreams } from '../terminal/mod.ts';

/** The wait for a folder that another command's server still uses, in ms. */
const FOLDER_TIMEOUT_MS = 60_000;

/**
 * Runs an instance on this machine until it is stopped, or until its server ends permanently. With `--nats` or
 * NATS_URL, the instance uses that bus instead of its own server.
 */
export const run: CommandRun = async (invocation) => {
  const { flags, env } = invocation;
  const port = flags.whole('port', { min: 1, max: 65_535 });
  // A state directory or a port requests an own server, so NATS_URL does not apply.
  const inherited = flags.on('state-dir') || port !== undefined ? undefined : env.NATS_URL?.trim() || undefined;
  const named = flags.text('nats');
  const external = named ?? inherited;
  if (external !== undefined && port !== undefined)
    throw usageError('--port applies to an embedded server, and --nats names another server');
  if (external !== undefined && flags.on('wait-for-folder'))
    throw usageError('--wait-for-folder applies to an embedded server, and another server is named');
  if (external === undefined || (named === undefined && (await namesOwnServer(invocation, external))))
    return upEmbedded(invocation, port);
  try {
    return await upOnBus(invocation, external);
  } catch (error) {
    const { code, message } = error as { readonly code?: unknown; readonly message: string };
    if (named !== undefined && code === 'nats_url_invalid') throw usageError(message.replace(/^NATS_URL/, '--nats'));
    if (named !== undefined || code !== 'nats_unreachable') throw error;
    const why = whyUnreachable(error, { source: 'NATS_URL', servers: external });
    throw new CliError(
      EXIT.error,
      'nats_unreachable',
      `nats_unreachable: NATS_URL in the environment cannot be used: ${why}`,
    );
  }
};

/**
 * Whether NATS_URL, set by `eval "$(cox env)"`, is the address of the instance that is about to start. It then names no
 * other bus.
 */
async function namesOwnServer({ flags, env }: Invocation, address: string): Promise<boolean> {
  // The start of the instance reports an unusable file.
  return isOwnServer(await readKeptAccess(stateDirOf(flags, env), () => undefined), address);
}

async function upEmbedded(invocation: Invocation, port: number | undefined): Promise<ExitCode> {
  const { flags, env } = invocation;
  const metrics = await metricsAddressOf(invocation);
  const gatewayPort = ownGatewayPort(flags);
  const waitMs = flags.duration('wait-for-folder', { minMs: 1, maxMs: 86_400_000 }) ?? FOLDER_TIMEOUT_MS;
  const stateDir = stateDirOf(flags, env);
  const manifest = await chooseManifest(flags, env);
  const policy = policyOf(flags, env);
  const signal = stopSignal();
  const log = await upLog(stateDir, echoesLog(flags));
  const holder = { title: 'cox up', passing: false, manifest: manifest?.path };
  const json = flags.on('json');
  let afterRestart: () => void = () => undefined;
  const onRestart = (end: ServerExit) => {
    reportRestart(end, json);
    afterRestart();
  };
  const options = { stateDir, port, services: true, env, manifest, policy, holder, log, metrics, onRestart };
  const instance = await whenFree(
    async () => {
      // The gateway of an instance that holds the folder may use the port. The folder is then the better reason.
      if (!(await stateDirOwner(stateDir))) await expectGatewayPort(gatewayPort);
      return startEmbedded(options);
    },
    { waitMs, stopped: signal.promise, say: standardStreams.err },
  );
  if (instance === null) return EXIT.ok;
  if (manifest) standardStreams.err(manifestNotice(manifest));
  const { server } = instance;
  const gateway = await stopInstanceOnError(instance, () =>
    startKeptGateway(gatewayPort, null, {
      nats: { servers: server.url, token: server.token },
      stateDir,
      log,
      starts: startOffersOf(env, join(stateDir, 'demo')),
    }),
  );
  const stop = async () => {
    await removeGatewayFile(stateDir);
    await gateway?.stop();
    await instance.stop();
  };
  if (gateway) {
    const { url, token, readToken } = gateway;
    const announce = () => writeGatewayFile(stateDir, { url, token: String(token), readToken }, server.pid);
    await announce();
    // The file contains the id of the server process, which changes with a restart.
    afterRestart = () => void announce().catch((error: Error) => standardStreams.err(`${error.message}\n`));
  }
  const checked = { title: 'cox up', ping: instance.ping, remark: instance.remark };
  const endHealth = await answerHealth(stateDir, 'up', checked, (problem) => standardStreams.err(`${problem}\n`));
  ready(json, { nats_url: server.url, token: server.token, state_dir: stateDir, ...metricsMember(instance) }, gateway);
  if (!json) {
    const named = `nats-server ${server.version} from ${serverSourceName(instance.source)}`;
    standardStreams.err(`cox is up: ${named} at ${server.url}, state in ${stateDir}\n`);
    if (gateway) standardStreams.err(gatewayLines(gateway, process.stderr.isTTY === true));
    standardStreams.err(metricsLine(instance));
    const pasted = (command: string) => pastedCommand(command, { address: null, stateDir }, env);
    standardStreams.err('in another shell:\n');
    standardStreams.err(`  ${pasted('run "…" --model provider/name')}\n  eval "$(${pasted('env')})"\n`);
    standardStreams.err('stop with Ctrl-C\n');
  }
  const endReports = await reportsOf(flags, { servers: server.url, token: server.token });
  const ended = await Promise.race([signal.promise, server.exited, instance.failed]);
  await endReports();
  await endHealth();
  if (ended !== undefined) {
    await stop();
    if (ended instanceof Error) throw ended;
    const tries = `nats-server ended unexpectedly, and ${ended.restarts} restarts in a row failed`;
    throw new CliError(EXIT.error, 'nats_server_ended', `${tries}; its log:\n${ended.logTail}`);
  }
  signal.release();
  await stop();
  return EXIT.ok;
}

function reportRestart({ code, signal, restarts }: ServerExit, json: boolean): void {
  if (json) standardStreams.out(`${JSON.stringify({ type: 'nats_server_restarted', code, signal, restarts })}\n`);
  else standardStreams.err(`nats-server ended unexpectedly (${signal ?? `exit code ${code}`}) and was restarted\n`);
}

/**
 * Starts the gateway with the tokens of its last start, and stores its tokens and its port.
 * @param port null for no gateway; 0 for the port of the last start, or else a new one.
 * @param bus the bus that the user named, without credentials; null for the server of this instance.
 */
async function startKeptGateway(
  port: number | null,
  bus: string | null,
  options: OwnGatewayOptions,
): Promise<GatewayService | null> {
  if (port === null) return null;
  const kept = await readKeptAccess(options.stateDir, standardStreams.err);
  const last = gatewayOf(kept, bus);
  const tokens = last && { token: last.token, readToken: last.read_token };
  const onTaken = (taken: number) =>
    standardStreams.err(
      `port ${taken}, the last port of the gateway, is in use by another program: the gateway uses a new port; ` +
        '--gateway-port chooses a port\n',
    );
  const given = port === 0 ? undefined : port;
  const gateway = await startOnPort({ given, last: last?.port, onTaken }, (tried) =>
    startOwnGateway(tried, options, tokens),
  );
  if (gateway?.token && gateway.readToken) {
    const access = { token: gateway.token, read_token: gateway.readToken, port: gateway.port };
    const part = bus === null ? { gateway: access } : { bus_gateway: { bus, ...access } };
    await keepAccess(options.stateDir, kept, part);
  }
  return gateway;
}

/**
 * Prints lines about sessions for the person at the terminal. Programs read the log instead. @returns a function that
 * ends the reports.
 */
async function reportsOf(flags: Invocation['flags'], bus: ReportedBus): Promise<() => Promise<void>> {
  if (flags.on('json') || process.stderr.isTTY !== true) return async () => undefined;
  return reportSessions(bus, DEFAULT_TENANT, (line) => standardStreams.err(`${line}\n`));
}

/** On a terminal, log lines would hide the messages for people, so only the file has them. */
function echoesLog(flags: Invocation['flags']): boolean {
  return process.stderr.isTTY !== true && !flags.on('quiet');
}

/** Stops the instance if the additional part cannot start. */
async function stopInstanceOnError<T>(instance: EmbeddedInstance, start: () => Promise<T>): Promise<T> {
  try {
    return await start();
  } catch (error) {
    await instance.stop();
    throw error;
  }
}

async function upOnBus(invocation: Invocation, url: string): Promise<ExitCode> {
  const { flags, env } = invocation;
  const metrics = await metricsAddressOf(invocation);
  const gatewayPort = ownGatewayPort(flags);
  const stateDir = stateDirOf(flags, env);
  const manifest = await chooseManifest(flags, env);
  const policyFile = policyOf(flags, env);
  await expectGatewayPort(gatewayPort);
  // An unreachable address is reported before the engine is loaded.
  await (await connectNats({ ...connectionTo({ servers: url }), name: 'cox-up' })).close();
  const { startRetentionService, startSessionsService } = await import('@coxswain/sessions');
  const log = await upLog(stateDir, echoesLog(flags));
  return serveUntilStopped(
    { name: 'up', stateDir, title: ({ hostId }) => `the session host ${hostId}` },
    async () => {
      const nats = { servers: url };
      const sessions = await startSessionsService({
        nats,
        stateDir,
        manifest: manifest?.path,
        manifestDigest: manifest?.digest,
        policyFile,
        ownPaths: [answersFolder(env)],
        log,
        metrics,
      });
      if (manifest) standardStreams.err(manifestNotice(manifest));
      try {
        const starts = startOffersOf(env, null);
        const bus = parseConnectionUrl(url).servers.join(',');
        const gateway = await startKeptGateway(gatewayPort, bus, { nats, stateDir, log, starts });
        const endReports = await reportsOf(flags, nats);
        // A key may be authorized to host but not to purge. The bus then needs a separate retention job, and cox doctor
        // reports that.
        const retention = await startRetentionService({ nats, stateDir, log }).catch((error: unknown) => {
          if ((error as { code?: unknown }).code !== 'not_permitted') throw error;
          return null;
        });
        const stop = async () => {
          await endReports();
          await retention?.stop();
          await gateway?.stop();
          await sessions.stop();
        };
        const { hostId, metricsUrl, failed, ping, remark } = sessions;
        return { hostId, metricsUrl, failed, ping, remark, stop, gateway };
      } catch (error) {
        await sessions.stop();
        throw error;
      }
    },
    ({ gateway, metricsUrl }) => {
      // The state directory does not have the sessions, only the log and the gateway's access file.
      ready(
        flags.on('json'),
        {
          nats_url: url,
          token: parseConnectionUrl(url).token ?? null,
          state_dir: null,
          ...metricsMember({ metricsUrl }),
        },
        gateway,
      );
      if (flags.on('json')) return;
      standardStreams.err('cox is up on the given bus; stop with Ctrl-C\n');
      if (gateway) {
        standardStreams.err(gatewayLines(gateway, process.stderr.isTTY === true));
        standardStreams.err(`its token: ${gateway.token}\n`);
      }
      standardStreams.err(metricsLine({ metricsUrl }));
    },
  );
}

function ready(
  json: boolean,
  where: { nats_url: string; token: string | null; state_dir: string | null },
  gateway: GatewayService | null,
): void {
  if (!json) return;
  const { token } = where;
  const hasToken = token === null || parseConnectionUrl(where.nats_url).token !== undefined;
  const url = hasToken ? where.nats_url : connectionUrl({ url: where.nats_url, token });
  const over = gateway
    ? { gateway_url: gateway.url, gateway_token: gateway.token, gateway_read_token: gateway.readToken }
    : {};
  standardStreams.out(`${JSON.stringify({ type: 'ready', ...where, nats_url: url, ...over })}\n`);
}
