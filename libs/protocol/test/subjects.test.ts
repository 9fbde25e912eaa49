/**
 * Subjects and ids: every built subject is parsed again, and no invalid text becomes a part of one.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  CommandId,
  isInboxSubject,
  isReceiptSubject,
  PARTITIONS,
  parseJournalSubject,
  parsePublishedCommand,
  parseQuery,
  parseStoredCommand,
  partitionOf,
  positionalCommandId,
  publishedAs,
  SessionId,
  sessionRef,
  subjects,
  TenantId,
} from '../src/mod.ts';

const HOSTILE: readonly (readonly [name: string, text: string])[] = [
  ...['', '*', '>', '.', 'a.b', 'a b', 'a*', 'a>', ' ', '\n', 'a\n', 'ä', '$SYS'].map(
    (text) => [JSON.stringify(text), text] as const,
  ),
  ['65 characters', 'x'.repeat(65)],
  ['10,000 characters', 'x'.repeat(10_000)],
];
const ids = fc.stringMatching(/^[A-Za-z0-9_-]{1,64}$/);

describe('an id', () => {
  test.each(HOSTILE)('is not %s', (_name, text) => {
    expect(SessionId.safeParse(text).success).toBe(false);
    expect(TenantId.safeParse(text).success).toBe(false);
    expect(CommandId.safeParse(text).success).toBe(false);
    expect(() => sessionRef(text)).toThrow(/session id must be/);
    expect(() => sessionRef('s', text)).toThrow(/tenant must be/);
  });

  test.each(['a', 'A-Z_09', 'x'.repeat(64), '-', '_'])('may be %j', (text) => {
    expect(sessionRef(text)).toEqual({ tenant: 'default', sessionId: text });
  });

  test('of a command without one is its position in the store', () => {
    expect(positionalCommandId({ stream: 'COX_COMMANDS', created: '1763683200000' }, 17)).toBe(
      'COX_COMMANDS-1763683200000-17',
    );
    expect(() => positionalCommandId({ stream: 'a.b', created: '1' }, 1)).toThrow();
  });
});

describe('the partition of a session', () => {
  // http://www.isthe.com/chongo/src/fnv/test_fnv.c: FNV-1a, 32 bit.
  test.each([
    ['', 0x811c9dc5],
    ['a', 0xe40c292c],
    ['b', 0xe70c2de5],
    ['foobar', 0xbf9cf968],
    ['chongo was here!\n', 0xd49930d5],
  ])('of %j is its FNV-1a hash, modulo 64', (text, hash) => {
    expect(partitionOf(text)).toBe(hash % PARTITIONS);
  });

  test('is below the number of partitions', () => {
    fc.assert(
      fc.property(ids, (id) => {
        const partition = partitionOf(id);
        expect(Number.isInteger(partition) && partition >= 0 && partition < PARTITIONS).toBe(true);
      }),
    );
  });
});

describe('a built subject is parsed again:', () => {
  const refs = fc.record({ sessionId: ids, tenant: ids }).map(({ sessionId, tenant }) => sessionRef(sessionId, tenant));

  test('commands, as published and as stored', () => {
    fc.assert(
      fc.property(refs, ids, (ref, verb) => {
        expect(parsePublishedCommand(subjects.command(ref, verb))).toEqual({ ref, verb });
        expect(parseStoredCommand(subjects.storedCommand(ref, verb))).toEqual({ ref, verb, isTimer: false });
      }),
    );
  });

  test('due timers, which no published subject can become', () => {
    const transformed = (due: string) => {
      const [, partition, tenant, sessionId, , id] = due.split('.');
      const tokens = ['', partition, tenant, sessionId, id];
      return subjects.timerCommandTransform.replace(/\{\{wildcard\((\d)\)\}\}/g, (_, n) => tokens[Number(n)] as string);
    };
    fc.assert(
      fc.property(refs, ids, ids, (ref, timerId, verb) => {
        const stored = transformed(subjects.timerDue(ref, timerId));
        expect(parseStoredCommand(stored)).toEqual({ ref, verb: 'timer', isTimer: true });
        expect(parseStoredCommand(subjects.storedCommand(ref, 'timer'))?.isTimer).toBe(false);
        expect(subjects.storedCommand(ref, verb).split('.')).toHaveLength(stored.split('.').length - 1);
      }),
    );
  });

  test('journals and queries', () => {
    fc.assert(
      fc.property(refs, (ref) => {
        expect(parseJournalSubject(subjects.journal(ref))).toEqual(ref);
        expect(parseQuery(subjects.query(ref, 'get_state'))).toEqual({ ref, what: 'get_state' });
      }),
    );
  });

  test('a journal in the wrong partition is invalid', () => {
    const [root, partition, ...rest] = subjects.journal(sessionRef('s1')).split('.');
    expect(parseJournalSubject([root, Number(partition) + 1, ...rest].join('.'))).toBeNull();
    expect(parseJournalSubject([root, `0${partition}`, ...rest].join('.'))).toBeNull();
  });

  test('a stored command has its published subject', () => {
    const ref = sessionRef('s1');
    expect(publishedAs(subjects.storedCommand(ref, 'steer'))).toBe(subjects.command(ref, 'steer'));
    expect(publishedAs(subjects.command(ref, 'steer'))).toBe(subjects.command(ref, 'steer'));
  });

  test('and no subject matches two kinds', () => {
    const ref = sessionRef('s1');
    const built = [
      subjects.command(ref, 'steer'),
      subjects.storedCommand(ref, 'steer'),
      subjects.journal(ref),
      subjects.query(ref, 'get_state'),
      subjects.events(ref),
      subjects.deltas(ref),
      subjects.snapshot(ref),
    ];
    const readers = [parsePublishedCommand, parseStoredCommand, parseJournalSubject, parseQuery];
    for (const [index, reader] of readers.entries()) {
      expect(built.filter((subject) => reader(subject) !== null)).toEqual([built[index]]);
    }
  });
});

describe('a subject from a client', () => {
  test.each(HOSTILE.filter(([, text]) => !text.includes('.')))(
    'with the invalid id %s has a verb and no session',
    (_name, id) => {
      expect(parsePublishedCommand(`cox.default.session.${id}.steer`)).toEqual({ ref: null, verb: 'steer' });
      expect(parsePublishedCommand(`cox.${id}.session.s1.steer`)).toEqual({ ref: null, verb: 'steer' });
      expect(parseStoredCommand(`cox-cmd.1.default.${id}.steer`)).toBeNull();
      expect(parseJournalSubject(`cox-jrn.1.default.${id}`)).toBeNull();
      expect(parseQuery(`cox.default.query.${id}.get_state`)).toBeNull();
    },
  );

  test.each([
    '',
    'cox',
    'cox.default.session.s1',
    'cox.default.session.s1.steer.now',
    'cox.default.events.s1',
    'fox.default.session.s1.steer',
  ])('of another form is not a command: %j', (subject) => {
    expect(parsePublishedCommand(subject)).toBeNull();
    expect(parseStoredCommand(subject)).toBeNull();
  });
});

describe('builders reject texts that could change the subject', () => {
  const ref = sessionRef('s1');
  test.each(HOSTILE)('%s', (_name, text) => {
    expect(() => subjects.command(ref, text)).toThrow();
    expect(() => subjects.timerSchedule(ref, text)).toThrow();
    expect(() => subjects.timerDue(ref, text)).toThrow();
    expect(() => subjects.tenantJournals(text)).toThrow();
    expect(() => subjects.persona('default', text, 'v')).toThrow();
    expect(() => subjects.hook('default', text)).toThrow();
    for (const build of [subjects.tool, subjects.personaPause, subjects.hook])
      expect(() => build(text, 'name')).toThrow();
    // Tools may have longer names than sessions.
    expect(() => subjects.tool('default', text === 'x'.repeat(65) ? `${text}.` : text)).toThrow();
  });
});

describe('receipts are sent to inboxes only:', () => {
  test.each([
    '_INBOX.abc',
    '_INBOX.abc.1',
    '_INBOX_ada.x.y',
    '_INBOX_ada-2_b.x',
    '_INBOX.$x-1',
    `_INBOX.${'x'.repeat(249)}`,
  ])('%j is valid', (subject) => {
    expect(isInboxSubject(subject)).toBe(true);
  });

  test.each([
    '',
    '_INBOX',
    '_INBOX.',
    '_INBOX..a',
    '_INBOX.*',
    '_INBOX.>',
    '_INBOX.a b',
    '_INBOX.a\n',
    '_INBOXevil.x',
    '_INBOX$.x',
    '_INBOX-ada.x',
    '_INBOX_.x',
    '_INBOX_ada',
    '_INBOX.a.',
    '_inbox.a',
    'x_INBOX.a',
    'cox.default.session.s1.steer',
    '$JS.API.STREAM.PURGE.COX_JOURNAL_0',
  ])('%j is invalid', (subject) => {
    expect(isInboxSubject(subject)).toBe(false);
  });

  test.each([
    ['_INBOX.abc.1', true],
    ['_INBOX_ada.x', true],
    ['_INBOX.at.red.steerer.x', true],
    ['_INBOX.at.blue.steerer.x', false],
    ['_INBOX.at.redder.steerer.x', false],
    ['_INBOX.at.red', false],
    ['_INBOX.host.abc', false],
    ['_INBOX.at.red.>', false],
  ])('of the tenant red to %j: %s', (subject, isAllowed) => {
    expect(isReceiptSubject(subject, 'red')).toBe(isAllowed);
  });

  test('and not to one that is too long', () => {
    expect(isInboxSubject(`_INBOX.${'x'.repeat(250)}`)).toBe(false);
    expect(isInboxSubject(`_INBOX.${'x'.repeat(10_000)}`)).toBe(false);
  });
});
