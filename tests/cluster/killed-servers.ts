/**
 * Kills servers of a cluster under load, restarts them, then restarts each cleanly, twice, and reads every record from
 * every replica. A damaged block shows only after a clean restart: until then the server reads from its memory.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createSystemClock } from '@coxswain/adapter-memory';
import {
  type ConnectNatsOptions,
  connectNats,
  createNatsBlobs,
  createNatsJournal,
  ensureStreams,
} from '@coxswain/adapter-nats';
import { JOURNAL_STREAMS, STREAMS, sessionRef, subjects } from '@coxswain/protocol';
import { ImportRefusedError, importJournal, replayJournal } from '@coxswain/session';
import type { NatsConnection } from '@nats-io/nats-core';
import { askUntil } from '../e2e/kit/ask-until.ts';
import type { Cluster } from './cluster.ts';
import { replicaContents } from './replica-contents.ts';

/** What is done to a cluster. */
export interface KilledServersCase {
  /** How many of its servers are killed with SIGKILL, all at once. */
  readonly killed: number;
  /** The compression of the journal streams and of the snapshots. `s2` is what earlier versions set. */
  readonly compression: 'none' | 's2';
  /** Sessions whose journals are written before the kill and, again, from the kill on. */
  readonly sessions: number;
}

/** What was read from one server's replicas after the last restart. */
export interface ReplicaCount {
  readonly server: string;
  /** Records that were read, of those that were acknowledged. */
  readonly read: number;
  readonly acknowledged: number;
  /** Journals that do not replay byte for byte along their hash chain. */
  readonly broken: number;
}

/** A count in words. */
export function countText({ server, read, acknowledged, broken }: ReplicaCount, journals: number): string {
  return `${server}: ${read} of ${acknowledged} records read, ${broken} of ${journals} journals broken`;
}

/** A real journal, of some ten records with tool calls. */
const TRACE = readFileSync(join(import.meta.dirname, '../traces/tool-calls.jsonl'));
const WRITERS = 8;
const RETRY_MS = 100;
const PATIENCE_MS = 60_000;

/** How the servers of a cluster are reached. */
export function addressesOf({ servers, token }: Cluster): ConnectNatsOptions {
  return { servers, token: token ?? undefined };
}

/** Makes the streams of an installation with three replicas; with `s2` as earlier versions made them. */
export async function makeStreams(cluster: Cluster, compression: 'none' | 's2'): Promise<void> {
  const nc = await connectNats(addressesOf(cluster));
  await ensureStreams(nc, { replicas: 3 });
  if (compression === 's2') {
    for (const stream of [...JOURNAL_STREAMS, STREAMS.snapshots]) {
      const { config } = (await nc.request(`$JS.API.STREAM.INFO.${stream}`)).json<{ config: object }>();
      await nc.request(`$JS.API.STREAM.UPDATE.${stream}`, JSON.stringify({ ...config, compression }));
    }
  }
  await nc.close();
}

/** Carries a case out on a cluster that has just started. @returns the counts of each server. */
export async function killServers(cluster: Cluster, options: KilledServersCase): Promise<ReplicaCount[]> {
  await makeStreams(cluster, options.compression);
  const journals = new JournalWriters(cluster);
  await journals.write(options.sessions);
  // Replicas note how far they are when they end in order. After a kill they begin again from there.
  await restartCleanly(cluster);
  const written = journals.write(options.sessions);
  await askUntil('writers at work', () => journals.isWriting, PATIENCE_MS);
  await Promise.all(cluster.nodes.slice(0, options.killed).map((node) => node.kill()));
  await cluster.restore();
  await written;
  for (let restart = 1; restart <= 2; restart++) await restartCleanly(cluster);
  return countReplicas(cluster, journals.recordsOf);
}

/** Ends each server in order and starts it again, one after another, until all are healthy and all streams have a leader. */
export async function restartCleanly(cluster: Cluster): Promise<void> {
  for (const node of cluster.nodes) {
    await node.terminate();
    await node.start();
    await cluster.ready();
  }
  await Promise.all(JOURNAL_STREAMS.map((stream) => cluster.awaitLeader(stream)));
}

/** Writes journals into the streams; a write without an answer is repeated until it is acknowledged. */
export class JournalWriters {
  readonly #cluster: Cluster;
  /** Acknowledged records of each session that was written whole. */
  readonly recordsOf = new Map<string, number>();
  isWriting = false;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  /** Writes so many journals more, several at a time. */
  async write(sessions: number): Promise<void> {
    const nc = await connectNats(addressesOf(this.#cluster));
    const first = this.recordsOf.size;
    let next = first;
    const writer = async () => {
      while (next < first + sessions) await this.#writeOne(nc, `session-${next++}`);
    };
    await Promise.all(Array.from({ length: WRITERS }, writer));
    this.isWriting = false;
    await nc.close();
  }

  async #writeOne(nc: NatsConnection, as: string): Promise<void> {
    const ports = { journal: createNatsJournal(nc), blobs: createNatsBlobs(nc), clock: createSystemClock() };
    const giveUpAtMs = performance.now() + PATIENCE_MS;
    for (;;) {
      try {
        const { records } = await importJournal(ports, { lines: () => linesOf(TRACE), tenant: 'default', as });
        this.recordsOf.set(as, records);
        this.isWriting = true;
        return;
      } catch (error) {
        const isUnanswered = !(error instanceof ImportRefusedError) || error.code === 'journal_unavailable';
        if (!isUnanswered || performance.now() > giveUpAtMs) throw error;
        await sleep(RETRY_MS);
      }
    }
  }
}

async function* linesOf(file: Uint8Array): AsyncGenerator<Uint8Array> {
  for (const line of Buffer.from(file).toString().trimEnd().split('\n')) yield Buffer.from(line);
}

/** Reads the journals from every server's own replicas. */
export async function countReplicas(cluster: Cluster, recordsOf: ReadonlyMap<string, number>): Promise<ReplicaCount[]> {
  const nc = await connectNats(addressesOf(cluster));
  const blobs = createNatsBlobs(nc);
  const servers = cluster.nodes.map(({ name }) => name);
  const contents = await Promise.all(JOURNAL_STREAMS.map((stream) => replicaContents(nc, stream, servers)));
  const counts: ReplicaCount[] = [];
  for (const server of servers) {
    const bySubject = new Map<string, Uint8Array[]>();
    for (const { subject, data } of contents.flatMap((replicas) => replicas.get(server) ?? []))
      bySubject.set(subject, [...(bySubject.get(subject) ?? []), data]);
    let [read, acknowledged, broken] = [0, 0, 0];
    for (const [session, records] of recordsOf) {
      const journal = bySubject.get(subjects.journal(sessionRef(session))) ?? [];
      read += journal.length;
      acknowledged += records;
      const isWhole = await replayJournal(journal, blobs).then(
        (replayed) => replayed.records === records,
        () => false,
      );
      if (!isWhole) broken++;
    }
    counts.push({ server, read, acknowledged, broken });
  }
  await nc.close();
  return counts;
}
