/** Whoever starts while the bus loses an answer asks again, and need not end: of the hooks, tools and personas that are announced. */
import { createNatsHooks, createNatsPersonas, createNatsTools, pausePersona } from '@coxswain/adapter-nats';
import { STREAMS, TenantId } from '@coxswain/protocol';
import { errors, type NatsConnection } from '@nats-io/nats-core';
import { expect, test } from 'vitest';
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
