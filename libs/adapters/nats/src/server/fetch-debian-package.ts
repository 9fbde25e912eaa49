import { copyFile, mkdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type NewerSuite, newerSuites } from './debian-archive.ts';
import { type FetchReport, megabytes } from './fetch-report.ts';
import { privateApt } from './private-apt.ts';
import { runCommand } from './run-command.ts';
import { installInCache, type ServerBinary, type ServerCache } from './server-cache.ts';
import { FetchFailedError } from './server-errors.ts';
import { minimumServerVersion, serverVersionAtLeast } from './server-version.ts';

/** Where the system's files lie, and how long its package tools may take. */
export interface DebianSource {
  /** Default `/`. */
  readonly root?: string | undefined;
  /** Bound of each apt call, in milliseconds; an index of 10 MB is the largest part. Default 180,000. */
  readonly timeoutMs?: number | undefined;
  /** Bound, in seconds, for a mirror's connection and for its silence. Default 15. */
  readonly silenceSeconds?: number | undefined;
}

const packageName = 'nats-server';
const extractTimeoutMs = 60_000;

/**
 * Fetches the distribution's own nats-server package from a suite newer than the machine's, extracts it (it is never
 * installed), and puts the server into the cache. Signatures are checked by apt with the archive keyring that is
 * already on the machine. Works without root.
 *
 * @throws FetchFailedError when the system is not Debian-like or no newer suite gave a server; it says what each did.
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
  // Tens of megabytes; gone before the server is run, so that a small disk is not short of them.
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
