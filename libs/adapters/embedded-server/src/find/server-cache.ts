import { constants } from 'node:fs';
import { access, chmod, mkdir, mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises';
import { homedir, userInfo } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';
import { makeFolder, serverVersionAtLeast, systemTrouble } from '@coxswain/ports/discovery';
import { FetchFailedError } from '../server-errors.ts';
import { requireServerVersion } from '../server-version.ts';
import { serverFileName } from './official-release.ts';

/** A nats-server binary that was run once, with `--version`, and is new enough. */
export interface ServerBinary {
  /** Absolute path. */
  readonly path: string;
  /** Its version, such as `2.15.1`. */
  readonly version: string;
}

/** The cache of fetched servers, for one platform. Different machines may share a home folder. */
export interface ServerCache {
  /** `<cache folder>/nats-server`. It contains one folder per version and platform. */
  readonly dir: string;
  readonly platform: NodeJS.Platform;
  readonly arch: string;
}

const stagingPrefix = '.staging-';
const stagingKeptMs = 24 * 60 * 60 * 1000;

/**
 * Locates the cache: `COX_CACHE_DIR`, or `coxswain` in the user's cache folder. That is `XDG_CACHE_HOME` if it is
 * absolute (https://specifications.freedesktop.org/basedir-spec/latest/), otherwise `~/.cache`; `LOCALAPPDATA` on
 * Windows.
 */
export function serverCache(env: NodeJS.ProcessEnv, platform: NodeJS.Platform, arch: string): ServerCache {
  return { dir: resolve(env.COX_CACHE_DIR || defaultCacheDir(env, platform), 'nats-server'), platform, arch };
}

function defaultCacheDir(env: NodeJS.ProcessEnv, platform: NodeJS.Platform): string {
  if (platform === 'win32' && env.LOCALAPPDATA) return join(env.LOCALAPPDATA, 'coxswain', 'cache');
  const xdg = env.XDG_CACHE_HOME;
  const base = xdg && isAbsolute(xdg) ? xdg : join(env.HOME || homedir() || userInfo().homedir, '.cache');
  return join(base, 'coxswain');
}

/**
 * Finds the newest server in the cache that runs here and is new enough. Others are skipped.
 * @param onUnusable called with the reason for each skipped server, or if the cache cannot be read.
 */
export async function cachedServer(
  cache: ServerCache,
  onUnusable: (reason: string) => void,
  signal?: AbortSignal,
): Promise<ServerBinary | undefined> {
  const suffix = `-${cache.platform}-${cache.arch}`;
  const names = await namesIn(cache.dir).catch((error: unknown) => {
    onUnusable(`cannot be read: ${systemTrouble(error)}; set COX_CACHE_DIR to a folder that this user may read`);
    return [];
  });
  const versions = names
    .filter((name) => name.endsWith(suffix) && !name.startsWith('.'))
    .map((name) => name.slice(0, -suffix.length))
    .sort((a, b) => (serverVersionAtLeast(a, b) ? -1 : 1));
  for (const version of versions) {
    const path = join(cache.dir, `${version}${suffix}`, serverFileName(cache.platform));
    try {
      return { path, version: await requireServerVersion(path, signal) };
    } catch (error) {
      signal?.throwIfAborted();
      onUnusable(error instanceof Error ? error.message : String(error));
    }
  }
  return undefined;
}

/**
 * Puts a server into the cache atomically. `write` creates the binary at the given path in a private folder. The binary
 * is run once, then the folder is renamed to its final name. If another process was first, its server is used and this
 * one is dropped.
 *
 * @param write receives the path of the binary, and a folder for temporary files.
 * @throws the errors of `write`; NatsServerUnusableError or NatsServerTooOldError if the binary is unusable here; the
 *   file system's error if the cache cannot be written; FetchFailedError if its folder cannot be created or written.
 */
export async function installInCache(
  cache: ServerCache,
  write: (path: string, scratchDir: string) => Promise<void>,
  signal?: AbortSignal,
): Promise<ServerBinary> {
  await prepareCache(cache);
  const staging = await mkdtemp(join(cache.dir, stagingPrefix));
  try {
    const folder = join(staging, 'server');
    const scratch = join(staging, 'scratch');
    await mkdir(folder);
    await mkdir(scratch);
    const name = serverFileName(cache.platform);
    await write(join(folder, name), scratch);
    await chmod(join(folder, name), 0o755);
    const version = await requireServerVersion(join(folder, name), signal);
    const final = join(cache.dir, `${version}-${cache.platform}-${cache.arch}`);
    await renameUnlessGood(folder, final, name, staging, signal);
    return { path: join(final, name), version };
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
}

/**
 * Creates the cache's folder, and removes leftovers of killed fetches that are older than a day.
 * @throws FetchFailedError if the folder is not writable. The message has the reason and the setting to change.
 */
export async function prepareCache(cache: ServerCache): Promise<void> {
  try {
    await makeFolder(cache.dir, 0o777);
    await access(cache.dir, constants.W_OK | constants.X_OK);
    await removeOldStaging(cache.dir);
  } catch (error) {
    const reason = `${systemTrouble(error)}; set COX_CACHE_DIR to a folder that this user may write`;
    throw new FetchFailedError(`nothing can be kept there: ${reason}`, { cause: error });
  }
}

async function renameUnlessGood(folder: string, final: string, name: string, staging: string, signal?: AbortSignal) {
  // Another server may have the final name. If it is usable, it stays. If it is broken, it is moved away, and the
  // rename is repeated, at most three times in total.
  for (let round = 1; ; round += 1) {
    try {
      return await rename(folder, final);
    } catch (error) {
      if (round === 3 || !isTaken(error)) throw error;
    }
    try {
      await requireServerVersion(join(final, name), signal);
      return;
    } catch {
      signal?.throwIfAborted();
      // A broken server has the name (after a full disk, or a partial deletion): it is deleted with the staging folder.
      await rename(final, join(staging, `broken-${round}`));
    }
  }
}

function isTaken(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code;
  // Windows answers EPERM for an existing folder; elsewhere it means missing permission.
  return code === 'ENOTEMPTY' || code === 'EEXIST' || (process.platform === 'win32' && code === 'EPERM');
}

/** Removes staging folders that killed fetches left more than a day ago. */
async function removeOldStaging(dir: string): Promise<void> {
  for (const name of await namesIn(dir)) {
    if (!name.startsWith(stagingPrefix)) continue;
    const path = join(dir, name);
    const info = await stat(path).catch(ignoreMissing);
    if (info && Date.now() - info.mtimeMs > stagingKeptMs) await rm(path, { recursive: true, force: true });
  }
}

async function namesIn(dir: string): Promise<string[]> {
  return (await readdir(dir).catch(ignoreMissing)) ?? [];
}

function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined;
  throw error;
}
