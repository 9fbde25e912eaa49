// Bundles the packages that projects import, beside `cox`: a checkout need not be built to be depended on. What they share is
// in chunks of its own, so that the classes of one are those of the other.
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { bundle, root } from './bundle.mjs';

/** Where they lie, each in a folder of its name. */
const FOLDER = 'libs/cli/dist/packages';
/** Each as the package of this name in `libs`, with the modules that it exports: the first is the package's own. */
const PACKAGES = { client: ['mod', 'http'], testing: ['mod'] };

export async function bundlePackages() {
  const modules = Object.entries(PACKAGES).flatMap(([name, exported]) => exported.map((module) => [name, module]));
  const entries = Object.fromEntries(
    modules.map(([name, module]) => [`${name}/${module}`, `libs/${name}/src/${module}.ts`]),
  );
  const files = await bundle(entries, FOLDER);
  // Entries after what they import: a project may load them meanwhile.
  const isEntry = ({ path }) => modules.some(([name, module]) => path.endsWith(join(FOLDER, name, `${module}.mjs`)));
  for (const { path, contents } of files.sort((a, b) => Number(isEntry(a)) - Number(isEntry(b)))) whole(path, contents);
  for (const [name, exported] of Object.entries(PACKAGES)) {
    const { version, description, license } = JSON.parse(readFileSync(join(root, `libs/${name}/package.json`), 'utf8'));
    const manifest = {
      name: `@coxswain/${name}`,
      version,
      private: true,
      description,
      license,
      type: 'module',
      // The types are written by declare-packages.mjs, once somebody needs them.
      exports: Object.fromEntries(
        exported.map((module) => [
          module === 'mod' ? '.' : `./${module}`,
          { types: `./${module}.d.mts`, default: `./${module}.mjs` },
        ]),
      ),
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
