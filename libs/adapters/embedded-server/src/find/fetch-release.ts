import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { FetchChecksumMismatchError, FetchFailedError } from '../server-errors.ts';
import { type DownloadOptions, download } from './download.ts';
import { type FetchReport, megabytes } from './fetch-report.ts';
import { fetchedServerVersion, pinnedDigests, releaseAsset, type ServerPlatform } from './official-release.ts';
import { installInCache, type ServerBinary, type ServerCache } from './server-cache.ts';
import { fileFromTarGz } from './tar-entry.ts';
import { fileFromZip } from './zip-entry.ts';

/** The location of releases, and the requested version. */
export interface ReleaseSource {
  /** URL of the folder of all releases; `/v<version>/<asset>` is appended. Default: nats-io/nats-server on GitHub. */
  readonly baseUrl?: string | undefined;
  /** Default {@link fetchedServerVersion}. */
  readonly version?: string | undefined;
  /** SHA-256 digests in hex, by archive name. Default {@link pinnedDigests}. */
  readonly digests?: Readonly<Record<string, string>> | undefined;
  /** Timeouts of each download, in milliseconds; defaults as in {@link DownloadOptions}. */
  readonly connectTimeoutMs?: number | undefined;
  readonly idleTimeoutMs?: number | undefined;
  readonly totalTimeoutMs?: number | undefined;
}

/** The official releases: https://github.com/nats-io/nats-server/releases */
const officialReleases = 'https://github.com/nats-io/nats-server/releases/download';

/** Size limits, bytes: about ten times the usual 7 MB of an archive and 20 MB of a binary. */
const maxArchiveBytes = 80_000_000;
const maxUnpackedBytes = 250_000_000;
const maxSumsBytes = 256_000;

/** An archive of a release with a verified checksum. */
export interface ReleaseArchive {
  /** File name. */
  readonly asset: string;
  /** The URL that it was downloaded from. */
  readonly url: string;
  /** SHA-256 in hex. */
  readonly sha256: string;
  readonly bytes: Buffer;
}

/** Environment, report and cancellation of {@link downloadRelease}. */
export interface ReleaseDownload {
  /** Used for proxy settings only. */
  readonly env: NodeJS.ProcessEnv;
  readonly report: FetchReport;
  /** The target folder of the server; only reported. */
  readonly into: string;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Fetches the official release for the cache's platform, and puts its server into the cache.
 *
 * @throws as {@link downloadRelease}, {@link serverIn} and {@link installInCache}.
 */
export async function fetchRelease(
  cache: ServerCache,
  source: ReleaseSource,
  report: FetchReport,
  env: NodeJS.ProcessEnv,
  signal?: AbortSignal,
): Promise<ServerBinary> {
  const archive = await downloadRelease(cache, source, { env, report, into: cache.dir, signal });
  const server = serverIn(archive);
  return installInCache(cache, (path) => writeFile(path, server, { mode: 0o755 }), signal);
}

/**
 * Downloads the archive of a platform. Verifies it with the publisher's SHA256SUMS and, if there is one, the pinned
 * digest. Reports source and size before it reads the archive's body.
 *
 * @throws FetchFailedError if there is no release for the platform, or a download fails.
 * @throws FetchChecksumMismatchError if the checksums of the archive, of SHA256SUMS and of the pinned digest differ.
 */
export async function downloadRelease(
  platform: ServerPlatform,
  source: ReleaseSource,
  { env, report, into, signal }: ReleaseDownload,
): Promise<ReleaseArchive> {
  const version = source.version ?? fetchedServerVersion;
  const asset = releaseAsset(version, platform);
  if (asset === undefined)
    throw new FetchFailedError(`no official release is known for ${platform.platform} on ${platform.arch}`);
  const folder = `${source.baseUrl ?? officialReleases}/v${version}`;
  const url = `${folder}/${asset}`;
  const { connectTimeoutMs, idleTimeoutMs, totalTimeoutMs } = source;
  const bounds = { env, signal, connectTimeoutMs, idleTimeoutMs, totalTimeoutMs };

  report.line(`Looking for the official release of nats-server ${version} at ${folder}`);
  const sums = await download(`${folder}/SHA256SUMS`, { ...bounds, maxBytes: maxSumsBytes });
  const expected = checksumOf(asset, sums.toString('utf8'));
  if (expected === undefined) throw new FetchFailedError(`${folder}/SHA256SUMS has no line for ${asset}`);
  const pinned = (source.digests ?? pinnedDigests)[asset];
  // Before the download of an archive that would be rejected.
  if (pinned !== undefined && pinned !== expected)
    throw new FetchChecksumMismatchError(`${folder}/SHA256SUMS`, 'this version of Coxswain', pinned, expected);
  if (pinned === undefined)
    report.line(`No digest of ${asset} is pinned: it is checked against the SHA256SUMS of the same place only`);

  const bytes = await downloadArchive(url, { ...bounds, maxBytes: maxArchiveBytes }, into, report);
  const actual = createHash('sha256').update(bytes).digest('hex');
  if (actual !== expected) throw new FetchChecksumMismatchError(url, 'SHA256SUMS', expected, actual);
  return { asset, url, sha256: actual, bytes };
}

function downloadArchive(url: string, options: DownloadOptions, into: string, report: FetchReport) {
  return download(url, {
    ...options,
    onSize: (bytes) => {
      const size = bytes === undefined ? 'size not stated' : megabytes(bytes);
      report.line(`Fetching nats-server once from ${url} (${size}) into ${into}`);
    },
    onProgress: (fraction) => report.progress('nats-server', fraction),
  });
}

/** Parses the format of sha256sum: lines of `<hex digest>  <file name>`; a star before the name marks binary mode. */
function checksumOf(asset: string, sums: string): string | undefined {
  for (const line of sums.split('\n')) {
    const [digest, name] = line.trim().split(/\s+\*?/);
    if (name === asset && digest && /^[0-9a-f]{64}$/i.test(digest)) return digest.toLowerCase();
  }
  return undefined;
}

/**
 * Extracts the server's binary from an archive.
 * @throws FetchFailedError if the archive has none; RangeError or an error of zlib if it is damaged.
 */
export function serverIn(archive: ReleaseArchive): Buffer {
  return fileIn(archive, /(^|\/)nats-server(\.exe)?$/);
}

/**
 * Extracts the license from an archive.
 * @throws as {@link serverIn}.
 */
export function licenseIn(archive: ReleaseArchive): Buffer {
  return fileIn(archive, /(^|\/)LICENSE$/);
}

function fileIn({ asset, bytes }: ReleaseArchive, path: RegExp): Buffer {
  const read = asset.endsWith('.zip') ? fileFromZip : fileFromTarGz;
  const file = read(bytes, (one) => path.test(one), maxUnpackedBytes);
  if (!file) throw new FetchFailedError(`${asset} holds no file that matches ${path}`);
  return file;
}
