// Bundles programs of ours from source. Our packages and the vendors that most commands load go in: opening and resolving
// their 200 files took longer than running them. Every other vendor is loaded from node_modules.
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

export const root = fileURLToPath(new URL('..', import.meta.url));

/** Vendors that the start of most commands loads. They stay installed, with their licences, for everything else. */
const VENDORS_AT_START = /^(@nats-io\/[^/]+|ajv|cac|fast-string-width|re2js|xstate|yaml|zod)(\/|$)/;

const REQUIRE = `import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);`;

/**
 * @param isProgram whether the entries are programs. A library leaves all vendors to the project that imports it.
 * @returns the files as they would be written; entries are paths from the root, by name.
 */
export async function bundle(entryPoints, outdir, isProgram = true) {
  const { outputFiles } = await build({
    write: false,
    absWorkingDir: root,
    entryPoints,
    outdir,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20.19',
    conditions: ['coxswain-source'],
    sourcemap: 'linked',
    // Half the size starts a tenth sooner. Names stay, for stack traces.
    minifyWhitespace: true,
    minifySyntax: true,
    logLevel: 'warning',
    // Vendors in CommonJS require modules of Node, and a bundle in ESM has no `require`.
    banner: isProgram ? { js: REQUIRE } : {},
    plugins: [
      {
        name: 'vendors',
        setup({ onLoad, onResolve }) {
          onResolve({ filter: /^[^./]/ }, ({ path, importer }) => {
            const isOurs = path.startsWith('@coxswain/');
            const isBundled =
              isOurs || (isProgram && (VENDORS_AT_START.test(path) || importer.includes('/node_modules/')));
            return isBundled ? null : { path, external: true };
          });
          // The messages of Zod in 60 languages; the English ones are elsewhere.
          onLoad({ filter: /\/zod\/v4\/locales\/index\.js$/ }, () => ({ contents: 'export {};' }));
        },
      },
    ],
  });
  return outputFiles;
}
