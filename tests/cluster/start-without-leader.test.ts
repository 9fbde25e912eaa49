/** A host that is started while servers choose a leader waits for it, rather than ending. */
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { Child, SESSIONS_MAIN } from '../e2e/kit/child.ts';
import { removeScratch, scratchFolder } from '../e2e/kit/scratch.ts';
import { type Cluster, startCluster } from './cluster.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 300_000 });

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster();
});
afterAll(async () => {
  await cluster?.stop();
  await removeScratch();
});

it('waits for two of three servers', async () => {
  const [first, second] = cluster.nodes;
  // One of three leads nothing.
  await Promise.all([first?.kill(), second?.kill()]);
  const env = { NATS_URL: cluster.natsUrl, COX_STATE_DIR: await scratchFolder('no-leader') };
  const host = new Child(SESSIONS_MAIN, [], { env });
  await host.says('the bus does not answer now');
  await cluster.restore();
  await host.says('session host is up');
  expect((await host.terminate()).code).toBe(0);
});
