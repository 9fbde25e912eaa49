/** When a server that still answers can store nothing. */
import { expect, test } from 'vitest';
import { hasQuorum } from '../src/check-store-quorum.ts';

const heard = { offline: false, active: 300_000_000 };
const silent = { offline: false, active: 60_000_000_000 };
const offline = { offline: true, active: 300_000_000 };

test.each<[what: string, group: Parameters<typeof hasQuorum>[0], expected: boolean]>([
  ['a server outside a cluster', undefined, true],
  ['one replica', { leader: 'n3' }, true],
  ['both followers heard', { leader: 'n3', replicas: [heard, heard] }, true],
  ['one follower silent', { leader: 'n3', replicas: [heard, silent] }, true],
  ['both followers silent', { leader: 'n3', replicas: [silent, silent] }, false],
  ['one silent, one offline', { leader: 'n3', replicas: [silent, offline] }, false],
  ['followers that a new leader has not heard yet', { leader: 'n3', replicas: [{}, {}] }, true],
  ['a member without a leader, which lists itself', { replicas: [{ active: 0 }, { active: 0 }, heard] }, false],
  ['an empty name of a leader', { leader: '', replicas: [heard, heard] }, false],
])('%s', (_what, group, expected) => {
  expect(hasQuorum(group)).toBe(expected);
});
