/**
 * Bundles the modules of all packages of the release at once, with the packages of others inside. esbuild puts into one chunk
 * what the same entries reach, so a chunk belongs to `@coxswain/client` if the client reaches it. The other packages load
 * it from there: of each class there is one copy, and `instanceof` holds across packages.
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
/** Faster parts for `ws`, which does without them. */
const NOT_NEEDED = ['bufferutil', 'utf-8-validate'];
/** What CommonJS requires is a module of Node: all else is inside. A function declaration is hoisted above its uses. */
const REQUIRE =
  'function require(name){const found=globalThis.process?.getBuiltinModule?.(name);' +
  'if(!found)throw new Error(name+" is not a module of this runtime");return found}\n';

/** CommonJS that is imported dynamically has no named exports in a bundle of chunks: a module between them names them. */
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
 * @returns by package: `files` of its `dist` (texts by name), and `inputs`, the bundled source files from the root.
 * @throws if a package needs one that it does not depend on.
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

/** @returns by package: the files of its bundle for pages, which contains no module that the other bundles do not. */
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

/** The module that stands for a shared one, or for its declarations. */
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
 * The map of the sources of Coxswain alone, with paths that lead nowhere outside the package. The rest would be half of each
 * archive. A segment without a source ends the one before it.
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

/** The versions that the checkout depends on, by name. */
export function installedVersions(names) {
  return Object.fromEntries(
    names.map((name) => [
      name,
      JSON.parse(readFileSync(join(root, 'node_modules', name, 'package.json'), 'utf8')).version,
    ]),
  );
}
