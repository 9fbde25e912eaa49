/** The checker of copies, shown sound forks and imports in whose evidence one thing was changed. */
import type { JournalRecord } from '@coxswain/protocol';
import { beforeAll, describe, expect, test } from 'vitest';
import { check, type Evidence, type Journal } from './checkers/check.ts';
import { checkCopy } from './checkers/copy.ts';
import { originOf } from './checkers/origin.ts';
import { History, type ToolRun } from './history.ts';
import { simulate } from './simulate.ts';

interface Copied {
  readonly journal: Journal;
  readonly evidence: Evidence;
  /** Records that are copied. */
  readonly n: number;
}

const copies: Copied[] = [];

beforeAll(async () => {
  for (let seed = 1; seed <= 20; seed++) {
    const { evidence } = await simulate(seed);
    for (const journal of evidence.journals) {
      const n = originOf(journal)?.n;
      if (n !== undefined) copies.push({ journal, evidence, n });
    }
  }
}, 240_000);

const found = async ({ journal, evidence }: Pick<Copied, 'journal' | 'evidence'>) => await checkCopy(journal, evidence);

test('there are forks and imports, and nothing is wrong with them', async () => {
  const how = copies.map(({ journal }) => originOf(journal)?.how);
  expect(new Set(how)).toEqual(new Set(['fork', 'import']));
  for (const copied of copies) {
    expect(await found(copied)).toEqual([]);
    expect((await check(copied.evidence)).filter(({ session }) => session === copied.journal.session)).toEqual([]);
  }
});

/** The first copy that `holds`, with one of its records changed. */
function withRecord(
  at: (copied: Copied) => number,
  change: (record: JournalRecord) => JournalRecord,
  holds: (copied: Copied) => boolean = () => true,
): Pick<Copied, 'journal' | 'evidence'> {
  const copied = copies.find((one) => one.journal.records.length >= at(one) && holds(one));
  if (!copied) throw new Error('there is no such copy');
  const records = copied.journal.records.map((record) => (record.n === at(copied) ? change(record) : record));
  return { journal: { ...copied.journal, records }, evidence: copied.evidence };
}

const CURSOR = { stream: 'COX_COMMANDS', created: '1', seq: 7 };
const isImport = ({ journal }: Copied) => originOf(journal)?.how === 'import';
const changes = ({ journal }: Copied) => originOf(journal)?.changes;

const CASES: readonly (readonly [what: string, changed: () => Pick<Copied, 'journal' | 'evidence'>, says: RegExp])[] = [
  [
    'a copied record has another event',
    () =>
      withRecord(
        () => 2,
        (record) => ({ ...record, events: record.events.slice(1) }),
        ({ n }) => n > 2,
      ),
    /record 2 is not that of its origin/,
  ],
  [
    'a copied record is of another time',
    () =>
      withRecord(
        () => 1,
        (record) => ({ ...record, at: '2031-01-01T00:00:00.000Z' }),
        ({ n }) => n > 1,
      ),
    /record 1 is not that of its origin/,
  ],
  [
    'an import keeps its place in the inbox',
    () =>
      withRecord(
        () => 1,
        (record) => ({ ...record, cursor: CURSOR }),
        isImport,
      ),
    /record 1 has a place in an inbox/,
  ],
  [
    'a fork keeps a place of its origin in the inbox',
    () =>
      withRecord(
        () => 2,
        (record) => ({ ...record, cursor: CURSOR }),
        ({ n }) => n > 2,
      ),
    /record 2 has a place in an inbox/,
  ],
  [
    'somebody waits for a receipt of its origin',
    () =>
      withRecord(
        () => 1,
        (record) => ({ ...record, input: { ...record.input, receipt_to: '_INBOX.x' } as JournalRecord['input'] }),
      ),
    /record 1: somebody waits for a receipt/,
  ],
  [
    'nobody takes a fork over',
    () =>
      withRecord(
        ({ n }) => n + 1,
        (record) => ({ ...record, input: { type: 'owned', epoch: 2, host: 'x' } }),
        (copied) => !isImport(copied),
      ),
    /taken over in no record/,
  ],
  [
    'what was to be otherwise is as it was',
    () =>
      withRecord(
        ({ n }) => n,
        (record) => ({ ...record, input: JSON.parse(JSON.stringify(record.input).replaceAll('forked', 'same')) }),
        (copied) => changes(copied)?.prompt !== undefined && originOf(copied.journal)?.n !== 1,
      ),
    /does not say what was asked/,
  ],
  [
    'its chain is that of its origin',
    () =>
      withRecord(
        () => 2,
        (record) => ({ ...record, prev_hash: 'a'.repeat(64) }),
      ),
    /record 2 does not follow/,
  ],
];

describe('it finds it when', () => {
  test.each(CASES)('%s', async (_what, changed, says) => {
    expect((await found(changed())).join('\n')).toMatch(says);
  });

  test('the origin was changed', async () => {
    const [copied] = copies as [Copied];
    const of = originOf(copied.journal)?.session;
    const journals = copied.evidence.journals.map((journal) =>
      journal.session === of ? { ...journal, bytes: journal.bytes.map(() => Buffer.from('{}')) } : journal,
    );
    expect(await found({ journal: copied.journal, evidence: { ...copied.evidence, journals } })).toContain(
      'it names another record than it was copied from',
    );
  });

  test('records of the copied part are missing', async () => {
    const copied = copies.find(({ n }) => n > 3) as Copied;
    const journal = { ...copied.journal, records: copied.journal.records.slice(0, 3) };
    expect((await found({ ...copied, journal })).join('\n')).toContain(`it has 3 of ${copied.n} records`);
  });

  test('a call of the copied part is run for the copy, or a model asked', async () => {
    const copied = copies.find(({ journal, n }) =>
      journal.records.some(
        (record) => record.n < n && record.events.some((event) => event.type === 'call_ended' && event.status === 'ok'),
      ),
    ) as Copied;
    const { session, records } = copied.journal;
    const events = records.filter(({ n }) => n <= copied.n).flatMap((record) => record.events);
    const ended = events.find((event) => event.type === 'call_ended' && event.status === 'ok');
    const callId = ended?.type === 'call_ended' ? ended.call_id : '';
    const history = new History(() => 0);
    history.entries.push(...copied.evidence.history.entries);
    const run = { session, key: `default.${session}.2-0`, callId, tool: 'count' } as ToolRun;
    history.push({ what: 'ran', run });
    history.push({ what: 'asked', session, system: '', effectId: '1-0', said: [] });
    const wrong = await found({ journal: copied.journal, evidence: { ...copied.evidence, history } });
    expect(wrong).toContain(`${callId} was run, although it had ended when the session was copied`);
    expect(wrong).toContain('the model was asked for effect 1-0 of the copied part');
  });
});
