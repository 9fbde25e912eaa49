import type { Clock } from '@coxswain/ports';
import { describe, expect, onTestFinished, test } from 'vitest';
import { VirtualTime } from '../../../testing/src/virtual-time.ts';
import { StoreClock } from '../src/store-clock.ts';

const TEN_MINUTES_MS = 600_000;

/** A host whose wall clock is off by `skewMs`, and a store whose clock can be set. */
function worldOf(skewMs: number) {
  const time = new VirtualTime();
  const away = { requestMs: 30, answerMs: 10, isDown: false, setMs: 0, asked: 0 };
  const storeNowMs = () => time.nowMs + away.setMs;
  const world = time.clock();
  const host = { skewMs };
  const own: Clock = {
    ...time.clock('host'),
    nowMs: () => time.nowMs + host.skewMs,
    // Machines have been up for different times.
    monotonicMs: () => time.elapsedMs + 12_345.5,
  };
  const warned: object[] = [];
  const log = { debug() {}, info() {}, warn: (fields: object) => void warned.push(fields), error() {} };
  const clock = new StoreClock(
    own,
    async () => {
      away.asked++;
      await world.sleep(away.requestMs);
      if (away.isDown) throw new Error('no answer');
      const shownMs = Math.floor(storeNowMs());
      await world.sleep(away.answerMs);
      return shownMs;
    },
    log,
  );
  onTestFinished(() => clock.close());
  const offMs = () => clock.nowMs() - storeNowMs();
  const started = async () => {
    let isStarted = false;
    void clock.start().then(() => {
      isStarted = true;
    });
    expect(await time.until(() => isStarted)).toBe(true);
  };
  return { time, clock, away, host, warned, offMs, started };
}

describe('the clock of a store', () => {
  test.each([TEN_MINUTES_MS, -TEN_MINUTES_MS, 0])(
    'is known on a host whose clock is off by %i ms, to half of what an answer takes (K1)',
    async (skewMs) => {
      const { started, offMs, warned } = worldOf(skewMs);
      await started();
      expect(Math.abs(offMs())).toBeLessThanOrEqual(21);
      expect(warned).toEqual(skewMs === 0 ? [] : [{ ahead_ms: expect.closeTo(skewMs, -2) }]);
    },
  );

  test('is not moved by a slow answer (K2)', async () => {
    const { time, away, started, offMs } = worldOf(TEN_MINUTES_MS);
    await started();
    const beforeMs = offMs();
    // By itself such an answer would be two seconds off, or half a month.
    for (const answerMs of [4_000, 30 * 86_400_000]) {
      away.answerMs = answerMs;
      await time.advance(60_000);
      await time.advance(answerMs);
      expect(offMs()).toBe(beforeMs);
    }
  });

  test('is followed where it is set, and where an answer fails the last offset holds (K3)', async () => {
    const { time, away, started, offMs, warned } = worldOf(0);
    await started();
    away.isDown = true;
    await time.advance(20_000);
    expect(Math.abs(offMs())).toBeLessThanOrEqual(21);
    away.isDown = false;
    away.setMs = -TEN_MINUTES_MS;
    await time.advance(6_000);
    expect(Math.abs(offMs())).toBeLessThanOrEqual(21);
    expect(warned).toEqual([{ step_ms: expect.closeTo(-TEN_MINUTES_MS, -2) }]);
  });

  test('does not change when the clock of the host is set: that only has it measured at once', async () => {
    const { time, clock, away, host, started, offMs } = worldOf(0);
    await started();
    const [beforeMs, asked] = [offMs(), away.asked];
    host.skewMs = TEN_MINUTES_MS;
    expect(offMs()).toBe(beforeMs);
    await time.advance(100);
    expect(away.asked).toBe(asked + 1);
    clock.nowMs();
    await time.advance(100);
    expect(away.asked).toBe(asked + 1);
    expect(Math.abs(offMs())).toBeLessThanOrEqual(21);
  });

  test('is not shown before it was measured, and a store that does not answer fails the start', async () => {
    const { time, clock, away } = worldOf(0);
    expect(() => clock.nowMs()).toThrow('before it was measured');
    away.isDown = true;
    const failed = clock.start().catch((error: Error) => error.message);
    await time.advance(100);
    expect(await failed).toBe('no answer');
  });
});
