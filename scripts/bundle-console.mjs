// Bundles the console as static files that the gateway of `cox` serves. Runs after `npm ci` (the `prepare` script).
// Without vite (an install without development packages) it does nothing.
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const outDir = join(root, 'libs/cli/dist/console');
// An open page may still load files of an older bundle.
const KEPT_MS = 24 * 60 * 60 * 1_000;

// Test runs set NODE_ENV to `test`; the bundle is a production build also then.
process.env.NODE_ENV = 'production';

const vite = await import('vite').catch((error) => {
  if (error.code === 'ERR_MODULE_NOT_FOUND') return null;
  throw error;
});
if (vite === null) {
  console.log('the console is not bundled: vite is not installed');
} else {
  const draft = `${outDir}.${process.pid}`;
  try {
    await vite.build({
      configFile: join(root, 'libs/console/vite.config.ts'),
      logLevel: 'warn',
      build: { outDir: draft, emptyOutDir: true },
    });
    // A gateway may start during the copy: each file is renamed into place, and the page comes after the files that it
    // loads.
    const files = filesBelow(draft).sort((a, b) => Number(a.endsWith('index.html')) - Number(b.endsWith('index.html')));
    for (const file of files) {
      const target = join(outDir, relative(draft, file));
      mkdirSync(dirname(target), { recursive: true });
      const unfinished = `${target}.${process.pid}`;
      writeFileSync(unfinished, readFileSync(file));
      renameSync(unfinished, target);
    }
    const kept = new Set(files.map((file) => join(outDir, relative(draft, file))));
    for (const file of filesBelow(outDir))
      if (!kept.has(file) && Date.now() - statSync(file).mtimeMs > KEPT_MS) rmSync(file, { force: true });
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

function filesBelow(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}
