/** The test files that find faults, with replaceable functions. */
import { resolve } from 'node:path';
import { mergeConfig } from 'vitest/config';
import { suite } from '../../vitest.config.ts';
import { replaceableFunctions } from './fault.ts';

const config = mergeConfig(suite, {
  plugins: [replaceableFunctions()],
  root: resolve(import.meta.dirname, '../..'),
  test: { setupFiles: ['tests/faults/plant.ts'], bail: 1, testTimeout: 60_000, isolate: false, maxWorkers: 1 },
});
config.test.globalSetup = [];
config.test.reporters = [{}];
export default config;
