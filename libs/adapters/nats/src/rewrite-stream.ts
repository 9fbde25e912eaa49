/**
 * Rewrites all stored blocks of a replicated stream while it is in use. A new replica receives every message from the
 * leader, with its sequence, and stores it in new blocks. So each replica is removed and added again in turn.
 *
 * REWRITE-1  Every message is read from every replica before a replica is removed, and after one was added.
 * REWRITE-2  A replica is removed only while all others are complete. Meanwhile the stream has one replica less than
 *            configured.
 * REWRITE-3  Sequences do not change: the fencing tokens and cursors of sessions refer to them.
 * REWRITE-4  During the rewrite, the stream's metadata contains the configured number of replicas. A later run restores
 *            it.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { askJetStream, NatsUnavailableError, retryRequest, wireOf } from '@coxswain/bus';
import { COMPRESSED_BLOCKS, REWRITE_REPLICAS } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { compareReplicas, ReplicaUnreadableError } from './compare-replicas.ts';
import { openTracedReads, type TracedReads } from './traced-reads.ts';

/**
 * The rewrite has stopped, because a precondition of its next step is not met. Every message that was readable still
 * is.
 */
export class RewriteStoppedError extends Error {
  override readonly name = 'RewriteStoppedError';
  readonly code = 'rewrite_stopped';
  constructor(stream: string, why: string) {
    super(`rewrite_stopped: ${stream} was not rewritten: ${why}`);
  }
}

/** The result of a rewrite. */
export interface RewrittenStream {
  readonly stream: string;
  /** Number of messages of the stream. */
  readonly messages: number;
  /** Servers whose replicas were rewritten, in this order. Empty for a stream with one replica. */
  readonly servers: readonly string[];
}

/** Timeout of each step, milliseconds: a large stream is copied within it. */
const STEP_TIMEOUT_MS = 600_000;
const SERVING_TIMEOUT_MS = 60_000;
const POLL_INTERVAL_MS = 250;
/** Maximum reads of a verification. A read may fail because messages are stored or deleted at the same time. */
const READS_MAX = 3;

interface StreamInfo {
  readonly config: Readonly<Record<string, unknown>> & {
    readonly num_replicas: number;
    readonly metadata?: Readonly<Record<string, string>>;
  };
  readonly state: { readonly messages: number; readonly last_seq: number };
  readonly cluster?: {
    readonly leader?: string;
    readonly replicas?: readonly { readonly name: string; readonly current: boolean; readonly offline?: boolean }[];
  };
}

/**
 * Rewrites a stream, replica by replica (see the top of the file). A stream with one replica stays unchanged: a server
 * does not damage the blocks of an only replica.
 * @param nc a connection with the role `admin`.
 * @param tell called with a sentence after each rewritten replica.
 * @param signal ends the rewrite at its next step.
 * @throws RewriteStoppedError, NatsUnavailableError, NatsRefusedError. The number of replicas is restored first. If
 *   that fails, the message says so.
 */
export async function rewriteStream(
  nc: NatsConnection,
  stream: string,
  tell: (step: string) => void,
  signal?: AbortSignal,
): Promise<RewrittenStream> {
  const reads = openTracedReads(nc);
  try {
    return await new Rewrite(nc, reads, stream, tell, signal).run();
  } finally {
    reads.close();
  }
}

class Rewrite {
  readonly #nc: NatsConnection;
  readonly #reads: TracedReads;
  readonly #stream: string;
  readonly #tell: (step: string) => void;
  readonly #signal: AbortSignal | undefined;

  constructor(
    nc: NatsConnection,
    reads: TracedReads,
    stream: string,
    tell: (step: string) => void,
    signal: AbortSignal | undefined,
  ) {
    this.#nc = nc;
    this.#reads = reads;
    this.#stream = stream;
    this.#tell = tell;
    this.#signal = signal;
  }

