/** SIGKILL of all servers of a cluster destroys no acknowledged record on any replica. `npm run chaos` has the other cases. */
import { expect, it, vi } from 'vitest';
import { startCluster } from './cluster.ts';
import { countText, killServers } from './killed-servers.ts';

vi.setConfig({ testTimeout: 180_000 });

/** Written before the kill, and again from the kill on. */
const SESSIONS = 48;

it('every replica has every acknowledged record after all servers were killed', async ({ onTestFinished }) => {
  // Only servers that sync each write go back to an earlier state of their blocks when they start after a kill.
  const cluster = await startCluster({ syncInterval: 'always' });
  onTestFinished(() => cluster.stop());
  const compression = process.env.COX_TEST_COMPRESSION === 's2' ? 's2' : 'none';
  const counts = await killServers(cluster, { killed: 3, compression, sessions: SESSIONS });
  console.info(counts.map((count) => `compression ${compression}, ${countText(count, 2 * SESSIONS)}`).join('\n'));
  const [{ acknowledged } = { acknowledged: 0 }] = counts;
  expect(acknowledged).toBeGreaterThan(500);
  expect(counts).toEqual(['n1', 'n2', 'n3'].map((server) => ({ server, read: acknowledged, acknowledged, broken: 0 })));
});
