/** What a host knows about pauses when a key of one tenant writes too many of them. On virtual time. */
import { SERVED_BOUNDS, subjects, TenantId } from '@coxswain/protocol';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createKnownPauses } from '../src/served/known-pauses.ts';

const red = TenantId.parse('red');
const blue = TenantId.parse('blue');

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
afterEach(() => void vi.useRealTimers());

/** A host that knows no pause yet. */
function host() {
  const lines: string[] = [];
  const note = (about: object, message: string) => void lines.push(`${Object.values(about).join(' ')}: ${message}`);
  const known = createKnownPauses({ debug: note, info: note, warn: note, error: note });
  const woken: string[] = [];
  known.onChange((tenant) => void woken.push(tenant));
  let newest = 0;
  const take = (tenant: TenantId, name: string, text: string, seq: number) =>
    known.take({ subject: subjects.personaPause(tenant, name), seq, data: Buffer.from(text) }, text === '');
  const pause = (tenant: TenantId, name: string, seq = ++newest) =>
    take(tenant, name, JSON.stringify({ v: 1, since: '2026-01-01T00:00:00.000Z' }), seq);
  const resume = (tenant: TenantId, name: string, seq = ++newest) => take(tenant, name, '', seq);
  return { known, lines, woken, pause, resume };
}

test('a pause and its end are logged, and wake the sessions of the tenant at once', () => {
  const { known, lines, woken, pause, resume } = host();
  pause(red, 'ada');
  expect(known.find(red, 'ada')).not.toBeNull();
  resume(red, 'ada');
  expect(known.find(red, 'ada')).toBeNull();
  expect(lines).toEqual(['red ada: a persona is paused', 'red ada: a persona is resumed']);
  expect(woken).toEqual(['red', 'red']);
});

test('an end that is older than the pause does not end it', () => {
  const { known, pause, resume } = host();
  pause(red, 'ada', 2);
  resume(red, 'ada', 1);
  expect(known.find(red, 'ada')).not.toBeNull();
});

test('a pause that is older than its end does not pause again, also if the host has seen only the end', () => {
  const { known, lines, pause, resume } = host();
  resume(red, 'ada', 2);
  pause(red, 'ada', 1);
  expect(known.find(red, 'ada')).toBeNull();
  expect(lines).toEqual([]);
  pause(red, 'ben', 3);
  resume(red, 'ben', 5);
  pause(red, 'ben', 4);
  expect(known.find(red, 'ben')).toBeNull();
  pause(red, 'ben', 6);
  expect(known.find(red, 'ben')).not.toBeNull();
});

test('pauses above the bound of a tenant are ignored, with one warning; ended ones make room', () => {
  const { known, lines, pause, resume } = host();
  const max = SERVED_BOUNDS.namesPerTenantMax;
  for (let i = 0; i < max + 10; i++) pause(red, `p${i}`);
  expect(known.find(red, `p${max}`)).toBeNull();
  expect(lines.filter((line) => /more than/.test(line))).toEqual([
    `red: more than ${max} personas were paused: further pauses are ignored`,
  ]);
  pause(blue, 'ada');
  expect(known.find(blue, 'ada')).not.toBeNull();
  resume(red, 'p0');
  pause(red, 'late');
  expect(known.find(red, 'late')).not.toBeNull();
});

test('repeated pauses of ever new names are logged and reported at a limited rate, and delay no other tenant', () => {
  const { lines, woken, pause, resume } = host();
  for (let i = 0; i < 1_000; i++) {
    pause(red, `p${i}`);
    resume(red, `p${i}`);
    vi.advanceTimersByTime(10);
  }
  pause(blue, 'ada');
  expect(woken.at(-1)).toBe('blue');
  expect(lines.at(-1)).toBe('blue ada: a persona is paused');
  expect(woken.length).toBeLessThan(120);
  expect(lines.length).toBeLessThan(10);
  vi.advanceTimersByTime(60_000);
  expect(lines).toContain('red p999: a persona is resumed');
});
