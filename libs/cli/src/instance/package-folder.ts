/** Where the package of `cox` lies, and with it what was built beside the command. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder. From source, from the bundle and from the bundle that tests make it is at another distance. */
export function packageFolder(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json')) && dirname(folder) !== folder) folder = dirname(folder);
  return folder;
}

/** Whether this is the published package `coxswain`. The packages of a checkout are private. */
export function isPublished(): boolean {
  const manifest: { readonly private?: unknown } = JSON.parse(
    readFileSync(join(packageFolder(), 'package.json'), 'utf8'),
  );
  return manifest.private !== true;
}
