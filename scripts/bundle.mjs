// Bundles programs of ours from source: our own packages go in, everything else stays what npm installed.
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

export const root = fileURLToPath(new URL('..', import.meta.url));

/** @returns the files as they would be written; entries are paths from the root, by name. */
export async function bundle(entryPoints, outdir) {
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
    logLevel: 'warning',
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
  });
  return outputFiles;
}
