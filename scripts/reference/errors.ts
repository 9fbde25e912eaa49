/** The reference of error codes, from the error catalogue. */
import { type CatalogueEntry, ERROR_CATALOGUE } from '@coxswain/protocol';
import { code, generatedFrom, table } from './markdown.ts';

/** The text of docs/reference/errors.md. */
export function errorReference(): string {
  const kinds: readonly [CatalogueEntry['kind'], string, string][] = [
    [
      'rejection',
      'Rejections',
      'A host rejected a command. The sender gets a receipt. The journal records the rejection, unless 64 of the newest 256 commands of the session are [recorded rejections](../operations/set-quotas.md#rejections-in-the-journal) already. Nothing else changes, unless the column “Meaning” says so.',
    ],
    [
      'refusal',
      'Refusals',
      'A gateway rejected a request. It answers with a problem document and sends no command to a session. [HTTP](http.md) lists the status codes.',
    ],
    [
      'outcome',
      'Outcomes',
      'A model, a tool, a hook or another external system failed. The session records the failure. The run continues or ends, as each row says. The session accepts the next prompt.',
    ],
    [
      'exception',
      'Exceptions',
      'An internal invariant failed, the infrastructure is unavailable, or a command cannot run. The command, or the session on this host, stops.',
    ],
  ];
  const entries = Object.entries<CatalogueEntry>(ERROR_CATALOGUE);
  return [
    generatedFrom('libs/protocol/src/catalogues/error-catalogue.ts'),
    '# Errors\n',
    ...kinds.flatMap(([kind, title, intro]) => [
      `## ${title}\n\n${intro}\n`,
      tableOf(
        kind === 'rejection' || kind === 'refusal',
        entries.filter(([, entry]) => entry.kind === kind).sort(([a], [b]) => (a < b ? -1 : 1)),
      ),
      '',
    ]),
  ].join('\n');
}

/**
 * The table of one kind of codes. Rejections and refusals mostly share one runtime behaviour, which the text above the
 * table describes. Their table has no column for it, and an entry that differs describes it in its meaning.
 */
function tableOf(isShared: boolean, entries: readonly [string, CatalogueEntry][]): string {
  if (!isShared)
    return table(
      ['Code', 'Meaning', 'What the runtime does', 'What you can do'],
      entries.map(([name, entry]) => [code(name), entry.meaning, entry.runtime, entry.caller]),
    );
  const usual = mostFrequent(entries.map(([, { runtime }]) => runtime));
  return table(
    ['Code', 'Meaning', 'What you can do'],
    entries.map(([name, { meaning, runtime, caller }]) => [
      code(name),
      runtime === usual ? meaning : `${meaning} ${runtime}`,
      caller,
    ]),
  );
}

function mostFrequent(texts: readonly string[]): string | undefined {
  const counts = new Map<string, number>();
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
  return [...counts].sort(([, a], [, b]) => b - a)[0]?.[0];
}
