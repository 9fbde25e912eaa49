/** The packages of a release: what each contains, needs and may weigh. */
import { NATS_SERVER_PACKAGES } from './nats-server-packages.mjs';

/** The repository that npm shows, and that a build's provenance has to name. */
const REPOSITORY = 'https://github.com/coxswain/coxswain';

/** The file of a package's bundle for pages. */
export const PAGE_FILE = 'page.mjs';

/** What every published manifest says about its origin. */
export const PUBLISHED = {
  homepage: `${REPOSITORY}#readme`,
  repository: { type: 'git', url: `git+${REPOSITORY}.git` },
  bugs: { url: `${REPOSITORY}/issues` },
  publishConfig: { access: 'public', provenance: true },
};

/**
 * By name, in the order in which they are published: a package comes after its dependencies.
 * - `entries`: the source of each bundled module of the package, by the name of its file in `dist`.
 * - `exports`: the entry behind each exported path.
 * - `page`: the entry that pages get for each exported path, in a bundle of its own: what several packages share cannot be reduced to
 *   what one of its entries uses.
 * - `dependencies`: what is not bundled. `null` stands for the version of the release, `installed` for that of this checkout.
 * - `packedMaxBytes`, `unpackedMaxBytes`: the build fails above them.
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
    unpackedMaxBytes: 5_000_000,
  },
  coxswain: {
    description: 'Durable, steerable AI agent sessions on NATS: the command, and Coxswain within a program.',
    entries: {
      coxswain: 'libs/cli/src/mod.ts',
      main: 'libs/cli/src/main.ts',
      // `cox serve sessions` starts it as a process.
      'session-host': 'services/sessions/src/hosts/session-host.ts',
      // The demo starts it as a process.
      'harbour-server': 'libs/cli/src/demo/harbour-server.ts',
    },
    exports: { '.': 'coxswain' },
    // esbuild carries a program for the platform: a bundle cannot contain it.
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
 * @param version of the release; every package of it depends on exactly this version of the others.
 * @param installed versions of this checkout, by name.
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
            // Parts that the packages of one release share: of one class there is one copy. Not for other programs.
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
