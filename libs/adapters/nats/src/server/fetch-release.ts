import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { type DownloadOptions, download } from './download.ts';
import { type FetchReport, megabytes } from './fetch-report.ts';
import { installInCache, type ServerBinary, type ServerCache } from './server-cache.ts';
import { FetchChecksumMismatchError, FetchFailedError } from './server-errors.ts';
import { fetchedServerVersion } from './server-version.ts';
import { fileFromTarGz } from './tar-entry.ts';
import { fileFromZip } from './zip-entry.ts';

/** Where releases are published, and which one is wanted. */
export interface ReleaseSource {
  /** Folder of all releases; `v<version>/<asset>` is added. Default: the releases of nats-io/nats-server on GitHub. */
  readonly baseUrl?: string | undefined;
  /** Default {@link fetchedServerVersion}. */
  readonly version?: string | undefined;
  /** SHA-256 in hex by archive name. Default {@link pinnedDigests}. */
  readonly digests?: Readonly<Record<string, string>> | undefined;
  /** Bounds of each download, in milliseconds; see {@link DownloadOptions} for their defaults. */
  readonly connectTimeoutMs?: number | undefined;
  readonly idleTimeoutMs?: number | undefined;
  readonly totalTimeoutMs?: number | undefined;
}

/** The official releases: https://github.com/nats-io/nats-server/releases */
const officialReleases = 'https://github.com/nats-io/nats-server/releases/download';

/**
 * SHA-256 of archives of {@link fetchedServerVersion}. SHA256SUMS comes from the same place as the archives; these come with
 * Coxswain, so an archive that is exchanged together with its list is refused. They change together with the version. These two
 * stand in a public build recipe that verifies the same archives; compare them with SHA256SUMS at every update. Archives
 * without a digest here (macOS, Windows) are checked against SHA256SUMS alone.
 */
export const pinnedDigests: Readonly<Record<string, string>> = {
  'nats-server-v2.15.1-linux-amd64.tar.gz': 'bf5edc7b1ce98e885c368cb43a886eb148dc5d0551d99f3cf6141fb5e1954c70',
  'nats-server-v2.15.1-linux-arm64.tar.gz': 'e2fbab4cad7d3c76e3052eb959570393c9d73ba756b70bf8e9eea61e9ae6d49c',
};

/** Archives have about 7 MB and binaries about 20 MB; what is ten times larger is something else. */
const maxArchiveBytes = 80_000_000;
const maxUnpackedBytes = 250_000_000;
const maxSumsBytes = 256_000;

/**
 * Fetches the official release for the cache's platform, checks it against the publisher's SHA256SUMS and the
 * pinned digest, and puts the server into the cache. Source and size are said before the archive's body is read.
 *
 * @throws FetchFailedError when there is no release for the platform, or it cannot be had.
 * @throws FetchChecksumMismatchError when SHA256SUMS or the pinned digest names another archive.
 */
export async function fetchRelease(
  cache: ServerCache,
  source: ReleaseSource,
  report: FetchReport,
  env: NodeJS.ProcessEnv,
  signal?: AbortSignal,
): Promise<ServerBinary> {
  const version = source.version ?? fetchedServerVersion;
  const asset = assetName(version, cache);
  const folder = `${source.baseUrl ?? officialReleases}/v${version}`;
  const url = `${folder}/${asset}`;
  const { connectTimeoutMs, idleTimeoutMs, totalTimeoutMs } = source;
  const bounds = { env, signal, connectTimeoutMs, idleTimeoutMs, totalTimeoutMs };

  report.line(`Looking for the official release of nats-server ${version} at ${folder}`);
  const sums = await download(`${folder}/SHA256SUMS`, { ...bounds, maxBytes: maxSumsBytes });
  const expected = checksumOf(asset, sums.toString('utf8'));
  if (expected === undefined) throw new FetchFailedError(`${folder}/SHA256SUMS has no line for ${asset}`);
  const pinned = (source.digests ?? pinnedDigests)[asset];
  // Before an archive is fetched that would be refused.
  if (pinned !== undefined && pinned !== expected)
    throw new FetchChecksumMismatchError(`${folder}/SHA256SUMS`, 'this version of Coxswain', pinned, expected);
  if (pinned === undefined)
    report.line(`No digest of ${asset} is pinned: it is checked against the SHA256SUMS of the same place only`);

  const archive = await downloadArchive(url, { ...bounds, maxBytes: maxArchiveBytes }, cache, report);
  const actual = createHash('sha256').update(archive).digest('hex');
  if (actual !== expected) throw new FetchChecksumMismatchError(url, 'SHA256SUMS', expected, actual);

  const server = unpack(archive, asset);
  return installInCache(cache, (path) => writeFile(path, server, { mode: 0o755 }), signal);
}

function downloadArchive(url: string, options: DownloadOptions, cache: ServerCache, report: FetchReport) {
  return download(url, {
    ...options,
    onSize: (bytes) => {
      const size = bytes === undefined ? 'size not stated' : megabytes(bytes);
      report.line(`Fetching nats-server once from ${url} (${size}) into ${cache.dir}`);
    },
    onProgress: (fraction) => report.progress('nats-server', fraction),
  });
}

/** Names by the project's own release recipe: https://github.com/nats-io/nats-server/blob/main/.goreleaser.yml */
function assetName(version: string, { platform, arch }: ServerCache): string {
  const os = new Map<string, string>([
    ['linux', 'linux'],
    ['darwin', 'darwin'],
    ['win32', 'windows'],
  ]).get(platform);
  const cpu = new Map<string, string>([
    ['x64', 'amd64'],
    ['arm64', 'arm64'],
  ]).get(arch);
  if (!os || !cpu) throw new FetchFailedError(`no official release is known for ${platform} on ${arch}`);
  return `nats-server-v${version}-${os}-${cpu}.${os === 'windows' ? 'zip' : 'tar.gz'}`;
}

/** Lines read `<hex digest>  <file name>`, a star before the name marking binary mode, as sha256sum writes them. */
function checksumOf(asset: string, sums: string): string | undefined {
  for (const line of sums.split('\n')) {
    const [digest, name] = line.trim().split(/\s+\*?/);
    if (name === asset && digest && /^[0-9a-f]{64}$/i.test(digest)) return digest.toLowerCase();
  }
  return undefined;
}

function unpack(archive: Buffer, asset: string): Buffer {
  const isServer = (path: string) => /(^|\/)nats-server(\.exe)?$/.test(path);
  const read = asset.endsWith('.zip') ? fileFromZip : fileFromTarGz;
  const server = read(archive, isServer, maxUnpackedBytes);
  if (!server) throw new FetchFailedError(`${asset} holds no nats-server`);
  return server;
}
