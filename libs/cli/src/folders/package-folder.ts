/** The folder of the `cox` package, with the parts that were built into it. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * The folder of the package. Its distance from this file differs between the source, the bundle and the bundle of the
 * tests.
 */
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
