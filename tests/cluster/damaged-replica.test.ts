/**
 * A replica whose store is damaged: reads find what the others have, the check names the server and the repair, and the repair
 * heals it.
 */
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type CheckedStream, checkReplicas, createNatsJournal, ensureStreams } from '@coxswain/adapter-nats';
import { journalStreamOf, type SessionRef, sessionRef, TenantId, tenantSubjects } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { expect, it, vi } from 'vitest';
import { lastBytes, sessionIds } from '../../libs/client/src/read-journal.ts';
import { cox } from '../e2e/kit/child.ts';
import type { ClusterNode } from './cluster-node.ts';
import { clusterOfFile } from './cluster-of-file.ts';

vi.setConfig({ testTimeout: 240_000, hookTimeout: 300_000 });

const fixture = clusterOfFile();
const tenant = TenantId.parse('default');
/** Of a user that may not read through the leader. */
const viewer = tenantSubjects.inboxPrefix(tenant, 'viewer');
/** One stream, and enough of it that the first sessions lie in a block before the last, which a server does not read at its start. */
const SESSIONS = 24;
const RECORD_BYTES = 480 * 1024;

/** Sessions whose journals are in the same stream. */
function sameStream(count: number): SessionRef[] {
  const refs: SessionRef[] = [];
  for (let i = 0; refs.length < count; i++) {
    const ref = sessionRef(`damaged-${i}`, tenant);
    if (journalStreamOf(ref.sessionId) === 'COX_JOURNAL_0') refs.push(ref);
  }
  return refs;
}

async function checked(nc: NatsConnection): Promise<CheckedStream[]> {
  const streams: CheckedStream[] = [];
  for await (const stream of checkReplicas(nc, { atOnce: Number.POSITIVE_INFINITY })) streams.push(stream);
  return streams;
}

/**
 * Overwrites bytes of most messages in the first block of a stream, while its server is down. Not of the first and last
 * messages: a server reads those at its start, and heals the block. Most of them: a check reads random messages.
 */
async function damage(node: ClusterNode, stream: string): Promise<void> {
  const folder = join(node.storeDir, 'jetstream', '$G', 'streams', stream, 'msgs');
  const blocks = (await readdir(folder)).filter((name) => name.endsWith('.blk')).sort();
  expect(blocks.length, 'a block before the last').toBeGreaterThan(1);
  const first = [...blocks].sort((one, other) => Number.parseInt(one, 10) - Number.parseInt(other, 10))[0] as string;
  const bytes = await readFile(join(folder, first));
  for (let at = 2.5 * RECORD_BYTES; at < bytes.length - 2 * RECORD_BYTES; at += RECORD_BYTES)
    bytes.fill(0x41, at, at + 64);
  await writeFile(join(folder, first), bytes);
}

it('is found and named, hides no session, and is healed from the others', async () => {
  const { cluster } = fixture;
  const nc = await cluster.connect();
  /** The same connection, for a user whose permissions restrict its inboxes. */
  const viewed: typeof nc = Object.assign(Object.create(nc), { options: { inboxPrefix: viewer } });
  await ensureStreams(nc, { replicas: 3 });
  const journal = createNatsJournal(nc);
  const refs = sameStream(SESSIONS);
  for (const ref of refs) {
    const stored = await journal.append(ref, new Uint8Array(RECORD_BYTES).fill(0x7a), 0);
    expect(stored.status).toBe('stored');
  }
  const whole = await checked(nc);
  expect(whole.flatMap(({ findings }) => findings)).toEqual([]);
  expect(whole.find(({ stream }) => stream === 'COX_JOURNAL_0')?.servers).toEqual(['n1', 'n2', 'n3']);

  const leader = await cluster.awaitLeader('COX_JOURNAL_0');
  const victim = cluster.nodes.find(({ name }) => name !== leader) as ClusterNode;
  let found: CheckedStream | undefined;
  // A server that has to rebuild its index finds the damage itself, and copies the block from the leader: then once more.
  for (let round = 0; round < 3 && !found; round++) {
    await victim.terminate();
    await damage(victim, 'COX_JOURNAL_0');
    await victim.start();
    await cluster.ready();
    for (let tries = 0; tries < 10 && !found; tries++)
      found = (await checked(nc)).find((one) => one.findings.length > 0);
  }
  expect(found).toMatchObject({
    stream: 'COX_JOURNAL_0',
    findings: expect.arrayContaining([
      expect.objectContaining({ server: victim.name, remedy: expect.stringContaining(`stop server ${victim.name}`) }),
    ]),
  });
  expect(new Set(found?.findings.map(({ server }) => server))).toEqual(new Set([victim.name]));
  expect(found?.findings.map(({ seq }) => seq)).not.toContain(null);

  // Whatever the check samples: `cox doctor` reads the same way, and says the same.
  const doctor = await cox(['doctor', '--json'], { env: { NATS_URL: cluster.natsUrl } });
  const replicas = doctor.json.filter(({ name }) => (name as string).startsWith('replicas'));
  expect(replicas.length, doctor.told).toBeGreaterThan(0);
  for (const { name, status } of replicas)
    expect(`${name} ${status}`).toMatch(/^(replicas ok|replicas_COX_JOURNAL_0 failed)$/);

  for (let round = 0; round < 5; round++) {
    expect(new Set(await sessionIds(nc, tenant))).toEqual(new Set(refs.map(({ sessionId }) => sessionId)));
    for (const ref of refs) {
      expect((await journal.last(ref))?.bytes, ref.sessionId).toHaveLength(RECORD_BYTES);
      expect(await lastBytes(viewed, ref)).toHaveLength(RECORD_BYTES);
      const read = [];
      for await (const record of journal.read(ref)) read.push(record);
      expect(read, ref.sessionId).toHaveLength(1);
    }
  }

  await victim.terminate();
  await rm(join(victim.storeDir, 'jetstream'), { recursive: true });
  await victim.start();
  await cluster.ready();
  await expect
    .poll(async () => (await checked(nc)).flatMap(({ findings }) => findings), { timeout: 60_000, interval: 1_000 })
    .toEqual([]);
});
