/** `cox health`. */

import { stateDirOf } from '../folders/mod.ts';
import { CliError, type CommandRun, EXIT } from '../line/mod.ts';
import { askHealth } from '../service/mod.ts';
import { standardStreams } from '../terminal/mod.ts';

/** Prints the health of the services that use a state directory. Exits 1 if one is unhealthy, or if none runs. */
export const run: CommandRun = async ({ flags, env }) => {
  const stateDir = stateDirOf(flags, env);
  const services = await askHealth(stateDir);
  if (services.length === 0)
    throw new CliError(
      EXIT.error,
      'not_running',
      `no service uses ${stateDir}; start one with cox up or cox serve, or name another folder with --state-dir`,
    );
  for (const health of services) {
    standardStreams.out(
      flags.on('json') ? `${JSON.stringify({ type: 'health', ...health })}\n` : `${health.message}\n`,
    );
  }
  return services.every(({ healthy }) => healthy) ? EXIT.ok : EXIT.error;
};
