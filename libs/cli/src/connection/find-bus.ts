/** Finds the bus of a command line. */
import { type BusAddress, type FoundBus, findBus as findNamedBus, SeedFileError } from '@coxswain/ports/discovery';
import { stateDirOf } from '../folders/mod.ts';
import { type Flags, usageError } from '../line/mod.ts';

export type { BusAddress, FoundBus } from '@coxswain/ports/discovery';

/** The source of the bus, for messages: `--nats`, `NATS_URL`, `the context prod`. */
export function describeSource({ source, context }: Pick<BusAddress, 'source' | 'context'>): string {
  return context ? `the context ${context.name}` : source;
}

/**
 * Finds the bus of a command line, in the order of `findBus` of `@coxswain/ports/discovery`. @throws CliError with exit
 * code 2 for contradicting flags; the errors of that function.
 */
export async function findBus(flags: Flags, env: NodeJS.ProcessEnv): Promise<FoundBus> {
  const stateDir = stateDirOf(flags, env);
  const other = ['nats', 'state-dir'].find((name) => flags.on(name));
  if (flags.on('context') && other !== undefined) throw usageError(`--context and --${other} exclude each other`);
  const nkey = flags.text('nkey');
  const choice = {
    nats: flags.text('nats'),
    nkey,
    stateDir: flags.on('state-dir') ? stateDir : undefined,
    context: flags.text('context'),
  };
  const found = await findNamedBus(choice, env).catch((error: unknown) => {
    throw error instanceof SeedFileError ? usageError(error.message) : error;
  });
  if (nkey !== undefined && (found.address === null || found.address.source === 'state-dir'))
    throw usageError('--nkey needs a bus from --nats, NATS_URL or a context');
  return found;
}
