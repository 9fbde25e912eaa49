/**
 * Writes the generated pages of the documentation: `npm run docs`. With `--check` it writes nothing and exits with 1
 * if a page differs from what the code says, so that generated pages cannot go stale.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { commandReference } from './reference/commands.ts';
import { compatibilityReference } from './reference/compatibility.ts';
import { coverageReference } from './reference/coverage.ts';
import { errorReference } from './reference/errors.ts';
import { hookReference } from './reference/hooks.ts';
import { httpReference } from './reference/http.ts';
import { manualPages } from './reference/manual.ts';
import { metricReference } from './reference/metrics.ts';
import { roleReference } from './reference/roles.ts';
import { schemaFiles } from './reference/schemas.ts';
import { seamReference } from './reference/seams.ts';
import { stateReference } from './reference/states.ts';
import { subjectReference } from './reference/subjects.ts';
import { uiEventReference } from './reference/ui-events.ts';

/** Every page with generated text: its path in the repository, and the function that returns the text of the whole page. */
const PAGES: Readonly<Record<string, () => string | Promise<string>>> = {
  'docs/reference/commands.md': commandReference,
  'docs/reference/compatibility.md': compatibilityReference,
  'docs/reference/coverage.md': coverageReference,
  'docs/reference/errors.md': errorReference,
  'docs/reference/hooks.md': hookReference,
  'docs/reference/http.md': httpReference,
  'docs/reference/metrics.md': metricReference,
  'docs/reference/roles.md': roleReference,
  'docs/reference/seams.md': seamReference,
  'docs/reference/states.md': stateReference,
  'docs/reference/subjects.md': subjectReference,
  'docs/reference/ui-events.md': uiEventReference,
  ...schemaFiles,
  ...manualPages,
};

async function main(): Promise<void> {
  const repository = resolve(import.meta.dirname, '..');
  const check = process.argv.includes('--check');
  for (const [page, write] of Object.entries(PAGES)) {
    const path = resolve(repository, page);
    const text = await write();
    if (existsSync(path) && readFileSync(path, 'utf8') === text) continue;
    if (check) {
      console.error(`${page} is out of date; run \`npm run docs\``);
      process.exitCode = 1;
      continue;
    }
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    console.log(`wrote ${page}`);
  }
  if (check && process.exitCode === undefined) console.log('generated pages are current');
}

await main();
