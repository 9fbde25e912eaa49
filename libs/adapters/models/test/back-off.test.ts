import { describe, expect, test } from 'vitest';
import { retryAfterMs, WAIT_MAX_MS, waitMs } from '../src/stream/back-off.ts';

describe('what a provider asks for', () => {
  const now = Date.UTC(2030, 0, 1);
  test.each([
    [{ 'retry-after': '3' }, 3_000],
    [{ 'retry-after': '0.5' }, 500],
    [{ 'retry-after': 'Tue, 01 Jan 2030 00:00:09 GMT' }, 9_000],
    [{ 'retry-after': 'Mon, 31 Dec 2029 00:00:00 GMT' }, 0],
    // The clock here is ten minutes ahead of the provider's.
    [{ 'retry-after': 'Mon, 31 Dec 2029 23:50:09 GMT', date: 'Mon, 31 Dec 2029 23:50:00 GMT' }, 9_000],
    [{ 'retry-after-ms': '250', 'retry-after': '9' }, 250],
    [{ 'retry-after': 'soon' }, null],
    [{}, null],
  ])('%o', (headers, ms) => {
    expect(retryAfterMs(new Headers(headers as Record<string, string>), now)).toBe(ms);
  });
});

describe('how long it is waited', () => {
  test('as long as is asked for, up to the bound', () => {
    expect(waitMs(1, 'k', 7_000)).toBe(7_000);
    expect(waitMs(1, 'k', 3_600_000)).toBe(WAIT_MAX_MS);
  });

  test('else between half and the whole of a doubling time, other for other requests', () => {
    for (let attempt = 1; attempt < 12; attempt++) {
      const whole = Math.min(500 * 2 ** (attempt - 1), WAIT_MAX_MS);
      const waits = Array.from({ length: 50 }, (_, n) => waitMs(attempt, `t.s.${n}-0`, null));
      expect(Math.min(...waits)).toBeGreaterThanOrEqual(whole / 2);
      expect(Math.max(...waits)).toBeLessThanOrEqual(whole);
      expect(new Set(waits).size).toBeGreaterThan(25);
      expect(waitMs(attempt, 't.s.1-0', null)).toBe(waits[1]);
    }
  });
});
