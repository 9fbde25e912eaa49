/** What a host knows about services when their announcements and heartbeats are faulty or hostile. On virtual time. */
import { type Heartbeat, SERVED_BOUNDS, SERVED_LIVENESS, subjects, TenantId } from '@coxswain/protocol';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createKnownServices } from '../src/served/known-services.ts';

const HEARD = subjects.announcement('hooks', 'default', 'policy');
const tenant = TenantId.parse('default');
const MINUTE_MS = 60_000;

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
afterEach(() => void vi.useRealTimers());

/** A host that knows no service yet. */
function host() {
  const lines: string[] = [];
  const note = (about: object, message: string) => void lines.push(`${Object.values(about).join(' ')}: ${message}`);
  const known = createKnownServices('hooks', { debug: note, info: note, warn: note, error: note });
  const woken: string[] = [];
  known.onChange((of) => void woken.push(of));
  let seq = 0;
  const take = (subject: string, value: object | null, isNew = true, bytes = 0) =>
    known.take({ subject, seq: ++seq, data: Buffer.from(JSON.stringify(value).padEnd(bytes)) }, value === null, isNew);
  const announce = (name: string, of = 'default', bytes = 0) => {
    const since = '2026-01-01T00:00:00.000Z';
    take(subjects.announcement('hooks', of, name), { v: 1, service: name, since, registrations: [] }, true, bytes);
  };
  const remove = (name: string) => take(subjects.announcement('hooks', 'default', name), null);
  const hear = (state: Heartbeat['state'], instance = 'i1', name = 'policy') =>
    known.hear(subjects.heartbeat('hooks', 'default', name, instance), Buffer.from(JSON.stringify({ v: 1, state })));
  return { known, lines, woken, take, announce, remove, hear };
}

test('a rollout is logged line by line, and wakes the sessions at once', () => {
  const { lines, woken, announce, remove, hear } = host();
  announce('policy');
  hear('serving');
  hear('gone');
  hear('serving', 'i2');
  remove('policy');
  expect(lines).toEqual([
    'default policy: hooks are registered',
    'default policy: a hook service is gone',
    'default policy: a hook service is available',
    'default policy: hooks were removed',
  ]);
  expect(woken).toHaveLength(4);
});

test('a service that changes its state all the time is logged and reported at a limited rate, and its last state always', () => {
  const { lines, woken, announce, hear } = host();
  announce('policy');
  const flaps = MINUTE_MS / 10;
  for (let i = 0; i < flaps; i++) {
    hear(i % 2 === 0 ? 'serving' : 'gone');
    vi.advanceTimersByTime(10);
  }
  expect(lines.length).toBeLessThan(15);
  expect(woken.length).toBeLessThan(620);
  hear('serving');
  vi.advanceTimersByTime(MINUTE_MS);
  hear('gone');
  vi.advanceTimersByTime(MINUTE_MS);
  expect(lines.at(-1)).toBe('default policy: a hook service is gone');
});

test('repeated announcements, removals and invalid keys are logged at a limited rate', () => {
  const { lines, take, announce, remove } = host();
  for (let i = 0; i < 1_000; i++) {
    announce('policy');
    remove('policy');
    take(HEARD, { v: 1, service: 'other' });
    vi.advanceTimersByTime(10);
  }
  expect(lines.length).toBeLessThan(15);
  expect(lines).toContain(`${HEARD}: the registry contains an invalid key of hooks`);
  vi.advanceTimersByTime(MINUTE_MS);
  expect(lines.at(-2)).toBe('default policy: hooks were removed');
});

test('a burst of changes of one tenant delays no other tenant', () => {
  const { woken, announce } = host();
  for (let i = 0; i < 1_000; i++) announce('policy');
  announce('policy', 'other');
  expect(woken.at(-1)).toBe('other');
  vi.advanceTimersByTime(1_000);
  expect(woken.filter((of) => of === 'default').length).toBeLessThan(12);
});

test('a removed name is forgotten after a minute if it has no instance, and counts until then', () => {
  const { known, lines, announce, remove, hear } = host();
  const { namesPerTenantMax: max } = SERVED_BOUNDS;
  for (let i = 0; i < max; i++) announce(`s${i}`);
  remove('s0');
  remove('s1');
  hear('serving', 'i1', 's1');
  vi.advanceTimersByTime(MINUTE_MS - 1);
  known.forgetRemoved();
  announce('policy');
  expect(known.find(tenant, 'policy')).toBeNull();
  vi.advanceTimersByTime(1);
  known.forgetRemoved();
  announce('policy');
  expect(known.find(tenant, 'policy')).not.toBeNull();
  // A removed name whose instance still sends heartbeats: a call may run there.
  expect(known.living({ kind: 'hooks', tenant, name: 's0' })).toEqual([]);
  hear('serving', 'i1', 's1');
  expect(known.living({ kind: 'hooks', tenant, name: 's1' })).toEqual(['i1']);
  expect(lines.filter((line) => /more than/.test(line))).toHaveLength(1);
});

test('names above the bound are ignored, with one warning, and the first ones stay', () => {
  const { known, lines, announce } = host();
  const { namesPerTenantMax: max } = SERVED_BOUNDS;
  for (let i = 0; i < max + 100; i++) announce(`s${i}`);
  expect(known.list(tenant)).toHaveLength(max);
  expect(known.find(tenant, `s${max - 1}`)).not.toBeNull();
  expect(known.find(tenant, `s${max}`)).toBeNull();
  expect(lines.filter((line) => /more than/.test(line))).toEqual([
    `default: more than ${max} hooks or ${SERVED_BOUNDS.announcedPerTenantMaxBytes} bytes are announced: further ones are ignored`,
  ]);
  announce('policy', 'other');
  expect(known.list()).toHaveLength(max + 1);
});

