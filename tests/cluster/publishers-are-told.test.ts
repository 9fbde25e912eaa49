/** Whoever publishes while the bus takes nothing is told so, with a code, and may send the same again. */
import { connectNats, ensureStreams } from '@coxswain/adapter-nats';
import { type Client, connect } from '@coxswain/client';
import { it, type TestContext, vi } from 'vitest';
import { type Cluster, startCluster } from './cluster.ts';

vi.setConfig({ testTimeout: 180_000, hookTimeout: 300_000 });

/** A server for each, so that none waits for the other's time-outs. */
async function oneServer(onTestFinished: TestContext['onTestFinished']): Promise<{ cluster: Cluster; client: Client }> {
  const cluster = await startCluster({ size: 1, syncInterval: 'always' });
  onTestFinished(() => cluster.stop());
  const token = cluster.token ?? undefined;
  const nc = await connectNats({ servers: cluster.servers, token });
  await ensureStreams(nc);
  await nc.close();
  const client = await connect({ servers: cluster.servers, token });
  onTestFinished(() => client.close());
  return { cluster, client };
}

it.concurrent.for([
  ['is killed', (target: Cluster) => target.node('n1').kill()],
  ['stands still', (target: Cluster) => target.node('n1').pause()],
] as const)('while the server %s', async ([how, strike], { expect, onTestFinished }) => {
  const { cluster, client } = await oneServer(onTestFinished);
  const id = how.replaceAll(' ', '-');
  const steer = () => client.session('nobody').steer('Turn back.', { id });
  await strike(cluster);
  await expect(steer()).rejects.toMatchObject({ code: 'command_not_stored', commandId: id });
  await cluster.restore();
  // The first may have reached a server that only stood still: then this is a repetition, and stored once all the same.
  expect((await steer()).seq).toBeGreaterThan(0);
});
