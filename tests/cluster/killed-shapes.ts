/**
 * Kills all servers of a cluster while streams of every shape that Coxswain uses are written, restarts each cleanly,
 * twice, and compares what each replica holds with what was acknowledged.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { headers, type NatsConnection } from '@nats-io/nats-core';
import { askUntil } from '../e2e/kit/ask-until.ts';
import type { Cluster } from './cluster.ts';
import { replicaContents } from './replica-contents.ts';

/** What one server's replicas of a shape hold after the last restart. */
export interface ShapeCount {
  readonly shape: string;
  readonly server: string;
  /** Subjects whose newest message is the acknowledged one, or that are empty where that was acknowledged. */
  readonly right: number;
  readonly subjects: number;
  /** Messages that another replica has and this one does not. */
  readonly fewer: number;
}

interface Publish {
  readonly payload: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Purges the subject instead. */
  readonly isPurge?: boolean;
}

interface Shape {
  readonly config: object;
  /** The nth write on a subject. */
  readonly write: (n: number, payload: string, stream: string) => Publish;
}

const plain: Shape['write'] = (_, payload) => ({ payload });

/** The shapes, by name. */
export const SHAPES: Readonly<Record<string, Shape>> = {
  'limits only': { config: {}, write: plain },
  'one message per subject': { config: { max_msgs_per_subject: 1 }, write: plain },
  rollup: {
    config: { allow_rollup_hdrs: true },
    write: (n, payload) => ({ payload, ...(n % 3 === 2 ? { headers: { 'Nats-Rollup': 'sub' } } : {}) }),
  },
  // As a deleted session: a last record, then everything before it goes.
  'tombstone and purge': {
    config: {},
    write: (n, payload) => ({ payload, ...(n % 4 === 2 ? { isPurge: true } : {}) }),
  },
  'time to live': {
    config: { allow_msg_ttl: true, subject_delete_marker_ttl: 60_000_000_000, allow_rollup_hdrs: true },
    write: (_, payload) => ({ payload, headers: { 'Nats-TTL': '1h' } }),
  },
  schedules: {
    config: { allow_msg_schedules: true, allow_msg_ttl: true, allow_rollup_hdrs: true, max_msgs_per_subject: 1 },
    write: (_, payload, stream) => ({
      payload,
      headers: {
        'Nats-Schedule': `@at ${new Date(Date.now() + 3_600_000).toISOString()}`,
        'Nats-Schedule-Target': `${stream}.due`,
      },
    }),
  },
};

const STREAMS_PER_SHAPE = 4;
const SUBJECTS_PER_STREAM = 5;
const WRITES_PER_PHASE = 20;
const PATIENCE_MS = 60_000;

/** Carries it out on a cluster that has just started. */
export async function killShapes(cluster: Cluster, compression: 'none' | 's2'): Promise<ShapeCount[]> {
  const nc = await cluster.connect({ name: 'shapes' });
  const streams = Object.entries(SHAPES).flatMap(([shape, { config, write }], s) =>
    Array.from({ length: STREAMS_PER_SHAPE }, (_, i) => new ShapedStream(nc, shape, `SHAPE_${s}_${i}`, config, write)),
  );
  await Promise.all(streams.map((stream) => stream.create(compression)));
  await Promise.all(streams.map((stream) => stream.write(WRITES_PER_PHASE)));
  const restartCleanly = async () => {
    for (const node of cluster.nodes) {
      await node.terminate();
      await node.start();
      await cluster.ready();
    }
    await Promise.all(streams.map(({ name }) => cluster.awaitLeader(name)));
  };
  await restartCleanly();
  const written = Promise.all(streams.map((stream) => stream.write(WRITES_PER_PHASE)));
  await askUntil('writes', () => streams.some(({ writes }) => writes > WRITES_PER_PHASE), PATIENCE_MS);
  await Promise.all(cluster.nodes.map((node) => node.kill()));
  await cluster.restore();
  await written;
  for (let restart = 1; restart <= 2; restart++) await restartCleanly();
  const counts = await countShapes(nc, cluster, streams);
  await nc.close();
  return counts;
}

