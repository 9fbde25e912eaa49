/** Node binaries of the supported release lines, from the npm packages `node-<platform>-<architecture>`. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

/** The supported release lines, each with the exact version that is tested. 20.19.0 is the oldest supported version. */
export const NODE_VERSIONS: ReadonlyMap<string, string> = new Map([
  ['20.19', '20.19.0'],
  ['22', '22.23.3'],
  ['24', '24.21.0'],
  ['26', '26.10.0'],
]);

/** An installation downloads about 40 MB. */
const INSTALL_TIMEOUT_MS = 300_000;

/**
 * The folder that contains `node` of an exact version. Installs it into `.cache/node` if it is not there; npm checks its
 * integrity, and no install script runs.
 * @returns an absolute path, for the head of `PATH`.
 * @throws Error of npm if the package cannot be installed, for example on a platform without a package.
 */
export async function nodeFolder(version: string): Promise<string> {
  // The platform's name as the packages spell it. Node for Apple silicon has a prefix of its own.
  const platform = process.platform === 'win32' ? 'win' : process.platform;
  const prefix = platform === 'darwin' && process.arch === 'arm64' ? 'node-bin' : 'node';
  const name = `${prefix}-${platform}-${process.arch}`;
  const cache = resolve(import.meta.dirname, '../.cache/node');
  const kept = join(cache, version);
  const inside = join('node_modules', name, 'bin');
  if (existsSync(join(kept, inside))) return join(kept, inside);
  // Renamed when it is whole: an interrupted installation is not used.
  const fresh = `${kept}.${process.pid}`;
  try {
    await mkdir(fresh, { recursive: true });
    await writeFile(join(fresh, 'package.json'), '{ "private": true }\n');
    const flags = ['--no-save', '--no-package-lock', '--ignore-scripts', '--no-audit', '--no-fund'];
    await promisify(execFile)('npm', ['install', ...flags, `${name}@${version}`], {
      cwd: fresh,
      timeout: INSTALL_TIMEOUT_MS,
    });
    await rm(kept, { recursive: true, force: true });
    await rename(fresh, kept);
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
  return join(kept, inside);
}
