/** `cox serve hooks|tools|personas|sessions|retention|commands`. */

import { basename, resolve } from 'node:path';
import type { PersonaToServe } from '@coxswain/personas';
import { HookServiceName, HostName, PERSONA_SERVICE_BOUNDS, readId } from '@coxswain/protocol';
import type { HostRestart } from '@coxswain/sessions/hosts';
import { type BusAddress, findBus, namedTenant, withPermissionErrors } from '../../connection/mod.ts';
import {
  answersFolder,
  callerFolder,
  chooseManifest,
  manifestNotice,
  policyOf,
  readPersona,
  stateDirOf,
} from '../../folders/mod.ts';
import { CliError, type CommandRun, EXIT, type Invocation, usageError } from '../../line/mod.ts';
import {
  logTarget,
  metricsAddressOf,
  metricsLine,
  metricsMember,
  serveUntilStopped,
  threadsOf,
  watchUserCodeErrors,
} from '../../service/mod.ts';
import { counted, standardStreams } from '../../terminal/mod.ts';

/** Serves the hooks of a module or of a manifest until it is stopped. */
export const serveHooks: CommandRun = async (invocation) => {
  const { flags, args, env } = invocation;
  const name = flags.text('name');
  if (name !== undefined && !HookServiceName.safeParse(name).success)
    throw usageError('--name takes 1 to 32 characters of A-Z a-z 0-9 _ -');
  const file = resolve(callerFolder(env), args[0] as string);
  const { address, stateDir } = await requireBus(invocation);
  const tenant = namedTenant(flags, address);
  const metrics = await metricsAddressOf(invocation);
  const { startHooksService } = await import('@coxswain/hooks');
  return serveUntilStopped(
    { name: 'hooks', stateDir, title: ({ name }) => `the hook service ${name}` },
    () =>
      withPermissionErrors('serve hooks: give a key of hooks', () =>
        startHooksService({ file, name, tenant, stateDir, nats: address, log: logTarget(), metrics }),
      ),
    (service) => {
      const { name: served, instance, count } = service;
      if (flags.on('json'))
        standardStreams.out(
          `${JSON.stringify({ type: 'ready', service: served, instance, hooks: count, ...metricsMember(service) })}\n`,
        );
      else
        standardStreams.err(
          `the hook service ${served} serves ${counted(count, 'hook')} of ${file}; stop with Ctrl-C\n${metricsLine(service)}`,
        );
    },
  );
};

/** Serves the tools of a module until it is stopped. */
export const serveTools: CommandRun = async (invocation) => {
  const { flags, args, env } = invocation;
  const file = resolve(callerFolder(env), args[0] as string);
  const { address, stateDir } = await requireBus(invocation);
  const tenant = namedTenant(flags, address);
  const metrics = await metricsAddressOf(invocation);
  const { startToolService } = await import('@coxswain/hooks');
  const thrown = watchUserCodeErrors('a tool');
  return serveUntilStopped(
    { name: 'tool', stateDir, title: () => `the tool service of ${basename(file)}` },
    () =>
      withPermissionErrors('serve tools: give a key of tools, or a worker’s own,', () =>
        startToolService({ file, tenant, stateDir, nats: address, log: logTarget(), metrics }),
      ),
    ({ tools, metricsUrl }) => {
      const more = metricsMember({ metricsUrl });
      if (flags.on('json')) standardStreams.out(`${JSON.stringify({ type: 'ready', tools, ...more })}\n`);
      else
        standardStreams.err(`serves ${tools.join(', ')} of ${file}; stop with Ctrl-C\n${metricsLine({ metricsUrl })}`);
    },
    thrown,
  );
};

/** Serves the personas of files, folders or modules until it is stopped. */
export const servePersonas: CommandRun = async (invocation) => {
  const { flags, args, env } = invocation;
  const stepsAtOnce = flags.whole('at-once', { min: 1, max: PERSONA_SERVICE_BOUNDS.stepsAtOnceMax });
  const { startPersonaService, isPersonaModule, loadPersonaModule, loadPersonaHandlers } = await import(
    '@coxswain/personas'
  );
  const personas: PersonaToServe[] = [];
  for (const given of args) {
    const path = resolve(callerFolder(env), given);
    if (isPersonaModule(path)) personas.push(await loadPersonaModule(path));
    else {
      const { input, persona, place, folder } = await readPersona(path);
      const handlers = await loadPersonaHandlers(persona, folder, place);
      personas.push({ definition: input, handlers, folder: callerFolder(env) });
    }
  }
  const { address, stateDir } = await requireBus(invocation);
  const tenant = namedTenant(flags, address);
  const metrics = await metricsAddressOf(invocation);
  const thrown = watchUserCodeErrors('a tool or a hook of a persona');
  return serveUntilStopped(
    { name: 'persona', stateDir, title: ({ personas: served }) => `the personas ${named(served)}` },
    () => startPersonaService({ personas, tenant, stepsAtOnce, stateDir, nats: address, log: logTarget(), metrics }),
    ({ personas: served, metricsUrl }) => {
      const more = metricsMember({ metricsUrl });
      if (flags.on('json')) standardStreams.out(`${JSON.stringify({ type: 'ready', personas: served, ...more })}\n`);
      else standardStreams.err(`serves ${named(served)}; stop with Ctrl-C\n${metricsLine({ metricsUrl })}`);
    },
    thrown,
  );
};

function named(personas: readonly { readonly name: string; readonly version: string }[]): string {
  return personas.map(({ name, version }) => `${name} ${version}`).join(', ');
}

