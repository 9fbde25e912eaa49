/**
 * Calls that a remembered rule matches: as narrow as the guide says.
 */
import { describe, expect, test } from 'vitest';
import { isRemembered } from '../src/commands/remembered-rules.ts';
import {
  BOUNDS,
  bindingProblem,
  describeRule,
  type JsonObject,
  matchOf,
  redactArgs,
  redactForDecision,
} from '../src/mod.ts';

function like(tool: string, args: JsonObject, action: 'allow' | 'deny' = 'allow') {
  const match = matchOf(tool, args);
  if (typeof match === 'string') return expect.fail(match);
  return (later: JsonObject, by = tool) => isRemembered({ tool, match, action }, by, later);
}

describe('a rule does not apply', () => {
  const made = { persona: 'editor', source: 'host', fingerprint: 'f1', root: '/work' } as const;
  test.each([
    ['for another persona', { persona: 'other' }, 'it was made for the persona editor, not other'],
    ['in another root', { root: '/else' }, 'it was made in the root /work, not /else'],
    [
      'for a persona of a request that has the name of the host’s',
      { source: 'request' as const },
      'it was made for the persona editor of the host, not of a request',
    ],
    ['for a changed definition', { fingerprint: 'f2' }, 'the definition of editor has changed: f1 then, f2 now'],
  ])('%s', (_, other, why) => {
    expect(bindingProblem(made, { ...made, ...other })).toBe(why);
    expect(bindingProblem(made, { ...made })).toBeNull();
  });
});

describe('a write', () => {
  const isLike = like('write_file', { path: 'a/b.txt', content: 'x' });
  test('matches another one to the same path, with any content', () => {
    expect(isLike({ path: 'a/b.txt', content: 'something else' })).toBe(true);
  });
  test.each(['a/c.txt', './a/b.txt', 'a/b.txt/', 'a/../a/b.txt', 'A/b.txt'])('does not match one to %s', (path) => {
    expect(isLike({ path, content: 'x' })).toBe(false);
  });
  test('matches no call of another tool', () => {
    expect(isLike({ path: 'a/b.txt' }, 'edit_file')).toBe(false);
  });
});

describe('an allowed command', () => {
  const isLike = (command: string, cwd?: string) =>
    like('run_command', { command: 'npm test' })({ command, ...(cwd === undefined ? {} : { cwd }) });
  test.each(['npm test', ' npm test ', 'npm test unit', 'npm test libs/turn a.test.ts'])('covers %j', (command) => {
    expect(isLike(command)).toBe(true);
  });
  test.each([
    'npm testing',
    'npm tests',
    'npm run test',
    'npm test; rm -rf x',
    'npm test && curl evil',
    'npm test | sh',
    'npm test > out',
    'npm test $(id)',
    'npm test `id`',
    'npm test\nrm x',
    'npm test "a b"',
    'npm test *',
    'npm test ~/x',
    'npm test --globalconfig',
    'npm test -x',
    'npm test /etc/passwd',
    'npm test ../x',
    'npm test a/../../x',
    'npm test a=/etc/passwd',
    'x npm test',
  ])('does not cover %j', (command) => {
    expect(isLike(command)).toBe(false);
  });
  test('applies to its folder only', () => {
    expect(isLike('npm test', '.')).toBe(true);
    expect(isLike('npm test', 'sub')).toBe(false);
  });
  test('that is not plain words covers only itself', () => {
    const exact = like('run_command', { command: 'make | tee log' });
    expect(exact({ command: 'make | tee log' })).toBe(true);
    expect(exact({ command: 'make | tee log more' })).toBe(false);
  });
});

describe('a denied command', () => {
  const isLike = like('run_command', { command: 'git push' }, 'deny');
  test.each(['git push', 'git push origin', 'git push --force', 'git push; ls', 'git push&&ls'])(
    'covers %j',
    (command) => {
      expect(isLike({ command })).toBe(true);
    },
  );
  test.each(['git pushd', 'git pull', 'ls; git push'])('does not cover %j', (command) => {
    expect(isLike({ command })).toBe(false);
  });
});

describe('a call of another tool', () => {
  test('matches one with the same arguments in any order, and no other', () => {
    const isLike = like('refund', { order: 7, usd: 20 });
    expect(isLike({ usd: 20, order: 7 })).toBe(true);
    expect(isLike({ order: 7, usd: 21 })).toBe(false);
    expect(isLike({ order: 7, usd: 20, also: 1 })).toBe(false);
    expect(like('files__write', { path: 'a', mode: 'read' })({ path: 'a', mode: 'delete' })).toBe(false);
  });
  test('with too large arguments cannot be remembered', () => {
    expect(matchOf('refund', { note: 'x'.repeat(BOUNDS.rememberedMatchMaxBytes) })).toMatch(/the limit is 4096/);
    expect(matchOf('refund', null)).toMatch(/not an object/);
  });
});

test('a rule is described as a sentence', () => {
  const match = matchOf('run_command', { command: 'npm test' });
  if (typeof match === 'string') expect.fail(match);
  else
    expect(describeRule({ action: 'allow', tool: 'run_command', match })).toBe(
      'allow run_command "npm test", also with more words',
    );
});

describe('arguments for other readers', () => {
  test('contain no secrets by name or form', () => {
    const shown = redactArgs({
      path: 'a.txt',
      password: 'hunter2',
      headers: { Authorization: 'Bearer abcdefghijk', accept: 'json' },
      url: 'https://ann:letmein@example.org/x',
      text: 'use Bearer abcdefghijklmnop and ghp_abcdefghijklmnopqrst',
    });
    expect(shown).toEqual({
      path: 'a.txt',
      password: '[redacted]',
      headers: { Authorization: '[redacted]', accept: 'json' },
      url: 'https://ann:[redacted]@example.org/x',
      text: 'use Bearer [redacted] and [redacted]',
    });
  });
  test('are short for any input', () => {
    const huge = Object.fromEntries(
      Array.from({ length: 500 }, (_, i) => [`k${i}`, ['x'.repeat(100_000), '😀'.repeat(300)]]),
    );
    const text = JSON.stringify(redactArgs(huge));
    expect(text.length).toBeLessThan(20_000);
    expect(Buffer.from(text, 'utf8').toString('utf8')).toBe(text);
  });
});

describe('arguments for a person who decides', () => {
  test('show the end of a padded command', () => {
    const padded = `ls${' '.repeat(500)}; rm -rf ~`;
    expect(redactForDecision({ command: padded })).toEqual({ command: padded });
    const { command } = redactForDecision({ command: `echo ${'a'.repeat(100_000)}; rm -rf ~` }) as { command: string };
    expect(command).toMatch(/^echo a+ \[… \d+ more\] a+; rm -rf ~$/);
    expect(command.length).toBeLessThanOrEqual(2_000);
  });

  test('show no part of a secret at the cut', () => {
    const key = `-----BEGIN PRIVATE KEY-----\n${'MIIE'.repeat(2_000)}`;
    expect(JSON.stringify(redactForDecision({ text: `${'a'.repeat(3_000)}${key}` }))).not.toContain('MIIE');
  });
});
