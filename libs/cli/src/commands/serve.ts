/** `cox serve`. */

import { basename, resolve } from 'node:path';
import type { PersonaToServe } from '@coxswain/personas';
import { cutGraphemes, HookServiceName, HostName, PERSONA_SERVICE_BOUNDS, readId } from '@coxswain/protocol';
import { type BusAddress, findBus } from '../instance/find-bus.ts';
import { answersFolder } from '../instance/folder-trust.ts';
import { chooseManifest, manifestNotice } from '../instance/manifest.ts';
import { metricsAddressOf, metricsLine, metricsMember } from '../instance/metrics-address.ts';
import { namedTenant } from '../instance/named-tenant.ts';
import { permittedTo } from '../instance/permitted-to.ts';
import { policyOf } from '../instance/policy.ts';
import { logTarget, serveUntilTold } from '../instance/serve-until-told.ts';
import { stateDirOf, typedIn } from '../instance/state-dir.ts';
import { thrownByOthers } from '../instance/thrown-by-others.ts';
import { CliError, EXIT, type ExitCode, usageError } from '../line/cli-error.ts';
import type { CommandRun, Invocation } from '../line/command-spec.ts';
import { readPersona } from '../run/persona-file.ts';
import { counted } from '../terminal/counted.ts';
import { standardStreams } from '../terminal/streams.ts';
import { serveGateway } from './serve-gateway.ts';

/** Runs one service on a bus until it is told to stop. */
export const run: CommandRun = (invocation) => {
  const [what, file, ...others] = invocation.args;
  if (what === 'persona') return servePersonas(invocation, [...(file === undefined ? [] : [file]), ...others]);
  if (others.length > 0) throw usageError(`cox serve ${cutGraphemes(String(what), 64)} takes one file`);
  if (what === 'gateway') {
    if (file !== undefined) throw usageError('cox serve gateway takes no file; --tokens FILE says who is let in');
    return serveGateway(invocation, () => someBus(invocation));
  }
  if (what === 'commands') {
    if (file !== undefined) throw usageError('cox serve commands takes no file; --socket PATH names its socket');
    return serveCommands(invocation);
  }
  if (invocation.flags.on('socket')) throw usageError('--socket is for cox serve commands');
  for (const flag of OF_GATEWAY) if (invocation.flags.on(flag)) throw usageError(`--${flag} is for cox serve gateway`);
  if (invocation.flags.on('at-once')) throw usageError('--at-once is for cox serve persona');
  if (what !== 'sessions' && invocation.flags.on('policy')) throw usageError('--policy is for cox serve sessions');
  if (what === 'hooks') return serveHooks(invocation, file);
  if (what === 'tool') return serveTool(invocation, file);
  if (what === 'retention') return serveRetention(invocation, file);
  if (what !== 'sessions')
    throw usageError(
      `cox serve takes hooks, persona, tool, sessions, retention, commands or gateway, not "${cutGraphemes(String(what), 64)}"`,
    );
  if (file !== undefined) throw usageError(`cox serve sessions takes no file; --manifest ${file} declares its hooks`);
  if (invocation.flags.on('name')) throw usageError('--name is the name of a hook service');
  if (invocation.flags.on('tenant'))
    throw usageError('--tenant is whose hooks, personas or tools are served; a host serves all tenants');
  return serveSessions(invocation);
};

const OF_GATEWAY = [
  'listen',
  'public-url',
  'allow-origin',
  'tokens',
  'jwks',
  'issuer',
  'audience',
  'tenant-claim',
] as const;

