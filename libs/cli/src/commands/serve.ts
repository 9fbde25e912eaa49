/** `cox serve`. */

import { basename, resolve } from 'node:path';
import { HookServiceName, HostName, readId } from '@coxswain/protocol';
import { type BusAddress, findBus } from '../instance/find-bus.ts';
import { manifestNotice, manifestOf } from '../instance/manifest.ts';
import { namedTenant } from '../instance/named-tenant.ts';
import { permittedTo } from '../instance/permitted-to.ts';
import { logTarget, serveUntilTold } from '../instance/serve-until-told.ts';
import { typedIn } from '../instance/state-dir.ts';
import { CliError, EXIT, type ExitCode, usageError } from '../line/cli-error.ts';
import type { CommandRun, Invocation } from '../line/command-spec.ts';
import { counted } from '../terminal/counted.ts';
import { standardStreams } from '../terminal/streams.ts';

/** Runs one service on a bus until it is told to stop. */
export const run: CommandRun = (invocation) => {
  const [what, file] = invocation.args;
  if (what === 'hooks') return serveHooks(invocation, file);
  if (what === 'tool') return serveTool(invocation, file);
  if (what !== 'sessions')
    throw usageError(`cox serve takes hooks, tool or sessions, not "${String(what).slice(0, 64)}"`);
  if (file !== undefined) throw usageError(`cox serve sessions takes no file; --manifest ${file} declares its hooks`);
  if (invocation.flags.on('name')) throw usageError('--name is the name of a hook service');
  if (invocation.flags.on('tenant'))
    throw usageError('--tenant is whose hooks or tools are served; a host serves all tenants');
  return serveSessions(invocation);
};

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
  const { startHooksService } = await import('@coxswain/hooks');
  return serveUntilTold(
    { name: 'hooks', stateDir, title: ({ name }) => `the hook service ${name}` },
    () =>
      permittedTo('serve hooks: give a key of hooks', () =>
        startHooksService({ file, name, tenant, stateDir, nats: address, log: logTarget() }),
      ),
    (service) => {
      const { name: served, instance, count } = service;
      if (flags.on('json'))
        standardStreams.out(`${JSON.stringify({ type: 'ready', service: served, instance, hooks: count })}\n`);
      else
        standardStreams.err(
          `the hook service ${served} serves ${counted(count, 'hook')} of ${file}; stop with Ctrl-C\n`,
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
  const { startToolService } = await import('@coxswain/hooks');
  outliveFailures('a tool');
  return serveUntilTold(
    { name: 'tool', stateDir, title: () => `the tool service of ${basename(file)}` },
    () =>
      permittedTo('serve tools: give a key of tools, or a worker’s own,', () =>
        startToolService({ file, tenant, stateDir, nats: address, log: logTarget() }),
      ),
    ({ tools }) => {
      if (flags.on('json')) standardStreams.out(`${JSON.stringify({ type: 'ready', tools })}\n`);
      else standardStreams.err(`serves ${tools.join(', ')} of ${file}; stop with Ctrl-C\n`);
    },
  );
}

/** A promise that somebody's code has left behind must not end the service for all the others. */
function outliveFailures(whose: string): void {
  process.on('unhandledRejection', (error) =>
    process.stderr.write(`${whose} left a failure behind: ${String(error)}\n`),
  );
}

async function serveSessions(invocation: Invocation): Promise<ExitCode> {
  const { flags, env } = invocation;
  const manifest = manifestOf(flags, env);
  const hostName = env.COX_HOST_NAME ? readId(HostName, 'COX_HOST_NAME', env.COX_HOST_NAME) : undefined;
  const { address, stateDir } = await someBus(invocation);
  if (manifest) standardStreams.err(manifestNotice(manifest));
  const { startSessionsService } = await import('@coxswain/sessions');
  return serveUntilTold(
    { name: 'sessions', stateDir, title: ({ hostId }) => `the session host ${hostId}` },
    () =>
      permittedTo('host sessions: give a key of hosts', () =>
        startSessionsService({ nats: address, stateDir, hostName, manifest, log: logTarget() }),
      ),
    ({ hostId }) => {
      if (flags.on('json')) standardStreams.out(`${JSON.stringify({ type: 'ready', host: hostId })}\n`);
      else standardStreams.err(`the session host ${hostId} serves; stop with Ctrl-C\n`);
    },
  );
}

async function someBus({ flags, env }: Invocation): Promise<{ address: BusAddress; stateDir: string }> {
  const { address, stateDir } = await findBus(flags, env);
  if (address) return { address, stateDir };
  throw new CliError(
    EXIT.error,
    'nats_unreachable',
    'nats_unreachable: no bus to serve on: start one with cox up, or give --nats URL',
  );
}
