/** The consumers of the command stream: one per partition, and one for what the stream's transform did not take. */
import type { Log } from '@coxswain/ports';
import { PARTITIONS, STREAMS, subjects } from '@coxswain/protocol';
import { type NatsConnection, nanos } from '@nats-io/nats-core';
import { type CommandStreamIncarnation, commandStreamIncarnation, StreamNotThereError } from './command-stream.ts';
import { firstDifference, StreamConfigMismatchError, serverVersionOf } from './ensure-streams.ts';
import { type ApiError, answerOf, failureOf, isConsumerNotFound } from './nats-status.ts';
import { type Wire, wireOf } from './wire.ts';

/** The group within which one client at a time is pinned. */
export const PIN_GROUP = 'hosts';

/** What a command consumer is set to, named as on the wire. */
export interface CommandConsumer {
  readonly durable_name: string;
  readonly [member: string]: unknown;
}

/** The consumer of a partition. */
export function partitionConsumer(p: number): CommandConsumer {
  return consumer(`p${p}`, subjects.partition(p));
}

/** The consumer of commands that are stored as they were published: a literal wildcard as id is not transformed. */
export function strayConsumer(): CommandConsumer {
  return consumer('strays', subjects.unroutableCommands);
}

/** All of them. */
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
    // What is acknowledged leaves the stream, so a consumer has no state of its own to lose; kept on disk it would be written
    // and synced, file by file, at each of its changes.
    mem_storage: true,
    max_ack_pending: 256,
    // A delivery is a doorbell; the command itself is read from the stream.
    headers_only: true,
    priority_policy: 'pinned_client',
    priority_groups: [PIN_GROUP],
    priority_timeout: nanos(1_000),
  };
}

/** Where a consumer of the command stream stands. */
export interface ConsumerState {
  readonly name: string;
  readonly config: object;
  /** Deliveries so far; one that is made again counts again. */
  readonly delivered: { readonly consumer_seq: number };
  /** Deliveries that are not acknowledged. */
  readonly num_ack_pending: number;
}

interface ConsumersAnswer {
  readonly total?: number;
  readonly consumers?: readonly ConsumerState[] | null;
}

/**
 * Makes those consumers that are missing or different, and checks all of them. One request where all are there.
 * @throws StreamConfigMismatchError, NatsUnavailableError, NatsRefusedError.
 */
export async function ensureConsumers(nc: NatsConnection, wanted: readonly CommandConsumer[]): Promise<void> {
  const wire = wireOf(nc);
  const found = await listConsumers(wire);
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
 * Makes one consumer, or brings it to what is wanted.
 * @throws as {@link ensureConsumers}.
 */
export async function ensureConsumer(nc: NatsConnection, spec: CommandConsumer): Promise<void> {
  const request = { stream_name: STREAMS.commands, config: spec };
  const subject = `$JS.API.CONSUMER.CREATE.${STREAMS.commands}.${spec.durable_name}`;
  const answer = answerOf<{ readonly config?: object }>(await wireOf(nc).request(subject, json(request)));
  if (answer.error) throw refused(answer.error);
  const difference = firstDifference(spec, answer.config ?? {}, `${STREAMS.commands}.${spec.durable_name}`);
  if (difference) {
    throw new StreamConfigMismatchError(difference.member, difference.wanted, difference.found, serverVersionOf(nc));
  }
}

/** Ends consumers and makes them anew: what is not acknowledged is delivered again. @throws as {@link ensureConsumers}. */
export async function renewConsumers(nc: NatsConnection, names: readonly string[]): Promise<void> {
  const subject = (name: string) => `$JS.API.CONSUMER.DELETE.${STREAMS.commands}.${name}`;
  const renewed = commandConsumers().filter(({ durable_name }) => names.includes(durable_name));
  await Promise.all(
    renewed.map(async (spec) => {
      const { error } = answerOf<object>(await wireOf(nc).request(subject(spec.durable_name), new Uint8Array()));
      // Another host may have been faster.
      if (error && !isConsumerNotFound(error)) throw refused(error);
      await ensureConsumer(nc, spec);
    }),
  );
}

/** All consumers of the command stream. @throws NatsUnavailableError, NatsRefusedError. */
export async function listConsumers(wire: Wire): Promise<ReadonlyMap<string, ConsumerState>> {
  const found = new Map<string, ConsumerState>();
  let total = 1;
  let offset = 0;
  while (offset < total) {
    const subject = `$JS.API.CONSUMER.LIST.${STREAMS.commands}`;
    const answer = answerOf<ConsumersAnswer>(await wire.request(subject, json({ offset })));
    if (answer.error) throw refused(answer.error);
    const page = answer.consumers ?? [];
    for (const state of page) found.set(state.name, state);
    if (page.length === 0) break;
    offset += page.length;
    total = answer.total ?? 0;
  }
  return found;
}

function json(value: object): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value));
}

function refused(error: ApiError): Error {
  return failureOf('making the consumers of the command stream', error);
}

/** Recreates missing consumers of the command stream. */
export interface ConsumerRepair {
  /** Starts a repair, unless one runs. All consumers are checked at once, because they are seldom deleted alone. */
  start(): void;
  /** Whether the stream was found to be deleted, or replaced by another one. */
  isGone(): boolean;
}

/**
 * Makes the repair for one inbox.
 * @param incarnation the stream that the inbox reads: positions in another one mean nothing to it.
 * @param isOpen whether the inbox is open; a closed one repairs nothing.
 * @param onGone called once when the stream is gone.
 */
export function repairConsumers(
  nc: NatsConnection,
  log: Log,
  incarnation: CommandStreamIncarnation,
  isOpen: () => boolean,
  onGone: (error: StreamsGoneError) => void,
): ConsumerRepair {
  const wire = wireOf(nc);
  let isRepairing = false;
  let isGone = false;
  /** The log has a warning that consumers are missing, and they are still missing. */
  let hasWarned = false;

  async function isStillThere(): Promise<boolean> {
    try {
      return (await commandStreamIncarnation(wire)).created === incarnation.created;
    } catch (error) {
      if (error instanceof StreamNotThereError) return false;
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
      // It settles within the wire's bounds. After a failure, a later pull asks for it again.
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

/** The streams were deleted, or deleted and created again, while a host used them: the journals of its sessions are lost. */
export class StreamsGoneError extends Error {
  override readonly name = 'StreamsGoneError';
  readonly code = 'streams_gone';
  constructor() {
    super(
      'the streams of the sessions were deleted while this host used them; restore a backup, or create new streams: cox admin streams, or a restart of the host',
    );
  }
}
