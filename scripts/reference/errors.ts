/** The reference of codes, from the catalogue. */
import { type CatalogueEntry, ERROR_CATALOGUE } from '@coxswain/protocol';
import { code, generatedFrom, table } from './markdown.ts';

/** docs/reference/errors.md */
export function errorReference(): string {
  const kinds: readonly [CatalogueEntry['kind'], string, string][] = [
    ['rejection', 'Rejections', 'A host rejected a command. It recorded the rejection and changed nothing else.'],
    [
      'refusal',
      'Refusals',
      'A gateway rejected a request. It sent nothing to a session. [HTTP](http.md) lists the status codes.',
    ],
    [
      'outcome',
      'Outcomes',
      'A model, a tool, a hook or another external system failed. The session records the failure and continues.',
    ],
    [
      'exception',
      'Exceptions',
      'An internal invariant failed, the infrastructure is unavailable, or a command cannot run. The command, or the session on this host, stops.',
    ],
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
