/**
 * `npm run faults`: plants each fault by itself, runs the suites of the turn machine, and writes down which test caught
 * it. Exits with 1 if one was not caught.
 */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { PLANTED_FAULTS, type PlantedFault } from './planted-faults.ts';

const repository = resolve(import.meta.dirname, '../..');
const runMaxMs = 300_000;

interface SuiteReport {
  readonly testResults: readonly {
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
  }[];
}

/** The first test that failed with the fault planted, or null where all passed. */
function caughtBy(fault: PlantedFault): string | null {
  const vitest = join(repository, 'node_modules/vitest/vitest.mjs');
  const rooms = ['libs/turn', 'tests/traces'];
  const { stdout, status } = spawnSync(
    process.execPath,
    [vitest, 'run', '--config', join(import.meta.dirname, 'vitest.config.ts'), '--bail', '1', ...rooms],
    {
      cwd: repository,
      env: { ...process.env, COX_FAULT: fault.name },
      encoding: 'utf8',
      timeout: runMaxMs,
      maxBuffer: 64 * 1024 * 1024,
      stdio: ['ignore', 'pipe', 'ignore'],
    },
  );
  if (status === 0) return null;
  const line = stdout.split('\n').find((candidate) => candidate.startsWith('{"'));
  const report = line === undefined ? null : (JSON.parse(line) as SuiteReport);
  const failed = report?.testResults
    .flatMap(({ assertionResults }) => assertionResults)
    .find((result) => result.status === 'failed');
  return failed?.fullName ?? 'the suite does not load';
}

const rows: string[] = [];
let missed = 0;
for (const fault of PLANTED_FAULTS) {
  const test = caughtBy(fault);
  if (test === null) missed++;
  process.stdout.write(
    `${test === null ? 'NOT CAUGHT' : 'caught'}  ${fault.name}${test === null ? '' : `: ${test}`}\n`,
  );
  rows.push(`| ${fault.name} | \`${fault.file}\` | ${test?.replaceAll('|', '\\|') ?? '**nothing**'} |`);
}
writeFileSync(
  join(import.meta.dirname, 'README.md'),
  [
    '# Planted faults',
    '',
    'Faults that somebody could make in the turn machine, and the first test that fails with each. `npm run faults` plants',
    'one after another and writes this list; it takes some minutes. A test of `npm test` holds that each still fits its source.',
    '',
    '| Fault | In | Caught by |',
    '|---|---|---|',
    ...rows,
    '',
  ].join('\n'),
);
process.stdout.write(`${PLANTED_FAULTS.length - missed} caught, ${missed} not caught\n`);
process.exitCode = missed === 0 ? 0 : 1;
