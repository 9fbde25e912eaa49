/** Command lines to be pasted into another shell, where they must find the same bus. */
import { basename, join } from 'node:path';
import { printable } from '@coxswain/client';
import { defaultStateDir, isPublished, packageFolder } from '../folders/mod.ts';
import { shellQuoted } from '../line/mod.ts';
import type { OpenBus } from './open-bus.ts';

/**
 * The arguments that approve a call. A provider chooses the id of a call, which may have characters that a shell
 * interprets, such as `|`.
 */
export function approveCommand(sessionId: string, callId: string): string {
  return `approve ${sessionId} ${shellQuoted(printable(callId))}`;
}

/**
 * Builds a `cox` command line that works from every folder and finds this bus. It names a command on the PATH as it was
 * typed, the published package through npx, and a checkout by its path. Credentials are left out. A bus of `NATS_URL`
 * needs the same variable in the other shell, and for `--nats` the line has the placeholder `URL`.
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
  // Another context may be in use later.
  if (address?.context) return `${line} --context ${address.context.name}`;
  if (address?.source === '--nats') return `${line} --nats URL`;
  // The other shell may not have the variables of this one.
  const isFound = stateDir === defaultStateDir(env) && !env.NATS_URL?.trim();
  return isFound ? line : `${line} --state-dir ${shellQuoted(stateDir)}`;
}
