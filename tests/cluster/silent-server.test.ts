/** A server that stands still closes no connection. Whoever is connected to it finds out and goes to another one. */
import { connectNats } from '@coxswain/adapter-nats';
import type { NatsConnection } from '@nats-io/nats-core';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { natsOptions } from '../../libs/client/src/connection-options.ts';
import { type Cluster, startCluster } from './cluster.ts';

vi.setConfig({ testTimeout: 180_000, hookTimeout: 300_000 });

describe('a server that stands still', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await startCluster();
  });
  afterEach(() => cluster.restore());
  afterAll(() => cluster?.stop());

  it.each([
    ['services', () => connectNats({ servers: cluster.servers, token: cluster.token ?? undefined })],
    ['clients', () => connectNats(natsOptions({ servers: cluster.servers, token: cluster.token ?? undefined }))],
  ] satisfies [string, () => Promise<NatsConnection>][])('is left by %s', async (_who, connected) => {
    const nc = await connected();
    const before = nc.getServer();
    await cluster.nodes.find(({ url }) => url.endsWith(before))?.pause();
    for await (const { type } of nc.status()) if (type === 'reconnect') break;
    expect(nc.getServer()).not.toBe(before);
    await nc.flush();
    await nc.close();
  });
});
