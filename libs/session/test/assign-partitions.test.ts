/** Who serves which partition. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { assignPartitions } from '../src/hosting/assign-partitions.ts';

const hosts = fc.uniqueArray(fc.stringMatching(/^[a-z0-9-]{1,40}$/), { minLength: 1, maxLength: 12 });
const ownersOf = (names: readonly string[]): Map<number, string> => {
  const owners = new Map<number, string>();
  for (const [host, partitions] of assignPartitions(names)) for (const p of partitions) owners.set(p, host);
  return owners;
};

test('every partition has one host, and no host has more than an even share', () => {
  fc.assert(
    fc.property(hosts, (names) => {
      const shares = assignPartitions(names);
      expect([...shares.values()].flat().sort((a, b) => a - b)).toEqual(Array.from({ length: 64 }, (_, p) => p));
      const sizes = [...shares.values()].map((share) => share.length);
      expect(Math.max(...sizes) - Math.min(...sizes)).toBeLessThanOrEqual(1);
    }),
  );
});

test('the assignment depends only on the set of hosts, not on their order', () => {
  fc.assert(
    fc.property(hosts, (names) => {
      expect(ownersOf([...names].reverse())).toEqual(ownersOf(names));
    }),
  );
});

test('few partitions move when a host joins or leaves', () => {
  const names = Array.from({ length: 8 }, (_, i) => `host-${i}`);
  const before = ownersOf(names);
  for (const newcomer of ['a', 'b', 'c', 'd']) {
    const after = ownersOf([...names, newcomer]);
    const moved = [...before].filter(([p, host]) => after.get(p) !== host);
    // Its share is 7; what must move beside that keeps the shares even.
    expect(moved.length).toBeLessThanOrEqual(2 * 7);
  }
});

test('without hosts, no partition is assigned', () => {
  expect(assignPartitions([])).toEqual(new Map());
});
