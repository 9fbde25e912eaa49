/** Requests and orders that arrive at an instance, without a server. */
import { TenantId } from '@coxswain/protocol';
import type { Msg } from '@nats-io/nats-core';
import { expect, test } from 'vitest';
import { createWorkReceiver } from '../src/mod.ts';
import type { SendReport } from '../src/served/ledger.ts';
import { parseReport } from '../src/served/reply-inbox.ts';

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

test('the question to a hook with the longest ids is taken, and the host accepts its report', () => {
  const receivers: ((error: null, message: Msg) => void)[] = [];
  const published: string[] = [];
  const nc = {
    subscribe: (_subject: string, { callback }: { callback: (typeof receivers)[0] }) => receivers.push(callback),
    publish: (_subject: string, report: string) => void published.push(report),
  };
  const name = 'n'.repeat(64);
  const receiver = createWorkReceiver(nc as never, {
    at: { kind: 'personas', tenant: TenantId.parse(name), name, version: '1' },
    instance: 'a',
    work: { take: (_request, send) => send({ type: 'running' }), order: () => expect.unreachable() },
    problem: (message) => expect.fail(message),
  });
  receiver.subscribeToRequests();
  const [hook, effect] = [`${name}:${name}`, Array.from({ length: 4 }, () => '9'.repeat(15)).join('-')];
  const request = { v: 1, session_id: name, key: `${name}.${name}.${effect}.${hook}`, hook, args: {} };
  const message = { reply: '_INBOX.host.a', data: Buffer.from(JSON.stringify(request)) };
  receivers[0]?.(null, message as unknown as Msg);
  expect(
    published.map((report) => parseReport({ data: Buffer.from(report) } as unknown as Msg, request.key)),
  ).toMatchObject([{ type: 'running' }]);
});

test('a report needs only the reply subject of its request, and not the message', () => {
  const receivers: ((error: null, message: Msg) => void)[] = [];
  const published: string[] = [];
  const nc = {
    subscribe: (_subject: string, { callback }: { callback: (typeof receivers)[0] }) => receivers.push(callback),
    publish: (subject: string) => void published.push(subject),
  };
  const sends: SendReport[] = [];
  const receiver = createWorkReceiver(nc as never, {
    at: { kind: 'tools', tenant: TenantId.parse('default'), name: 'stock' },
    instance: 'a',
    work: { take: (_request, send) => void sends.push(send), order: () => expect.unreachable() },
    problem: (message) => expect.fail(message),
  });
  receiver.subscribeToRequests();
  const request = { v: 1, session_id: 's', key: 'default.s.1-0', epoch: 1, call_id: 'c', args: {} };
  const message = { reply: '_INBOX.default.a', data: Buffer.from(JSON.stringify(request)) };
  receivers[0]?.(null, message as unknown as Msg);
  message.reply = '';
  for (const send of sends) send({ type: 'running' });
  expect(published).toEqual(['_INBOX.default.a']);
});
