/** Chooses the policy file of the hosts in this process. */
import { resolve } from 'node:path';
import { type Flags, usageError } from '../line/mod.ts';
import { callerFolder } from './mod.ts';

/**
 * The path in `--policy` or `COX_POLICY`; undefined if neither names a file. @throws CliError with exit code 2 for an
 * empty flag.
 */
export function policyOf(flags: Flags, env: NodeJS.ProcessEnv): string | undefined {
  const named = flags.text('policy') ?? (env.COX_POLICY || undefined);
  if (named?.trim() === '') throw usageError('--policy needs a file');
  return named === undefined ? undefined : resolve(callerFolder(env), named);
}
