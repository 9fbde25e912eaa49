// Bundles the packages that projects import, beside `cox`: a checkout need not be built to be depended on. What they share is
// in chunks of its own, so that the classes of one are those of the other.
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { bundle, root } from './bundle.mjs';

/** Where they lie, each in a folder of its name. */
const FOLDER = 'libs/cli/dist/packages';
/** Each as the package of this name in `libs`. */
const NAMES = ['client', 'testing'];

export async function bundlePackages() {
  const entries = Object.fromEntries(NAMES.map((name) => [`${name}/mod`, `libs/${name}/src/mod.ts`]));
  const files = await bundle(entries, FOLDER);
  // Entries after what they import: a project may load them meanwhile.
  const isEntry = ({ path }) => path.endsWith('/mod.mjs');
  for (const { path, contents } of files.sort((a, b) => Number(isEntry(a)) - Number(isEntry(b)))) whole(path, contents);
  for (const name of NAMES) {
    const { version, description, license } = JSON.parse(readFileSync(join(root, `libs/${name}/package.json`), 'utf8'));
    const manifest = {
      name: `@coxswain/${name}`,
      version,
      private: true,
      description,
      license,
      type: 'module',
      // The types are written by declare-packages.mjs, once somebody needs them.
      exports: { types: './mod.d.mts', default: './mod.mjs' },
    };
    whole(join(root, FOLDER, name, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
  }
}

function whole(path, contents) {
  mkdirSync(dirname(path), { recursive: true });
  const unfinished = `${path}.${process.pid}`;
  writeFileSync(unfinished, contents);
  renameSync(unfinished, path);
}
