/** The reference of codes, from the catalogue. */
import { type CatalogueEntry, ERROR_CATALOGUE } from '@coxswain/protocol';
import { code, generatedFrom, table } from './markdown.ts';

/** docs/reference/errors.md */
export function errorReference(): string {
  const kinds: readonly [CatalogueEntry['kind'], string, string][] = [
    ['rejection', 'Rejections', 'A command was refused. Nothing but the rejection was recorded; try something else.'],
    [
      'refusal',
      'Refusals',
      'A gateway has refused a request. No session has heard of it; [HTTP](http.md) has the statuses.',
    ],
    ['outcome', 'Outcomes', 'The world failed. The session recorded it and goes on from there.'],
    ['exception', 'Exceptions', 'A broken invariant or lost infrastructure. The session stops and is read again.'],
  ];
  const entries = Object.entries<CatalogueEntry>(ERROR_CATALOGUE);
  return [
    generatedFrom('libs/protocol/src/error-catalogue.ts'),
    '# Errors\n',
    ...kinds.flatMap(([kind, title, intro]) => [
      `## ${title}\n\n${intro}\n`,
      table(
        ['Code', 'Meaning', 'What the runtime does', 'What you can do'],
        entries
          .filter(([, entry]) => entry.kind === kind)
          .sort(([a], [b]) => (a < b ? -1 : 1))
          .map(([name, entry]) => [code(name), entry.meaning, entry.runtime, entry.caller]),
      ),
      '',
    ]),
  ].join('\n');
}
