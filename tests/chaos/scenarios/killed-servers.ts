/** kill -9 of one, two and three servers under load, then two clean restarts, then every record read from every replica. */
import { startCluster } from '../../cluster/cluster.ts';
import { countText, killServers } from '../../cluster/killed-servers.ts';
import type { Case, CaseTable } from '../case-table.ts';

const SESSIONS = 96;

function caseOf(killed: number, syncInterval: string, compression: 'none' | 's2'): Case {
  return {
    name: `${killed} of 3 killed, sync_interval ${syncInterval}, compression ${compression}`,
    async run() {
      const cluster = await startCluster({ syncInterval });
      try {
        const counts = await killServers(cluster, { killed, compression, sessions: SESSIONS });
        return {
          isSound:
            counts.length === 3 &&
            counts.every(({ read, acknowledged, broken }) => read === acknowledged && broken === 0),
          lines: counts.map((count) => countText(count, 2 * SESSIONS)),
        };
      } finally {
        await cluster.stop();
      }
    },
  };
}

function tableOf(name: string, about: string, compression: 'none' | 's2'): CaseTable {
  const cases = ['always', '2m'].flatMap((sync) => [1, 2, 3].map((killed) => caseOf(killed, sync, compression)));
  return { name, about, cases };
}

/** The configuration of Coxswain. */
export const killedServers = tableOf(
  'killed-servers',
  'kill -9 of 1, 2 and 3 servers of 3, two clean restarts, every record read from every replica',
  'none',
);

/** The configuration of earlier versions, which loses records with `sync_interval: always`. */
export const killedServersS2 = tableOf(
  'killed-servers-s2',
  'the same with compressed journals, as earlier versions had them: nats-server 2.15.1 loses records',
  's2',
);
