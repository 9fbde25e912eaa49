import { defaultServerConditions } from 'vite';
import { defineConfig } from 'vitest/config';

// Workspace packages resolve to their TypeScript source, so tests never see a stale build.
const conditions = ['coxswain-source', ...defaultServerConditions];

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: conditions } },
  test: {
    include: ['libs/**/test/*.test.ts', 'services/**/test/*.test.ts', 'tests/**/*.test.ts'],
    // A test that hangs still fails; one that only waits for a busy machine does not.
    testTimeout: 30_000,
    exclude: ['**/node_modules/**', '**/dist/**'],
    reporters: ['default', './tests/plain-reporter.ts'],
  },
});
