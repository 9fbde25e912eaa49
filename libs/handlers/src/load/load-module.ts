/**
 * Loads the current version of a user's module in TypeScript or JavaScript. Node 20 does not run TypeScript, and its
 * cache keeps the first version of an imported module. So the module and its own files are bundled first. Packages stay
 * in their folders, except those in TypeScript.
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, realpath, rm, stat, writeFile } from 'node:fs/promises';
import { isBuiltin, SourceMap } from 'node:module';
import { tmpdir } from 'node:os';
import { basename, dirname, extname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { readRegularFile, UnreadableFileError } from '@coxswain/ports/regular-file';
import type { BuildFailure, Loader, Plugin } from 'esbuild';
import { runAs } from './unhandled-failures.ts';

/** The exports of a module, and its files. A change of a file makes it another module. */
export interface LoadedModule {
  readonly exports: Readonly<Record<string, unknown>>;
  readonly files: readonly string[];
}

/** A user's module cannot be loaded, or lacks an export. The message begins with its path. */
export class HookModuleError extends Error {
  override readonly name = 'HookModuleError';
  readonly code = 'hook_module_invalid';
}

/** The name of the bundle in messages, next to its module. */
const BUNDLE = 'coxswain.bundle.mjs';

/** Maximum size of one module. Modules are read before a person has decided whether their folder is trusted. */
const MODULE_MAX_BYTES = 16 * 1024 * 1024;

/**
 * Files that esbuild reads by itself, without a limit. Those around a module are checked before. Those that they extend
 * or lead to are limited in time only: an empty `tsconfigRaw` would break path aliases, JSX and decorators of modules.
 */
const CONFIG_FILES = ['package.json', 'tsconfig.json', 'jsconfig.json'];
const CONFIG_MAX_BYTES = 1024 * 1024;

/** The time limit for bundling. esbuild cannot be interrupted while it reads, so its process is ended. */
const BUNDLED_WITHIN_MS = 10_000;

/** The time limit for the module's own top-level code. */
const LOADED_WITHIN_MS = 30_000;

/**
 * Loads a user's module in TypeScript or JavaScript, with its local imports.
 * @throws HookModuleError
 */
export async function loadModule(path: string): Promise<LoadedModule> {
  return importBundle(await bundleModule(path));
}

/** Runs a bundled module: exactly the text of the bundle, even if its files have changed. */
export async function importBundle({ entry, text, files, placeOf }: ModuleBundle): Promise<LoadedModule> {
  const folder = await mkdtemp(join(tmpdir(), 'cox-hooks-'));
  const giveUp = new AbortController();
  try {
    const file = join(folder, `${basename(entry, extname(entry))}.mjs`);
    await writeFile(file, text);
    const late = sleep(LOADED_WITHIN_MS, null, { signal: giveUp.signal }).catch(() => null);
    const exports = await Promise.race([runAs({ module: entry }, () => import(pathToFileURL(file).href)), late]);
    if (exports === null) throw new Error(`it did not load within ${LOADED_WITHIN_MS} ms`);
    return { exports: { ...exports }, files };
  } catch (error) {
    const at = placeOf(String((error as Error)?.stack)) ?? entry;
    throw new HookModuleError(`${at}: ${String((error as Error)?.message ?? error)}`, { cause: error });
  } finally {
    giveUp.abort();
    await rm(folder, { recursive: true, force: true });
  }
}

/** A module and its own files in one text. None of its code has run. */
export interface ModuleBundle {
  /** The module's absolute path. */
  readonly entry: string;
  readonly text: string;
  readonly files: readonly string[];
  /** The SHA-256 in hex of each file, as it was read for the bundle. */
  readonly digests: ReadonlyMap<string, string>;
  /** The packages that it imports, sorted. Their code is not part of the bundle. */
  readonly packages: readonly string[];
  /** The first location in the module's own files that a stack trace of the bundle names, as `path:line`. */
  readonly placeOf: (stack: string) => string | null;
}

