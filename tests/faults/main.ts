/**
 * `npm run faults [-- WORD…]`: plants each fault by itself, or those with one of the words in their names, and runs the
 * test file that must find it. Exits with 1 if a test file finds nothing, or if one fails without a fault.
 */
import { join } from 'node:path';
import { createVitest } from 'vitest/node';
import { FAULTS } from './faults.ts';

const words = process.argv.slice(2);
const asked = FAULTS.filter(({ name }) => words.length === 0 || words.some((word) => name.includes(word)));
const vitest = await createVitest('test', { config: join(import.meta.dirname, 'vitest.config.ts'), watch: false });

/** The first test that fails, or null. */
async function firstFailure(testFiles: readonly string[], fault?: string): Promise<string | null> {
  vitest.provide('fault', fault);
  const specifications = await vitest.globTestSpecifications([...testFiles]);
  const { testModules } = await vitest.runTestSpecifications(specifications);
  // The result also holds the files of earlier runs.
  const ran = testModules.filter((module) => specifications.some(({ moduleId }) => moduleId === module.moduleId));
  const tests = ran.flatMap(({ children }) => [...children.allTests()]);
  if (tests.length === 0) throw new Error(`no test ran in ${testFiles.join(', ')}: ${fault}`);
  return tests.find((test) => test.result().state === 'failed')?.fullName ?? null;
}

const failure = await firstFailure([...new Set(asked.map(({ testFile }) => testFile))]);
if (failure !== null) throw new Error(`fails without a fault: ${failure}`);
let missed = 0;
for (const { testFile, name } of asked) {
  const foundBy = await firstFailure([testFile], name);
  if (foundBy === null) missed++;
  process.stdout.write(`${foundBy === null ? 'NOT FOUND' : 'found'}  ${name}\n  ${testFile}: ${foundBy ?? 'passes'}\n`);
}
await vitest.close();
process.stdout.write(`${asked.length - missed} found, ${missed} not found\n`);
process.exitCode = missed === 0 ? 0 : 1;
