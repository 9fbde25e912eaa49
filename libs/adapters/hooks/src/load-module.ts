/**
 * Loads a module that people have written, TypeScript or JavaScript, as it stands now: Node 20 reads no types, and keeps
 * the first version of what it has imported. So the module and its own files are bundled first; packages stay where
 * they are installed.
 */
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { isBuiltin, SourceMap } from 'node:module';
import { tmpdir } from 'node:os';
import { basename, dirname, extname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import type { BuildFailure, Loader, Plugin } from 'esbuild';
import { runAs } from './left-behind.ts';

/** What a module exports, and the files that it was made of: when one of them changes, it is another module. */
export interface LoadedModule {
  readonly exports: Readonly<Record<string, unknown>>;
  readonly files: readonly string[];
}

/** A module of handlers that cannot be loaded, or does not export what it should. The message begins with its path. */
export class HookModuleError extends Error {
  override readonly name = 'HookModuleError';
  readonly code = 'hook_module_invalid';
}

/** What the bundle would be called, if it were written beside its module. */
const BUNDLE = 'coxswain.bundle.mjs';

/** How long a module's own code may take before it is there. */
const LOADED_WITHIN_MS = 30_000;

/**
 * Loads a module of handlers, in TypeScript or JavaScript, with what it imports from beside it.
 * @throws HookModuleError
 */
export async function loadModule(path: string): Promise<LoadedModule> {
  const entry = resolve(path);
  const { text, files, placeOf } = await bundled(entry);
  const folder = await mkdtemp(join(tmpdir(), 'cox-hooks-'));
  const giveUp = new AbortController();
  try {
    const file = join(folder, `${basename(entry, extname(entry))}.mjs`);
    await writeFile(file, text);
    const late = sleep(LOADED_WITHIN_MS, null, { signal: giveUp.signal }).catch(() => null);
    const exports = await Promise.race([runAs({ module: entry }, () => import(pathToFileURL(file).href)), late]);
    if (exports === null) throw new Error(`it was not there after ${LOADED_WITHIN_MS} ms`);
    return { exports: { ...exports }, files };
  } catch (error) {
    const at = placeOf(String((error as Error)?.stack)) ?? entry;
    throw new HookModuleError(`${at}: ${String((error as Error)?.message ?? error)}`, { cause: error });
  } finally {
    giveUp.abort();
    await rm(folder, { recursive: true, force: true });
  }
}

interface Bundle {
  readonly text: string;
  readonly files: string[];
  /** The first place in a file of one's own that a stack of the bundle names, as `path:line`. */
  readonly placeOf: (stack: string) => string | null;
}

async function bundled(entry: string): Promise<Bundle> {
  // Loaded only where somebody has handlers to load: it brings a program of its own.
  const { build } = await import('esbuild');
  try {
    const { outputFiles, metafile } = await build({
      entryPoints: [entry],
      absWorkingDir: dirname(entry),
      bundle: true,
      write: false,
      outfile: join(dirname(entry), BUNDLE),
      sourcemap: 'external',
      sourcesContent: false,
      metafile: true,
      format: 'esm',
      platform: 'node',
      target: 'node20.19',
      logLevel: 'silent',
      plugins: [packagesStay, filesKnowWhereTheyLie],
    });
    const inputs = Object.entries(metafile.inputs);
    const files = inputs.map(([name]) => resolve(dirname(entry), name)).filter((name) => !name.includes('coxswain:'));
    const usesRequire = inputs.some(([, { format }]) => format === 'cjs');
    const before = usesRequire ? requireFor(entry) : '';
    const written = (end: string) => outputFiles.find(({ path }) => path.endsWith(end))?.text ?? '';
    const map = new SourceMap(JSON.parse(written('.map')));
    const linesBefore = before.split('\n').length - 1;
    const placeOf = (stack: string) => {
      for (const [, line, column] of stack.matchAll(/\/cox-hooks-[^/]+\/[^/\n]+\.mjs:(\d+):(\d+)/g)) {
        const found = map.findEntry(Number(line) - 1 - linesBefore, Number(column) - 1);
        if ('originalSource' in found)
          return `${resolve(dirname(entry), found.originalSource)}:${found.originalLine + 1}`;
      }
      return null;
    };
    return { text: before + written(BUNDLE), files, placeOf };
  } catch (error) {
    const [first] = (error as Partial<BuildFailure>).errors ?? [];
    if (!first) throw new HookModuleError(`${entry}: ${(error as Error).message}`, { cause: error });
    const at = first.location ? `${resolve(dirname(entry), first.location.file)}:${first.location.line}` : entry;
    const why = first.location === null ? await noFile(entry) : null;
    throw new HookModuleError(`${at}: ${why ?? first.text}`, { cause: error });
  }
}

/** Why there is no file to load; null where there is one. */
async function noFile(path: string): Promise<string | null> {
  const found = await stat(path).catch(() => null);
  if (found === null) return 'there is no such file';
  return found.isDirectory() ? 'it is a folder; name a module in it' : null;
}

function requireFor(entry: string): string {
  const url = JSON.stringify(pathToFileURL(entry).href);
  return `import { createRequire as coxCreateRequire } from 'node:module';\nconst require = coxCreateRequire(${url});\n`;
}

const OWN = /^@coxswain\/client$/;

/** Imports of packages go to where they are installed for the file that imports them; from another place they would not be found. */
const packagesStay: Plugin = {
  name: 'packages-stay',
  setup(build) {
    build.onResolve({ filter: /^[^./]/ }, async ({ path, kind, resolveDir, pluginData }) => {
      if (kind === 'entry-point' || pluginData === packagesStay) return null;
      if (isBuiltin(path)) return { path, external: true };
      const found = await build.resolve(path, { kind, resolveDir, pluginData: packagesStay });
      // Where the client library is not installed, these are all that a module needs of it.
      if (found.errors.length > 0) return OWN.test(path) ? { path, namespace: 'coxswain' } : { errors: found.errors };
      if (/\.[cm]?tsx?$/.test(found.path)) return { path: found.path };
      return { path: kind === 'require-call' ? found.path : pathToFileURL(found.path).href, external: true };
    });
    build.onLoad({ filter: OWN, namespace: 'coxswain' }, () => ({
      contents: [
        'export const defineHooks = (hooks) => hooks;',
        'export const definePersona = (persona) => persona;',
        'export const defineTool = (tool) => tool;',
        "export const LATER = Symbol.for('coxswain.outcome-comes-later');",
      ].join('\n'),
      loader: 'js',
    }));
  },
};

const LOADERS: Readonly<Record<string, Loader>> = {
  '.ts': 'ts',
  '.mts': 'ts',
  '.cts': 'ts',
  '.tsx': 'tsx',
  '.jsx': 'jsx',
};

/** `import.meta.url` of a file is its own, not that of the bundle. */
const filesKnowWhereTheyLie: Plugin = {
  name: 'files-know-where-they-lie',
  setup(build) {
    build.onLoad({ filter: /\.[cm]?[jt]sx?$/, namespace: 'file' }, async ({ path }) => {
      const text = await readFile(path, 'utf8');
      const values = { url: pathToFileURL(path).href, filename: path, dirname: dirname(path) };
      const contents = text.replaceAll(/\bimport\.meta\.(url|filename|dirname)\b/g, (_, name: keyof typeof values) =>
        JSON.stringify(values[name]),
      );
      return { contents, loader: LOADERS[extname(path)] ?? 'js' };
    });
  },
};
