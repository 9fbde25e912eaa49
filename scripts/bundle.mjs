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
  // esbuild starts a binary from its own package folder. The exporters are CommonJS and are imported dynamically: in a
  // bundle with chunks, such a module has no named exports.
  external: ['esbuild', '@opentelemetry/exporter-*'],
  // CommonJS modules in the bundle call `require` for Node's built-in modules.
  banner: {
    js: "import { createRequire as bundleRequire } from 'node:module';\nconst require = bundleRequire(import.meta.url);",
  },
  plugins: [
    {
      name: 'english-only',
      setup({ onLoad }) {
        // Drops Zod's messages in 60 languages. Zod's schemas import the English messages from another file.
        onLoad({ filter: /\/zod\/v4\/locales\/index\.js$/ }, () => ({ contents: 'export {};' }));
      },
    },
    {
      name: 'expressions-on-first-use',
      setup({ onLoad, onResolve }) {
        // The Unicode tables of re2js take 5 % of the start time of every program, and few commands use a regular
        // expression.
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
 * Bundles entry points in memory with esbuild.
 * @param vendors `stay` leaves third-party packages external. `inside` bundles them: such programs read a few large
 *   files instead of 600 small ones, and start with 0.2 s less CPU time.
 * @param plugins run before the bundle's own.
 * @returns the files with their absolute paths; this function writes none of them.
 */
export async function bundle(entryPoints, outdir, vendors = 'stay', plugins = []) {
  const { outputFiles } = await build(bundleOptions(entryPoints, outdir, vendors, plugins));
  return outputFiles;
}

/** The esbuild options of {@link bundle}. */
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
    // Half the size starts 10 % faster. Names are kept for stack traces. Lines are short because Node prints the whole
    // line of an error.
    minifyWhitespace: true,
    minifySyntax: true,
    lineLimit: 200,
    logLevel: 'warning',
    ...forVendors,
    plugins: [...plugins, ...forVendors.plugins],
  };
}
