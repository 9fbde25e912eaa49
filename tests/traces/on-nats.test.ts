/**
 * The runner's scenarios on a real server: each is played once more on the NATS adapters, and its journal comes out as the one
 * that was recorded in memory, byte for byte. What a session does is its own; the bus only carries it.
 */
import { connectionTo, connectNats, ensureStreams } from '@coxswain/adapter-nats';
import type { NatsConnection } from '@nats-io/nats-core';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { type Ground, layGround, streamNames } from '../e2e/kit/ground.ts';
import { removeScratch } from '../e2e/kit/scratch.ts';
import { NatsStageBus } from './nats-stage-bus.ts';
import { recordTrace } from './record-trace.ts';
import { SCENARIOS } from './scenarios/all.ts';
import { readTrace } from './trace-files.ts';

let ground: Ground;
let nc: NatsConnection;

beforeAll(async () => {
  ground = await layGround();
  nc = await connectNats(connectionTo({ servers: ground.natsUrl }));
}, 300_000);
afterAll(async () => {
  await nc?.close();
  await ground?.stop();
  await removeScratch();
});

test.each(SCENARIOS.filter(({ racing }) => !racing).map((scenario) => [scenario.name, scenario] as const))(
  '%s',
  async (name, scenario) => {
    for (const stream of await streamNames(nc))
      await nc.request(`$JS.API.STREAM.DELETE.${stream}`, '', { timeout: 10_000 });
    // A server takes the files of a stream away after it has said that the stream is gone.
    await vi.waitFor(() => ensureStreams(nc), { timeout: 10_000 });
    const { records } = await recordTrace(scenario, true, (clock) => new NatsStageBus(nc, clock));
    expect(records.map(text)).toEqual(readTrace(name).map(text));
  },
);

function text(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('utf8');
}
