/** A consumer of commands that stands still, as it does in a cluster whose network was parted, is ended and made anew. */
import { createNatsInbox, createNatsSender, watchForStalledConsumers } from '@coxswain/adapter-nats';
import type { Log } from '@coxswain/ports';
import { partitionOf, STREAMS } from '@coxswain/protocol';
import { expect, onTestFinished, test } from 'vitest';
import { busOfFile } from './contract-bus.ts';
import { eventually } from './eventually.ts';
import { bytes, freshSession } from './fresh-session.ts';

const log: Log = { debug() {}, info() {}, warn() {}, error() {} };

const bus = busOfFile();

/** An inbox that takes a delivery and acknowledges nothing until it is told to. */
async function silentInbox() {
  const inbox = await createNatsInbox(bus.nc, log);
  const rung: (() => void)[] = [];
  await inbox.open({ notify: ({ ack }) => void rung.push(ack), unroutable: () => undefined });
  onTestFinished(() => inbox.close());
  return rung;
}

/** Sends one command, which the inbox takes. */
async function sendOne(rung: readonly unknown[], commandId: string) {
  const ref = freshSession();
  await (await createNatsSender(bus.nc)).send(ref, 'steer', bytes('think'), { commandId });
  await eventually('it is delivered', () => rung.length === 1);
  return `p${partitionOf(ref.sessionId)}`;
}

const pause = (consumer: string) =>
  bus.nc.request(
    `$JS.API.CONSUMER.PAUSE.${STREAMS.commands}.${consumer}`,
    JSON.stringify({ pause_until: new Date(Date.now() + 3_600_000).toISOString() }),
  );

test('what it has not been told of is delivered again', { timeout: 60_000 }, async () => {
  const rung = await silentInbox();
  const consumer = await sendOne(rung, 'c1');
  // The store delivers it no more, and says so to nobody.
  await pause(consumer);
  const watch = watchForStalledConsumers(bus.nc, log, () => new Set([consumer]), 3_600_000);
  onTestFinished(() => watch.stop());
  expect(await watch.check()).toEqual([]);
  expect(await watch.check()).toEqual([consumer]);
  await eventually('it is delivered again', () => rung.length > 1);
  rung.at(-1)?.();
  await eventually('it has left the stream', async () => {
    const info = await bus.nc.request(`$JS.API.STREAM.INFO.${STREAMS.commands}`);
    return (info.json() as { state: { messages: number } }).state.messages === 0;
  });
  expect(await watch.check()).toEqual([]);
  expect(await watch.check()).toEqual([]);
});

test('one of another host’s, and one that has delivered again, is left alone', { timeout: 60_000 }, async () => {
  const rung = await silentInbox();
  const consumer = await sendOne(rung, 'c2');
  const mine = watchForStalledConsumers(bus.nc, log, () => new Set([consumer]), 3_600_000);
  const others = watchForStalledConsumers(bus.nc, log, () => new Set(['p-of-another']), 3_600_000);
  onTestFinished(() => [mine, others].forEach((watch) => void watch.stop()));
  expect(await mine.check()).toEqual([]);
  await eventually('it is delivered again', () => rung.length > 1);
  expect(await mine.check()).toEqual([]);
  await pause(consumer);
  await others.check();
  expect(await others.check()).toEqual([]);
});
