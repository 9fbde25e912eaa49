/** kill -9 of all servers while streams of every shape are written, with encryption at rest and without. */
import { startCluster } from '../../cluster/cluster.ts';
import { killShapes } from '../../cluster/killed-shapes.ts';
import { askUntil } from '../../e2e/kit/ask-until.ts';
import type { Case, CaseTable } from '../case-table.ts';

function caseOf(syncInterval: string, compression: 'none' | 's2', cipher?: 'aes' | 'chachapoly'): Case {
  return {
    name: `sync_interval ${syncInterval}, compression ${compression}, cipher ${cipher ?? 'none'}`,
    async run() {
      const cluster = await startCluster({ syncInterval, ...(cipher === undefined ? {} : { cipher }) });
      try {
        const counts = await killShapes(cluster, compression);
        return {
          isSound: counts.every(({ right, subjects, fewer }) => right === subjects && fewer === 0),
          lines: counts.map(
            ({ shape, server, right, subjects, fewer }) =>
              `${shape.padEnd(24)} ${server}: ${right} of ${subjects} subjects right, ${fewer} messages missing`,
          ),
        };
      } finally {
        await cluster.stop();
      }
    },
  };
}

/** Acknowledges before it writes, and is allowed for streams with one replica only. No stream of Coxswain is set so. */
const asyncPersist: Case = {
  name: 'one server, persist_mode async',
  async run() {
    const cluster = await startCluster({ size: 1, syncInterval: 'always' });
    try {
      const nc = await cluster.connect();
      const config = { name: 'ASYNC', subjects: ['async'], storage: 'file', persist_mode: 'async' };
      const created = await nc.request('$JS.API.STREAM.CREATE.ASYNC', JSON.stringify(config));
      const { error } = created.json<{ error?: { description: string } }>();
      if (error) throw new Error(`the server refuses the stream: ${error.description}`);
      for (let i = 0; i < ASYNC_MESSAGES; i++) await nc.request('async', `${i}`);
      await cluster.node('n1').kill();
      await cluster.restore();
      const answer = await askUntil(
        'the stream',
        () => nc.request('$JS.API.STREAM.INFO.ASYNC').catch(() => null),
        60_000,
      );
      const { messages } = answer.json<{ state: { messages: number } }>().state;
      return {
        isSound: messages === ASYNC_MESSAGES,
        lines: [`n1: ${messages} of ${ASYNC_MESSAGES} acknowledged messages are there`],
      };
    } finally {
      await cluster.stop();
    }
  },
};

const ASYNC_MESSAGES = 500;

/** See the top of the file. */
export const storeSettings: CaseTable = {
  name: 'store-settings',
  about: 'kill -9 of 3 servers of 3 with other settings of their stores: ciphers, rollups, purges, schedules',
  cases: [
    caseOf('always', 'none'),
    caseOf('always', 'none', 'chachapoly'),
    caseOf('always', 'none', 'aes'),
    caseOf('2m', 'none'),
    caseOf('2m', 'none', 'aes'),
  ],
};

/** Settings that Coxswain does not use. */
export const unusedStoreSettings: CaseTable = {
  name: 'unused-store-settings',
  about: 'the same with compression and with async persist, which lose data with nats-server 2.15.1',
  cases: [asyncPersist, caseOf('always', 's2'), caseOf('always', 's2', 'aes'), caseOf('always', 's2', 'chachapoly')],
};
