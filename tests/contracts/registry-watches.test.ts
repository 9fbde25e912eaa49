/** Whoever starts while the bus loses an answer asks again, and need not end: of the hooks, tools and personas that are announced. */
import { createNatsHooks, createNatsPersonas, createNatsTools, pausePersona } from '@coxswain/adapter-nats';
import { STREAMS, TenantId } from '@coxswain/protocol';
import { errors, type NatsConnection, type Subscription, type SubscriptionOptions } from '@nats-io/nats-core';
import { expect, onTestFinished, test, vi } from 'vitest';
import { busOfFile, withFault } from './contract-bus.ts';
import { eventually } from './eventually.ts';

const bus = busOfFile();

/** The connection, where the first request for a consumer ends with an error. */
function failingOnce(error: Error): NatsConnection {
  let failed = false;
  return withFault(bus.nc, (method, [subject]) => {
    if (failed || method !== 'request' || !String(subject).startsWith('$JS.API.CONSUMER.CREATE.')) return;
    failed = true;
    return () => Promise.reject(error);
  });
}

function keptLog() {
  const warnings: string[] = [];
  const warn = (_: object, said: string) => void warnings.push(said);
  return { warnings, log: { debug() {}, info() {}, warn, error() {} } };
}

const announced = { hooks: createNatsHooks, tools: createNatsTools, personas: createNatsPersonas };

test.each(Object.entries(announced))('%s: an answer that is lost is asked for again', async (_, open) => {
  const { warnings, log } = keptLog();
  const opened = await open(failingOnce(new errors.TimeoutError()), log);
  expect(warnings).toEqual(['NATS does not respond; retrying']);
  await opened.stop();
});

test.each(Object.entries(announced))('%s: a refusal is told at once', async (_, open) => {
  const { warnings, log } = keptLog();
  const refusal = new errors.PermissionViolationError('no', 'publish', '$JS.API.CONSUMER.CREATE.KV_cox_registry');
  await expect(open(failingOnce(refusal), log)).rejects.toMatchObject({ code: 'not_permitted', cause: refusal });
  expect(warnings).toEqual([]);
});

const readsAtStart: readonly (readonly [kind: keyof typeof announced, subject: string])[] = [
  ['hooks', `$JS.API.DIRECT.GET.KV_${STREAMS.hosts}`],
  ['tools', `$JS.API.DIRECT.GET.KV_${STREAMS.hosts}`],
  ['personas', `$JS.API.DIRECT.GET.KV_${STREAMS.hosts}`],
  ['personas', '.paused-personas.>'],
];

test.each(readsAtStart)('%s: a start that fails at %s leaves no subscription and no timer', async (kind, read) => {
  const subscriptions: Subscription[] = [];
  const nc = withFault(bus.nc, (method, args) => {
    const [subject] = args;
    if (method === 'subscribe')
      return () => {
        const subscription = bus.nc.subscribe(String(subject), args[1] as SubscriptionOptions);
        // Answers to requests come to one inbox for as long as the connection lives.
        if (!/^_INBOX\..*\*$/.test(String(subject))) subscriptions.push(subscription);
        return subscription;
      };
    if (!String(subject).includes(read)) return undefined;
    return () => {
      throw new errors.InvalidOperationError('broken');
    };
  });
  const [started, ended] = [vi.spyOn(globalThis, 'setInterval'), vi.spyOn(globalThis, 'clearInterval')];
  onTestFinished(() => void vi.restoreAllMocks());
  await expect(announced[kind](nc, keptLog().log)).rejects.toThrow('broken');
  expect(subscriptions.length).toBeGreaterThan(0);
  expect(subscriptions.flatMap((one) => (one.isClosed() ? [] : one.getSubject()))).toEqual([]);
  const timers = started.mock.results.map(({ value }) => value as NodeJS.Timeout);
  expect(timers.length).toBeGreaterThan(0);
  expect(timers.filter((timer) => !ended.mock.calls.some(([of]) => of === timer))).toEqual([]);
});

test('a pause is learnt also if the server has lost the watch, and its replacement fails at first', async () => {
  const api = (what: string) => `$JS.API.CONSUMER.${what}.KV_${STREAMS.registry}`;
  const tenant = TenantId.parse('default');
  let failures = 3;
  let isLost = false;
  const nc = withFault(bus.nc, (method, [subject]) => {
    if (!isLost || failures === 0 || method !== 'request' || !String(subject).startsWith(api('CREATE'))) return;
    failures--;
    return () => Promise.reject(new errors.TimeoutError());
  });
  const { warnings, log } = keptLog();
  const { personas, stop } = await createNatsPersonas(nc, log);
  const names = async () => (await bus.nc.request(api('NAMES'))).json() as { consumers: string[] };
  isLost = true;
  for (const name of (await names()).consumers) await bus.nc.request(`${api('DELETE')}.${name}`);
  await pausePersona(bus.nc, tenant, 'p1');
  await eventually('the pause is known', () => personas.pause(tenant, 'p1') !== null);
  expect(failures).toBe(0);
  expect(new Set(warnings)).toEqual(new Set(['the registry cannot be watched now; retrying']));
  // At most one of each watch, of the personas and of their pauses, and not one of each attempt.
  expect(warnings.length).toBeLessThan(3);
  await stop();
});
