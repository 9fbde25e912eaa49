/**
 * `npm run test:node [-- 20.19 22 24 26]`: the unit tests of `npm run test:quick`, the demo, and the packages as
 * `npm run release:check` installs them, on each supported Node. Each runs as its own process, also after a failure; the
 * last line counts them as `N passed, N failed`. Exits with 1 if one has failed.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { delimiter, resolve } from 'node:path';
import { NODE_VERSIONS, nodeFolder } from './node-binaries.ts';

const repository = resolve(import.meta.dirname, '..');
const { scripts } = JSON.parse(readFileSync(resolve(repository, 'package.json'), 'utf8')) as {
  scripts: Readonly<Record<string, string>>;
};

/** The command lines, each as arguments of `node`. */
const RUNS: Readonly<Record<string, readonly string[]>> = {
  'unit tests': ['node_modules/vitest/vitest.mjs', ...(scripts['test:quick'] ?? '').split(' ').slice(1)],
  demo: ['libs/cli/bin/cox.mjs', 'demo'],
  packages: ['scripts/release/check.mjs'],
};
/** The unit tests and the packages take minutes, the demo seconds; all may run on a busy machine. */
const RUN_TIMEOUT_MS = 900_000;

const given = process.argv.slice(2);
const unknown = given.filter((line) => !NODE_VERSIONS.has(line));
if (unknown.length > 0) {
  console.error(`unknown: ${unknown.join(', ')}; test:node takes ${[...NODE_VERSIONS.keys()].join(', ')}`);
  process.exit(2);
}

const failed: string[] = [];
let passed = 0;
for (const [line, version] of NODE_VERSIONS) {
  if (given.length > 0 && !given.includes(line)) continue;
  const folder = await nodeFolder(version);
  for (const [name, args] of Object.entries(RUNS)) {
    const run = `${name} on Node ${version}`;
    console.log(`\n=== ${run}`);
    const startedMs = performance.now();
    const child = spawn('node', args, {
      cwd: repository,
      // The tests and the demo start further processes, which find the same Node.
      env: { ...process.env, PATH: `${folder}${delimiter}${process.env.PATH}` },
      stdio: ['ignore', 'inherit', 'inherit'],
      timeout: RUN_TIMEOUT_MS,
    });
    const [code, signal] = await once(child, 'exit');
    const seconds = Math.round((performance.now() - startedMs) / 1_000);
    const how = code === 0 ? 'passed' : `FAILED with ${signal ?? `exit code ${code}`}`;
    console.log(`=== ${run}: ${how} after ${seconds} s`);
    if (code === 0) passed += 1;
    else failed.push(run);
  }
}
if (failed.length > 0) console.log(`\nfailed: ${failed.join(', ')}`);
console.log(`${passed} passed, ${failed.length} failed`);
process.exitCode = failed.length > 0 ? 1 : 0;