/** Hosts sessions until it is stopped: one host in this process, or several in child processes. */
export const serveSessions: CommandRun = async (invocation) => {
  const { flags, env } = invocation;
  const threads = threadsOf(invocation);
  const manifest = await chooseManifest(flags, env);
  const policyFile = policyOf(flags, env);
  const nkey = flags.text('nkey');
  const named = env.COX_HOST_NAME ? readId(HostName, 'COX_HOST_NAME', env.COX_HOST_NAME) : undefined;
  const { address, stateDir } = await requireBus(invocation);
  const metrics = await metricsAddressOf(invocation);
  const settings = {
    nats: address,
    stateDir,
    manifest: manifest?.path,
    manifestDigest: manifest?.digest,
    policyFile,
    ownPaths: [answersFolder(env), ...(nkey === undefined ? [] : [resolve(callerFolder(env), nkey)])],
    log: logTarget(),
    metrics,
  };
  const permitted = <S>(start: () => Promise<S>) => withPermissionErrors('host sessions: give a key of hosts', start);
  const served = (hosts: readonly string[], metricsUrl: string | null) => {
    if (manifest) standardStreams.err(manifestNotice(manifest));
    const more = metricsMember({ metricsUrl });
    if (flags.on('json')) standardStreams.out(`${JSON.stringify({ type: 'ready', hosts, ...more })}\n`);
    else standardStreams.err(`${titleOf(hosts)} serves; stop with Ctrl-C\n${metricsLine({ metricsUrl })}`);
  };
  if (threads === 1) {
    const { startSessionsService } = await import('@coxswain/sessions');
    return serveUntilStopped(
      { name: 'sessions', stateDir, title: ({ hostId }) => titleOf([hostId]) },
      () => permitted(() => startSessionsService({ ...settings, hostName: named })),
      ({ hostId, metricsUrl }) => served([hostId], metricsUrl),
    );
  }
  if (named !== undefined) readId(HostName, 'COX_HOST_NAME', `${named}-${threads}`);
  // This process only supervises the hosts and does not load the engine.
  const { startSessionHosts } = await import('@coxswain/sessions/hosts');
  const onRestart = (restart: HostRestart) => reportRestart(restart, flags.on('json'));
  return serveUntilStopped(
    { name: 'sessions', stateDir, title: (service) => titleOf(service.hostIds()) },
    (stopping: AbortSignal) =>
      permitted(() =>
        startSessionHosts({ ...settings, hostName: named ?? 'host', hosts: threads, env, onRestart, stopping }),
      ),
    (service) => served(service.hostIds(), service.metricsUrl),
  );
};

function titleOf(hosts: readonly string[]): string {
  // The list is empty while all hosts restart.
  return hosts.length === 1
    ? `the session host ${hosts[0]}`
    : `the service of the session hosts ${hosts.join(', ')}`.trimEnd();
}

function reportRestart({ host, why, restart, pauseMs }: HostRestart, json: boolean): void {
  if (json)
    standardStreams.out(
      `${JSON.stringify({ type: 'session_host_restarted', host, why, restart, pause_ms: pauseMs })}\n`,
    );
  else
    standardStreams.err(`the session host ${host} ended unexpectedly (${why}); it restarts in ${pauseMs / 1_000} s\n`);
}

/** Purges deleted sessions until it is stopped. */
export const serveRetention: CommandRun = async (invocation) => {
  const { flags } = invocation;
  const { address, stateDir } = await requireBus(invocation);
  const { startRetentionService } = await import('@coxswain/sessions');
  return serveUntilStopped(
    { name: 'retention', stateDir, title: () => 'the retention job' },
    () =>
      withPermissionErrors('purge deleted sessions: give the key of retention', () =>
        startRetentionService({ nats: address, stateDir, log: logTarget() }),
      ),
    ({ recordsWithinMs }) => {
      if (flags.on('json'))
        standardStreams.out(`${JSON.stringify({ type: 'ready', records_within_ms: recordsWithinMs })}\n`);
      else standardStreams.err(`purges deleted sessions within ${recordsWithinMs / 1_000} s; stop with Ctrl-C\n`);
    },
  );
};

/** Serves a command runner until it is stopped. The runner uses neither a bus nor a key. */
export const serveCommands: CommandRun = async ({ flags, env }) => {
  const given = flags.text('socket') ?? env.COX_COMMAND_SOCKET;
  if (!given)
    throw usageError('cox serve commands needs a socket: cox serve commands --socket /run/commands/runner.sock');
  const socket = resolve(callerFolder(env), given);
  const { startCommandRunner } = await import('@coxswain/adapter-tools');
  return serveUntilStopped(
    { name: 'commands', stateDir: stateDirOf(flags, env), title: () => `the command runner at ${socket}` },
    () => startCommandRunner(socket),
    () => {
      if (flags.on('json')) standardStreams.out(`${JSON.stringify({ type: 'ready', socket })}\n`);
      else standardStreams.err(`runs commands for hosts that use ${socket}; stop with Ctrl-C\n`);
    },
  );
};

/** Finds the bus to serve on. @throws CliError `nats_unreachable` if there is none. */
export async function requireBus({ flags, env }: Invocation): Promise<{ address: BusAddress; stateDir: string }> {
  const { address, stateDir } = await findBus(flags, env);
  if (address) return { address, stateDir };
  throw new CliError(
    EXIT.error,
    'nats_unreachable',
    'nats_unreachable: no bus to serve on: start one with cox up, or give --nats URL',
  );
}
