/**
 * `npm run test:nightly [-- --only NAME,…]`: the long searches, which `npm test` only samples. `--list` prints their names as a
 * JSON array. Each runs as its own process, also after a failure; the last line counts them as `N passed, N failed`. Exits with 1 if one has failed.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { SCENARIOS, SOUND_TABLES } from './chaos/scenarios.ts';

interface Search {
  readonly name: string;
  readonly command: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

const npm = (script: string, ...flags: string[]) => ['npm', 'run', script, '--', ...flags];
const vitest = (...args: string[]) => [process.execPath, 'node_modules/vitest/vitest.mjs', 'run', ...args];
/** Another part of the space each day; a failure prints its seed. */
const seed = String(1 + Math.floor(Date.now() / 86_400_000) * 10_000);

const SEARCHES: readonly Search[] = [
  { name: 'simulation', command: npm('sim', '--seeds', '10000', '--seed', seed) },
  {
    name: 'simulation-xstate',
    command: npm('sim', '--seeds', '2000', '--seed', seed),
    env: { COX_CHART: 'xstate' },
  },
  {
    name: 'chart-runners',
    command: vitest('tests/simulation/simulation.test.ts', '-t', 'the same seed'),
    env: { COX_NIGHTLY: '1' },
  },
  { name: 'every-await', command: vitest('tests/simulation/every-await.test.ts'), env: { COX_NIGHTLY: '1' } },
  {
    name: 'random-runs',
    command: vitest('libs/turn/test/random-runs.test.ts'),
    env: { TURN_RUNS: '10000', TURN_SEED: seed },
  },
  { name: 'paths', command: vitest('libs/turn/test/paths.test.ts'), env: { COX_NIGHTLY: '1' } },
  { name: 'fence-duel', command: vitest('tests/cluster/fence-duel.test.ts'), env: { COX_NIGHTLY: '1' } },
  { name: 'crews', command: vitest('tests/simulation/crews.test.ts'), env: { COX_NIGHTLY: '1' } },
  { name: 'watchers', command: vitest('tests/e2e/gateway-watchers.test.ts'), env: { COX_NIGHTLY: '1' } },
  { name: 'upgrade', command: vitest('tests/e2e/upgrade.test.ts'), env: { COX_NIGHTLY: '1' } },
  { name: 'traces-on-nats', command: vitest('tests/traces/on-nats.test.ts'), env: { COX_NIGHTLY: '1' } },
  {
    name: 'console-looks',
    command: vitest('tests/e2e/console.test.ts', 'tests/e2e/console-accessibility.test.ts'),
    env: { COX_NIGHTLY: '1' },
  },
  {
    name: 'served-work',
    command: vitest('tests/contracts/served-matrix.test.ts', 'tests/e2e/served-matrix.test.ts'),
    env: { COX_NIGHTLY: '1', COX_SEED: seed },
  },
  { name: 'kills', command: vitest('tests/e2e/kill.test.ts'), env: { COX_KILLS: '300' } },
  { name: 'faults', command: npm('faults') },
  { name: 'node-versions', command: npm('test:node') },
  { name: 'site', command: npm('docs:site') },
  { name: 'e2e-on-a-cluster', command: npm('test:e2e', '--servers', 'cluster') },
  ...[...SCENARIOS, ...SOUND_TABLES].map(({ name }) => ({
    name: `chaos-${name}`,
    command: npm('chaos', '--scenario', name),
  })),
];

const { values } = parseArgs({ options: { only: { type: 'string' }, list: { type: 'boolean' } } });
if (values.list) {
  console.log(JSON.stringify(SEARCHES.map(({ name }) => name)));
  process.exit(0);
}
const wanted = values.only?.split(',');
const unknown = wanted?.filter((name) => !SEARCHES.some((search) => search.name === name)) ?? [];
if (unknown.length > 0) {
  console.error(`unknown: ${unknown.join(', ')}; --only takes ${SEARCHES.map(({ name }) => name).join(', ')}`);
  process.exit(2);
}

const failed: string[] = [];
let passed = 0;
for (const { name, command, env } of SEARCHES) {
  if (wanted && !wanted.includes(name)) continue;
  const [program = '', ...flags] = command;
  console.log(`\n=== ${name}: ${command.slice(program === 'npm' ? 0 : 1).join(' ')}`);
  const startedMs = performance.now();
  const child = spawn(program, flags, {
    cwd: resolve(import.meta.dirname, '..'),
    env: { ...process.env, ...env },
    stdio: 'inherit',
  });
  const [code] = await once(child, 'exit');
  console.log(
    `=== ${name}: ${code === 0 ? 'passed' : 'FAILED'} in ${Math.round((performance.now() - startedMs) / 1_000)} s`,
  );
  if (code === 0) passed += 1;
  else failed.push(name);
}
if (failed.length > 0) console.log(`\nfailed: ${failed.join(', ')}`);
console.log(`${passed} passed, ${failed.length} failed`);
process.exitCode = failed.length > 0 ? 1 : 0;
