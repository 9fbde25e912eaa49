/**
 * Bundles the modules of all packages of the release together, including third-party packages. esbuild creates one
 * chunk per set of entries that reach the same modules. A chunk that `@coxswain/client` reaches is published in that
 * package. The other packages load it from there. So each class exists once, and `instanceof` works across packages.
 */
import { readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { basename, join } from 'node:path';
import { decode, encode } from '@jridgewell/sourcemap-codec';
import { build } from 'esbuild';
import { bundleOptions, root } from '../bundle.mjs';
import { PACKAGES, PAGE_FILE } from './packages.mjs';

const BASE = '@coxswain/client';
const OUT = 'dist/release/bundled';
/** Optional native accelerators of `ws`. */
const NOT_NEEDED = ['bufferutil', 'utf-8-validate'];
/**
 * CommonJS in the bundle requires only Node's built-in modules, as everything else is bundled. A hoisted function
 * declaration can stand at the end of the file.
 */
const REQUIRE =
  'function require(name){const found=globalThis.process?.getBuiltinModule?.(name);' +
  'if(!found)throw new Error(name+" is not a module of this runtime");return found}\n';

/**
 * In a bundle with chunks, a dynamically imported CommonJS module has no named exports. This plugin adds a module that
 * re-exports the name.
 */
const NAMED_EXPORTERS = {
  name: 'named-exporters',
  setup({ onLoad, onResolve }) {
    onResolve({ filter: /^@opentelemetry\/exporter-/ }, ({ path, kind }) =>
      kind === 'dynamic-import' ? { path, namespace: 'named-exporters' } : null,
    );
    onLoad({ filter: /.*/, namespace: 'named-exporters' }, ({ path }) => ({
      contents: `export { OTLPTraceExporter } from '${path}';`,
      resolveDir: join(root, 'libs/adapters/telemetry'),
    }));
  },
};

/**
 * Bundles the release.
 * @returns by package name: `files` of its `dist` (texts by file name) and `inputs`, the paths of the bundled source
 *   files, relative to the root.
 * @throws Error if a package imports another package that is neither bundled nor one of its dependencies.
 */
export async function bundleRelease() {
  const entryPoints = Object.assign({}, ...Object.values(PACKAGES).map(({ entries }) => entries));
  const options = bundleOptions(entryPoints, OUT, 'inside', [NAMED_EXPORTERS]);
  const { outputFiles, metafile } = await build({
    ...options,
    metafile: true,
    banner: {},
    external: ['esbuild'],
    charset: 'utf8',
  });
  const texts = new Map(outputFiles.map(({ path, text }) => [basename(path), text]));
  const outputs = new Map(Object.entries(metafile.outputs).map(([path, output]) => [basename(path), output]));
  const reachedBy = (name) => {
    const reached = new Set();
    for (const waiting = Object.keys(PACKAGES[name].entries).map((entry) => `${entry}.mjs`); waiting.length > 0; ) {
      const file = waiting.pop();
      if (reached.has(file)) continue;
      reached.add(file);
      for (const { path, external } of outputs.get(file).imports) if (!external) waiting.push(basename(path));
    }
    return [...reached].sort();
  };
  const shared = new Set(reachedBy(BASE));
  const pages = await bundlePages();
  return new Map(
    Object.keys(PACKAGES).map((name) => {
      const files = new Map();
      const inputs = new Set();
      for (const file of reachedBy(name)) {
        if (name !== BASE && shared.has(file)) {
          files.set(file, sharedFrom(file, outputs.get(file).exports));
          continue;
        }
        refuseUndeclared(name, outputs.get(file));
        for (const input of Object.keys(outputs.get(file).inputs)) inputs.add(input);
        files.set(file, withRequire(texts.get(file)));
        files.set(`${file}.map`, publishedMap(texts.get(`${file}.map`)));
      }
      for (const [file, text] of pages.get(name) ?? []) files.set(file, text);
      return [name, { files, inputs }];
    }),
  );
}

/** @returns by package name: the files of the bundle for browsers. Its modules are all part of the other bundles. */
async function bundlePages() {
  const pages = new Map();
  for (const [name, { page, entries }] of Object.entries(PACKAGES)) {
    if (!page) continue;
    const options = bundleOptions({ [PAGE_FILE.replace('.mjs', '')]: entries[page] }, OUT, 'inside');
    const { outputFiles } = await build({
      ...options,
      platform: 'browser',
      splitting: false,
      banner: {},
      charset: 'utf8',
    });
    const texts = new Map(outputFiles.map(({ path, text }) => [basename(path), text]));
    pages.set(name, [
      [PAGE_FILE, texts.get(PAGE_FILE)],
      [`${PAGE_FILE}.map`, publishedMap(texts.get(`${PAGE_FILE}.map`))],
    ]);
  }
  return pages;
}

/** The text of a module that re-exports a shared chunk of the client, or the declarations of one. */
export function sharedFrom(file, exports) {
  const from = `${BASE}/internal/${file}`;
  return `export * from '${from}';\n${exports.includes('default') ? `export { default } from '${from}';\n` : ''}`;
}

function refuseUndeclared(name, { imports }) {
  for (const { path, external } of imports) {
    if (!external || path.startsWith('node:') || [...builtinModules, ...NOT_NEEDED].includes(path)) continue;
    if (!Object.hasOwn(PACKAGES[name].dependencies, path))
      throw new Error(`${name} imports ${path}, which is neither bundled nor one of its dependencies`);
  }
}

function withRequire(text) {
  if (!/\btypeof require\b/.test(text)) return text;
  return text.replace(/(?=\/\/# sourceMappingURL=[^\n]*\n?$)/, () => REQUIRE);
}

/**
 * Reduces a source map to the sources of Coxswain, with paths inside the package. The rest would be half of each
 * archive. A segment without a source ends the preceding segment.
 */
function publishedMap(text) {
  const { sources, sourcesContent, mappings, ...map } = JSON.parse(text);
  const kept = [...sources.keys()].filter((at) => !sources[at].includes('node_modules/'));
  const places = new Map(kept.map((at, place) => [at, place]));
  const lines = decode(mappings).map((line) => {
    const published = [];
    for (const [column, source, ...original] of line) {
      const place = places.get(source);
      if (place !== undefined) published.push([column, place, ...original]);
      else if (published.at(-1)?.length !== 1) published.push([column]);
    }
    return published;
  });
  return JSON.stringify({
    ...map,
    sources: kept.map((at) => sources[at].replace(/^(\.\.\/)+/, '')),
    sourcesContent: kept.map((at) => sourcesContent[at]),
    mappings: encode(lines),
  });
}

/** The installed versions of packages, by name. */
export function installedVersions(names) {
  return Object.fromEntries(
    names.map((name) => [
      name,
      JSON.parse(readFileSync(join(root, 'node_modules', name, 'package.json'), 'utf8')).version,
    ]),
  );
}
