import { delimiter, join, resolve } from 'node:path';
import { minimumServerVersion } from '@coxswain/ports/discovery';
import {
  FetchChecksumMismatchError,
  FetchFailedError,
  FetchSettingInvalidError,
  type FindAttempt,
  NatsServerNotFoundError,
} from '../server-errors.ts';
import { requireServerVersion } from '../server-version.ts';
import { type DebianSource, fetchDebianPackage } from './fetch-debian-package.ts';
import { fetchRelease, type ReleaseSource } from './fetch-release.ts';
import { type FetchReport, reportTo } from './fetch-report.ts';
import { firstServer } from './first-server.ts';
import { serverFileName } from './official-release.ts';
import { packagedServer } from './packaged-server.ts';
import { cachedServer, prepareCache, type ServerBinary, serverCache } from './server-cache.ts';

/** A server to connect to, or a binary to start. */
export type FoundServer =
  | {
      /** `NATS_URL` is the address of a running server: start none. */
      readonly kind: 'external';
      /** The value of `NATS_URL`; may contain credentials. `parseConnectionUrl` parses it. */
      readonly url: string;
    }
  | ({
      readonly kind: 'binary';
      /** The source that provided it. */
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

/** The display name of a source of binaries: `the PATH`. */
export function serverSourceName(source: ServerSource): string {
  return sourceNames[source];
}

/** Options of {@link findServer}. All have defaults; tests and unusual environments set them. */
export interface FindServerOptions {
  /** Default `process.env`. Read: NATS_URL, COX_NATS_SERVER, PATH, COX_CACHE_DIR, COX_FETCH, and proxy settings. */
  readonly env?: NodeJS.ProcessEnv | undefined;
  /** Default: this machine's platform. */
  readonly platform?: NodeJS.Platform | undefined;
  /** In Node's names (`x64`, `arm64`). Default: this machine's architecture. */
  readonly arch?: string | undefined;
  /** Folder of a module of the installed Coxswain, whose npm packages are searched. Default: this module's. */
  readonly moduleDir?: string | undefined;
  /** The output of a fetch. Default: standard error. */
  readonly report?: FetchReport | undefined;
  readonly release?: ReleaseSource | undefined;
  readonly debian?: DebianSource | undefined;
  /** Ends the search early; it then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Finds a server to use or to embed. Sources, in this order: `NATS_URL`; `COX_NATS_SERVER`; `nats-server` on the PATH,
 * if it is new enough; the platform's npm package, installed with Coxswain; the cache folder; a one-time fetch into the
 * cache. The fetch tries the official release, then the distribution's package from a newer suite. `COX_FETCH=never`
 * forbids the fetch.
 *
 * Without a fetch it usually takes less than a second. Each step of a fetch has a timeout.
 *
 * @throws NatsServerUnusableError, NatsServerTooOldError if `COX_NATS_SERVER` is not a usable server. An explicit
 *   setting is not replaced by another source.
 * @throws FetchChecksumMismatchError if a release does not match its checksums.
 * @throws FetchSettingInvalidError if `COX_FETCH` is neither `never` nor `auto`.
 * @throws NatsServerNotFoundError if every source failed; it lists them.
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
  // Before a download that could not be stored.
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
      // A changed release is not a transient failure. A person must check it, so no other source is tried.
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
