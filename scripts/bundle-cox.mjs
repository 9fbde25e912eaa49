// Bundles `cox` for a quick start: one entry, lazily loaded chunks, vendors left in node_modules. Runs after `npm ci`
// (the `prepare` script); without esbuild (an install without development packages) there is nothing to do.
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const esbuild = await import('esbuild').catch(() => null);
if (esbuild === null) {
  console.log('cox is not bundled: esbuild is not installed');
} else {
  // Older chunks stay: a `cox up` that runs may still load one of them.
  const { outputFiles } = await esbuild.build({
    write: false,
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
  // Two processes may bundle at once while a third starts: each file appears whole, the entry after what it imports.
  const isEntry = ({ path }) => basename(path) === 'main.mjs';
  mkdirSync(`${root}/libs/cli/dist/cox`, { recursive: true });
  for (const file of outputFiles.sort((a, b) => Number(isEntry(a)) - Number(isEntry(b)))) {
    const unfinished = `${file.path}.${process.pid}`;
    writeFileSync(unfinished, file.contents);
    renameSync(unfinished, file.path);
  }
}
