/** `cox session diff`. */

import { printable } from '@coxswain/client';
import { cutGraphemes, type Json } from '@coxswain/protocol';
import type { Difference, JournalDiff } from '@coxswain/session';
import { withBus } from '../../instance/mod.ts';
import { exportedRecords, journalSource, needsBus, type OpenJournal } from '../../journals/mod.ts';
import { type CommandRun, EXIT, type ExitCode, type Invocation, usageError } from '../../line/mod.ts';
import { counted, standardStreams } from '../../terminal/mod.ts';

/** Maximum number of differences in text output; `--json` prints more. */
const SHOWN_MAX = 60;

/** Compares two journals: sessions, exported files, or one of each. Exits 1 if they differ. */
export const run: CommandRun = async (invocation) => {
  const [a, b] = invocation.args as [string, string];
  if (a === b) throw usageError(`give two journals: ${a} does not differ from itself`);
  const sources = [await journalSource(a, invocation.env), await journalSource(b, invocation.env)] as const;
  if (!(await needsBus(invocation, sources)))
    return printDiff(invocation, await sources[0].open(null), await sources[1].open(null));
  return withBus(invocation, false, async ({ client }) =>
    printDiff(invocation, await sources[0].open(client), await sources[1].open(client)),
  );
};

async function printDiff({ flags }: Invocation, a: OpenJournal, b: OpenJournal): Promise<ExitCode> {
  const { diffJournals } = await import('@coxswain/session');
  const diff = await diffJournals(recordsOf(a), recordsOf(b));
  standardStreams.out(
    flags.on('json') ? `${JSON.stringify({ type: 'journal_diff', ...diff })}\n` : printable(formatText(diff)),
  );
  return diff.first === null ? EXIT.ok : EXIT.error;
}

async function* recordsOf(journal: OpenJournal) {
  for await (const { record } of exportedRecords(journal)) yield record;
}

function formatText({ a, b, first, differences, more }: JournalDiff): string {
  const names = `a: ${a.session_id} (${counted(a.records, 'record')})\nb: ${b.session_id} (${counted(b.records, 'record')})\n`;
  if (first === null) return `${names}identical except for ids and times\n`;
  const { n, path, is } = first;
  const common = n[0] === null ? a.records : n[0] - 1;
  const same = common === 0 ? 'they differ from the first record on' : `the same up to record ${common}`;
  const what = path === '' ? '' : ` at ${path}: ${short(first.a)} | ${short(first.b)}`;
  const head = `${same}\nrecord ${[...new Set(n.filter((one) => one !== null))].join(' | ')}: ${is[0] ?? 'no more'} | ${is[1] ?? 'no more'}${what}\n`;
  const lines = differences.slice(0, SHOWN_MAX).map((difference, index) => {
    const before = differences[index - 1];
    const isNew = before?.run !== difference.run || before.turn !== difference.turn;
    return `${isNew ? `${placeOf(difference)}\n` : ''}  ${lineOf(difference)}\n`;
  });
  const unshown = differences.length - lines.length + more;
  return `${names}${head}${lines.join('')}${unshown > 0 ? `… and ${unshown} more: --json prints them\n` : ''}`;
}

function placeOf({ run, turn }: Difference): string {
  return turn === 0 ? `run ${run}` : `run ${run}, turn ${turn}`;
}

function lineOf({ what, of, a, b }: Difference): string {
  return `${what}${of === null ? '' : ` ${of}`}: ${valueText(a)} | ${valueText(b)}`;
}

function valueText(text: string | null): string {
  return text === null ? 'nothing' : text.replaceAll('\n', ' ⏎ ');
}

function short(value: Json | undefined): string {
  const text = value === undefined ? 'nothing' : JSON.stringify(value);
  return text.length > 120 ? `${cutGraphemes(text, 120)}…` : text;
}
