/** `cox admin auth`. */
import { chmod, lstat, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { type AuthFile, authFiles, TENANTS_MAX, type ToolWorkerKey } from '@coxswain/adapter-nats';
import { makeFolder, systemTrouble } from '@coxswain/ports/discovery';
import { cutGraphemes, DEFAULT_TENANT, TenantId } from '@coxswain/protocol';
import { callerFolder } from '../../folders/mod.ts';
import { CliError, type CommandRun, EXIT, usageError } from '../../line/mod.ts';
import { standardStreams } from '../../terminal/mod.ts';
import { changeKeys } from './auth-change.ts';
import { readWorker, WORKERS_MAX } from './typed-worker.ts';

/**
 * Writes the authorization of a bus: accounts for its NATS servers and a key for each role. With `--add`, `--remove` or
 * `--renew`, changes an existing folder. Exits 1 if the folder exists or cannot be written.
 */
export const run: CommandRun = async (invocation) => {
  const { flags, env } = invocation;
  const named = flags.text('out');
  if (named === undefined || named.trim() === '')
    throw usageError('cox admin auth needs a folder to write: --out ./auth');
  const out = resolve(callerFolder(env), named);
  const changes = flags.inOrder(['add', 'remove']);
  if (changes.length > 0 || flags.on('renew')) return changeKeys(out, changes, flags);
  const tenants = tenantsOf(flags.inOrder(['tenant']).map(({ value }) => value));
  const workers = workersOf(
    flags.inOrder(['worker']).map(({ value }) => value),
    tenants,
  );
  const files = authFiles({ tenants, workers, gatewayApproves: flags.on('gateway-approves') });
  await writeWhole(out, files);
  const seeds = files.filter(({ seed }) => seed !== undefined);
  if (flags.on('json')) {
    for (const { path, role, tenant, worker, publicKey, seed } of seeds) {
      const secret = flags.on('print-seeds') ? { seed } : {};
      const whose = {
        ...(tenant === undefined ? {} : { tenant }),
        ...(worker ? { worker: worker.name, tools: worker.tools } : {}),
      };
      const line = { type: 'key', role, ...whose, file: join(out, path), publicKey };
      standardStreams.out(`${JSON.stringify({ ...line, ...secret })}\n`);
    }
    return EXIT.ok;
  }
  if (flags.on('print-seeds')) for (const { path, seed } of seeds) standardStreams.out(`${path} ${seed}\n`);
  standardStreams.err(
    `wrote ${seeds.length} keys and the accounts of the NATS servers to ${out}; README.md there lists the purpose of each key\n`,
  );
  return EXIT.ok;
};

function tenantsOf(given: readonly string[]): readonly string[] {
  if (given.length === 0) return [DEFAULT_TENANT];
  if (given.length > TENANTS_MAX) throw usageError(`--tenant may be given ${TENANTS_MAX} times at most`);
  for (const [index, tenant] of given.entries()) {
    if (!TenantId.safeParse(tenant).success)
      throw usageError(`--tenant takes 1 to 64 characters of A-Z a-z 0-9 _ -, not "${cutGraphemes(tenant, 80)}"`);
    if (given.indexOf(tenant) !== index) throw usageError(`--tenant ${tenant} is given twice`);
  }
  return given;
}

/**
 * Parses `[TENANT/]NAME=TOOL,TOOL`. Without a tenant, the worker belongs to the only one. Throws for an invalid worker.
 */
function workersOf(given: readonly string[], tenants: readonly string[]): readonly ToolWorkerKey[] {
  if (given.length > WORKERS_MAX) throw usageError(`--worker may be given ${WORKERS_MAX} times at most`);
  const workers = given.map((text): ToolWorkerKey => {
    const worker = readWorker('--worker ', text, tenants);
    if (!tenants.includes(worker.tenant))
      throw usageError(`--worker ${cutGraphemes(text, 120)} names an unknown tenant; add --tenant NAME for it`);
    return worker;
  });
  for (const [index, { tenant, name }] of workers.entries()) {
    if (workers.findIndex((one) => one.tenant === tenant && one.name === name) !== index)
      throw usageError(`--worker ${name} is given twice`);
  }
  return workers;
}

/** Writes all files or none: an incomplete set of keys would look complete. */
async function writeWhole(out: string, files: readonly AuthFile[]): Promise<void> {
  if (await lstat(out).catch(() => null)) throw exists(out);
  const above = dirname(out);
  const unfinished = await createDraftFolder(out, above);
  try {
    await chmod(unfinished, 0o700);
    for (const { path, text } of files) {
      const file = join(unfinished, path);
      await mkdir(dirname(file), { recursive: true, mode: 0o700 });
      await writeFile(file, text, { mode: 0o600, flag: 'wx' });
    }
    await rename(unfinished, out);
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true });
    const { code } = error as { code?: string };
    if (code === 'ENOTEMPTY' || code === 'EEXIST' || code === 'ENOTDIR') throw exists(out);
    throw unusable(out, error);
  }
}

async function createDraftFolder(out: string, above: string): Promise<string> {
  try {
    await makeFolder(above);
    return await mkdtemp(join(above, '.cox-auth-'));
  } catch (error) {
    throw unusable(out, error);
  }
}

function unusable(out: string, error: unknown): CliError {
  const message = `auth_out_unusable: --out ${out} cannot be written: ${systemTrouble(error)}`;
  return new CliError(EXIT.error, 'auth_out_unusable', message);
}

function exists(out: string): CliError {
  const message = `auth_out_exists: --out ${out} already exists, and its keys may be in use: change keys with --add and --remove, tenants with --add tenant=NAME`;
  return new CliError(EXIT.error, 'auth_out_exists', message);
}
