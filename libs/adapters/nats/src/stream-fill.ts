/** Reads how full the limited streams are. */
import { streamInfo } from '@coxswain/bus';
import { BLOBS_STREAM, JOURNAL_STREAMS, STREAMS } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';

const NAMES = [STREAMS.commands, ...JOURNAL_STREAMS, STREAMS.snapshots, BLOBS_STREAM, `KV_${STREAMS.registry}`];

/** The bytes of each limited stream as a share of its limit, 0 to 1. @throws NatsUnavailableError, NatsRefusedError. */
export async function streamFill(nc: NatsConnection): Promise<ReadonlyMap<string, number>> {
  const filled = await Promise.all(
    NAMES.map(async (name): Promise<[string, number] | null> => {
      const { config, state } = await streamInfo(nc, name);
      return config.max_bytes > 0 ? [name, state.bytes / config.max_bytes] : null;
    }),
  );
  return new Map(filled.filter((one) => one !== null));
}
