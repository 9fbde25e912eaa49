/** The packages of a release: their content, dependencies and size limits. */
import { NATS_SERVER_PACKAGES } from './nats-server-packages.mjs';

/** The repository that npm shows. The provenance of a build must name it. */
const REPOSITORY = 'https://github.com/coxswain/coxswain';

/** The file name of a package's bundle for browsers, in `dist`. */
export const PAGE_FILE = 'page.mjs';

/** Manifest fields of every published package: its homepage, repository and publish settings. */
export const PUBLISHED = {
  homepage: `${REPOSITORY}#readme`,
  repository: { type: 'git', url: `git+${REPOSITORY}.git` },
  bugs: { url: `${REPOSITORY}/issues` },
  publishConfig: { access: 'public', provenance: true },
};

/**
 * The packages by name, in the order of publication: a package comes after its dependencies.
 * - `entries`: the source of each bundled module, by its file name in `dist` without extension.
 * - `exports`: the entry of each exported path.
 * - `page`: the entry that browsers get for each exported path, in a separate bundle. Bundlers cannot tree-shake a
 *   chunk that several packages share down to the code that one entry uses.
 * - `dependencies`: packages that are not bundled. `null` means the version of the release, `installed` the version in
 *   this checkout.
 * - `packedMaxBytes`, `unpackedMaxBytes`: size limits; the build fails above them.
 */
export const PACKAGES = {
  '@coxswain/client': {
    description: 'Start, steer and follow durable AI agent sessions, over NATS or HTTP.',
    entries: { client: 'libs/client/src/mod.ts', http: 'libs/client/src/http.ts' },
    exports: { '.': 'client', './http': 'http' },
    page: 'http',
    dependencies: {},
    sideEffects: false,
    packedMaxBytes: 1_300_000,
    unpackedMaxBytes: 5_200_000,
  },
  coxswain: {
    description: 'Durable, steerable AI agent sessions on NATS: the command, and Coxswain within a program.',
    entries: {
      coxswain: 'libs/cli/src/mod.ts',
      main: 'libs/cli/src/main.ts',
      // `cox serve sessions` starts it as a separate process.
      'session-host': 'services/sessions/src/hosts/session-host.ts',
      // The demo starts it as a separate process.
      'harbour-server': 'libs/cli/src/demo/harbour-server.ts',
    },
    exports: { '.': 'coxswain' },
    // esbuild contains a native binary for the platform, which a bundle cannot contain.
    dependencies: { '@coxswain/client': null, esbuild: 'installed' },
    optionalDependencies: NATS_SERVER_PACKAGES,
    bin: { coxswain: 'bin/cox.mjs', cox: 'bin/cox.mjs' },
    sideEffects: ['./bin/*', './dist/main.mjs', './dist/session-host.mjs', './dist/harbour-server.mjs'],
    packedMaxBytes: 4_000_000,
    unpackedMaxBytes: 20_000_000,
  },
  '@coxswain/testing': {
    description: 'Test agents, tools and hooks of Coxswain: in memory or on a bus, with scripted models.',
    entries: { testing: 'libs/testing/src/mod.ts' },
    exports: { '.': 'testing' },
    dependencies: { '@coxswain/client': null, esbuild: 'installed' },
    sideEffects: false,
    packedMaxBytes: 3_000_000,
    unpackedMaxBytes: 15_000_000,
  },
  'create-coxswain': {
    description: 'Create a project with agents on Coxswain: npm create coxswain@latest my-agents.',
    entries: {},
    exports: {},
    dependencies: { coxswain: null },
    bin: { 'create-coxswain': 'bin/create.mjs' },
    packedMaxBytes: 10_000,
    unpackedMaxBytes: 30_000,
  },
};

/**
 * The manifest of a package.
 * @param version version of the release. Each package depends on exactly this version of the others.
 * @param installed versions of third-party packages in this checkout, by name.
 */
export function manifestOf(name, version, installed) {
  const { description, exports, page, dependencies, optionalDependencies, bin, sideEffects } = PACKAGES[name];
  const exact = (entries) =>
    Object.fromEntries(
      Object.entries(entries).map(([dependency, from]) => [
        dependency,
        from === null ? version : installed[dependency],
      ]),
    );
  const target = (entry) => ({
    ...(page ? { browser: { types: `./dist/${page}.d.mts`, default: `./dist/${PAGE_FILE}` } } : {}),
    types: `./dist/${entry}.d.mts`,
    default: `./dist/${entry}.mjs`,
  });
  const isLibrary = Object.keys(exports).length > 0;
  return {
    name,
    version,
    description,
    keywords: ['ai', 'agents', 'durable-execution', 'human-in-the-loop', 'nats', 'jetstream', 'mcp'],
    license: 'Apache-2.0',
    ...PUBLISHED,
    type: 'module',
    engines: { node: '>=20.19' },
    ...(sideEffects === undefined ? {} : { sideEffects }),
    ...(isLibrary
      ? {
          exports: {
            ...Object.fromEntries(Object.entries(exports).map(([path, entry]) => [path, target(entry)])),
            // Chunks that the packages of a release share, so that each class exists once. Other programs must not
            // import them.
            ...(name === '@coxswain/client' ? { './internal/*': './dist/*' } : {}),
            './package.json': './package.json',
          },
        }
      : {}),
    ...(bin ? { bin } : {}),
    ...(name === 'coxswain' ? { man: [] } : {}),
    ...(Object.keys(dependencies).length > 0 ? { dependencies: exact(dependencies) } : {}),
    ...(optionalDependencies ? { optionalDependencies } : {}),
  };
}
