/** The cluster that tests stand on is a real one: it has leaders, loses them, and keeps what it has acknowledged. */
import { connectNats, ensureStreams } from '@coxswain/adapter-nats';
import { JOURNAL_STREAMS, sessionRef, subjects } from '@coxswain/protocol';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type Cluster, startCluster } from './cluster.ts';

vi.setConfig({ testTimeout: 180_000, hookTimeout: 300_000 });

const [STREAM] = JOURNAL_STREAMS as [string];

describe('a cluster of three servers', () => {
  let cluster: Cluster;

  beforeAll(async () => {
    cluster = await startCluster();
    const nc = await connectNats({ servers: cluster.servers, token: cluster.token ?? undefined });
    await ensureStreams(nc, { replicas: 3 });
    await nc.close();
  });
  afterAll(() => cluster?.stop());

  it('gives a stream another leader when its leader is killed, and the killed one comes back on its store', async () => {
    const leader = await cluster.awaitLeader(STREAM);
    await cluster.node(leader).kill();
    expect(cluster.node(leader).state).toBe('down');
    expect(await cluster.awaitLeader(STREAM, leader)).not.toBe(leader);
    await cluster.restore();
    expect(cluster.nodes.map(({ state }) => state)).toEqual(['up', 'up', 'up']);
  });

  it('leads on without a node that stands still, and takes it back', async () => {
    const leader = await cluster.awaitLeader(STREAM);
    await cluster.node(leader).pause();
    // A signal takes its moment.
    await vi.waitFor(async () => expect(await cluster.node(leader).isHealthy()).toBe(false), { timeout: 30_000 });
    await cluster.awaitLeader(STREAM, leader);
    await cluster.restore();
    expect(await cluster.node(leader).isHealthy()).toBe(true);
  });

  it('stores on two of three, and says what it has stored when all are there again', async () => {
    const leader = await cluster.awaitLeader(STREAM);
    await cluster.node(leader).terminate();
    await cluster.awaitLeader(STREAM, leader);
    const nc = await cluster.connect();
    const subject = subjects.journal(sessionRef('kept'));
    const { seq } = (await nc.request(subject, 'kept', { timeout: 10_000 })).json<{ seq: number }>();
    expect(seq).toBeGreaterThan(0);
    await cluster.restore();
    const info = await nc.request('$JS.API.STREAM.NAMES', JSON.stringify({ subject }));
    const [stream] = info.json<{ streams: string[] }>().streams;
    const kept = await nc.request(`$JS.API.STREAM.MSG.GET.${stream}`, JSON.stringify({ last_by_subj: subject }));
    expect(kept.json()).toMatchObject({ message: { seq } });
  });
});
