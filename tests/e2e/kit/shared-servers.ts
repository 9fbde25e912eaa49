/** Servers that all files of a run share: a cluster that is started for the run, or servers that somebody has named. */
import { connectionTo, connectNats } from '@coxswain/adapter-nats';
import { startAccountCluster } from './cluster-accounts.ts';
import { streamNames } from './ground.ts';
import { servers } from './servers.ts';
import { OWN_SERVER_FILES } from './servers-switch.ts';

/** Gets them ready, and says which files do not run on them. @returns what ends them; nothing for servers of somebody's. */
export async function prepareSharedServers(): Promise<(() => Promise<void>) | undefined> {
  const asked = servers();
  if (asked.kind === 'one') return undefined;
  const left = Object.entries(OWN_SERVER_FILES).map(([file, why]) => `  ${file}: ${why}`);
  console.info(
    `${left.length} files of tests/e2e need a server of their own, and run with COX_E2E_SERVERS=one only:\n${left.join('\n')}`,
  );
  if (asked.kind === 'cluster') {
    const cluster = await startAccountCluster();
    return () => cluster.stop();
  }
  if (asked.kind === 'url') await expectEmpty(asked.url);
  return undefined;
}

/** Tests delete the streams that they find: they must be nobody's. */
async function expectEmpty(url: string): Promise<void> {
  const nc = await connectNats(connectionTo({ servers: url }));
  try {
    const found = await streamNames(nc);
    if (found.length === 0) return;
    const named = found.slice(0, 3).join(', ');
    throw new Error(
      `the server of COX_E2E_SERVERS has ${found.length} streams (${named}, …), which tests would delete: name an empty one`,
    );
  } finally {
    await nc.close();
  }
}
