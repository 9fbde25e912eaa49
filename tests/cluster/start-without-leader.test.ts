/** A host that is started while servers choose a leader waits for it, rather than ending. */
import { afterAll, beforeAll, it, vi } from 'vitest';
import { askUntil } from '../e2e/kit/ask-until.ts';
import { Child, SESSIONS_MAIN } from '../e2e/kit/child.ts';
import { removeScratch, scratchFolder } from '../e2e/kit/scratch.ts';
import { type Cluster, startCluster } from './cluster.ts';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });

/** Two elections and a start, on a machine that may be busy. */
const PATIENCE_MS = 120_000;

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
  const says = (text: string) =>
    askUntil(
      text,
      () => {
        if (host.exit) throw new Error(`it has ended: ${host.told}`);
        return host.stdout.includes(text);
      },
      PATIENCE_MS,
    );
  await says('the bus does not answer now');
  await cluster.restore();
  await says('session host is up');
  await host.kill();
});
