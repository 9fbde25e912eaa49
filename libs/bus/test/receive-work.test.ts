/** Requests and orders that arrive at an instance, without a server. */
import { TenantId } from '@coxswain/protocol';
import type { Msg } from '@nats-io/nats-core';
import { expect, test } from 'vitest';
import { createWorkReceiver } from '../src/mod.ts';

test('many invalid requests and orders take a few lines in the log', () => {
  const receivers: ((error: null, message: Msg) => void)[] = [];
  const nc = {
    subscribe: (_subject: string, { callback }: { callback: (typeof receivers)[0] }) => receivers.push(callback),
    publish: () => undefined,
  };
  const problems: string[] = [];
  const receiver = createWorkReceiver(nc as never, {
    at: { kind: 'tools', tenant: TenantId.parse('default'), name: 'stock' },
    instance: 'a',
    work: { take: () => expect.unreachable(), order: () => expect.unreachable() },
    problem: (message) => void problems.push(message),
  });
  receiver.subscribeToRequests();
  receiver.subscribeToOrders();
  for (let i = 0; i < 1_000; i++) {
    const message = { subject: `cox.default.tool.stock.${i}`, data: Buffer.from(`{"junk":${i}}`) } as unknown as Msg;
    for (const receive of receivers) receive(null, message);
  }
  expect(problems[0]).toBe('invalid request on cox.default.tool.stock.0');
  expect(problems.length).toBeLessThan(10);
});
