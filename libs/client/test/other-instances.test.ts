/** The other instances of a tool, as their heartbeats report them. On virtual time. */
import { type Heartbeat, SERVED_BOUNDS, SERVED_LIVENESS, subjects, TenantId } from '@coxswain/protocol';
import type { Msg, NatsConnection } from '@nats-io/nats-core';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { watchOtherInstances } from '../src/other-instances.ts';

const tenant = TenantId.parse('default');

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
afterEach(() => void vi.useRealTimers());

/** The list of the instance `own`, and what it receives. */
function listening() {
  let receive: (error: Error | null, message: Msg) => void = () => undefined;
  const nc = {
    subscribe(_subject: string, { callback }: { callback: typeof receive }) {
      receive = callback;
      return { unsubscribe: () => undefined };
    },
  } as unknown as NatsConnection;
  const others = watchOtherInstances({ nc }, tenant, 'stock', 'own');
  const hear = (instance: string, state: Heartbeat['state'], more: Partial<Heartbeat> = {}) => {
    const data = Buffer.from(JSON.stringify({ v: 1, state, ...more }));
    receive(null, { subject: subjects.heartbeat('tools', tenant, 'stock', instance), data } as Partial<Msg> as Msg);
  };
  return { others, hear, refuse: () => receive(new Error('not permitted'), {} as Msg) };
}

test('it contains the other instances that serve or stand by, until they leave or are silent', () => {
  const { others, hear } = listening();
  hear('a', 'serving', { version: 'v1', claimed: 7 });
  hear('b', 'standby');
  hear('own', 'serving');
  hear('c', 'draining');
  expect([...others.live()]).toMatchObject([
    ['a', { state: 'serving', version: 'v1', claimed: 7 }],
    ['b', { state: 'standby', claimed: 0 }],
  ]);
  hear('a', 'gone');
  expect([...others.live().keys()]).toEqual(['b']);
  vi.advanceTimersByTime(SERVED_LIVENESS.ttlMs + 1);
  expect(others.live().size).toBe(0);
});

test('every listener gets each change, and the failure to receive heartbeats', () => {
  const { others, hear, refuse } = listening();
  const seen: unknown[] = [];
  const versions = others.onHeartbeat((before, now) => void seen.push([before?.version, now?.version]));
  let succession = 0;
  others.onHeartbeat(() => void succession++);
  hear('a', 'serving', { version: 'v1' });
  hear('a', 'serving', { version: 'v2' });
  hear('a', 'gone');
  versions();
  refuse();
  expect(seen).toEqual([
    [undefined, 'v1'],
    ['v1', 'v2'],
    ['v2', undefined],
  ]);
  expect(succession).toBe(4);
  expect(others.cannotHear()).toBe(true);
});

test('its length is limited', () => {
  const { others, hear } = listening();
  for (let i = 0; i < SERVED_BOUNDS.instancesPerNameMax + 10; i++) hear(`i${i}`, 'serving');
  expect(others.live().size).toBe(SERVED_BOUNDS.instancesPerNameMax);
});
