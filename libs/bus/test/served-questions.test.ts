/** Questions to hooks in the process that serves them. */
import { TenantId, type WorkRequest } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { RunningWork } from '../src/mod.ts';

test('a question whose answer fails frees its slot, and the host gets an answer', async () => {
  const work = new RunningWork(() => () => Promise.reject(new Error('the list was not provided')), {
    tenant: TenantId.parse('default'),
  });
  const reports: object[] = [];
  const request: WorkRequest = { v: 1, key: 'default.s1.3-0.h', session_id: 's1', hook: 'h', args: {} };
  work.take(request, (report) => void reports.push(report));
  expect(work.running).toBe(1);
  await work.drain();
  expect(work.running).toBe(0);
  const message = 'the question failed: the list was not provided';
  expect(reports).toEqual([{ type: 'answered', answer: { status: 'failed', code: 'hook_unavailable', message } }]);
});
