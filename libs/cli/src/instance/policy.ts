/** Which policy file the hosts of this process use. */
import { resolve } from 'node:path';
import { usageError } from '../line/cli-error.ts';
import type { Flags } from '../line/flags.ts';
import { typedIn } from './state-dir.ts';

/** The path of `--policy` or `COX_POLICY`; undefined if neither names a file. @throws CliError if the flag is empty. */
export function policyOf(flags: Flags, env: NodeJS.ProcessEnv): string | undefined {
  const named = flags.text('policy') ?? (env.COX_POLICY || undefined);
  if (named?.trim() === '') throw usageError('--policy needs a file');
  return named === undefined ? undefined : resolve(typedIn(env), named);
}
