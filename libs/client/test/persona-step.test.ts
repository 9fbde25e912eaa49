/** Steps of served personas, without a bus. */
import { NatsUnavailableError } from '@coxswain/bus';
import type { ToolCallContext } from '@coxswain/protocol';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { personaStep } from '../src/persona-step.ts';
import { StepLine } from '../src/step-line.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
afterEach(() => void vi.useRealTimers());

test('a step whose process was suspended before the model request reads its socket first, and ends at an abort there', async () => {
  const host = new AbortController();
  const resolve = vi.fn();
  const readSocket = vi.fn(async () => host.abort());
  const wire = { fetch: () => Promise.reject(new Error('the request is short')), readSocket };
  const step = personaStep('clerk', wire, { check: async () => null, resolve }, new StepLine(1));
  const request = {
    idempotency_key: 'default.s1.3-0',
    session_id: 's1',
    turn: 1,
    model: { name: 'fake/model' },
    system: '',
    messages: [],
    tools: [],
  };
  const checked = await step.check({ request });
  vi.advanceTimersByTime(5_000);
  if ('problem' in checked) throw new Error(checked.problem);
  const result = await step.run(checked.args, { abortSignal: host.signal } as ToolCallContext);
  expect(readSocket).toHaveBeenCalledTimes(1);
  expect(resolve).not.toHaveBeenCalled();
  expect(result).toMatchObject({ detail: { handed_back: true } });
});

test('a step whose request cannot be fetched because the connection is lost is for another instance', async () => {
  const resolve = vi.fn();
  const fetch = () => Promise.reject(new NatsUnavailableError('the connection was lost'));
  const wire = { fetch, readSocket: async () => undefined };
  const step = personaStep('clerk', wire, { check: async () => null, resolve }, new StepLine(1));
  const checked = await step.check({ fetch: { subject: '_INBOX.host.a.c.b' } });
  if ('problem' in checked) throw new Error(checked.problem);
  const { signal: abortSignal } = new AbortController();
  const result = await step.run(checked.args, { abortSignal } as ToolCallContext);
  expect(result).toMatchObject({ detail: { handed_back: true } });
  expect(resolve).not.toHaveBeenCalled();
});
