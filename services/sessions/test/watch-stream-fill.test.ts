/** The background check of streams against their limits. */
import type { Log } from '@coxswain/ports';
import { expect, onTestFinished, test } from 'vitest';
import { watchStreamFill } from '../src/watch-stream-fill.ts';

test.each([
  ['the host that checks has the shares, and warns of a stream that is nearly full', true],
  ['another host has none', false],
])('%s', async (_, isFirst) => {
  const warned: object[] = [];
  const log: Log = { debug: () => {}, info: () => {}, warn: (fields) => void warned.push(fields), error: () => {} };
  let asked = () => {};
  const checked = new Promise<void>((resolve) => {
    asked = resolve;
  });
  const fill = new Map([
    ['COX_COMMANDS', 0.8],
    ['COX_JOURNAL_0', 0.1],
  ]);
  const watch = watchStreamFill(
    {
      isFirst: async () => {
        asked();
        return isFirst;
      },
      fill: async () => fill,
      log,
    },
    0,
  );
  onTestFinished(() => watch.stop());
  await checked;
  await new Promise((resolve) => setImmediate(resolve));
  expect([...watch.fill()]).toEqual(isFirst ? [...fill] : []);
  expect(warned).toEqual(isFirst ? [{ stream: 'COX_COMMANDS', share: 0.8 }] : []);
});
