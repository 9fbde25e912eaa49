// Bundles `cox` so that it starts quickly: one entry per program, with lazily loaded chunks. Runs after `npm ci` (the
// `prepare` script). Without esbuild (an install without development packages) it does nothing.
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';

const bundler = await import('./bundle.mjs').catch((error) => {
  if (error.code === 'ERR_MODULE_NOT_FOUND') return null;
  throw error;
});
if (bundler === null) {
  console.log('cox is not bundled: esbuild is not installed');
} else {
  const { bundlePackages } = await import('./bundle-packages.mjs');
  // Before the entry of `cox`: the entry's age decides whether the bundles are up to date.
  await bundlePackages();
  const outdir = 'libs/cli/dist/cox';
  // Session hosts and the demo's MCP server are separate processes.
  const entries = {
    main: 'libs/cli/src/main.ts',
    'session-host': 'services/sessions/src/hosts/session-host.ts',
    'harbour-server': 'libs/cli/src/demo/harbour-server.ts',
  };
  const files = await bundler.bundle(entries, outdir, 'inside');
  // Older chunks are kept: a running `cox up` may still load them. Two processes may bundle at once while a third
  // starts. So each file is renamed into place, and the entry comes after the files that it imports.
  const isEntry = ({ path }) => basename(path) === 'main.mjs';
  mkdirSync(`${bundler.root}/${outdir}`, { recursive: true });
  for (const file of files.sort((a, b) => Number(isEntry(a)) - Number(isEntry(b)))) {
    const unfinished = `${file.path}.${process.pid}`;
    writeFileSync(unfinished, file.contents);
    renameSync(unfinished, file.path);
  }
}
