// Bundles the packages that projects import, next to the bundle of `cox`: a project can depend on a checkout that is
// not built. Shared code is in separate chunks, so that the packages share their classes.
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { bundle, root } from './bundle.mjs';
import { BUNDLED_PACKAGES } from './bundled-packages.mjs';

/** The folder of the bundles, with one subfolder per package. */
const FOLDER = 'libs/cli/dist/packages';

export async function bundlePackages() {
  const modules = Object.entries(BUNDLED_PACKAGES).flatMap(([folder, { source, modules: exported }]) =>
    exported.map((module) => [folder, module, source]),
  );
  const entries = Object.fromEntries(
    modules.map(([folder, module, source]) => [`${folder}/${module}`, `${source}/src/${module}.ts`]),
  );
  const files = await bundle(entries, FOLDER);
  // Entries come after the files that they import: a project may load them during the copy.
  const isEntry = ({ path }) =>
    modules.some(([folder, module]) => path.endsWith(join(FOLDER, folder, `${module}.mjs`)));
  for (const { path, contents } of files.sort((a, b) => Number(isEntry(a)) - Number(isEntry(b)))) whole(path, contents);
  const target = (module) => ({ types: `./${module}.d.mts`, default: `./${module}.mjs` });
  for (const [folder, { name, source, modules: exported, browser }] of Object.entries(BUNDLED_PACKAGES)) {
    const { version, description, license } = JSON.parse(readFileSync(join(root, source, 'package.json'), 'utf8'));
    const manifest = {
      name,
      version,
      private: true,
      description,
      license,
      type: 'module',
      sideEffects: false,
      // `declare-packages.mjs` writes the types on demand.
      exports: Object.fromEntries(
        exported.map((module) => [
          module === 'mod' ? '.' : `./${module}`,
          { ...(module === 'mod' && browser ? { browser: target(browser) } : {}), ...target(module) },
        ]),
      ),
    };
    whole(join(root, FOLDER, folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
  }
}

function whole(path, contents) {
  mkdirSync(dirname(path), { recursive: true });
  const unfinished = `${path}.${process.pid}`;
  writeFileSync(unfinished, contents);
  renameSync(unfinished, path);
}
