/** The number of session hosts that `cox serve sessions` runs. */
import { availableParallelism } from 'node:os';
import { PARTITIONS } from '@coxswain/protocol';
import { type Invocation, usageError } from '../line/mod.ts';

/** The highest default. A user can choose more. */
const DEFAULT_MAX = 8;

/**
 * `--threads`, else `COX_THREADS`, else a default: one host for each core but one, which is left for the server and the
 * tools. The default is at least 1 and at most 8.
 * @param cores the cores that this process may use.
 * @throws CliError with exit code 2 for a value that is not a whole number from 1 to the number of partitions.
 */
export function threadsOf({ flags, env }: Pick<Invocation, 'flags' | 'env'>, cores = availableParallelism()): number {
  // A host beyond the number of partitions would have no partition.
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
