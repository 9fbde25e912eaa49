import { defaultServerConditions } from 'vite';
import { defineConfig } from 'vitest/config';
import { OWN_SERVER_FILES, SERVERS_SWITCH } from './tests/e2e/kit/servers-switch.ts';

// Workspace packages resolve to their TypeScript source, so tests never see a stale build.
const conditions = ['coxswain-source', ...defaultServerConditions];

// On servers that many files share, those that need a server of their own have no place.
const ownServers = ['', 'one', undefined].includes(process.env[SERVERS_SWITCH]) ? [] : Object.keys(OWN_SERVER_FILES);

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: conditions } },
  // Where the global setup runs.
  environments: { __vitest__: { resolve: { conditions, externalConditions: conditions } } },
  test: {
    include: ['libs/**/test/*.test.ts', 'services/**/test/*.test.ts', 'tests/**/*.test.ts'],
    // A test that hangs still fails; one that only waits for a busy machine does not.
    testTimeout: 30_000,
    exclude: ['**/node_modules/**', '**/dist/**', ...ownServers.map((file) => `tests/e2e/${file}`)],
    globalSetup: ['tests/e2e/kit/global-setup.ts'],
    reporters: ['default', './tests/plain-reporter.ts'],
  },
});
