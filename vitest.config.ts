import { availableParallelism } from 'node:os';
import { defaultServerConditions } from 'vite';
import { defineConfig } from 'vitest/config';
import { answeringEngine } from './tests/containers/engine.ts';
import { CONTAINERS_PROJECT, filesOnContainers } from './tests/containers/files-on-containers.ts';
import { OWN_SERVER_FILES, SERVERS_SWITCH } from './tests/e2e/kit/servers-switch.ts';
import LongestFirst from './tests/longest-first.ts';
import { OPTIMIZE_RARELY } from './tests/optimize-rarely.ts';

// Workspace packages resolve to their TypeScript source, so tests never see a stale build.
// Vendors are loaded by Node, which knows no condition `module`: what a package has there may be for bundlers alone.
const conditions = ['coxswain-source', ...defaultServerConditions.filter((condition) => condition !== 'module')];

// On servers that many files share, those that need a server of their own have no place.
const chosen = process.env[SERVERS_SWITCH] ?? '';
const ownServers = ['', 'one'].includes(chosen) ? [] : Object.keys(OWN_SERVER_FILES);

const everywhere = {
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: conditions } },
  // Where the global setup runs.
  environments: { __vitest__: { resolve: { conditions, externalConditions: conditions } } },
};
const everyTest = {
  // A hung test still fails; a test that waits for a busy machine does not.
  testTimeout: 180_000,
  hookTimeout: 180_000,
  // Tests allocate much that lives briefly: a larger young generation saves a twentieth of the CPU time. The workers keep all cores busy:
  // collecting garbage in several threads of each costs a sixth.
  execArgv: ['--single-threaded-gc', '--max-semi-space-size=64', '--min-semi-space-size=32', ...OPTIMIZE_RARELY],
  sequence: { sequencer: LongestFirst },
  globalSetup: ['tests/e2e/kit/global-setup.ts'],
  // Plain XState instead of the compiled chart.
  setupFiles: process.env.COX_CHART === undefined ? [] : ['tests/chart-runner.ts'],
  reporters: ['default', './tests/plain-reporter.ts'],
};
/** Of a whole run. A project that had it, too, would take no notice of `--maxWorkers`. */
const everyRun = {
  ...everyTest,
  // Most files of `tests` wait for processes, leases and elections: one worker per core would leave cores idle.
  maxWorkers: Math.max(4, availableParallelism() - 1),
};
const excluded = [
  '**/node_modules/**',
  '**/dist/**',
  'tests/containers/**',
  ...ownServers.map((file) => `tests/e2e/${file}`),
];
const files = ['libs/**/test/*.test.ts', 'services/**/test/*.test.ts', 'tests/**/*.test.ts'];

/** Every file that needs no container engine, each in a process of its own. */
export const suite = defineConfig({
  ...everywhere,
  test: { ...everyRun, include: files, exclude: excluded },
});

export default defineConfig({
  ...everywhere,
  test: {
    ...everyRun,
    projects: [
      // Files share the modules that their worker has loaded: loading them for each file took a third of the run.
      {
        ...everywhere,
        test: { ...everyTest, name: 'suite', isolate: false, include: files, exclude: excluded },
      },
      // Where no engine answers, the reporter names what was left out. A run on chosen servers has no containers.
      ...(chosen === '' && (await answeringEngine()) !== null
        ? [
            {
              ...everywhere,
              test: {
                ...everyTest,
                name: CONTAINERS_PROJECT,
                include: filesOnContainers(),
                env: { [SERVERS_SWITCH]: 'container' },
              },
            },
          ]
        : []),
    ],
  },
});
