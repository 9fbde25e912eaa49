// Bundles programs of this repository from source.
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

export const root = fileURLToPath(new URL('..', import.meta.url));

const VENDORS_STAY = {
  plugins: [
    {
      name: 'vendors-stay',
      setup({ onResolve }) {
        onResolve({ filter: /^[^./]/ }, ({ path }) =>
          path.startsWith('@coxswain/') ? null : { path, external: true },
        );
      },
    },
  ],
};
const VENDORS_INSIDE = {
  // The first starts a program that lies in its own folder. Of CommonJS that is imported dynamically, as the others are, a
  // bundle in chunks has no named exports.
  external: ['esbuild', '@opentelemetry/exporter-*'],
  // What is CommonJS requires the modules of Node.
  banner: {
    js: "import { createRequire as bundleRequire } from 'node:module';\nconst require = bundleRequire(import.meta.url);",
  },
  plugins: [
    {
      name: 'english-only',
      setup({ onLoad }) {
        // The messages of Zod in 60 languages. Its schemas import the English ones from another file.
        onLoad({ filter: /\/zod\/v4\/locales\/index\.js$/ }, () => ({ contents: 'export {};' }));
      },
    },
    {
      name: 'expressions-on-first-use',
      setup({ onLoad, onResolve }) {
        // Its tables of Unicode take 5 % of the start of every program, and few commands meet a regular expression.
        onResolve({ filter: /^re2js$/ }, ({ kind }) =>
          kind === 'import-statement' ? { path: 're2js', namespace: 'on-first-use' } : null,
        );
        onLoad({ filter: /.*/, namespace: 'on-first-use' }, () => ({
          contents: "export const RE2JS = { compile: (source) => require('re2js').RE2JS.compile(source) };",
          resolveDir: root,
        }));
      },
    },
  ],
};

/**
 * @param vendors whether packages of others stay what npm installed (`stay`), or go into the bundle, too (`inside`): such
 *   programs read a few large files instead of 600 small ones, and start with 0.2 s less of CPU time.
 * @param plugins run before the bundle's own.
 * @returns the files as they would be written; entries are paths from the root, by name.
 */
export async function bundle(entryPoints, outdir, vendors = 'stay', plugins = []) {
  const { outputFiles } = await build(bundleOptions(entryPoints, outdir, vendors, plugins));
  return outputFiles;
}

/** The options of esbuild for `bundle`: nothing is written. */
export function bundleOptions(entryPoints, outdir, vendors = 'stay', plugins = []) {
  const forVendors = vendors === 'inside' ? VENDORS_INSIDE : VENDORS_STAY;
  return {
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
    // For programs outside this repository, which tests bundle.
    nodePaths: [join(root, 'node_modules')],
    sourcemap: 'linked',
    // Half the size starts a tenth sooner. Names stay, for stack traces; Node quotes whole lines, so they are short.
    minifyWhitespace: true,
    minifySyntax: true,
    lineLimit: 200,
    logLevel: 'warning',
    ...forVendors,
    plugins: [...plugins, ...forVendors.plugins],
  };
}
