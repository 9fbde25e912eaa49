/** What somebody at a terminal is told of a service that has lost its bus. */
import { expect, onTestFinished, test, vi } from 'vitest';
import { tellAway } from '../src/instance/tell-away.ts';

test('that it does not serve is told once, why and what to do, and that it serves again', async () => {
  const told: string[] = [];
  let trouble: Error | null = null;
  let looks = 0;
  const end = tellAway({
    title: 'the tool service of tide.ts',
    everyMs: 1,
    tell: (line) => void told.push(line),
    ping: async () => {
      looks += 1;
      if (trouble) throw trouble;
    },
  });
  onTestFinished(end);
  const looked = async () => {
    const before = looks;
    await vi.waitFor(() => expect(looks).toBeGreaterThan(before + 1), { timeout: 30_000 });
  };
  await looked();
  expect(told).toEqual([]);
  trouble = new Error('connection disconnected');
  await looked();
  await looked();
  expect(told).toEqual([
    expect.stringMatching(/^the tool service of tide\.ts is disconnected: connection disconnected; .* start it again$/),
  ]);
  trouble = null;
  await looked();
  expect(told.slice(1)).toEqual(['the tool service of tide.ts is connected again']);
});

test('one look waits for the other, and after its end nothing is told', async () => {
  const told: string[] = [];
  let answer: ((error: Error) => void) | undefined;
  let looks = 0;
  const end = tellAway({
    title: 'it',
    everyMs: 1,
    tell: (line) => void told.push(line),
    ping: () => {
      looks += 1;
      return new Promise((_, reject) => {
        answer = reject;
      });
    },
  });
  await vi.waitFor(() => expect(answer).toBeDefined(), { timeout: 30_000 });
  end();
  answer?.(new Error('too late'));
  await new Promise((resolve) => setImmediate(resolve));
  expect([looks, told]).toEqual([1, []]);
});
