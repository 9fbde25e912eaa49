/** Beats are kept in memory. A server that stands alone loses them with their bucket, and the hosts make it again. */
import { createNatsHostChannel } from '@coxswain/adapter-nats';
import { STREAMS } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { busOfFile, withFault } from './contract-bus.ts';
import { eventually } from './eventually.ts';

const log = { debug() {}, info() {}, warn() {}, error() {} };
const unheard = { heartbeat: () => undefined, notified: () => undefined, sessionLeft: () => undefined };

const bus = busOfFile();

test('a host that comes after a restart of the server hears of one that was there before it', async () => {
  const [before, after] = [createNatsHostChannel(bus.nc, log), createNatsHostChannel(bus.nc, log)];
  await before.open('before', unheard);
  await bus.server.restart();
  await eventually('beats are kept again', async () => {
    before.heartbeat({ v: 1, host: 'before', state: 'serving', no: 1 });
    const info = await bus.nc.request(`$JS.API.STREAM.INFO.KV_${STREAMS.hosts}`).catch(() => null);
    return (info?.json() as { state?: { messages: number } } | undefined)?.state?.messages === 1;
  });
  const heard: string[] = [];
  before.heartbeat({ v: 1, host: 'before', state: 'serving', no: 2 });
  await after.open('after', { ...unheard, heartbeat: ({ host }) => void heard.push(host) });
  expect(heard).toContain('before');
  before.close();
  after.close();
});

test('one chain of attempts makes the bucket again, also after several reconnects', async () => {
  let isBroken = false;
  let reconnect = () => {};
  const nc = withFault(bus.nc, (method, [subject]) => {
    if (method === 'status')
      return async function* () {
        for (;;) {
          await new Promise<void>((resolve) => (reconnect = resolve));
          for (let times = 0; times < 3; times++) yield { type: 'reconnect' };
        }
      };
    if (!isBroken || method !== 'publish' || !String(subject).startsWith('$JS.API.STREAM.')) return undefined;
    return () => {
      throw new Error('broken');
    };
  });
  const tries: unknown[] = [];
  const note = (fields: object) => void tries.push((fields as { tries?: number }).tries);
  const channel = createNatsHostChannel(nc, { ...log, debug: note });
  await channel.open('reconnected', unheard);
  isBroken = true;
  reconnect();
  await eventually('the third attempt has failed', () => tries.includes(3));
  channel.close();
  expect(tries).toEqual([1, 1, 1, 2, 3]);
});