/**
 * Bundles a module with its own files: relative imports, and other imports that resolve to its own package or to
 * TypeScript.
 * @param withinMs the time limit in milliseconds. After it, all other bundling of this process fails as well.
 * @throws HookModuleError
 */
export async function bundleModule(path: string, withinMs: number = BUNDLED_WITHIN_MS): Promise<ModuleBundle> {
  const entry = resolve(path);
  const digests = new Map<string, string>();
  const packages = new Set<string>();
  // Imported on demand, because esbuild starts a program of its own.
  const { build, stop } = await import('esbuild');
  const giveUp = new AbortController();
  try {
    await checkConfigFiles(dirname(entry));
    const building = build({
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
      plugins: [externalizePackages(await packageRoot(entry), packages), keepImportMetaUrl(digests)],
    });
    const late = sleep(withinMs, null, { signal: giveUp.signal }).catch(() => null);
    const built = await Promise.race([building, late]);
    if (built === null) {
      await stop();
      throw new Error(
        `it was not bundled within ${withinMs} ms: try again if this machine is busy; otherwise check that each package.json, and each file that tsconfig.json extends, is a regular file`,
      );
    }
    const { outputFiles, metafile } = built;
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
  } finally {
    giveUp.abort();
  }
}

/** Checks the configuration files of a folder and of the folders above it. @throws UnreadableFileError */
async function checkConfigFiles(folder: string): Promise<void> {
  for (const name of CONFIG_FILES) {
    await readRegularFile(join(folder, name), CONFIG_MAX_BYTES).catch((error: unknown) => {
      if (!(error instanceof UnreadableFileError)) throw error;
      if (error.reason === 'not_regular' || error.reason === 'too_large')
        throw new UnreadableFileError(error.reason, `the ${name} in ${folder} ${error.message}`);
    });
  }
  if (dirname(folder) !== folder) await checkConfigFiles(dirname(folder));
}

/** The reason why the path has no loadable file; null if there is a file. */
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

/** The folder of the nearest package.json, by its real path. Without one, the folder of the module. */
async function packageRoot(entry: string): Promise<string> {
  const own = dirname(await realpath(entry).catch(() => entry));
  for (let folder = own; ; folder = dirname(folder)) {
    if (existsSync(join(folder, 'package.json'))) return folder;
    if (dirname(folder) === folder) return own;
  }
}

/**
 * Resolves imports of packages to their installed path, from the folder of the importing file. From the bundle's folder
 * they would not be found.
 * @param root files below it are the module's own, except those in `node_modules`.
 * @param packages collects the names of the packages.
 */
function externalizePackages(root: string, packages: Set<string>): Plugin {
  const isOwn = (path: string) => {
    const way = relative(root, path);
    return !isAbsolute(way) && !way.split(sep).some((step) => step === '..' || step === 'node_modules');
  };
  return {
    name: 'externalize-packages',
    setup(build) {
      build.onResolve({ filter: /^[^./]/ }, async ({ path, kind, resolveDir, pluginData }) => {
        if (kind === 'entry-point' || pluginData === packages) return null;
        if (isBuiltin(path)) return { path, external: true };
        const found = await build.resolve(path, { kind, resolveDir, pluginData: packages });
        // Without an installed client library, these functions are enough for a module.
        if (found.errors.length > 0) {
          if (OWN.test(path)) return { path, namespace: 'coxswain' };
          const advice = path.startsWith('#') ? '' : ': install the package, or correct its name';
          return { errors: found.errors.map((error) => ({ ...error, text: `${error.text}${advice}` })) };
        }
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
 * Makes `import.meta.url` of each file its own URL, not the bundle's.
 * @param digests collects the SHA-256 of each file. Each file is read once, so the hash covers the bundled bytes.
 */
function keepImportMetaUrl(digests: Map<string, string>): Plugin {
  return {
    name: 'keep-import-meta-url',
    setup(build) {
      build.onLoad({ filter: /./, namespace: 'file' }, async ({ path }) => {
        // esbuild would read a device without end.
        const { bytes } = await readRegularFile(path, MODULE_MAX_BYTES);
        const loader = LOADERS[extname(path)];
        // esbuild reports the problem of any other file.
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
