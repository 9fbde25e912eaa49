// Bundles `cox` for a quick start: one entry, lazily loaded chunks, vendors left in node_modules. Runs after `npm ci`
// (the `prepare` script); without esbuild (an install without development packages) there is nothing to do.
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const esbuild = await import('esbuild').catch(() => null);
if (esbuild === null) {
  console.log('cox is not bundled: esbuild is not installed');
} else {
  // Older chunks stay: a `cox up` that runs may still load one of them.
  await esbuild.build({
    absWorkingDir: root,
    // The demo's MCP server is a process of its own.
    entryPoints: { main: 'libs/cli/src/main.ts', 'harbour-server': 'libs/cli/src/demo/harbour-server.ts' },
    outdir: 'libs/cli/dist/cox',
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
        // Our own packages are bundled from source; everything else stays what npm installed.
        name: 'vendors-stay',
        setup(build) {
          build.onResolve({ filter: /^[^./]/ }, ({ path }) =>
            path.startsWith('@coxswain/') ? null : { path, external: true },
          );
        },
      },
    ],
  });
}
