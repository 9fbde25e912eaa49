/** `cox context add|use|list|remove`. */
import { resolve } from 'node:path';
import { type Context, findContext, readContexts } from '@coxswain/ports/discovery';
import { CONTEXT_NAME, CONTEXTS_MAX, cutGraphemes, readNatsAddress, TenantId } from '@coxswain/protocol';
import { changeContexts } from '../connection/mod.ts';
import { callerFolder } from '../folders/mod.ts';
import { CliError, type CommandRun, EXIT, type ExitCode, type Invocation, usageError } from '../line/mod.ts';
import { standardStreams, table } from '../terminal/mod.ts';

/** Stores a context. It is in use at once if no other context is. Exits 1 for `context_exists`. */
export const add: CommandRun = async (invocation) => {
  const { flags, args, env } = invocation;
  const name = args[0] as string;
  if (!CONTEXT_NAME.test(name))
    throw usageError('a context has 1 to 64 characters of A-Z a-z 0-9 _ -, and is not called none');
  const nats = addressesOf(flags.text('nats'));
  const tenant = flags.text('tenant');
  if (tenant !== undefined && !TenantId.safeParse(tenant).success)
    throw usageError(`--tenant takes 1 to 64 characters of A-Z a-z 0-9 _ -, not "${cutGraphemes(tenant, 80)}"`);
  const context: Context = { nats, nkey: await keyFile(invocation), tenant };
  const { current } = await changeContexts(env, ({ current, contexts }) => {
    if (Object.hasOwn(contexts, name) && !flags.on('force'))
      throw new CliError(EXIT.error, 'context_exists', `context_exists: ${name} exists; --force replaces it`);
    if (Object.keys(contexts).length >= CONTEXTS_MAX && !Object.hasOwn(contexts, name))
      throw usageError(`there are ${CONTEXTS_MAX} contexts, which is the limit; remove one first`);
    return { current: current ?? name, contexts: { ...contexts, [name]: context } };
  });
  const use = current === name ? 'is in use' : `is stored; use it with cox context use ${name}`;
  return print(invocation, { type: 'context_added', name }, `the context ${name} ${use}`);
};

/** Selects the context that later commands use; `none` selects no context. */
export const use: CommandRun = async (invocation) => {
  const name = invocation.args[0] === 'none' ? null : (invocation.args[0] as string);
  await changeContexts(invocation.env, async ({ contexts }) => {
    if (name !== null) await findContext(invocation.env, name);
    return { current: name, contexts };
  });
  return print(
    invocation,
    { type: 'context_used', name },
    name === null ? 'no context is in use' : `the context ${name} is in use`,
  );
};

/** Lists the stored contexts. */
export const list: CommandRun = async ({ flags, env }) => {
  const { current, contexts } = await readContexts(env);
  const all = Object.entries(contexts);
  if (flags.on('json')) {
    for (const [name, { nats, nkey = null, tenant = null }] of all)
      standardStreams.out(
        `${JSON.stringify({ type: 'context', name, current: name === current, nats, nkey, tenant })}\n`,
      );
    return EXIT.ok;
  }
  if (all.length === 0) standardStreams.err('no context is stored; see cox context add --help\n');
  standardStreams.out(
    table(
      all.map(([name, { nats, nkey = '', tenant = '' }]) => [name === current ? '*' : '', name, nats, tenant, nkey]),
    ),
  );
  return EXIT.ok;
};

/** Removes a context. If it was in use, no context is in use afterwards. */
export const remove: CommandRun = async (invocation) => {
  const name = invocation.args[0] as string;
  await changeContexts(invocation.env, async ({ current, contexts }) => {
    await findContext(invocation.env, name);
    const { [name]: _, ...others } = contexts;
    return { current: current === name ? null : current, contexts: others };
  });
  return print(invocation, { type: 'context_removed', name }, `the context ${name} is removed`);
};

/**
 * Checks the addresses of one bus in the format of `connect()`. They must not contain credentials, which belong in a
 * key file.
 */
function addressesOf(given: string | undefined): string {
  if (given === undefined) throw usageError('cox context add needs the address of a bus: --nats nats://host:port');
  for (const [index, one] of given.split(',').entries()) {
    const read = readNatsAddress(one.trim());
    // The message does not quote the address, which may contain a token.
    if (!read.ok) throw usageError(`--nats: address ${index + 1} ${read.problem}`);
    if (read.address.username !== undefined || read.address.password !== undefined)
      throw usageError('--nats of a context has no token or password: contexts hold no secrets; give --nkey FILE');
  }
  return given;
}

async function keyFile({ flags, env }: Invocation): Promise<string | undefined> {
  const given = flags.text('nkey');
  if (given === undefined) return undefined;
  const path = resolve(callerFolder(env), given);
  const { readSeedFile } = await import('@coxswain/adapter-nats');
  try {
    await readSeedFile(path);
  } catch (error) {
    throw usageError(`--nkey: ${(error as Error).message}`);
  }
  return path;
}

function print({ flags }: Invocation, line: object, text: string): ExitCode {
  standardStreams.out(flags.on('json') ? `${JSON.stringify(line)}\n` : `${text}\n`);
  return EXIT.ok;
}
