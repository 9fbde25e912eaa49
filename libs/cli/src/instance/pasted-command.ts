/** Command lines that are shown to be pasted: they must find the same bus from another shell. */
import { basename, join } from 'node:path';
import { shellQuoted } from '../line/shell-quoted.ts';
import type { OpenBus } from './open-bus.ts';
import { isPublished, packageFolder } from './package-folder.ts';
import { defaultStateDir } from './state-dir.ts';

/**
 * A `cox` command line that works from every folder, and finds this bus. A command on the PATH is named as it was typed. The
 * published package is named by npx, and the command of a checkout by its path. What may hold credentials is not shown: a bus that
 * `NATS_URL` names is found by the same variable, and one that `--nats` names is asked for.
 */
export function pastedCommand(
  command: string,
  { address, stateDir }: Pick<OpenBus, 'address' | 'stateDir'>,
  env: NodeJS.ProcessEnv,
  script = process.argv[1] ?? '',
): string {
  const name = basename(script);
  const isOnPath = ['cox', 'coxswain'].includes(name) && !script.includes('node_modules');
  const anywhere = isPublished() ? 'npx coxswain' : shellQuoted(join(packageFolder(), 'bin/cox.mjs'));
  const program = isOnPath ? name : anywhere;
  const line = `${program} ${command}`;
  if (address?.source === 'NATS_URL') return line;
  // Another context may be in use by then.
  if (address?.context) return `${line} --context ${address.context.name}`;
  if (address?.source === '--nats') return `${line} --nats URL`;
  // A variable of this shell need not be set in the other.
  const isFound = stateDir === defaultStateDir(env) && !env.NATS_URL?.trim();
  return isFound ? line : `${line} --state-dir ${shellQuoted(stateDir)}`;
}
