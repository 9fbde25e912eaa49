/** `cox admin auth --add`, `--remove` and `--renew`: change the keys, tenants and permissions of an existing folder. */
import { mkdir, readFile, rm, rmdir, writeFile } from 'node:fs/promises';
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
  TENANTS_MAX,
  type ToolWorkerKey,
  withKey,
  withoutKey,
  withoutTenant,
  withTenant,
} from '@coxswain/adapter-nats';
import { replaceFile } from '@coxswain/ports/discovery';
import { cutGraphemes, TenantId } from '@coxswain/protocol';
import { whileClaimed } from '../../folders/mod.ts';
import { CliError, type CommandRun, EXIT, type ExitCode, usageError } from '../../line/mod.ts';
import { standardStreams } from '../../terminal/mod.ts';
import { readWorker, WORKERS_MAX } from './typed-worker.ts';

type Flags = Parameters<CommandRun>[0]['flags'];

const KEYS_FILE = 'keys.json';

/** A flag and its value. */
type Change = { readonly name: 'add' | 'remove'; readonly value: string };

/** A keyring with the changes made so far. Files are written after all changes are valid. */
interface Changed {
  ring: Keyring;
  readonly added: Map<string, KeyFile>;
  readonly removed: Set<string>;
}

/**
 * Adds and removes keys and tenants in the order of the flags. One invalid change rejects all of them. Other keys and
 * edits in `server.conf` stay unchanged. The accounts are always rewritten from the role table of this version, even if
 * no change is named. Of two commands at once, the second one keeps the changes of the first.
 * @throws CliError with exit code 2 for invalid flags, 1 for a keyring that cannot be read or changed.
 */
export async function changeKeys(out: string, changes: readonly Change[], flags: Flags): Promise<ExitCode> {
  for (const other of ['tenant', 'worker', 'gateway-approves'] as const)
    if (other === 'gateway-approves' ? flags.on(other) : flags.inOrder([other]).length > 0)
      throw usageError(`--${other} cannot be combined with --add, --remove and --renew: ${INSTEAD[other]}`);
  // Reports a folder without keys, where no claim can be written.
  await ringIn(out);
  return whileClaimed(join(out, KEYS_FILE), () => changeClaimed(out, changes, flags));
}

async function changeClaimed(out: string, changes: readonly Change[], flags: Flags): Promise<ExitCode> {
  const changed: Changed = { ring: await ringIn(out), added: new Map(), removed: new Set() };
  for (const change of changes) {
    try {
      const tenant = tenantOf(change);
      if (tenant === undefined) changeKey(changed, change);
      else changeTenant(changed, change, tenant);
    } catch (error) {
      if (error instanceof KeyringError) throw new CliError(EXIT.error, error.code, `${error.code}: ${error.message}`);
      throw error;
    }
  }
  const { ring, added, removed } = changed;
  const workers = ring.keys.filter(({ worker }) => worker !== undefined).length;
  // A folder above a limit may still become smaller.
  if (added.size > 0 && ring.keys.length - workers > KEYS_PER_ROLE_MAX * (1 + ring.settings.tenants.length))
    throw usageError(`a folder has at most ${KEYS_PER_ROLE_MAX} keys for each tenant`);
  if (added.size > 0 && ring.settings.tenants.length > TENANTS_MAX)
    throw usageError(`a folder has at most ${TENANTS_MAX} tenants`);
  if (added.size > 0 && workers > WORKERS_MAX) throw usageError(`a folder has at most ${WORKERS_MAX} workers' keys`);
  // A key that no server knows grants nothing. A key file is written before the accounts name its key, and removed
  // after they no longer name it.
  for (const { path, text } of added.values()) {
    const file = join(out, path);
    await mkdir(dirname(file), { recursive: true, mode: 0o700 });
    if (removed.has(path)) await replaceFile(file, text);
    else await writeFile(file, text, { mode: 0o600, flag: 'wx' });
  }
  const accounts = join(out, 'accounts.conf');
  const before = await readFile(accounts, 'utf8').catch(() => null);
  for (const { path, text } of ringFiles(ring)) await replaceFile(join(out, path), text);
  for (const file of removed) if (!added.has(file)) await removeKey(out, file);
  const isNew = before !== (await readFile(accounts, 'utf8'));
  const isTenantNew = changes.some((change) => change.name === 'add' && tenantOf(change) !== undefined);
  printChanges(out, { added: [...added.values()], removed: [...removed], isNew, isTenantNew }, flags);
  return EXIT.ok;
}

const INSTEAD = {
  tenant: '--add tenant=NAME and --remove tenant=NAME change the tenants of an existing folder',
  worker: '--add [TENANT/]worker=NAME=TOOL,TOOL',
  'gateway-approves': 'the setting is fixed when the folder is written',
};