async function serveHooks(invocation: Invocation, given: string | undefined): Promise<ExitCode> {
  const { flags, env } = invocation;
  if (given === undefined) throw usageError('cox serve hooks needs a module: cox serve hooks ./policy.ts');
  if (flags.on('manifest'))
    throw usageError('--manifest belongs to sessions; cox serve hooks FILE takes one as its file');
  const name = flags.text('name');
  if (name !== undefined && !HookServiceName.safeParse(name).success)
    throw usageError('--name takes 1 to 32 characters of A-Z a-z 0-9 _ -');
  const file = resolve(typedIn(env), given);
  const { address, stateDir } = await someBus(invocation);
  const tenant = namedTenant(flags, address.credentials?.tenant);
  const metrics = await metricsAddressOf(invocation);
  const { startHooksService } = await import('@coxswain/hooks');
  return serveUntilTold(
    { name: 'hooks', stateDir, title: ({ name }) => `the hook service ${name}` },
    () =>
      permittedTo('serve hooks: give a key of hooks', () =>
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
}

async function serveTool(invocation: Invocation, given: string | undefined): Promise<ExitCode> {
  const { flags, env } = invocation;
  if (given === undefined) throw usageError('cox serve tool needs a module: cox serve tool ./my-tool.ts');
  if (flags.on('manifest')) throw usageError('--manifest belongs to sessions');
  if (flags.on('name')) throw usageError('--name is the name of a hook service; a tool is named by its definition');
  const file = resolve(typedIn(env), given);
  const { address, stateDir } = await someBus(invocation);
  const tenant = namedTenant(flags, address.credentials?.tenant);
  const metrics = await metricsAddressOf(invocation);
  const { startToolService } = await import('@coxswain/hooks');
  const thrown = thrownByOthers('a tool');
  return serveUntilTold(
    { name: 'tool', stateDir, title: () => `the tool service of ${basename(file)}` },
    () =>
      permittedTo('serve tools: give a key of tools, or a worker’s own,', () =>
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
}

async function servePersonas(invocation: Invocation, paths: readonly string[]): Promise<ExitCode> {
  const { flags, env } = invocation;
  if (paths.length === 0) throw usageError('cox serve persona needs a persona: cox serve persona ./personas/reviewer');
  if (flags.on('manifest')) throw usageError('--manifest belongs to sessions');
  if (flags.on('name')) throw usageError('--name is the name of a hook service; a persona is named by its definition');
  const stepsAtOnce = flags.whole('at-once', { min: 1, max: PERSONA_SERVICE_BOUNDS.stepsAtOnceMax });
  const { startPersonaService, isPersonaModule, loadPersonaModule, loadPersonaHandlers } = await import(
    '@coxswain/personas'
  );
  const personas: PersonaToServe[] = [];
  for (const given of paths) {
    const path = resolve(typedIn(env), given);
    if (isPersonaModule(path)) personas.push(await loadPersonaModule(path));
    else {
      const { input, persona, place, folder } = await readPersona(path);
      const handlers = await loadPersonaHandlers(persona, folder, place);
      personas.push({ definition: input, handlers, folder: typedIn(env) });
    }
  }
  const { address, stateDir } = await someBus(invocation);
  const tenant = namedTenant(flags, address.credentials?.tenant);
  const metrics = await metricsAddressOf(invocation);
  const thrown = thrownByOthers('a tool or a hook of a persona');
  return serveUntilTold(
    { name: 'persona', stateDir, title: ({ personas: served }) => `the personas ${named(served)}` },
    () => startPersonaService({ personas, tenant, stepsAtOnce, stateDir, nats: address, log: logTarget(), metrics }),
    ({ personas: served, metricsUrl }) => {
      const more = metricsMember({ metricsUrl });
      if (flags.on('json')) standardStreams.out(`${JSON.stringify({ type: 'ready', personas: served, ...more })}\n`);
      else standardStreams.err(`serves ${named(served)}; stop with Ctrl-C\n${metricsLine({ metricsUrl })}`);
    },
    thrown,
  );
}

function named(personas: readonly { readonly name: string; readonly version: string }[]): string {
  return personas.map(({ name, version }) => `${name} ${version}`).join(', ');
}

async function serveSessions(invocation: Invocation): Promise<ExitCode> {
  const { flags, env } = invocation;
  const manifest = await chooseManifest(flags, env);
  const policyFile = policyOf(flags, env);
  const nkey = flags.text('nkey');
  const hostName = env.COX_HOST_NAME ? readId(HostName, 'COX_HOST_NAME', env.COX_HOST_NAME) : undefined;
  const { address, stateDir } = await someBus(invocation);
  if (manifest) standardStreams.err(manifestNotice(manifest));
  const metrics = await metricsAddressOf(invocation);
  const { startSessionsService } = await import('@coxswain/sessions');
  return serveUntilTold(
    { name: 'sessions', stateDir, title: ({ hostId }) => `the session host ${hostId}` },
    () =>
      permittedTo('host sessions: give a key of hosts', () =>
        startSessionsService({
          nats: address,
          stateDir,
          hostName,
          manifest: manifest?.path,
          manifestDigest: manifest?.digest,
          policyFile,
          ownPaths: [answersFolder(env), ...(nkey === undefined ? [] : [resolve(typedIn(env), nkey)])],
          log: logTarget(),
          metrics,
        }),
      ),
    ({ hostId, metricsUrl }) => {
      const more = metricsMember({ metricsUrl });
      if (flags.on('json')) standardStreams.out(`${JSON.stringify({ type: 'ready', host: hostId, ...more })}\n`);
      else standardStreams.err(`the session host ${hostId} serves; stop with Ctrl-C\n${metricsLine({ metricsUrl })}`);
    },
  );
}

async function serveRetention(invocation: Invocation, file: string | undefined): Promise<ExitCode> {
  const { flags } = invocation;
  if (file !== undefined) throw usageError('cox serve retention takes no file');
  for (const flag of ['manifest', 'name', 'tenant', 'metrics-port'] as const)
    if (flags.on(flag)) throw usageError(`--${flag} is not for cox serve retention`);
  const { address, stateDir } = await someBus(invocation);
  const { startRetentionService } = await import('@coxswain/sessions');
  return serveUntilTold(
    { name: 'retention', stateDir, title: () => 'the retention job' },
    () =>
      permittedTo('purge deleted sessions: give the key of retention', () =>
        startRetentionService({ nats: address, stateDir, log: logTarget() }),
      ),
    ({ recordsWithinMs }) => {
      if (flags.on('json'))
        standardStreams.out(`${JSON.stringify({ type: 'ready', records_within_ms: recordsWithinMs })}\n`);
      else standardStreams.err(`purges deleted sessions within ${recordsWithinMs / 1_000} s; stop with Ctrl-C\n`);
    },
  );
}

/** Serves a command runner: it uses no bus and no key. */
async function serveCommands({ flags, env }: Invocation): Promise<ExitCode> {
  for (const flag of NOT_OF_COMMANDS) if (flags.on(flag)) throw usageError(`--${flag} is not for cox serve commands`);
  const given = flags.text('socket') ?? env.COX_COMMAND_SOCKET;
  if (!given)
    throw usageError('cox serve commands needs a socket: cox serve commands --socket /run/commands/runner.sock');
  const socket = resolve(typedIn(env), given);
  const { startCommandRunner } = await import('@coxswain/adapter-tools');
  return serveUntilTold(
    { name: 'commands', stateDir: stateDirOf(flags, env), title: () => `the command runner at ${socket}` },
    () => startCommandRunner(socket),
    () => {
      if (flags.on('json')) standardStreams.out(`${JSON.stringify({ type: 'ready', socket })}\n`);
      else standardStreams.err(`runs commands for hosts that use ${socket}; stop with Ctrl-C\n`);
    },
  );
}

const NOT_OF_COMMANDS = [
  ...OF_GATEWAY,
  'nats',
  'nkey',
  'tenant',
  'manifest',
  'policy',
  'name',
  'at-once',
  'metrics-port',
] as const;

async function someBus({ flags, env }: Invocation): Promise<{ address: BusAddress; stateDir: string }> {
  const { address, stateDir } = await findBus(flags, env);
  if (address) return { address, stateDir };
  throw new CliError(
    EXIT.error,
    'nats_unreachable',
    'nats_unreachable: no bus to serve on: start one with cox up, or give --nats URL',
  );
}
