import { copyFile, mkdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { minimumServerVersion, serverVersionAtLeast } from '@coxswain/ports/discovery';
import { FetchFailedError } from '../server-errors.ts';
import { type NewerSuite, newerSuites } from './debian-archive.ts';
import { type FetchReport, megabytes } from './fetch-report.ts';
import { privateApt } from './private-apt.ts';
import { runCommand } from './run-command.ts';
import { installInCache, type ServerBinary, type ServerCache } from './server-cache.ts';

/** The root of the system's files, and the timeouts of its package tools. */
export interface DebianSource {
  /** The root of the system's files. Default `/`. */
  readonly root?: string | undefined;
  /** Timeout of each apt call, in milliseconds. Most of it is for an index of 10 MB. Default 180,000. */
  readonly timeoutMs?: number | undefined;
  /** Timeout, in seconds, of the connection to a mirror and of its silence. Default 15. */
  readonly silenceSeconds?: number | undefined;
}

const packageName = 'nats-server';
const extractTimeoutMs = 60_000;

/**
 * Fetches the distribution's nats-server package from a suite newer than the machine's, extracts it without installing
 * it, and puts the server into the cache. Apt verifies signatures with the keyring that is already on the machine.
 * Works without root.
 *
 * @throws FetchFailedError if the system is not Debian-like, or no newer suite provided a server. The message lists the
 *   outcome of each suite.
 */
export async function fetchDebianPackage(
  cache: ServerCache,
  source: DebianSource,
  report: FetchReport,
  env: NodeJS.ProcessEnv,
  signal?: AbortSignal,
): Promise<ServerBinary> {
  if (cache.platform !== 'linux') throw new FetchFailedError('the system is not Debian-like');
  const suites = await newerSuites(source.root ?? '/');
  if (suites.length === 0) {
    throw new FetchFailedError('the system is not Debian-like, or its apt sources name no mirror of its archive');
  }
  const failures: string[] = [];
  for (const suite of suites) {
    try {
      return await installInCache(
        cache,
        (path, scratch) => extractFrom(suite, path, scratch, { cache, source, report, env, signal }),
        signal,
      );
    } catch (error) {
      signal?.throwIfAborted();
      failures.push(`${suite.suite} at ${suite.uri}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  throw new FetchFailedError(failures.join('; '));
}

interface Fetch {
  readonly cache: ServerCache;
  readonly source: DebianSource;
  readonly report: FetchReport;
  readonly env: NodeJS.ProcessEnv;
  readonly signal: AbortSignal | undefined;
}

async function extractFrom(suite: NewerSuite, path: string, scratch: string, fetch: Fetch): Promise<void> {
  const { source, report, env, signal, cache } = fetch;
  const apt = await privateApt(scratch, suite, {
    env,
    signal,
    timeoutMs: source.timeoutMs ?? 180_000,
    silenceSeconds: source.silenceSeconds ?? 15,
  });
  report.line(`Reading the package index of ${suite.suite} at ${suite.uri} (about 10 MB, not kept)`);
  await apt.update((fraction) => report.progress('package index', fraction));

  const file = await apt.describe(packageName);
  if (!serverVersionAtLeast(file.upstreamVersion, minimumServerVersion)) {
    throw new FetchFailedError(`carries nats-server ${file.upstreamVersion}, older than ${minimumServerVersion}`);
  }
  report.line(
    `Fetching ${file.fileName} (${megabytes(file.bytes)}) once from ${suite.uri} into ${cache.dir}; it is not installed`,
  );
  const deb = await apt.download(file, (fraction) => report.progress(packageName, fraction));

  const extracted = join(scratch, 'extracted');
  await mkdir(extracted);
  await runCommand('dpkg-deb', ['-x', deb, extracted], { timeoutMs: extractTimeoutMs, env, signal });
  await copyFile(await serverIn(extracted), path);
  // Frees tens of megabytes before the server is run, for small disks.
  await rm(scratch, { recursive: true, force: true });
}

async function serverIn(extracted: string): Promise<string> {
  for (const path of [join(extracted, 'usr/sbin/nats-server'), join(extracted, 'usr/bin/nats-server')]) {
    const info = await stat(path).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined;
      throw error;
    });
    if (info?.isFile()) return path;
  }
  throw new FetchFailedError('the package holds no nats-server');
}
