/** Reports at a terminal about a service that has lost its bus. */
import { expect, onTestFinished, test, vi } from 'vitest';
import { reportDisconnections } from '../src/service/mod.ts';

test('a disconnection is reported once, with its reason and a remedy, and so is the reconnection', async () => {
  const reports: string[] = [];
  let trouble: Error | null = null;
  let looks = 0;
  const end = reportDisconnections({
    title: 'the tool service of tide.ts',
    everyMs: 1,
    report: (line) => void reports.push(line),
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
  expect(reports).toEqual([]);
  trouble = new Error('connection disconnected');
  await looked();
  await looked();
  expect(reports).toEqual([
    // cox up keeps address and token over restarts, so that a restart of the service is the exception.
    'the tool service of tide.ts is disconnected: connection disconnected; it retries automatically. If cox up came ' +
      'back with another address or token, stop this with Ctrl-C and start it again',
  ]);
  trouble = null;
  await looked();
  expect(reports.slice(1)).toEqual(['the tool service of tide.ts is connected again']);
});

test('checks run one after another, and nothing is reported after the end', async () => {
  const reports: string[] = [];
  let answer: ((error: Error) => void) | undefined;
  let looks = 0;
  const end = reportDisconnections({
    title: 'it',
    everyMs: 1,
    report: (line) => void reports.push(line),
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
  expect([looks, reports]).toEqual([1, []]);
});
