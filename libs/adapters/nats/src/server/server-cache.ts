import { constants } from 'node:fs';
import { access, chmod, mkdir, mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises';
import { homedir, userInfo } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';
import { makeFolder, systemTrouble } from './make-folder.ts';
import { serverFileName } from './official-release.ts';
import { FetchFailedError } from './server-errors.ts';
import { requireServerVersion, serverVersionAtLeast } from './server-version.ts';

/** A nats-server binary that was run once and is new enough. */
export interface ServerBinary {
  /** Absolute path. */
  readonly path: string;
  /** The version that it prints: `2.15.1`. */
  readonly version: string;
}

/** Where fetched servers are kept, and for which kind of machine. Homes are shared between machines of two kinds. */
export interface ServerCache {
  /** `<cache folder>/nats-server`; holds one folder per version and platform. */
  readonly dir: string;
  readonly platform: NodeJS.Platform;
  readonly arch: string;
}

const stagingPrefix = '.staging-';
const stagingKeptMs = 24 * 60 * 60 * 1000;

/**
 * The cache: `COX_CACHE_DIR`, or `coxswain` in the user's cache folder (`XDG_CACHE_HOME`, which counts only when it is
 * absolute: https://specifications.freedesktop.org/basedir-spec/latest/, else `~/.cache`; `LOCALAPPDATA` on Windows).
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
 * The newest server in the cache that runs here. One that does not run is passed over, and told to `onUnusable`.
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
 * Puts a server into the cache, whole or not at all: `write` makes the binary at the path it is given, in a private
 * folder; it is run once; then the folder gets its final name in one step. When another process was first, its server
 * is returned and ours dropped.
 *
 * @throws what `write` throws; NatsServerUnusableError or NatsServerTooOldError when the binary is no good here; the
 *   file system's error when the cache cannot be written; FetchFailedError when its folder cannot be made.
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
 * Makes the cache's folder, and empties it of what killed fetches have left.
 * @throws FetchFailedError where nothing can be kept there; it says why, and what to set.
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
  // Three rounds: ours loses the name to another process, that one is broken and moved away, ours takes the name.
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
      // A broken server holds the name (a full disk, a half-deleted folder): it leaves together with our staging.
      await rename(final, join(staging, `broken-${round}`));
    }
  }
}

function isTaken(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code;
  // Windows says EPERM for a folder that exists; elsewhere that would be a real lack of permission.
  return code === 'ENOTEMPTY' || code === 'EEXIST' || (process.platform === 'win32' && code === 'EPERM');
}

/** Left behind by fetches that were killed. */
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
