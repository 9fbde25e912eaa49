/** Command lines that are shown to be pasted: they must find the same bus from another shell. */
import { basename, join } from 'node:path';
import { shellQuoted } from '../line/shell-quoted.ts';
import type { OpenBus } from './open-bus.ts';
import { packageFolder } from './package-folder.ts';
import { defaultStateDir } from './state-dir.ts';

/**
 * A `cox` command line that works from every folder, and finds this bus. It names the program's own path unless `cox` was found on the PATH:
 * outside a project that depends on it, npx runs another package named `cox`. What may hold credentials is not shown: a bus that
 * `NATS_URL` names is found by the same variable, and one that `--nats` names is asked for.
 */
export function pastedCommand(
  command: string,
  { address, stateDir }: Pick<OpenBus, 'address' | 'stateDir'>,
  env: NodeJS.ProcessEnv,
  script = process.argv[1] ?? '',
): string {
  const isInstalled = basename(script) === 'cox' && !script.includes('node_modules');
  const program = isInstalled ? 'cox' : shellQuoted(join(packageFolder(), 'bin/cox.mjs'));
  const line = `${program} ${command}`;
  if (address?.source === 'NATS_URL') return line;
  // Another context may be in use by then.
  if (address?.context) return `${line} --context ${address.context.name}`;
  if (address?.source === '--nats') return `${line} --nats URL`;
  // A variable of this shell need not be set in the other.
  const isFound = stateDir === defaultStateDir(env) && !env.NATS_URL?.trim();
  return isFound ? line : `${line} --state-dir ${shellQuoted(stateDir)}`;
}
