/** The consumers of the command stream: one per partition, and one for unroutable commands. */
import {
  askJetStream,
  CONSUMER_NOT_FOUND,
  NatsRefusedError,
  StreamNotFoundError,
  streamInfo,
  type Wire,
  wireOf,
} from '@coxswain/bus';
import type { Log } from '@coxswain/ports';
import { PARTITIONS, STREAMS, subjects } from '@coxswain/protocol';
import { type NatsConnection, nanos } from '@nats-io/nats-core';
import { firstDifference, StreamConfigMismatchError, serverVersionOf } from './ensure-streams.ts';

/** The priority group of each consumer: one client at a time is pinned within it. */
export const PIN_GROUP = 'hosts';

/** The configuration of a command consumer, with the server's names of its members. */
export interface CommandConsumer {
  readonly durable_name: string;
  readonly [member: string]: unknown;
}

/** The configuration of a partition's consumer. */
export function partitionConsumer(p: number): CommandConsumer {
  return consumer(`p${p}`, subjects.partition(p));
}

/**
 * The configuration of the consumer of unroutable commands. The stream stores them under their published subject: its
 * subject transform skips a literal wildcard as session id.
 */
export function strayConsumer(): CommandConsumer {
  return consumer('strays', subjects.unroutableCommands);
}

/** The configurations of all consumers of the command stream. */
export function commandConsumers(): CommandConsumer[] {
  return [...Array.from({ length: PARTITIONS }, (_, p) => partitionConsumer(p)), strayConsumer()];
}

function consumer(name: string, filter: string): CommandConsumer {
  return {
    durable_name: name,
    filter_subject: filter,
    deliver_policy: 'all',
    ack_policy: 'explicit',
    replay_policy: 'instant',
    ack_wait: nanos(3_000),
    max_deliver: -1,
    // Acknowledged commands leave the stream, so a consumer has no state that must survive. On disk, the server would
    // write and sync files at each change of the consumer.
    mem_storage: true,
    max_ack_pending: 256,
    // A delivery is only a notification; the host reads the command from the stream.
    headers_only: true,
    priority_policy: 'pinned_client',
    priority_groups: [PIN_GROUP],
    priority_timeout: nanos(1_000),
  };
}

/** The state of a consumer of the command stream. */
export interface ConsumerState {
  readonly name: string;
  readonly config: object;
  /** Number of deliveries so far, including redeliveries. */
  readonly delivered: { readonly consumer_seq: number };
  /** Number of unacknowledged deliveries. */
  readonly num_ack_pending: number;
}

interface ConsumersAnswer {
  readonly total?: number;
  readonly consumers?: readonly ConsumerState[] | null;
}

/**
 * Creates missing consumers, and updates and verifies those with another configuration. If all are as required, it
 * takes one request.
 * @throws StreamConfigMismatchError, NatsUnavailableError, NatsRefusedError.
 */
export async function ensureConsumers(nc: NatsConnection, wanted: readonly CommandConsumer[]): Promise<void> {
  const found = await listConsumers(wireOf(nc));
  await Promise.all(
    wanted
      .filter((spec) => {
        const config = found.get(spec.durable_name)?.config;
        return config === undefined || firstDifference(spec, config, spec.durable_name) !== null;
      })
      .map((spec) => ensureConsumer(nc, spec)),
  );
}

/**
 * Creates one consumer, or updates its configuration.
 * @throws as {@link ensureConsumers}.
 */
export async function ensureConsumer(nc: NatsConnection, spec: CommandConsumer): Promise<void> {
  const request = { stream_name: STREAMS.commands, config: spec };
  const answer = await ask<{ readonly config?: object }>(wireOf(nc), 'CREATE', `.${spec.durable_name}`, request);
  const difference = firstDifference(spec, answer.config ?? {}, `${STREAMS.commands}.${spec.durable_name}`);
  if (difference) {
    throw new StreamConfigMismatchError(difference.member, difference.wanted, difference.found, serverVersionOf(nc));
  }
}

/**
 * Deletes and recreates consumers, so that unacknowledged commands are delivered again.
 * @throws as {@link ensureConsumers}.
 */
