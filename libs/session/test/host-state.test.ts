/** The transition tables of a host and of its lease: every state is reachable, and no event leads back from leaving. */
import { describe, expect, test } from 'vitest';
import {
  HOST_TRANSITIONS,
  type HostEvent,
  HostState,
  type HostStateName,
  LEASE_TRANSITIONS,
  Lease,
  type LeaseName,
} from '../src/hosting/host-state.ts';

function hostAfter(...events: HostEvent[]): HostState {
  const host = new HostState();
  for (const event of events) host.apply(event);
  return host;
}

/** All states that some sequence of events reaches. */
function reachable<State extends string>(
  table: Readonly<Record<State, Readonly<Partial<Record<string, State>>>>>,
  first: State,
): ReadonlySet<State> {
  const seen = new Set<State>([first]);
  for (const state of seen) for (const next of Object.values(table[state]) as State[]) seen.add(next);
  return seen;
}

describe('a host', () => {
  test('reaches each state of its table', () => {
    const names = Object.keys(HOST_TRANSITIONS) as HostStateName[];
    expect([...reachable(HOST_TRANSITIONS, 'serving')].sort()).toEqual(names.sort());
  });

  test('is cut off until it has a new name, not as soon as it is heard', () => {
    expect(hostAfter('lease_expired')).toMatchObject({ name: 'cut_off', isCutOff: true, isLeaving: false });
    expect(hostAfter('lease_expired', 'heard')).toMatchObject({ name: 'rejoining', isCutOff: true });
    expect(hostAfter('lease_expired', 'heard', 'lease_expired')).toMatchObject({ name: 'rejoining' });
    expect(hostAfter('lease_expired', 'heard', 'renamed')).toMatchObject({ name: 'serving', isCutOff: false });
  });

  test('rejoins once, however often it is heard meanwhile', () => {
    const host = hostAfter('lease_expired');
    expect([host.apply('heard'), host.apply('heard')]).toEqual([true, false]);
  });

  test('that leaves never serves again', () => {
    const leaving = (Object.keys(HOST_TRANSITIONS) as HostStateName[]).filter((name) => name.startsWith('leaving'));
    for (const first of leaving)
      expect([...reachable(HOST_TRANSITIONS, first)].filter((name) => !leaving.includes(name))).toEqual(['gone']);
    expect(hostAfter('retired', 'lease_expired', 'heard', 'renamed').isLeaving).toBe(true);
    expect(hostAfter('lease_expired', 'heard', 'retired', 'renamed').isLeaving).toBe(true);
  });

  test('with two stop requests retires once', () => {
    const host = new HostState();
    expect([host.apply('retired'), host.apply('retired')]).toEqual([true, false]);
    expect(host.ended.aborted).toBe(false);
  });

  test('can end in every state, and its waits end with it', () => {
    const { gone, ...others } = HOST_TRANSITIONS;
    expect(Object.values(others).map(({ ended }) => ended)).toEqual(Object.keys(others).map(() => 'gone'));
    expect(gone).toEqual({});
    const host = hostAfter('ended');
    expect([host.ended.aborted, host.isLeaving, host.apply('retired')]).toEqual([true, true, false]);
  });
});

describe('a lease', () => {
  test('reaches each state of its table', () => {
    const names = Object.keys(LEASE_TRANSITIONS) as LeaseName[];
    expect([...reachable(LEASE_TRANSITIONS, 'held')].sort()).toEqual(names.sort());
  });

  test('expires immediately if the host is declared dead, and after a doubt if no heartbeat returns', () => {
    const dead = new Lease();
    expect(dead.apply('unanswered')).toBe(false);
    dead.apply('declared_dead');
    expect([dead.name, dead.apply('declared_dead')]).toEqual(['expired', false]);
    const silent = new Lease();
    silent.apply('overdue');
    expect(silent.name).toBe('doubted');
    silent.apply('unanswered');
    expect(silent.name).toBe('expired');
  });

  test('is held again once the host is heard', () => {
    for (const lost of [['overdue'], ['declared_dead']] as const) {
      const lease = new Lease();
      for (const event of lost) lease.apply(event);
      lease.apply('heard');
      expect(lease.name).toBe('held');
    }
  });
});
