/** Chooses the policy file of the hosts in this process. */
import { resolve } from 'node:path';
import { usageError } from '../line/cli-error.ts';
import type { Flags } from '../line/flags.ts';
import { callerFolder } from './state-dir.ts';

/**
 * The path in `--policy` or `COX_POLICY`; undefined if neither names a file. @throws CliError with exit code 2 for an
 * empty flag.
 */
export function policyOf(flags: Flags, env: NodeJS.ProcessEnv): string | undefined {
  const named = flags.text('policy') ?? (env.COX_POLICY || undefined);
  if (named?.trim() === '') throw usageError('--policy needs a file');
  return named === undefined ? undefined : resolve(callerFolder(env), named);
}
