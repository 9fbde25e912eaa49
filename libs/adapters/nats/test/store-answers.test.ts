/** When a leader that still answers can store nothing. */
import { expect, test } from 'vitest';
import { hasQuorum } from '../src/store-answers.ts';

const heard = { offline: false, active: 300_000_000 };
const silent = { offline: false, active: 60_000_000_000 };
const offline = { offline: true, active: 300_000_000 };

test.each<[what: string, followers: Parameters<typeof hasQuorum>[0], expected: boolean]>([
  ['one server', [], true],
  ['both followers heard', [heard, heard], true],
  ['one follower silent', [heard, silent], true],
  ['both followers silent', [silent, silent], false],
  ['one silent, one offline', [silent, offline], false],
  ['a follower that the leader has not heard yet', [{}, {}], true],
])('%s', (_what, followers, expected) => {
  expect(hasQuorum(followers)).toBe(expected);
});
