/**
 * What matters most, once more where there are three servers and every stream has three replicas: each file below as it stands,
 * on a cluster that is started for this one. `npm run test:e2e -- --servers cluster` runs all of them so.
 */
import { afterAll, beforeAll, describe } from 'vitest';
import { startAccountCluster } from './kit/cluster-accounts.ts';
import { SERVERS_SWITCH } from './kit/servers-switch.ts';

const CLUSTER_START_MS = 300_000;

// Read by the files below when they are loaded, and by their buses when they start.
process.env[SERVERS_SWITCH] = 'cluster';
process.env.COX_KILLS ??= '5';

let cluster: Awaited<ReturnType<typeof startAccountCluster>> | undefined;
beforeAll(async () => {
  cluster = await startAccountCluster();
}, CLUSTER_START_MS);
afterAll(() => cluster?.stop());

describe.each([
  ['steering', () => import('./steering.test.ts')],
  ['kills', () => import('./kill.test.ts')],
] as const)('%s, on three servers', async (_name, load) => {
  await load();
});
