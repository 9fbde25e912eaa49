/** The switch that says on which servers these tests run. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { serversFrom } from './kit/servers.ts';
import { OWN_SERVER_FILES } from './kit/servers-switch.ts';

test.each([
  [undefined, { kind: 'one' }],
  ['', { kind: 'one' }],
  ['one', { kind: 'one' }],
  ['cluster', { kind: 'cluster' }],
  ['nats://secret@127.0.0.1:4222', { kind: 'url', url: 'nats://secret@127.0.0.1:4222' }],
  ['127.0.0.1:4222,127.0.0.1:4223', { kind: 'url', url: '127.0.0.1:4222,127.0.0.1:4223' }],
])('%j means %j', (said, means) => {
  expect(serversFrom(said)).toEqual(means);
});

test.each(['clutser', 'three', 'http://127.0.0.1:4222', 'nats://', 'nats://a@h:1,nats://b@h:2'])(
  '%j is refused, and told what would be right',
  (said) => {
    expect(() => serversFrom(said)).toThrow(/^COX_E2E_SERVERS takes one, cluster, /);
  },
);

test('a secret in an address that cannot be read is not repeated', () => {
  expect(() => serversFrom('nats://secret@127.0.0.1:99999999')).toThrow(/^(?!.*secret)/);
});

test.each(Object.keys(OWN_SERVER_FILES))('%s, which runs on its own server only, is there', (file) => {
  expect(existsSync(join(import.meta.dirname, file))).toBe(true);
});

test('every other file asks for a bus on the servers of the switch', () => {
  const others = readdirSync(import.meta.dirname).filter(
    (file) => file.endsWith('.test.ts') && !Object.hasOwn(OWN_SERVER_FILES, file),
  );
  // The fixture's bus is one of `startBus()`, too.
  const asks = /startBus\(|'\.\/kit\/fixture\.ts'/;
  expect(others.filter((file) => !asks.test(readFileSync(join(import.meta.dirname, file), 'utf8')))).toEqual([]);
});
