/** `cox health` of a host whose server answers, and can keep nothing. */
import { expect, it, vi } from 'vitest';
import { askUntil } from '../e2e/kit/ask-until.ts';
import { Child, COX_MAIN, cox } from '../e2e/kit/child.ts';
import { scratchFolder } from '../e2e/kit/scratch.ts';
import { clusterOfFile } from './cluster-of-file.ts';
import { makeStreams } from './killed-servers.ts';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });

const PATIENCE_MS = 120_000;

const fixture = clusterOfFile();

it('is not healthy while two of three servers stand still, and is again when they go on', async () => {
  const stateDir = await scratchFolder('health-quorum');
  // With one replica the server that goes on might be all that the command stream needs.
  await makeStreams(fixture.cluster, 'none');
  // Attached to the one that goes on: that it answers is not enough.
  const NATS_URL = fixture.cluster.natsUrl.split(',').at(-1) as string;
  const env = { NATS_URL, COX_STATE_DIR: stateDir };
  const host = new Child(COX_MAIN, ['serve', 'sessions', '--manifest', 'none'], { env });
  await host.says('serves; stop with', 'stderr');
  const isHealthy = async () => (await cox(['health', '--json'], { env })).code === 0;
  expect(await isHealthy()).toBe(true);
  const [first, second] = fixture.cluster.nodes;
  await Promise.all([first?.pause(), second?.pause()]);
  await askUntil('it is not healthy', async () => !(await isHealthy()), PATIENCE_MS);
  first?.resume();
  second?.resume();
  await askUntil('it is healthy again', isHealthy, PATIENCE_MS);
  expect((await host.terminate()).code).toBe(0);
});
