import { expect, test } from 'vitest';
import { serverVersionAtLeast } from '../src/discovery/server-version.ts';

test('versions are compared by number, and a pre-release is older than its release', () => {
  expect(serverVersionAtLeast('2.12.0', '2.12.0')).toBe(true);
  expect(serverVersionAtLeast('v2.15.1', '2.12.0')).toBe(true);
  expect(serverVersionAtLeast('2.9.30', '2.12.0')).toBe(false);
  expect(serverVersionAtLeast('3.0.0', '2.12.9')).toBe(true);
  expect(serverVersionAtLeast('2.12.0-RC.3', '2.12.0')).toBe(false);
  expect(serverVersionAtLeast('2.13.0-dev', '2.12.0')).toBe(true);
  expect(serverVersionAtLeast('newest', '2.12.0')).toBe(false);
});
