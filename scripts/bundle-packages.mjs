// Bundles the packages that projects import, beside `cox`: a checkout need not be built to be depended on. What they share is
// in chunks of its own, so that the classes of one are those of the other.
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { bundle, root } from './bundle.mjs';
import { BUNDLED_PACKAGES } from './bundled-packages.mjs';

/** Where they lie, each in a folder of its name. */
const FOLDER = 'libs/cli/dist/packages';

export async function bundlePackages() {
  const modules = Object.entries(BUNDLED_PACKAGES).flatMap(([folder, { source, modules: exported }]) =>
    exported.map((module) => [folder, module, source]),
  );
  const entries = Object.fromEntries(
    modules.map(([folder, module, source]) => [`${folder}/${module}`, `${source}/src/${module}.ts`]),
  );
  const files = await bundle(entries, FOLDER);
  // Entries after what they import: a project may load them meanwhile.
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
      // The types are written by declare-packages.mjs, once somebody needs them.
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
