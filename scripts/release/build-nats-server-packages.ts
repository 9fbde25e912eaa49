/**
 * Builds the npm packages that contain nats-server, one folder per platform, from the official archives:
 *
 *   npm run release:nats-server -- --out FOLDER [--platform linux-x64 …] [--allow-unpinned]
 *   npm run release:nats-server -- --out FOLDER --binary PATH
 *
 * An archive must match the publisher's SHA256SUMS and the digest in official-release.ts. If such a digest is missing,
 * the script stops before it downloads anything, unless `--allow-unpinned` is given. `--binary` packages a local server
 * instead, to try the packages where the archives are unreachable. That package is private, so npm refuses to publish
 * it.
 */
import { createHash } from 'node:crypto';
import { existsSync, realpathSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import {
  downloadRelease,
  licenseIn,
  type ReleaseArchive,
  type ReleaseSource,
  serverIn,
} from '../../libs/adapters/embedded-server/src/find/fetch-release.ts';
import { type FetchReport, reportTo } from '../../libs/adapters/embedded-server/src/find/fetch-report.ts';
import {
  fetchedServerVersion,
  pinnedDigests,
  releaseAsset,
  type ServerPlatform,
  serverFileName,
  serverPackageName,
  serverPlatforms,
} from '../../libs/adapters/embedded-server/src/find/official-release.ts';
import { requireServerVersion } from '../../libs/adapters/embedded-server/src/server-version.ts';
import { PUBLISHED } from './packages.mjs';

const repository = resolve(import.meta.dirname, '../..');

/** Options of a build of server packages. */
export interface BuildOptions {
  /** The folder for the packages. A package's folder of the same name is replaced. */
  readonly out: string;
  /** Default: all platforms with an official release. With `binary`, it may contain only this machine's platform. */
  readonly platforms?: readonly ServerPlatform[] | undefined;
  /** Path of a server binary for this machine's platform, to package instead of the official one. */
  readonly binary?: string | undefined;
  /** Accept archives that only SHA256SUMS verifies. */
  readonly allowUnpinned?: boolean | undefined;
  /** Default: the official releases and the pinned digests. */
  readonly source?: ReleaseSource | undefined;
  readonly report: FetchReport;
}

/** The content of a package. */
interface PackageContent {
  readonly platform: ServerPlatform;
  readonly version: string;
  readonly server: Buffer;
  readonly license: Buffer;
  /** Sentences about the origin of the server. */
  readonly origin: string;
  readonly isLocal: boolean;
}

/**
 * Builds the packages.
 *
 * @returns their folders.
 * @throws Error if a digest is not pinned, or the server has another version than its package. Also throws the errors
 *   of `downloadRelease` and `requireServerVersion`.
 */
export async function buildServerPackages(options: BuildOptions): Promise<readonly string[]> {
  const { out, binary, report } = options;
  if (binary !== undefined) return [await buildLocalPackage(options, resolve(binary))];
  const platforms = options.platforms ?? serverPlatforms;
  const { version = fetchedServerVersion, digests = pinnedDigests } = options.source ?? {};
  const unpinned = platforms
    .map((platform) => releaseAsset(version, platform) ?? nameOf(platform))
    .filter((asset) => digests[asset] === undefined);
  if (unpinned.length > 0 && !options.allowUnpinned)
    throw new Error(
      `no digest is pinned for ${unpinned.join(', ')}: add it to pinnedDigests in ` +
        'libs/adapters/embedded-server/src/find/official-release.ts, or pass --allow-unpinned to trust SHA256SUMS of the release alone',
    );
  const folders: string[] = [];
  for (const platform of platforms) {
    const archive = await downloadRelease(platform, options.source ?? {}, { env: process.env, report, into: out });
    if (digests[archive.asset] === undefined) report.line(`  '${archive.asset}': '${archive.sha256}',`);
    const content = { platform, version, server: serverIn(archive), license: licenseIn(archive), isLocal: false };
    const folder = await writePackage(out, { ...content, origin: originOf(archive) });
    if (isThisMachine(platform)) {
      const actual = await requireServerVersion(serverPath(folder, platform));
      if (actual !== version)
        throw new Error(`${archive.url} holds nats-server ${actual}, and its package is for ${version}`);
    }
    folders.push(folder);
  }
  return folders;
}

/** Builds a package with the version that `coxswain` depends on. The server itself may have another version. */
async function buildLocalPackage({ out, platforms, report }: BuildOptions, binary: string): Promise<string> {
  const platform = { platform: process.platform, arch: process.arch };
  const [other] = (platforms ?? []).filter((one) => !isThisMachine(one));
  if (other !== undefined)
    throw new Error(`--binary makes the package of this machine, ${nameOf(platform)}, and not of ${nameOf(other)}`);
  const version = await requireServerVersion(binary);
  report.line(`Packaging ${binary}, nats-server ${version}, as a private package`);
  return writePackage(out, {
    platform,
    version: fetchedServerVersion,
    server: await readFile(binary),
    // Both programs have the Apache License 2.0.
    license: await readFile(join(repository, 'LICENSE')),
    origin: `**For tests only.** This server is nats-server ${version} of one machine, not an official release.`,
    isLocal: true,
  });
}

async function writePackage(out: string, content: PackageContent): Promise<string> {
  const { platform, version, server, license, origin, isLocal } = content;
  const name = serverPackageName(platform);
  if (name === undefined) throw new Error(`no package is known for ${nameOf(platform)}`);
  const manifest = {
    name,
    version,
    ...(isLocal ? { private: true } : {}),
    description: `nats-server for ${nameOf(platform)}, started by the package coxswain`,
    license: 'Apache-2.0',
    ...PUBLISHED,
    os: [platform.platform],
    cpu: [platform.arch],
    files: ['bin'],
    // Yarn would keep the package in a zip archive, which cannot be executed.
    preferUnplugged: true,
  };
  const folder = join(out, `nats-server-${nameOf(platform)}`);
  await rm(folder, { recursive: true, force: true });
  await mkdir(join(folder, 'bin'), { recursive: true });
  await writeFile(serverPath(folder, platform), server, { mode: 0o755 });
  await writeFile(join(folder, 'LICENSE'), license);
  await writeFile(join(folder, 'README.md'), readme(name, content, origin));
  await writeFile(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
  return folder;
}

function readme(name: string, { platform, server }: PackageContent, origin: string): string {
  return `# ${name}

The server of [NATS](https://nats.io) for ${nameOf(platform)}. The package \`coxswain\` starts it. npm installs it on this
platform only, and it runs no install script.

${origin}

SHA-256 of \`bin/${serverFileName(platform.platform)}\`: \`${createHash('sha256').update(server).digest('hex')}\`

nats-server is a project of the NATS authors, under the Apache License 2.0.
`;
}

function originOf({ asset, url, sha256 }: ReleaseArchive): string {
  return `The binary is unchanged from the official release: [${asset}](${url}), SHA-256 \`${sha256}\`.`;
}

function serverPath(folder: string, { platform }: ServerPlatform): string {
  return join(folder, 'bin', serverFileName(platform));
}

function isThisMachine({ platform, arch }: ServerPlatform): boolean {
  return platform === process.platform && arch === process.arch;
}

function nameOf({ platform, arch }: ServerPlatform): string {
  return `${platform}-${arch}`;
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      out: { type: 'string' },
      platform: { type: 'string', multiple: true },
      binary: { type: 'string' },
      'allow-unpinned': { type: 'boolean' },
    },
  });
  if (values.out === undefined) throw new Error('--out FOLDER is missing: the folder that gets the packages');
  const platforms = values.platform?.map((name) => {
    const known = serverPlatforms.find((one) => nameOf(one) === name);
    if (known === undefined) throw new Error(`--platform must be one of ${serverPlatforms.map(nameOf).join(', ')}`);
    return known;
  });
  const folders = await buildServerPackages({
    out: resolve(values.out),
    platforms,
    binary: values.binary,
    allowUnpinned: values['allow-unpinned'],
    report: reportTo(process.stderr),
  });
  for (const folder of folders) console.log(folder);
}

const [, script = ''] = process.argv;
if (existsSync(script) && realpathSync(script) === fileURLToPath(import.meta.url)) {
  await main().catch((error: Error) => {
    console.error(error.message);
    process.exitCode = 1;
  });
}
