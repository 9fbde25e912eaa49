/**
 * Writes the generated pages of the documentation: `npm run docs`. With `--check` it writes nothing and exits with 1
 * if a page differs from what the code says, so that generated pages cannot go stale.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { type CatalogueEntry, ERROR_CATALOGUE } from '@coxswain/protocol';

/** Every generated page: its path in the repository, and the function that writes its text from the code. */
const PAGES: Readonly<Record<string, () => string>> = {
  'docs/reference/errors.md': errorReference,
};

function errorReference(): string {
  const kinds: readonly [CatalogueEntry['kind'], string, string][] = [
    ['rejection', 'Rejections', 'A command was refused. Nothing but the rejection was recorded; try something else.'],
    ['outcome', 'Outcomes', 'The world failed. The session recorded it and goes on from there.'],
    ['exception', 'Exceptions', 'A broken invariant or lost infrastructure. The session stops and is read again.'],
  ];
  const entries = Object.entries<CatalogueEntry>(ERROR_CATALOGUE);
  return [
    generatedFrom('libs/protocol/src/error-catalogue.ts'),
    '# Errors\n',
    ...kinds.flatMap(([kind, title, intro]) => [
      `## ${title}\n\n${intro}\n\n| Code | Meaning | What the runtime does | What you can do |\n|---|---|---|---|`,
      ...entries
        .filter(([, entry]) => entry.kind === kind)
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(
          ([code, entry]) => `| \`${code}\` | ${[entry.meaning, entry.runtime, entry.caller].map(cell).join(' | ')} |`,
        ),
      '',
    ]),
  ].join('\n');
}

function generatedFrom(source: string): string {
  return `<!-- Generated from ${source} by \`npm run docs\`. Do not edit. -->\n`;
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ').replaceAll('<', '&lt;');
}

function main(): void {
  const repository = resolve(import.meta.dirname, '..');
  const check = process.argv.includes('--check');
  for (const [page, write] of Object.entries(PAGES)) {
    const path = resolve(repository, page);
    const text = write();
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

main();
