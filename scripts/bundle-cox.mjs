// Bundles `cox` for a quick start: one entry, lazily loaded chunks. Runs after `npm ci` (the `prepare` script); without
// esbuild (an install without development packages) there is nothing to do.
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
  // Before the entry of `cox`, by whose age it is seen whether anything has to be bundled again.
  await bundlePackages();
  const outdir = 'libs/cli/dist/cox';
  // Session hosts and the demo's MCP server are processes of their own.
  const entries = {
    main: 'libs/cli/src/main.ts',
    'session-host': 'services/sessions/src/hosts/session-host.ts',
    'harbour-server': 'libs/cli/src/demo/harbour-server.ts',
  };
  const files = await bundler.bundle(entries, outdir, 'inside');
  // Older chunks stay: a `cox up` that runs may still load one of them. Two processes may bundle at once while a third
  // starts: each file appears whole, the entry after what it imports.
  const isEntry = ({ path }) => basename(path) === 'main.mjs';
  mkdirSync(`${bundler.root}/${outdir}`, { recursive: true });
  for (const file of files.sort((a, b) => Number(isEntry(a)) - Number(isEntry(b)))) {
    const unfinished = `${file.path}.${process.pid}`;
    writeFileSync(unfinished, file.contents);
    renameSync(unfinished, file.path);
  }
}