test('instances above the bound are ignored, with one warning, until earlier ones are silent', () => {
  const { known, lines, announce, hear } = host();
  const { instancesPerNameMax: max } = SERVED_BOUNDS;
  announce('policy');
  const living = () => known.living({ kind: 'hooks', tenant, name: 'policy' });
  for (let i = 0; i < max + 100; i++) hear('serving', `i${i}`);
  expect(living()).toHaveLength(max);
  expect(living()).not.toContain(`i${max}`);
  expect(lines.filter((line) => /too many/.test(line))).toHaveLength(1);
  vi.advanceTimersByTime(SERVED_LIVENESS.ttlMs + 1);
  hear('serving', 'new');
  expect(living()).toEqual(['new']);
});

test('the announcements of a tenant are bounded in bytes, and a removed or shorter one makes room', () => {
  const { known, lines, announce, remove } = host();
  const announceLong = (name: string) => announce(name, 'default', 500_000);
  for (let i = 0; i < 40; i++) announceLong(`s${i}`);
  expect(known.list(tenant)).toHaveLength(Math.floor(SERVED_BOUNDS.announcedPerTenantMaxBytes / 500_000));
  announce('policy', 'other');
  expect(known.find(TenantId.parse('other'), 'policy')).not.toBeNull();
  expect(lines.filter((line) => /^default: more than/.test(line))).toHaveLength(1);
  announceLong('late');
  expect(known.find(tenant, 'late')).toBeNull();
  remove('s0');
  announceLong('late');
  expect(known.find(tenant, 'late')).not.toBeNull();
  announce('s1');
  announceLong('later');
  expect(known.find(tenant, 'later')).not.toBeNull();
});

test('names that were removed before the host started are bounded, and take no room from announced ones', () => {
  const { known, take, announce } = host();
  const { namesPerTenantMax: max } = SERVED_BOUNDS;
  for (let i = 0; i < 2 * max; i++) take(subjects.announcement('hooks', 'default', `s${i}`), null, false);
  const hear = (name: string) =>
    known.hear(
      subjects.heartbeat('hooks', 'default', name, 'i1'),
      Buffer.from(JSON.stringify({ v: 1, state: 'serving' })),
    );
  hear('s0');
  hear(`s${2 * max - 1}`);
  expect(known.living({ kind: 'hooks', tenant, name: 's0' })).toEqual(['i1']);
  expect(known.living({ kind: 'hooks', tenant, name: `s${2 * max - 1}` })).toEqual([]);
  announce('policy');
  expect(known.find(tenant, 'policy')).not.toBeNull();
});

test('the instances of all names of a tenant are bounded, and silent ones of any name make room', () => {
  const { known, announce, hear } = host();
  const { instancesPerNameMax: perName, instancesPerTenantMax: max } = SERVED_BOUNDS;
  const names = Array.from({ length: max / perName + 1 }, (_, i) => `s${i}`);
  const living = (name: string) => known.living({ kind: 'hooks', tenant, name }).length;
  for (const name of names) announce(name);
  for (const name of names) for (let i = 0; i < perName; i++) hear('serving', `i${i}`, name);
  expect(names.map(living)).toEqual([...names.slice(1).map(() => perName), 0]);
  vi.advanceTimersByTime(SERVED_LIVENESS.ttlMs + 1);
  hear('serving', 'new', names.at(-1));
  expect(living(names.at(-1) as string)).toBe(1);
});

test('a heartbeat that is too large is not parsed', () => {
  const { known, announce } = host();
  announce('policy');
  const parse = vi.spyOn(JSON, 'parse');
  const heartbeat = {
    v: 1,
    state: 'serving',
    ...Object.fromEntries(Array.from({ length: 75_000 }, (_, i) => [`k${i}`, 0])),
  };
  known.hear(subjects.heartbeat('hooks', 'default', 'policy', 'i1'), Buffer.from(JSON.stringify(heartbeat)));
  expect(parse).not.toHaveBeenCalled();
  expect(known.living({ kind: 'hooks', tenant, name: 'policy' })).toEqual([]);
});

test('a name that was removed before the start of the host is known by its instances, and does not count', () => {
  const { known, take, hear, announce } = host();
  for (let i = 0; i < SERVED_BOUNDS.namesPerTenantMax; i++)
    take(subjects.announcement('hooks', 'default', `old${i}`), null, false);
  hear('serving', 'i1', 'old0');
  expect(known.living({ kind: 'hooks', tenant, name: 'old0' })).toEqual(['i1']);
  announce('policy');
  expect(known.list()).toHaveLength(1);
});

test('a service does not count as gone after a pause of the whole machine, but after its own silence', async () => {
  const { known, lines, announce, hear } = host();
  const checks = async (times: number) => {
    for (let i = 0; i < times; i++) {
      await known.noteCeased(async () => true);
      vi.advanceTimersByTime(250);
    }
  };
  announce('policy');
  for (let i = 0; i < 8; i++) {
    hear('serving');
    await checks(4);
  }
  const gone = 'default policy: a hook service is gone';
  vi.advanceTimersByTime(10 * SERVED_LIVENESS.ttlMs);
  await checks(1);
  expect(lines).not.toContain(gone);
  expect(known.isServed({ kind: 'hooks', tenant, name: 'policy' })).toBe(true);
  await checks(SERVED_LIVENESS.ttlMs / 250 + 1);
  expect(lines).toContain(gone);
});
