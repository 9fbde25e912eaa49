/**
 * Names of the official releases of nats-server, and of the npm packages that contain them. This file has no imports,
 * so that release scripts can load it from source.
 */

/** The release that Coxswain downloads and packages. The digests below change together with it. */
export const fetchedServerVersion = '2.15.1';

/** A kind of machine, in Node's names (`process.platform`, `process.arch`). */
export interface ServerPlatform {
  readonly platform: string;
  readonly arch: string;
}

/** Platforms with an official release and an npm package. */
export const serverPlatforms: readonly ServerPlatform[] = ['linux', 'darwin', 'win32'].flatMap((platform) =>
  ['x64', 'arm64'].map((arch) => ({ platform, arch })),
);

/**
 * SHA-256 of archives of {@link fetchedServerVersion}, by file name. SHA256SUMS comes from the same place as the
 * archives. A pinned digest also rejects an archive that was replaced together with SHA256SUMS. The two digests come
 * from a public build recipe that verifies the same archives. Compare them with SHA256SUMS at every update. Archives
 * without a pinned digest (macOS, Windows) are verified with SHA256SUMS only.
 */
export const pinnedDigests: Readonly<Record<string, string>> = {
  'nats-server-v2.15.1-linux-amd64.tar.gz': 'bf5edc7b1ce98e885c368cb43a886eb148dc5d0551d99f3cf6141fb5e1954c70',
  'nats-server-v2.15.1-linux-arm64.tar.gz': 'e2fbab4cad7d3c76e3052eb959570393c9d73ba756b70bf8e9eea61e9ae6d49c',
};

/** Go's names of Node's platforms and processors, as in the names of archives. */
const goNames: Readonly<Record<string, string>> = { win32: 'windows', x64: 'amd64' };

/**
 * File name of the archive of a release, or undefined for a platform without one. Naming rule:
 * https://github.com/nats-io/nats-server/blob/main/.goreleaser.yml
 */
export function releaseAsset(version: string, { platform, arch }: ServerPlatform): string | undefined {
  if (!isServerPlatform({ platform, arch })) return undefined;
  const extension = platform === 'win32' ? 'zip' : 'tar.gz';
  return `nats-server-v${version}-${goNames[platform] ?? platform}-${goNames[arch] ?? arch}.${extension}`;
}

/** Name of the npm package with the server of a platform, or undefined for a platform without one. */
export function serverPackageName({ platform, arch }: ServerPlatform): string | undefined {
  return isServerPlatform({ platform, arch }) ? `@coxswain/nats-server-${platform}-${arch}` : undefined;
}

/** File name of the server's binary. */
export function serverFileName(platform: string): string {
  return platform === 'win32' ? 'nats-server.exe' : 'nats-server';
}

function isServerPlatform({ platform, arch }: ServerPlatform): boolean {
  return serverPlatforms.some((one) => one.platform === platform && one.arch === arch);
}
