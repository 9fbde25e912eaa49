/**
 * `npm run faults`: plants each fault by itself, runs the suite of its room, and writes down which test caught it. With
 * words after `--` only those whose names have one of them; the others keep what the list says of them. Exits with 1 if
 * one was not caught.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { PLANTED_FAULTS, type PlantedFault, SUITES, sourceOf } from './planted-faults.ts';

const repository = resolve(import.meta.dirname, '../..');
const list = join(import.meta.dirname, 'README.md');
const runMaxMs = 1_200_000;

interface SuiteReport {
  readonly testResults: readonly {
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
  }[];
}

/** The first test that failed with the fault planted, or null where all passed. */
function caughtBy(fault: PlantedFault): string | null {
  const vitest = join(repository, 'node_modules/vitest/vitest.mjs');
  const config = join(import.meta.dirname, 'vitest.config.ts');
  const { stdout, status, error } = spawnSync(
    process.execPath,
    [vitest, 'run', '--config', config, '--bail', '1', ...SUITES[fault.room ?? 'turn']],
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
  // A machine that is busy may be it as well.
  if (error) return null;
  const line = stdout.split('\n').find((candidate) => candidate.startsWith('{"'));
  const report = line === undefined ? null : (JSON.parse(line) as SuiteReport);
  const failed = report?.testResults
    .flatMap(({ assertionResults }) => assertionResults)
    .find((result) => result.status === 'failed');
  // What does not even load is no fault that anybody could make unnoticed: it says nothing of the tests.
  return failed?.fullName ?? null;
}

function rowOf(fault: PlantedFault, test: string | null): string {
  return `| ${fault.name} | \`${sourceOf(fault)}\` | ${test?.replaceAll('|', '\\|') ?? '**nothing**'} |`;
}

const words = process.argv.slice(2);
const planted = PLANTED_FAULTS.filter(({ name }) => words.length === 0 || words.some((word) => name.includes(word)));
const known = new Map(
  readFileSync(list, 'utf8')
    .split('\n')
    .map((line) => [line.split(' | ')[0]?.slice(2) ?? '', line]),
);
let missed = 0;
for (const fault of planted) {
  const test = caughtBy(fault);
  if (test === null) missed++;
  process.stdout.write(
    `${test === null ? 'NOT CAUGHT' : 'caught'}  ${fault.name}${test === null ? '' : `: ${test}`}\n`,
  );
  known.set(fault.name, rowOf(fault, test));
}
writeFileSync(
  list,
  [
    '# Planted faults',
    '',
    'Faults that a change could introduce, and the first test that fails with each. `npm run faults` plants each fault by',
    'itself, runs the tests, and writes this list; it takes some minutes. `npm run faults -- veto tape` plants only the faults',
    'whose names contain one of these words. `npm test` checks that each fault still fits its source, and that each was caught.',
    '',
    '| Fault | In | Caught by |',
    '|---|---|---|',
    ...PLANTED_FAULTS.map((fault) => known.get(fault.name) ?? rowOf(fault, '*not planted since its last change*')),
    '',
  ].join('\n'),
);
process.stdout.write(`${planted.length - missed} caught, ${missed} not caught\n`);
process.exitCode = missed === 0 ? 0 : 1;
