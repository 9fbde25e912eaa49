/** `cox up`. */
import { connectionUrl, parseConnectionUrl } from '@coxswain/adapter-nats';
import { startEmbedded } from '../instance/embedded.ts';
import { answerHealth } from '../instance/health-socket.ts';
import { manifestNotice, manifestOf } from '../instance/manifest.ts';
import { pastedCommand } from '../instance/pasted-command.ts';
import { logTarget, serveUntilTold } from '../instance/serve-until-told.ts';
import { stateDirOf } from '../instance/state-dir.ts';
import { stopSignal } from '../instance/stop-signal.ts';
import { CliError, EXIT, type ExitCode, usageError } from '../line/cli-error.ts';
import type { CommandRun, Invocation } from '../line/command-spec.ts';
import { standardStreams } from '../terminal/streams.ts';

/** Runs everything on this machine until it is told to stop, or its server ends. */
export const run: CommandRun = (invocation) => {
  const { flags, env } = invocation;
  const port = flags.whole('port', { min: 1, max: 65_535 });
  // Whoever names a state folder or a port asks for a server of their own.
  const inherited = flags.on('state-dir') || port !== undefined ? undefined : env.NATS_URL?.trim() || undefined;
  const external = flags.text('nats') ?? inherited;
  if (external !== undefined && port !== undefined)
    throw usageError('--port is for a server that is started here, and --nats names another');
  return external === undefined ? upEmbedded(invocation, port) : upOnBus(invocation, external);
};

async function upEmbedded({ flags, env }: Invocation, port: number | undefined): Promise<ExitCode> {
  const stateDir = stateDirOf(flags, env);
  const manifest = manifestOf(flags, env);
  if (manifest) standardStreams.err(manifestNotice(manifest));
  const told = stopSignal();
  const instance = await startEmbedded({ stateDir, port, services: true, env, manifest, log: logTarget() });
  const { server } = instance;
  const asked = { title: 'the instance', ping: instance.ping };
  const endHealth = await answerHealth(stateDir, 'up', asked, (problem) => standardStreams.err(`${problem}\n`));
  ready(flags.on('json'), { nats_url: server.url, token: server.token, state_dir: stateDir });
  if (!flags.on('json')) {
    standardStreams.err(`cox is up: nats-server ${server.version} at ${server.url}, state in ${stateDir}\n`);
    const pasted = (command: string) => pastedCommand(command, { address: null, stateDir }, env);
    standardStreams.err('in another shell:\n');
    standardStreams.err(`  ${pasted('run "…" --model provider/name')}\n  eval "$(${pasted('env')})"\n`);
    standardStreams.err('stop with Ctrl-C\n');
  }
  const ended = await Promise.race([told.promise, server.exited, instance.failed]);
  await endHealth();
  if (ended !== undefined) {
    await instance.stop();
    if (ended instanceof Error) throw ended;
    throw new CliError(EXIT.error, 'nats_server_ended', `nats-server ended by itself; its log says:\n${ended.logTail}`);
  }
  told.release();
  await instance.stop();
  return EXIT.ok;
}

async function upOnBus({ flags, env }: Invocation, url: string): Promise<ExitCode> {
  const { startSessionsService } = await import('@coxswain/sessions');
  const stateDir = stateDirOf(flags, env);
  const manifest = manifestOf(flags, env);
  if (manifest) standardStreams.err(manifestNotice(manifest));
  return serveUntilTold(
    { name: 'up', stateDir, title: ({ hostId }) => `the session host ${hostId}` },
    () => startSessionsService({ nats: { servers: url }, stateDir, manifest, log: logTarget() }),
    () => {
      // No state is kept here: the folder is for the log alone.
      ready(flags.on('json'), { nats_url: url, token: parseConnectionUrl(url).token ?? null, state_dir: null });
      if (!flags.on('json')) standardStreams.err('cox is up on the given bus; stop with Ctrl-C\n');
    },
  );
}

function ready(json: boolean, where: { nats_url: string; token: string | null; state_dir: string | null }): void {
  if (!json) return;
  const { token } = where;
  const hasToken = token === null || parseConnectionUrl(where.nats_url).token !== undefined;
  const url = hasToken ? where.nats_url : connectionUrl({ url: where.nats_url, token });
  standardStreams.out(`${JSON.stringify({ type: 'ready', ...where, nats_url: url })}\n`);
}