function changeKey(changed: Changed, { name, value }: Change): void {
  const { ring, added, removed } = changed;
  const worker = name === 'add' ? workerOf(value, ring) : undefined;
  const place: KeyPlace = worker
    ? { role: 'tools', tenant: worker.tenant, worker: worker.name }
    : placeOf(name, value, ring);
  if (name === 'remove') {
    const without = withoutKey(ring, place);
    changed.ring = without.ring;
    if (!added.delete(without.key.file)) removed.add(without.key.file);
    return;
  }
  const file = newKeyFile(place, worker);
  changed.ring = withKey(ring, place, file.publicKey, worker?.tools).ring;
  added.set(file.path, file);
}

function changeTenant(changed: Changed, { name }: Change, tenant: TenantId): void {
  const { added, removed } = changed;
  if (name === 'add') {
    const grown = withTenant(changed.ring, tenant);
    changed.ring = grown.ring;
    for (const file of grown.files) added.set(file.path, file);
    return;
  }
  const without = withoutTenant(changed.ring, tenant);
  changed.ring = without.ring;
  for (const { file } of without.keys) if (!added.delete(file)) removed.add(file);
}

/** The tenant of `tenant=green`; undefined if the value names a key. Throws for an invalid tenant. */
function tenantOf({ name, value }: Change): TenantId | undefined {
  const [, given] = /^tenant=(.*)$/s.exec(value) ?? [];
  if (given === undefined) return undefined;
  const tenant = TenantId.safeParse(given);
  if (tenant.success) return tenant.data;
  throw usageError(`--${name} tenant= takes 1 to 64 characters of A-Z a-z 0-9 _ -, not "${cutGraphemes(given, 80)}"`);
}

/** Removes a key file, and the folders of a tenant that has no other files. */
async function removeKey(out: string, file: string): Promise<void> {
  await rm(join(out, file), { force: true });
  for (let folder = dirname(file); folder.startsWith('tenants/'); folder = dirname(folder)) {
    try {
      await rmdir(join(out, folder));
    } catch {
      // The folder has other files.
      return;
    }
  }
}

/** The worker of `[TENANT/]worker=NAME=TOOL,TOOL`; undefined for another role. */
function workerOf(value: string, { settings }: Keyring): ToolWorkerKey | undefined {
  const [, tenant = '', worker] = /^([^/=]+\/)?worker=(.*)$/s.exec(value) ?? [];
  return worker === undefined ? undefined : readWorker('--add worker=', `${tenant}${worker}`, settings.tenants);
}

function placeOf(flag: string, value: string, { settings }: Keyring): KeyPlace {
  const place = keyPlaceFrom(value, settings.tenants);
  if (place === null) {
    const takes = flag === 'add' ? '[TENANT/]ROLE=NAME' : '[TENANT/]ROLE[=NAME] or [TENANT/]worker=NAME';
    const { tenants } = settings;
    // If only the tenant is missing, the message says so.
    if (tenants.length > 1 && keyPlaceFrom(value, tenants.slice(0, 1)) !== null)
      throw usageError(
        `--${flag} ${cutGraphemes(value, 120)} needs a tenant; write ${tenants[0]}/${cutGraphemes(value, 120)}`,
      );
    throw usageError(
      `--${flag} ${cutGraphemes(value, 120)} is invalid: it takes ${takes}, with a role from README.md in the folder`,
    );
  }
  return place;
}

async function ringIn(out: string): Promise<Keyring> {
  const file = join(out, KEYS_FILE);
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    const { code } = error as { code?: string };
    throw new CliError(
      EXIT.error,
      'keyring_unreadable',
      `keyring_unreadable: ${file} cannot be read (${code}): --add, --remove and --renew need a folder that cox admin auth --out wrote`,
    );
  }
  try {
    return keyringFrom(text);
  } catch (error) {
    if (error instanceof KeyringError) throw new CliError(EXIT.error, error.code, `${error.code}: ${error.message}`);
    throw error;
  }
}

function printChanges(
  out: string,
  {
    added,
    removed,
    isNew,
    isTenantNew,
  }: { added: readonly KeyFile[]; removed: readonly string[]; isNew: boolean; isTenantNew: boolean },
  flags: Flags,
): void {
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
    if (flags.on('renew')) standardStreams.out(`${JSON.stringify({ type: 'renewed', changed: isNew })}\n`);
    return;
  }
  if (secrets) for (const { path, seed } of added) standardStreams.out(`${path} ${seed}\n`);
  for (const { path } of added) standardStreams.err(`added ${join(out, path)}\n`);
  for (const file of removed) standardStreams.err(`removed ${join(out, file)}\n`);
  // The first reload makes nats-server accept the users of a new account. The second makes it forward their messages.
  const times = isTenantNew ? ' twice' : '';
  const reload = `reload accounts.conf${times} on every NATS server: nats-server --signal reload, or SIGHUP\n`;
  standardStreams.err(isNew ? reload : 'accounts.conf already has the permissions of this version\n');
}
