/** `--threads` and `COX_THREADS`: how many session hosts a service runs. */
import { describe, expect, test } from 'vitest';
import { Flags } from '../src/line/mod.ts';
import { threadsOf } from '../src/service/mod.ts';

const none = new Flags([]);
const flag = (value: string) => new Flags([{ name: 'threads', value }]);

test.each([
  { cores: 1, hosts: 1 },
  { cores: 2, hosts: 1 },
  { cores: 4, hosts: 3 },
  { cores: 64, hosts: 8 },
])('$cores cores run $hosts hosts by default', ({ cores, hosts }) => {
  expect(threadsOf({ flags: none, env: {} }, cores)).toBe(hosts);
});

test('the flag takes precedence over the variable, and both over the default', () => {
  expect(threadsOf({ flags: none, env: { COX_THREADS: ' 4 ' } }, 2)).toBe(4);
  expect(threadsOf({ flags: flag('2'), env: { COX_THREADS: '4' } }, 2)).toBe(2);
  expect(threadsOf({ flags: none, env: { COX_THREADS: '' } }, 2)).toBe(1);
});

describe.each([
  ['--threads', (value: string) => threadsOf({ flags: flag(value), env: {} })],
  ['COX_THREADS', (value: string) => threadsOf({ flags: none, env: { COX_THREADS: value } })],
])('%s', (name, read) => {
  test.each(['0', '65', '-1', '1.5', 'all'])('rejects %s', (value) => {
    expect(() => read(value)).toThrow(`${name} takes a whole number from 1 to 64, not "${value}"`);
  });
});
