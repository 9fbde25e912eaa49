/**
 * Loads a module that people have written, TypeScript or JavaScript, as it stands now: Node 20 reads no types, and keeps
 * the first version of what it has imported. So the module and its own files are bundled first; packages stay where
 * they are installed.
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, realpath, rm, stat, writeFile } from 'node:fs/promises';
import { isBuiltin, SourceMap } from 'node:module';
import { tmpdir } from 'node:os';
import { basename, dirname, extname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { readRegularFile } from '@coxswain/ports/regular-file';
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

/** The name of the bundle in messages, next to its module. */
const BUNDLE = 'coxswain.bundle.mjs';

/** The size of one file of a module. Files are read before a person has said whether their folder is trusted. */
const MODULE_MAX_BYTES = 16 * 1024 * 1024;

/** How long a module's own code may take before it is there. */
const LOADED_WITHIN_MS = 30_000;

/**
 * Loads a module of handlers, in TypeScript or JavaScript, with its local imports.
 * @throws HookModuleError
 */
export async function loadModule(path: string): Promise<LoadedModule> {
  return importBundle(await bundleModule(path));
}

/**
 * Runs a module that was bundled before: exactly the text of the bundle, whatever its files say by now.
 * @throws HookModuleError
 */
export async function importBundle({ entry, text, files, placeOf }: ModuleBundle): Promise<LoadedModule> {
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

/** A module with its own files in one text. Nothing of it has run. */
export interface ModuleBundle {
  /** The module's absolute path. */
  readonly entry: string;
  readonly text: string;
  readonly files: readonly string[];
  /** SHA-256 of each of the files, in hex, as it was read for the bundle. */
  readonly digests: ReadonlyMap<string, string>;
  /** Packages that it imports, sorted. Their code stands outside the bundle. */
  readonly packages: readonly string[];
  /** The first place in a file of one's own that a stack of the bundle names, as `path:line`. */
  readonly placeOf: (stack: string) => string | null;
}

/**
 * Bundles a module with its own files: relative imports, and other imports that lead into its own package.
 * @throws HookModuleError
 */
export async function bundleModule(path: string): Promise<ModuleBundle> {
  const entry = resolve(path);
  const digests = new Map<string, string>();
  const packages = new Set<string>();
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
      plugins: [packagesStay(await packageRoot(entry), packages), filesKnowWhereTheyLie(digests)],
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
    return { entry, text: before + written(BUNDLE), files, digests, packages: [...packages].sort(), placeOf };
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

/** The folder of the nearest package.json, by its real path; the module's own where there is none. */
async function packageRoot(entry: string): Promise<string> {
  const own = dirname(await realpath(entry).catch(() => entry));
  for (let folder = own; ; folder = dirname(folder)) {
    if (existsSync(join(folder, 'package.json'))) return folder;
    if (dirname(folder) === folder) return own;
  }
}

/**
 * Imports of packages go to where they are installed for the file that imports them; from another place they would not be found.
 * @param root files below it are the module's own, unless they are installed there.
 * @param packages takes the names of the packages.
 */
function packagesStay(root: string, packages: Set<string>): Plugin {
  const isOwn = (path: string) => {
    const way = relative(root, path);
    return !isAbsolute(way) && !way.split(sep).some((step) => step === '..' || step === 'node_modules');
  };
  return {
    name: 'packages-stay',
    setup(build) {
      build.onResolve({ filter: /^[^./]/ }, async ({ path, kind, resolveDir, pluginData }) => {
        if (kind === 'entry-point' || pluginData === packages) return null;
        if (isBuiltin(path)) return { path, external: true };
        const found = await build.resolve(path, { kind, resolveDir, pluginData: packages });
        // Where the client library is not installed, these are all that a module needs of it.
        if (found.errors.length > 0) return OWN.test(path) ? { path, namespace: 'coxswain' } : { errors: found.errors };
        if (/\.[cm]?tsx?$/.test(found.path) || isOwn(found.path)) return { path: found.path };
        packages.add(path);
        return { path: kind === 'require-call' ? found.path : pathToFileURL(found.path).href, external: true };
      });
      build.onLoad({ filter: OWN, namespace: 'coxswain' }, () => ({
        contents: [
          'export const defineHooks = (hooks) => hooks;',
          'export const definePersona = (persona) => persona;',
          'export const defineTool = (tool) => tool;',
          "export const LATER = Symbol.for('coxswain.outcome-comes-later');",
          "const HOOK_ANSWER = Symbol.for('coxswain.hook_answer');",
          "export const allow = () => ({ [HOOK_ANSWER]: 'allow' });",
          "export const deny = (reason) => ({ [HOOK_ANSWER]: 'deny', reason });",
          "export const ask = (reason) => ({ [HOOK_ANSWER]: 'ask', reason });",
          "export const rewrite = (value) => ({ [HOOK_ANSWER]: 'rewrite', value });",
          "export const startJob = (job) => ({ [HOOK_ANSWER]: 'job', job });",
          "export const remind = (text, options = {}) => ({ [HOOK_ANSWER]: 'remind', text, options, answer: options.answer });",
        ].join('\n'),
        loader: 'js',
      }));
    },
  };
}

const LOADERS: Readonly<Record<string, Loader>> = {
  '.js': 'js',
  '.mjs': 'js',
  '.cjs': 'js',
  '.ts': 'ts',
  '.mts': 'ts',
  '.cts': 'ts',
  '.tsx': 'tsx',
  '.jsx': 'jsx',
  '.json': 'json',
  '.txt': 'text',
};

/**
 * `import.meta.url` of a file is its own, not that of the bundle.
 * @param digests takes the SHA-256 of each file: of the bytes that the bundle is made of, which are read once.
 */
function filesKnowWhereTheyLie(digests: Map<string, string>): Plugin {
  return {
    name: 'files-know-where-they-lie',
    setup(build) {
      build.onLoad({ filter: /./, namespace: 'file' }, async ({ path }) => {
        // esbuild itself would read a device without end.
        const { bytes } = await readRegularFile(path, MODULE_MAX_BYTES);
        const loader = LOADERS[extname(path)];
        // esbuild says what is wrong with any other file.
        if (loader === undefined) return null;
        digests.set(path, createHash('sha256').update(bytes).digest('hex'));
        if (loader === 'json' || loader === 'text') return { contents: bytes, loader };
        const values = { url: pathToFileURL(path).href, filename: path, dirname: dirname(path) };
        const contents = bytes
          .toString('utf8')
          .replaceAll(/\bimport\.meta\.(url|filename|dirname)\b/g, (_, name: keyof typeof values) =>
            JSON.stringify(values[name]),
          );
        return { contents, loader };
      });
    },
  };
}
