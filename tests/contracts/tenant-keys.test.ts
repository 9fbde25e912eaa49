/** Lists of a tenant's keys: services choose how many keys there are, and how large. */
import { listRememberedRules, serveTenantKeys } from '@coxswain/adapter-nats';
import { storeMessage, wireOf } from '@coxswain/bus';
import { HEADERS, STREAMS, subjects, TenantId } from '@coxswain/protocol';
import type { MsgHdrs } from '@nats-io/nats-core';
import { expect, onTestFinished, test } from 'vitest';
import { readTenantKeys } from '../../libs/adapters/nats/src/tenant-keys.ts';
import { busOfFile } from './contract-bus.ts';

const bus = busOfFile();
const red = TenantId.parse('red');
const blue = TenantId.parse('blue');
const log = { debug() {}, info() {}, warn() {}, error() {} };

test('a host ends a list that is too long, and lists the keys of another tenant', { timeout: 60_000 }, async () => {
  const { nc } = bus;
  onTestFinished(serveTenantKeys(nc, log));
  const junk = new Uint8Array(790 * 1024);
  for (let i = 0; i < 90; i++) await storeMessage(nc, 'announcing', subjects.announcement('hooks', red, `s${i}`), junk);
  await storeMessage(nc, 'announcing', subjects.announcement('hooks', blue, 'policy'), junk);
  expect(await asked(red)).toMatchObject({ error: 'too_many_keys' });
  expect(await asked(blue)).toEqual({ keys: 1, total: '1', error: '' });
  await expect(readTenantKeys(nc, red, STREAMS.registry, 'hooks')).rejects.toMatchObject({ code: 'too_many_keys' });
  expect(await listRememberedRules(nc, red)).toEqual([]);
});

/** Asks a host for the hook services of a tenant. */
async function asked(tenant: TenantId): Promise<{ keys: number; total: string; error: string }> {
  let keys = 0;
  let end: MsgHdrs | undefined;
  await wireOf(bus.nc).requestMany(
    subjects.tenantKeys(tenant, STREAMS.registry, 'hooks'),
    new Uint8Array(),
    (answer) => {
      end = answer.headers;
      const isEnd = Boolean(end?.get(HEADERS.total) || end?.get(HEADERS.error));
      if (!isEnd) keys++;
      return isEnd;
    },
  );
  return { keys, total: end?.get(HEADERS.total) ?? '', error: end?.get(HEADERS.error) ?? '' };
}
