import { describe, expect, test } from 'vitest';
import { parseCommand, sessionRef } from '../src/mod.ts';
import { InvalidIdError } from '../src/wire/ids.ts';

describe('a reference to a session', () => {
  test.each([
    ['a.b', 'default', 'session "a.b": session id must be 1 to 64 characters of A-Z a-z 0-9 _ -', 'session'],
    ['', 'default', 'session "": session id must be 1 to 64 characters of A-Z a-z 0-9 _ -', 'session'],
    ['ok', '*', 'tenant "*": tenant must be 1 to 64 characters of A-Z a-z 0-9 _ -', 'tenant'],
    [7 as unknown as string, 'default', 'session a number: must be a text', 'session'],
  ])('with %j and %j is rejected in one sentence that names the field', (id, tenant, message, field) => {
    expect(() => sessionRef(id, tenant)).toThrow(InvalidIdError);
    expect(() => sessionRef(id, tenant)).toThrow(expect.objectContaining({ code: 'invalid_id', message, field }));
  });

  test('quotes only the beginning of a long id', () => {
    const message = (() => {
      try {
        return String(sessionRef('x'.repeat(100_000)).sessionId);
      } catch (error) {
        return (error as Error).message;
      }
    })();
    expect(message.length).toBeLessThan(200);
  });
});

describe('verdicts of a fork', () => {
  const start = (verdicts: string) =>
    parseCommand('start', Buffer.from(`{"fork": {"session": "a", "n": 1, "changes": {"verdicts": ${verdicts}}}}`));

  test('are kept for a hook of any name', () => {
    const read = start('{"__proto__": true, "constructor": {"deny": "no"}, "reviewer:policy": false, "*": null}');
    const { fork } = (read.ok ? read.body : {}) as { fork: { changes: { verdicts: object } } };
    expect(Object.entries(fork.changes.verdicts)).toEqual([
      ['__proto__', true],
      ['constructor', { deny: 'no' }],
      ['reviewer:policy', false],
      ['*', null],
    ]);
  });

  test.each([
    ['null', 'fork.changes.verdicts'],
    ['[]', 'fork.changes.verdicts'],
    ['{}', 'fork.changes.verdicts'],
    ['{"a b": true}', 'fork.changes.verdicts.a b'],
    ['{"a:b:c": true}', 'fork.changes.verdicts.a:b:c'],
  ])('%s are rejected with the name of the field', (verdicts, field) => {
    expect(start(verdicts)).toMatchObject({ ok: false, problem: { code: 'invalid_field', field } });
  });
});
