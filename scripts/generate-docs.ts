/**
 * Writes the generated pages of the documentation: `npm run docs`. With `--check` it writes nothing, and exits with 1
 * if a page differs from the code.
 *
 * `--built DIR [man] [schemas] [coverage]` writes the files that are not in git, for packages and the site. Without a
 * kind, it writes all of them.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { commandReference } from './reference/commands.ts';
import { compatibilityReference } from './reference/compatibility.ts';
import { coverageReference } from './reference/coverage.ts';
import { errorReference } from './reference/errors.ts';
import { hookReference } from './reference/hooks.ts';
import { httpReference } from './reference/http.ts';
import { manualPages } from './reference/manual.ts';
import { metricReference } from './reference/metrics.ts';
import { roleReference } from './reference/roles.ts';
import { schemaFiles, schemaReference } from './reference/schemas.ts';
import { seamReference } from './reference/seams.ts';
import { stateReference } from './reference/states.ts';
import { subjectReference } from './reference/subjects.ts';
import { uiEventReference } from './reference/ui-events.ts';

/** Functions that return the whole text of a file, by path. */
type Files = Readonly<Record<string, () => string | Promise<string>>>;

/** All pages with generated text, by path in the repository. */
const PAGES: Files = {
  'docs/reference/commands.md': commandReference,
  'docs/reference/compatibility.md': compatibilityReference,
  'docs/reference/errors.md': errorReference,
  'docs/reference/hooks.md': hookReference,
  'docs/reference/http.md': httpReference,
  'docs/reference/metrics.md': metricReference,
  'docs/reference/roles.md': roleReference,
  'docs/reference/schemas.md': schemaReference,
  'docs/reference/seams.md': seamReference,
  'docs/reference/states.md': stateReference,
  'docs/reference/subjects.md': subjectReference,
  'docs/reference/ui-events.md': uiEventReference,
};

/** Generated files that are not in git, by kind. Each kind has its own folder. */
const BUILT: Readonly<Record<string, Files>> = {
  man: manualPages,
  schemas: schemaFiles,
  coverage: { 'coverage.md': coverageReference },
};

const { values, positionals } = parseArgs({
  options: { check: { type: 'boolean', default: false }, built: { type: 'string' } },
  allowPositionals: true,
});
if (values.built === undefined) await writePages(values.check);
else await writeBuilt(resolve(values.built), positionals.length > 0 ? positionals : Object.keys(BUILT));

async function writePages(isCheck: boolean): Promise<void> {
  const repository = resolve(import.meta.dirname, '..');
  for (const [page, write] of Object.entries(PAGES)) {
    const path = join(repository, page);
    const text = await write();
    if (existsSync(path) && readFileSync(path, 'utf8') === text) continue;
    if (isCheck) {
      console.error(`${page} is out of date; run \`npm run docs\``);
      process.exitCode = 1;
      continue;
    }
    writeText(path, text);
    console.log(`wrote ${page}`);
  }
  if (isCheck && process.exitCode === undefined) console.log('generated pages are current');
}

async function writeBuilt(folder: string, kinds: readonly string[]): Promise<void> {
  for (const kind of kinds) {
    const files = BUILT[kind];
    if (!files) throw new Error(`unknown kind ${kind}; the kinds are ${Object.keys(BUILT).join(', ')}`);
    for (const [name, write] of Object.entries(files)) writeText(join(folder, kind, name), await write());
  }
}

function writeText(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}
