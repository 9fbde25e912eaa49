import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { firstServer } from './first-server.ts';
import { type ServerPlatform, serverFileName, serverPackageName } from './official-release.ts';
import type { ServerBinary } from './server-cache.ts';

/** The installation of Coxswain to search, and the platform. */
export interface PackagedServerSearch extends ServerPlatform {
  /** Folder of a module of Coxswain, without symbolic links. Default: the folder of this module. */
  readonly moduleDir?: string | undefined;
  /** Receives the reason why the package provided no server. */
  readonly note: (source: string, outcome: string) => void;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Finds the server in the platform's npm package, an optional dependency of `coxswain`. It only reads files, and runs
 * the server that it finds once, with `--version`.
 *
 * Searches the `node_modules` folders in Node's order, nearest first, up to the outermost one that contains Coxswain
 * itself. Node would continue to the root of the file system, and to NODE_PATH. So a folder above the installation, or
 * the working directory, cannot provide the server. In a checkout, which no `node_modules` folder contains, nothing is
 * searched.
 *
 * @returns undefined if the package is not installed, or its server does not run here or is too old. `note` receives
 *   the reason.
 */
export async function packagedServer(search: PackagedServerSearch): Promise<ServerBinary | undefined> {
  const { platform, arch, note, signal } = search;
  const name = serverPackageName(search);
  if (name === undefined) {
    note('the npm package of nats-server', `does not exist for ${platform} on ${arch}`);
    return undefined;
  }
  const source = `the npm package ${name}`;
  const folders = foldersAround(search.moduleDir ?? dirname(fileURLToPath(import.meta.url)));
  const paths = folders.map((folder) => join(folder, name, 'bin', serverFileName(platform)));
  return firstServer(paths, { source, none: 'is not installed with Coxswain', note, signal });
}

/** The `node_modules` folders that contain a folder, and those of the packages between them; nearest first. */
function foldersAround(moduleDir: string): string[] {
  const folders: string[] = [];
  let below: string[] = [];
  for (let dir = moduleDir; dirname(dir) !== dir; dir = dirname(dir)) {
    if (basename(dir) === 'node_modules') {
      folders.push(...below, dir);
      below = [];
    } else below.push(join(dir, 'node_modules'));
  }
  // The remaining folders of `below` are outside the installation.
  return folders;
}
