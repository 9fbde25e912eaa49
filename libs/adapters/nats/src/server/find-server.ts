import { delimiter, join, resolve } from 'node:path';
import { type DebianSource, fetchDebianPackage } from './fetch-debian-package.ts';
import { fetchRelease, type ReleaseSource } from './fetch-release.ts';
import { type FetchReport, reportTo } from './fetch-report.ts';
import { firstServer } from './first-server.ts';
import { serverFileName } from './official-release.ts';
import { packagedServer } from './packaged-server.ts';
import { cachedServer, prepareCache, type ServerBinary, serverCache } from './server-cache.ts';
import {
  FetchChecksumMismatchError,
  FetchFailedError,
  FetchSettingInvalidError,
  type FindAttempt,
  NatsServerNotFoundError,
} from './server-errors.ts';
import { minimumServerVersion, requireServerVersion } from './server-version.ts';

/** A server to connect to, or a binary to start. */
export type FoundServer =
  | {
      /** `NATS_URL` names a server that runs already: none is to be started. */
      readonly kind: 'external';
      /** The value of `NATS_URL`; may contain credentials. `parseConnectionUrl` parses it. */
      readonly url: string;
    }
  | ({
      readonly kind: 'binary';
      /** Which source gave it. */
      readonly source: ServerSource;
    } & ServerBinary);

/** A source of binaries. */
export type ServerSource = 'COX_NATS_SERVER' | 'path' | 'package' | 'cache' | 'release' | 'debian';

const sourceNames: Readonly<Record<ServerSource, string>> = {
  COX_NATS_SERVER: 'COX_NATS_SERVER',
  path: 'the PATH',
  package: 'the npm package',
  cache: 'the cache',
  release: 'the official release',
  debian: "the distribution's package",
};

/** A source of binaries as people know it: `the PATH`. */
export function serverSourceName(source: ServerSource): string {
  return sourceNames[source];
}

/** Everything has a default; tests and unusual hosts set the rest. */
export interface FindServerOptions {
  /** Default `process.env`. Read: NATS_URL, COX_NATS_SERVER, PATH, COX_CACHE_DIR, COX_FETCH, and proxy settings. */
  readonly env?: NodeJS.ProcessEnv | undefined;
  /** Default this machine's. */
  readonly platform?: NodeJS.Platform | undefined;
  /** Default this machine's; Node's names (`x64`, `arm64`). */
  readonly arch?: string | undefined;
  /** Folder of a module of the installed Coxswain, whose npm packages are searched. Default: this module's. */
  readonly moduleDir?: string | undefined;
  /** Where a fetch says what it does. Default: standard error. */
  readonly report?: FetchReport | undefined;
  readonly release?: ReleaseSource | undefined;
  readonly debian?: DebianSource | undefined;
  /** Ends the search early; it then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Finds the server of the embedded default, in this order: `NATS_URL` · `COX_NATS_SERVER` · `nats-server` on the PATH,
 * if new enough · the npm package of the platform that is installed with Coxswain · the cache folder · a one-time fetch into
 * it (the official release; where that cannot be had, the distribution's package from a newer suite). `COX_FETCH=never`
 * forbids the fetch.
 *
 * Without a fetch it takes well under a second; with one, each step has a bound.
 *
 * @throws NatsServerUnusableError, NatsServerTooOldError when `COX_NATS_SERVER` names no good server: what somebody
 *   asked for by name is not replaced by something else.
 * @throws FetchChecksumMismatchError when a release is not what its publisher's checksums name.
 * @throws FetchSettingInvalidError when `COX_FETCH` is neither `never` nor `auto`.
 * @throws NatsServerNotFoundError when every source failed; it lists them.
 */
export async function findServer(options: FindServerOptions = {}): Promise<FoundServer> {
  const { env = process.env, platform = process.platform, arch = process.arch, signal } = options;
  const mayFetch = fetchAllowed(env);
  const attempts: FindAttempt[] = [];
  const note = (source: string, outcome: string) => void attempts.push({ source, outcome });

  const url = env.NATS_URL?.trim();
  if (url) return { kind: 'external', url };

  const named = env.COX_NATS_SERVER;
  if (named) {
    const path = resolve(named);
    return { kind: 'binary', source: 'COX_NATS_SERVER', path, version: await requireServerVersion(path, signal) };
  }

  const onPath = await serverOnPath(env, platform, note, signal);
  if (onPath) return { kind: 'binary', source: 'path', ...onPath };

  const packaged = await packagedServer({ platform, arch, moduleDir: options.moduleDir, note, signal });
  if (packaged) return { kind: 'binary', source: 'package', ...packaged };

  const cache = serverCache(env, platform, arch);
  const cached = await cachedServer(cache, (reason) => note(`the cache ${cache.dir}`, reason), signal);
  if (cached) return { kind: 'binary', source: 'cache', ...cached };
  note(`the cache ${cache.dir}`, `holds no usable server for ${platform} on ${arch}`);

  if (!mayFetch) {
    note('fetching one', 'forbidden by COX_FETCH=never');
    throw new NatsServerNotFoundError(attempts, minimumServerVersion);
  }
  // Before anything is fetched that could not be kept.
  try {
    await prepareCache(cache);
  } catch (error) {
    if (!(error instanceof FetchFailedError)) throw error;
    note(`the cache ${cache.dir}`, error.message);
    throw new NatsServerNotFoundError(attempts, minimumServerVersion);
  }
  const report = options.report ?? reportTo(process.stderr);
  const attempt = async (source: string, fetch: () => Promise<ServerBinary>) => {
    try {
      return await fetch();
    } catch (error) {
      signal?.throwIfAborted();
      // A changed release is not an unlucky one: somebody has to look.
      if (error instanceof FetchChecksumMismatchError) throw error;
      const outcome = error instanceof Error ? error.message : String(error);
      report.line(`${source}: ${outcome}`);
      note(source, outcome);
      return undefined;
    }
  };
  const release = await attempt('the official release', () =>
    fetchRelease(cache, options.release ?? {}, report, env, signal),
  );
  if (release) return { kind: 'binary', source: 'release', ...release };
  const debian = await attempt("the distribution's package", () =>
    fetchDebianPackage(cache, options.debian ?? {}, report, env, signal),
  );
  if (debian) return { kind: 'binary', source: 'debian', ...debian };
  throw new NatsServerNotFoundError(attempts, minimumServerVersion);
}

function fetchAllowed(env: NodeJS.ProcessEnv): boolean {
  const setting = env.COX_FETCH || 'auto';
  if (setting !== 'auto' && setting !== 'never') throw new FetchSettingInvalidError(setting);
  return setting === 'auto';
}

async function serverOnPath(
  env: NodeJS.ProcessEnv,
  platform: NodeJS.Platform,
  note: (source: string, outcome: string) => void,
  signal: AbortSignal | undefined,
): Promise<ServerBinary | undefined> {
  const name = serverFileName(platform);
  const folders = (env.PATH ?? env.Path ?? '').split(delimiter).filter((folder) => folder !== '');
  const paths = folders.map((folder) => resolve(join(folder, name)));
  return firstServer(paths, { source: 'nats-server on the PATH', none: 'there is none', note, signal });
}
