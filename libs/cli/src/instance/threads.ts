/** How many session hosts `cox serve sessions` runs. */
import { availableParallelism } from 'node:os';
import { PARTITIONS } from '@coxswain/protocol';
import { usageError } from '../line/cli-error.ts';
import type { Invocation } from '../line/command-spec.ts';

/** More hosts than this on one machine are for its owner to choose. */
const DEFAULT_MAX = 8;

/**
 * `--threads`, else `COX_THREADS`, else one host for each core but one, for the server and the tools. At least one host.
 * @param cores that this process may use.
 * @throws CliError with exit code 2 for a value that is not a whole number from 1 to the number of partitions.
 */
export function threadsOf({ flags, env }: Pick<Invocation, 'flags' | 'env'>, cores = availableParallelism()): number {
  // A host beyond the number of partitions would have none.
  const bounds = { min: 1, max: PARTITIONS };
  const named = flags.whole('threads', bounds) ?? wholeVariable('COX_THREADS', env, bounds);
  return named ?? Math.min(Math.max(cores - 1, 1), DEFAULT_MAX);
}

function wholeVariable(
  name: string,
  env: NodeJS.ProcessEnv,
  { min, max }: { readonly min: number; readonly max: number },
): number | undefined {
  const text = env[name]?.trim();
  if (!text) return undefined;
  const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= min && value <= max))
    throw usageError(`${name} takes a whole number from ${min} to ${max}, not "${text.slice(0, 80)}"`);
  return value;
}
