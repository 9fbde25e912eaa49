/** `cox auth --add` and `--remove`: one key more or fewer in a folder that is there. */
import { randomUUID } from 'node:crypto';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import {
  KEYS_PER_ROLE_MAX,
  type KeyFile,
  type KeyPlace,
  type Keyring,
  KeyringError,
  keyPlaceFrom,
  keyringFrom,
  newKeyFile,
  ringFiles,
  type ToolWorkerKey,
  withKey,
  withoutKey,
} from '@coxswain/adapter-nats';
import { CliError, EXIT, type ExitCode, usageError } from '../line/cli-error.ts';
import type { CommandRun } from '../line/command-spec.ts';
import { readWorker, WORKERS_MAX } from '../run/typed-worker.ts';
import { standardStreams } from '../terminal/streams.ts';

type Flags = Parameters<CommandRun>[0]['flags'];

/**
 * Adds and removes keys in the order in which they are named: all of them or none. Other keys, and what has been changed in
 * `server.conf`, stay as they are; the accounts are written anew from today's table of roles.
 */
export async function changeKeys(
  out: string,
  changes: readonly { readonly name: 'add' | 'remove'; readonly value: string }[],
  flags: Flags,
): Promise<ExitCode> {
  for (const other of ['tenant', 'worker', 'gateway-approves'] as const)
    if (other === 'gateway-approves' ? flags.on(other) : flags.inOrder([other]).length > 0)
      throw usageError(
        other === 'worker'
          ? '--worker does not go beside --add and --remove: --add [TENANT/]worker=NAME=TOOL,TOOL'
          : `--${other} does not go beside --add and --remove: it was decided when the folder was written`,
      );
  let ring = await ringIn(out);
  const added = new Map<string, KeyFile>();
  const removed = new Set<string>();
  for (const { name, value } of changes) {
    const worker = name === 'add' ? workerOf(value, ring) : undefined;
    const place: KeyPlace = worker
      ? { role: 'tools', tenant: worker.tenant, worker: worker.name }
      : placeOf(name, value, ring);
    try {
      if (name === 'remove') {
        const without = withoutKey(ring, place);
        ring = without.ring;
        if (!added.delete(without.key.file)) removed.add(without.key.file);
        continue;
      }
      const file = newKeyFile(place, worker);
      ring = withKey(ring, place, file.publicKey, worker?.tools).ring;
      added.set(file.path, file);
    } catch (error) {
      if (error instanceof KeyringError) throw new CliError(EXIT.error, error.code, `${error.code}: ${error.message}`);
      throw error;
    }
  }
  const workers = ring.keys.filter(({ worker }) => worker !== undefined).length;
  // What is too many already may become fewer.
  if (added.size > 0 && ring.keys.length - workers > KEYS_PER_ROLE_MAX * (1 + ring.settings.tenants.length))
    throw usageError(`a folder has at most ${KEYS_PER_ROLE_MAX} keys for each tenant`);
  if (added.size > 0 && workers > WORKERS_MAX) throw usageError(`a folder has at most ${WORKERS_MAX} workers' keys`);
  // A key that no server knows opens nothing: it is there before the accounts name it, and goes after they have forgotten it.
  for (const { path, text } of added.values()) {
    const file = join(out, path);
    await mkdir(dirname(file), { recursive: true, mode: 0o700 });
    if (removed.has(path)) await replace(file, text);
    else await writeFile(file, text, { mode: 0o600, flag: 'wx' });
  }
  for (const { path, text } of ringFiles(ring)) await replace(join(out, path), text);
  for (const file of removed) if (!added.has(file)) await rm(join(out, file), { force: true });
  tell(out, [...added.values()], [...removed], flags);
  return EXIT.ok;
}

/** `[TENANT/]worker=NAME=TOOL,TOOL`; undefined where another role is named. */
function workerOf(value: string, { settings }: Keyring): ToolWorkerKey | undefined {
  const [, tenant = '', worker] = /^([^/=]+\/)?worker=(.*)$/s.exec(value) ?? [];
  return worker === undefined ? undefined : readWorker('--add worker=', `${tenant}${worker}`, settings.tenants);
}

function placeOf(flag: string, value: string, { settings }: Keyring): KeyPlace {
  const place = keyPlaceFrom(value, settings.tenants);
  if (place === null) {
    const takes = flag === 'add' ? '[TENANT/]ROLE=NAME' : '[TENANT/]ROLE[=NAME] or [TENANT/]worker=NAME';
    const { tenants } = settings;
    // What lacks nothing but its tenant is told so.
    if (tenants.length > 1 && keyPlaceFrom(value, tenants.slice(0, 1)) !== null)
      throw usageError(
        `--${flag} ${value.slice(0, 120)} does not say of which tenant: ${tenants[0]}/${value.slice(0, 120)}`,
      );
    throw usageError(`--${flag} ${value.slice(0, 120)} is not ${takes}, with a role of the README.md in the folder`);
  }
  return place;
}

async function ringIn(out: string): Promise<Keyring> {
  const file = join(out, 'keys.json');
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    const { code } = error as { code?: string };
    throw new CliError(
      EXIT.error,
      'keyring_unreadable',
      `keyring_unreadable: ${file} cannot be read (${code}): --add and --remove change a folder that cox auth --out has written`,
    );
  }
  try {
    return keyringFrom(text);
  } catch (error) {
    if (error instanceof KeyringError) throw new CliError(EXIT.error, error.code, `${error.code}: ${error.message}`);
    throw error;
  }
}

/** A server that reads it meanwhile finds the old one or the new one. */
async function replace(path: string, text: string): Promise<void> {
  const unfinished = `${path}.${randomUUID()}`;
  await writeFile(unfinished, text, { mode: 0o600, flag: 'wx' });
  await rename(unfinished, path);
}

function tell(out: string, added: readonly KeyFile[], removed: readonly string[], flags: Flags): void {
  const secrets = flags.on('print-seeds');
  if (flags.on('json')) {
    for (const { path, role, tenant, name, worker, publicKey, seed } of added) {
      const whose = {
        ...(tenant === undefined ? {} : { tenant }),
        ...(name === undefined ? {} : { name }),
        ...(worker ? { worker: worker.name, tools: worker.tools } : {}),
      };
      const line = { type: 'key', role, ...whose, file: join(out, path), publicKey, ...(secrets ? { seed } : {}) };
      standardStreams.out(`${JSON.stringify(line)}\n`);
    }
    for (const file of removed)
      standardStreams.out(`${JSON.stringify({ type: 'key_removed', file: join(out, file) })}\n`);
    return;
  }
  if (secrets) for (const { path, seed } of added) standardStreams.out(`${path} ${seed}\n`);
  for (const { path } of added) standardStreams.err(`added ${join(out, path)}\n`);
  for (const file of removed) standardStreams.err(`removed ${join(out, file)}\n`);
  standardStreams.err('servers have to read accounts.conf again: nats-server --signal reload, or SIGHUP\n');
}