class ShapedStream {
  readonly #nc: NatsConnection;
  readonly shape: string;
  readonly name: string;
  readonly #config: object;
  readonly #write: Shape['write'];
  writes = 0;
  /** The newest acknowledged payload of each subject; null where it was purged. */
  readonly expected = new Map<string, string | null>();

  constructor(nc: NatsConnection, shape: string, name: string, config: object, write: Shape['write']) {
    this.#nc = nc;
    this.shape = shape;
    this.name = name;
    this.#config = config;
    this.#write = write;
  }

  async create(compression: string): Promise<void> {
    const common = {
      name: this.name,
      subjects: [`${this.name}.>`],
      storage: 'file',
      num_replicas: 3,
      allow_direct: true,
    };
    await this.#ask(`$JS.API.STREAM.CREATE.${this.name}`, JSON.stringify({ ...common, compression, ...this.#config }));
  }

  async write(count: number): Promise<void> {
    for (let end = this.writes + count; this.writes < end; this.writes++) {
      const subject = `${this.name}.${this.writes % SUBJECTS_PER_STREAM}`;
      const nth = Math.floor(this.writes / SUBJECTS_PER_STREAM);
      const {
        payload,
        headers: given = {},
        isPurge,
      } = this.#write(nth, `${this.writes} ${'payload '.repeat(25)}`, this.name);
      if (isPurge === true) {
        await this.#ask(`$JS.API.STREAM.PURGE.${this.name}`, JSON.stringify({ filter: subject }));
        this.expected.set(subject, null);
      } else {
        await this.#ask(subject, payload, given);
        this.expected.set(subject, payload);
      }
    }
  }

  /** Asks until it is acknowledged: each write may be repeated. */
  async #ask(subject: string, payload: string, given: Readonly<Record<string, string>> = {}): Promise<void> {
    const own = headers();
    for (const [key, value] of Object.entries(given)) own.set(key, value);
    const giveUpAtMs = performance.now() + PATIENCE_MS;
    for (;;) {
      try {
        const answer = await this.#nc.request(subject, payload, { headers: own, timeout: 3_000 });
        const { error } = answer.json<{ error?: { code: number; description: string } }>();
        if (!error) return;
        if (error.code !== 503) throw new RangeError(`${subject}: ${error.description}`);
      } catch (error) {
        if (error instanceof RangeError || performance.now() > giveUpAtMs) throw error;
      }
      await sleep(100);
    }
  }
}

async function countShapes(
  nc: NatsConnection,
  cluster: Cluster,
  streams: readonly ShapedStream[],
): Promise<ShapeCount[]> {
  const counts = new Map<string, { -readonly [member in keyof ShapeCount]: ShapeCount[member] }>();
  const servers = cluster.nodes.map(({ name }) => name);
  for (const { shape, name, expected } of streams) {
    const replicas = await replicaContents(nc, name, servers);
    const sizes = [...replicas.values()].map((messages) => messages.length);
    for (const server of servers) {
      const key = `${shape} ${server}`;
      const count = counts.get(key) ?? { shape, server, right: 0, subjects: 0, fewer: 0 };
      counts.set(key, count);
      const messages = replicas.get(server) ?? [];
      count.fewer += Math.max(...sizes) - messages.length;
      const newest = new Map(messages.map(({ subject, data }) => [subject, Buffer.from(data).toString()]));
      for (const [subject, payload] of expected) {
        count.subjects++;
        if ((newest.get(subject) ?? null) === payload) count.right++;
      }
    }
  }
  return [...counts.values()].sort((a, b) => a.shape.localeCompare(b.shape) || a.server.localeCompare(b.server));
}