  async run(): Promise<RewrittenStream> {
    const { config, state } = await this.#info();
    const copies = Math.max(config.num_replicas, Number(config.metadata?.[REWRITE_REPLICAS] ?? 0));
    const servers: string[] = [];
    if (copies === 1) return { stream: this.#stream, messages: state.messages, servers };
    if (!(copies >= 3))
      throw new RewriteStoppedError(this.#stream, 'it needs 3 replicas: cox admin streams --replicas 3');
    // An earlier rewrite was interrupted.
    if (config.num_replicas !== copies) await this.#setReplicas(copies);
    let messages = await this.#verify(copies);
    try {
      await this.#update({ metadata: { ...config.metadata, [REWRITE_REPLICAS]: String(copies) } });
      // Each round rewrites one replica. The server decides which replica it removes, but never the leader's.
      for (let round = 1; ; round++) {
        const members = await this.#members(copies);
        const old = members.filter((server) => !servers.includes(server));
        if (old.length === 0) break;
        if (round > 3 * copies)
          throw new RewriteStoppedError(this.#stream, `the servers never remove the replica of ${old.join(', ')}`);
        const rewritten = servers.filter((server) => members.includes(server));
        if (rewritten.length > 0) await this.#lead(rewritten.at(-1) as string);
        await this.#setReplicas(copies - 1);
        const left = await this.#members(copies - 1);
        const removed = members.filter((server) => !left.includes(server));
        for (const server of removed) await this.#awaitServing(server, false);
        await this.#setReplicas(copies);
        const added = (await this.#members(copies)).filter((server) => !left.includes(server));
        messages = await this.#verify(copies);
        for (const server of added) {
          // The list is ordered by the time of the last rewrite.
          if (servers.includes(server)) servers.splice(servers.indexOf(server), 1);
          servers.push(server);
        }
        this.#tell(`${this.#stream}: the replica on ${added.join(', ')} is rewritten (${messages} messages)`);
      }
    } catch (error) {
      const { [REWRITE_REPLICAS]: _, ...metadata } = config.metadata ?? {};
      await this.#update({ num_replicas: copies, metadata }).catch((cause: Error) => {
        const why = `${(error as Error).message}; its ${copies} replicas could not be restored: ${cause.message}; run it again`;
        throw new RewriteStoppedError(this.#stream, why);
      });
      throw error;
    }
    await this.#unmark();
    return { stream: this.#stream, messages, servers };
  }

  /** Reads all messages from every replica. @returns the number of messages. @throws RewriteStoppedError. */
  async #verify(copies: number): Promise<number> {
    const members = await this.#members(copies);
    for (const server of members) await this.#awaitServing(server, true);
    for (let read = 1; ; read++) {
      const found = await this.#compare(members);
      if (typeof found === 'number') return found;
      if (read === READS_MAX) throw new RewriteStoppedError(this.#stream, found);
    }
  }

  /** Compares the replicas. @returns the number of messages, or a description of the unreadable ones. */
  async #compare(servers: readonly string[]): Promise<number | string> {
    const before = (await this.#info()).state;
    try {
      const { messages, wrong } = await compareReplicas(this.#reads, this.#stream, servers, before.last_seq);
      const after = (await this.#info()).state;
      // The minimum: subtract the messages that were stored since, which were not read. Deleted ones are not in
      // `after`.
      const least = after.messages - (after.last_seq - before.last_seq);
      const unread = [...wrong].map(([server, count]) => `${count} messages cannot be read from ${server}`);
      if (messages < least) unread.push(`${least - messages} messages cannot be read from any replica`);
      return unread.length === 0 ? messages : unread.join(', ');
    } catch (error) {
      if (!(error instanceof ReplicaUnreadableError)) throw error;
      return error.message;
    }
  }

  /** Waits until all replicas are up to date. @returns the servers that hold the stream, the leader first. */
  async #members(copies: number): Promise<string[]> {
    const { leader, followers } = await this.#until(`${copies} replicas that are up to date`, ({ config, cluster }) => {
      const others = cluster?.replicas ?? [];
      const areCurrent = others.every(({ current, offline }) => current && offline !== true);
      const isWhole = config.num_replicas === copies && others.length === copies - 1 && areCurrent;
      return isWhole && cluster?.leader ? { leader: cluster.leader, followers: others.map(({ name }) => name) } : null;
    });
    return [leader, ...followers];
  }

  /**
   * Waits until a server answers reads from its replica, or no longer answers them. A replica that has just caught up
   * starts to answer a moment later. A removed replica that no longer answers has no files.
   */
  async #awaitServing(server: string, expected: boolean): Promise<void> {
    const deadlineMs = performance.now() + SERVING_TIMEOUT_MS;
    for (;;) {
      const read = await this.#reads.ofEach(this.#stream, [server], { seq: 1, batch: 1, max_bytes: 1 });
      if (read.has(server) === expected) return;
      if (performance.now() > deadlineMs) {
        const why = expected ? 'does not answer reads from its replica' : 'keeps its replica, although it was removed';
        throw new RewriteStoppedError(this.#stream, `${server} ${why}`);
      }
      await sleep(POLL_INTERVAL_MS);
    }
  }

  async #lead(server: string): Promise<void> {
    await this.#until(`${server} to lead`, async ({ cluster }) => {
      if (cluster?.leader === server) return true;
      await this.#request('LEADER.STEPDOWN', { placement: { preferred: server } }).catch(ignoreUnavailable);
      return null;
    });
  }

  async #setReplicas(count: number): Promise<void> {
    await this.#update({ num_replicas: count });
  }

  async #unmark(): Promise<void> {
    const { [COMPRESSED_BLOCKS]: _, [REWRITE_REPLICAS]: __, ...metadata } = (await this.#info()).config.metadata ?? {};
    await this.#update({ metadata });
  }

  async #update(change: object): Promise<void> {
    const { config } = await this.#info();
    await this.#request('UPDATE', { ...config, ...change });
  }

  #info(): Promise<StreamInfo> {
    // During a leader election, the stream does not answer for some seconds.
    const retries = { withinMs: SERVING_TIMEOUT_MS, pauseMs: POLL_INTERVAL_MS };
    return retryRequest(() => this.#request<StreamInfo>('INFO', null), retries);
  }

  async #until<T>(what: string, read: (info: StreamInfo) => T | null | Promise<T | null>): Promise<T> {
    const deadlineMs = performance.now() + STEP_TIMEOUT_MS;
    for (;;) {
      if (this.#signal?.aborted) throw new RewriteStoppedError(this.#stream, 'it was interrupted');
      const found = await read(await this.#info());
      if (found !== null) return found;
      if (performance.now() > deadlineMs)
        throw new RewriteStoppedError(this.#stream, `waited ${STEP_TIMEOUT_MS / 1_000} s without success for ${what}`);
      await sleep(POLL_INTERVAL_MS);
    }
  }

  #request<T extends object>(verb: string, body: object | null): Promise<T> {
    return askJetStream(wireOf(this.#nc), `rewriting ${this.#stream}`, `STREAM.${verb}.${this.#stream}`, body);
  }
}

function ignoreUnavailable(error: unknown): void {
  if (!(error instanceof NatsUnavailableError)) throw error;
}
