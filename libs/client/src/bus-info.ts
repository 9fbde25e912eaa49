/** The state of a NATS server and its streams. */
import { NotPermittedError, retryRequest, StreamNotFoundError, streamInfo } from '@coxswain/bus';
import {
  BLOBS_STREAM,
  COMPRESSED_BLOCKS,
  JOURNAL_STREAMS,
  type SessionRef,
  STREAMS,
  subjects,
} from '@coxswain/protocol';
import type { StreamInfo } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/nats-core';

/** A stream of Coxswain and its state. */
export interface StreamPresence {
  readonly name: string;
  readonly present: boolean;
  readonly messages: number;
  readonly bytes: number;
  /** The limit of its size in bytes; null without a limit. */
  readonly maxBytes: number | null;
  /** The configured number of replicas; 0 if the stream is missing. */
  readonly copies: number;
  /** The number of replicas that are online and current. */
  readonly current: number;
  /** The stream has several replicas and compressed blocks: killing a server with SIGKILL may damage its replica. */
  readonly atRisk: boolean;
}

/** The server and the streams, as a client sees them. */
export interface BusInfo {
  /** `2.15.1` */
  readonly serverVersion: string;
  readonly jetstream: boolean;
  /** The streams and buckets of Coxswain that this user may ask about; empty if JetStream is disabled. */
  readonly streams: readonly StreamPresence[];
}

const NAMES = [
  STREAMS.commands,
  ...JOURNAL_STREAMS,
  STREAMS.timers,
  STREAMS.snapshots,
  STREAMS.sessions,
  ...[STREAMS.hosts, STREAMS.registry, STREAMS.active].map((bucket) => `KV_${bucket}`),
  BLOBS_STREAM,
];

/** Reads the state of the server. @throws NatsUnavailableError if JetStream does not respond. @internal */
export async function busInfo(nc: NatsConnection): Promise<BusInfo> {
  const serverVersion = nc.info?.version ?? 'unknown';
  if (nc.info?.jetstream !== true) return { serverVersion, jetstream: false, streams: [] };
  const presence = async (name: string): Promise<StreamPresence | null> => {
    try {
      return presenceOf(await retryRequest(() => streamInfo(nc, name)));
    } catch (error) {
      if (error instanceof NotPermittedError) return null;
      if (!(error instanceof StreamNotFoundError)) throw error;
      return { name, present: false, messages: 0, bytes: 0, maxBytes: null, copies: 0, current: 0, atRisk: false };
    }
  };
  const streams = await Promise.all(NAMES.map(presence));
  return { serverVersion, jetstream: true, streams: streams.filter((one) => one !== null) };
}

/**
 * Counts the stored commands of a session. A host deletes a command after the record that consumed it is durable.
 * @throws NatsUnavailableError if JetStream does not respond.
 * @internal
 */
export async function storedCommands(nc: NatsConnection, ref: SessionRef): Promise<number> {
  const { state } = await retryRequest(() => streamInfo(nc, STREAMS.commands, subjects.inbox(ref)));
  return Object.values(state.subjects ?? {}).reduce((sum, count) => sum + count, 0);
}

function presenceOf({ config, state, cluster }: StreamInfo): StreamPresence {
  const followers = cluster?.replicas?.filter(({ current, offline }) => current && offline !== true) ?? [];
  return {
    name: config.name,
    present: true,
    messages: state.messages,
    bytes: state.bytes,
    maxBytes: config.max_bytes > 0 ? config.max_bytes : null,
    copies: config.num_replicas,
    current: 1 + followers.length,
    atRisk: config.num_replicas > 1 && holdsCompressedBlocks(config),
  };
}

/** Whether a stream compresses its blocks, or did so and has not been rewritten since. */
function holdsCompressedBlocks({ compression, metadata }: StreamInfo['config']): boolean {
  return (compression ?? 'none') !== 'none' || metadata?.[COMPRESSED_BLOCKS] !== undefined;
}
