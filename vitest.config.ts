import { availableParallelism } from 'node:os';
import { defaultServerConditions } from 'vite';
import { defineConfig } from 'vitest/config';
import { answeringEngine } from './tests/containers/engine.ts';
import { filesOnContainers } from './tests/containers/files-on-containers.ts';
import { OWN_SERVER_FILES, SERVERS_SWITCH } from './tests/e2e/kit/servers-switch.ts';
import LongestFirst from './tests/longest-first.ts';

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
  // A test that hangs still fails; one that only waits for a busy machine does not.
  testTimeout: 60_000,
  hookTimeout: 180_000,
  // Many files wait for processes, leases and elections: on two cores, vitest's one worker leaves one of them idle.
  maxWorkers: Math.max(3, availableParallelism() - 1),
  sequence: { sequencer: LongestFirst },
  globalSetup: ['tests/e2e/kit/global-setup.ts'],
  reporters: ['default', './tests/plain-reporter.ts'],
};
const onThisMachine = {
  include: ['libs/**/test/*.test.ts', 'services/**/test/*.test.ts', 'tests/**/*.test.ts'],
  exclude: [
    '**/node_modules/**',
    '**/dist/**',
    'tests/containers/**',
    ...ownServers.map((file) => `tests/e2e/${file}`),
  ],
};

/** What needs no container engine. */
export const suite = defineConfig({ ...everywhere, test: { ...everyTest, ...onThisMachine } });

/** The same, and the tests of containers: for machines on which an engine answers. */
const suiteAndContainers = defineConfig({
  ...everywhere,
  test: {
    ...everyTest,
    projects: [
      { extends: true, test: { name: 'here', ...onThisMachine } },
      {
        extends: true,
        test: { name: 'containers', include: filesOnContainers(), env: { [SERVERS_SWITCH]: 'container' } },
      },
    ],
  },
});

// Where no engine answers, the reporter says what was left out. Whoever has chosen servers is given those.
export default chosen !== '' || (await answeringEngine()) === null ? suite : suiteAndContainers;