export async function renewConsumers(nc: NatsConnection, names: readonly string[]): Promise<void> {
  const renewed = commandConsumers().filter(({ durable_name }) => names.includes(durable_name));
  await Promise.all(
    renewed.map(async (spec) => {
      await ask(wireOf(nc), 'DELETE', `.${spec.durable_name}`).catch((error: unknown) => {
        // Another host may have deleted it already.
        if (!(error instanceof NatsRefusedError) || error.errCode !== CONSUMER_NOT_FOUND) throw error;
      });
      await ensureConsumer(nc, spec);
    }),
  );
}

/** Lists all consumers of the command stream, by name. @throws NatsUnavailableError, NatsRefusedError. */
export async function listConsumers(wire: Wire): Promise<ReadonlyMap<string, ConsumerState>> {
  const found = new Map<string, ConsumerState>();
  let total = 1;
  let offset = 0;
  while (offset < total) {
    const answer = await ask<ConsumersAnswer>(wire, 'LIST', '', { offset });
    const page = answer.consumers ?? [];
    for (const state of page) found.set(state.name, state);
    if (page.length === 0) break;
    offset += page.length;
    total = answer.total ?? 0;
  }
  return found;
}

function ask<T extends object>(wire: Wire, verb: string, consumer: string, query?: object): Promise<T> {
  const api = `CONSUMER.${verb}.${STREAMS.commands}${consumer}`;
  return askJetStream(wire, 'making the consumers of the command stream', api, query);
}

/** The command stream's name and its creation time, milliseconds since 1970, as a decimal string. */
export interface CommandStreamIncarnation {
  readonly stream: string;
  readonly created: string;
}

/**
 * Reads the command stream's incarnation.
 * @throws NatsUnavailableError, NatsRefusedError; StreamNotFoundError if the stream does not exist.
 */
export async function commandStreamIncarnation(nc: NatsConnection): Promise<CommandStreamIncarnation> {
  const { created } = await streamInfo(nc, STREAMS.commands);
  return { stream: STREAMS.commands, created: String(Date.parse(created)) };
}

/** Recreates missing consumers of the command stream. */
export interface ConsumerRepair {
  /** Starts a repair, unless one is running. It checks all consumers, because they are rarely deleted one by one. */
  start(): void;
  /** Whether a repair found the command stream deleted, or replaced by another one. */
  isGone(): boolean;
}

/**
 * Creates the consumer repair of one inbox.
 * @param incarnation the incarnation of the stream that the inbox reads. Sequences of another incarnation are
 *   unrelated.
 * @param isOpen whether the inbox is open. A closed inbox repairs nothing.
 * @param onGone called once when the stream is gone.
 */
export function repairConsumers(
  nc: NatsConnection,
  log: Log,
  incarnation: CommandStreamIncarnation,
  isOpen: () => boolean,
  onGone: (error: StreamsGoneError) => void,
): ConsumerRepair {
  let isRepairing = false;
  let isGone = false;
  /** The log has a warning that consumers are missing, and they are still missing. */
  let hasWarned = false;

  async function isStillThere(): Promise<boolean> {
    try {
      return (await commandStreamIncarnation(nc)).created === incarnation.created;
    } catch (error) {
      if (error instanceof StreamNotFoundError) return false;
      throw error;
    }
  }

  function leave(): void {
    if (isGone) return;
    isGone = true;
    const error = new StreamsGoneError();
    log.error({ code: error.code }, error.message);
    onGone(error);
  }

  return {
    start() {
      if (isRepairing || isGone || !isOpen()) return;
      isRepairing = true;
      // It settles within the wire's timeouts. After a failure, a later pull starts the repair again.
      void isStillThere()
        .then(async (there) => {
          if (!there) return leave();
          await ensureConsumers(nc, commandConsumers());
          log.warn({}, 'missing consumers of the command stream were recreated');
          hasWarned = false;
        })
        .catch((error: Error) => {
          log[hasWarned ? 'debug' : 'warn']({ error: error.message }, 'consumers of the command stream are missing');
          hasWarned = true;
        })
        .finally(() => {
          isRepairing = false;
        });
    },
    isGone: () => isGone,
  };
}

/**
 * The command stream was deleted or recreated while a host used it. Presumably all streams were, and the journals of
 * the host's sessions are lost.
 */
export class StreamsGoneError extends Error {
  override readonly name = 'StreamsGoneError';
  readonly code = 'streams_gone';
  constructor() {
    super(
      'the streams of the sessions were deleted while this host used them; restore a backup, or create new streams: cox admin streams, or a restart of the host',
    );
  }
}
