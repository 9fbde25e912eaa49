/**
 * Generates the type declarations of all packages of the release, including the types of third-party packages. As in
 * the bundles, a chunk that the client reaches is published in `@coxswain/client`, so that each class is declared once.
 */
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { rollup } from 'rollup';
import { dts } from 'rollup-plugin-dts';
import ts from 'typescript';
import { root } from '../bundle.mjs';
import { declarations } from '../declare-packages.mjs';
import { sharedFrom } from './bundle-release.mjs';
import { PACKAGES } from './packages.mjs';

const BASE = '@coxswain/client';
/** In the checkout, where third-party packages are found. */
const DRAFT = join(root, 'dist/release/declared');

/**
 * Declares the modules of the release.
 * @returns by package name: `files` of its `dist` (texts by file name) and `inputs`, the paths of the declared source
 *   files, relative to the root.
 */
export async function declareRelease() {
  const libraries = Object.entries(PACKAGES).filter(([, { exports }]) => Object.keys(exports).length > 0);
  const sources = Object.fromEntries(
    libraries.flatMap(([, { entries, exports }]) =>
      Object.values(exports).map((entry) => [entry, join(root, entries[entry])]),
    ),
  );
  const draftOf = (source) => join(DRAFT, relative(root, source).replace(/\.ts$/, '.d.ts'));
  await rm(DRAFT, { recursive: true, force: true });
  for (const [source, text] of declarations(ts, Object.values(sources))) {
    await mkdir(dirname(draftOf(source)), { recursive: true });
    await writeFile(draftOf(source), text);
  }
  // Without the plugin's last step, which makes an entry import a type from an entry of another package. Programs can
  // name the types of shared chunks, because the client exports all of them at `internal`.
  const { generateBundle: _, ...plugin } = dts({
    respectExternal: true,
    compilerOptions: { types: ['node'], typeRoots: [join(root, 'node_modules/@types')] },
  });
  const bundle = await rollup({
    input: Object.fromEntries(Object.entries(sources).map(([entry, source]) => [entry, draftOf(source)])),
    external: (id) => id.startsWith('node:'),
    plugins: [plugin],
    onwarn({ code, message }) {
      if (!['CIRCULAR_DEPENDENCY', 'EMPTY_BUNDLE'].includes(code)) throw new Error(message);
    },
  });
  const { output } = await bundle.generate({
    entryFileNames: '[name].d.mts',
    chunkFileNames: 'types-[hash].d.mts',
    importAttributesKey: 'with',
  });
  await bundle.close();
  const chunks = new Map(output.map((chunk) => [chunk.fileName, chunk]));
  const reachedBy = (name) => {
    const reached = new Set();
    for (const waiting = Object.values(PACKAGES[name].exports).map((entry) => `${entry}.d.mts`); waiting.length > 0; ) {
      const file = waiting.pop();
      if (reached.has(file) || !chunks.has(file)) continue;
      reached.add(file);
      waiting.push(...chunks.get(file).imports);
    }
    return [...reached].sort();
  };
  const shared = new Set(reachedBy(BASE));
  return new Map(
    libraries.map(([name]) => {
      const files = new Map();
      const inputs = new Set();
      for (const file of reachedBy(name)) {
        const { code, moduleIds } = chunks.get(file);
        if (name !== BASE && shared.has(file)) files.set(file, sharedFrom(file.replace(/\.d\.mts$/, '.mjs'), []));
        else {
          files.set(file, code);
          for (const id of moduleIds) inputs.add(relative(root, id));
        }
      }
      return [name, { files, inputs }];
    }),
  );
}
