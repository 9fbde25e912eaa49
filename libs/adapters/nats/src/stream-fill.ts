/** Reads how full the limited streams are. */

import { answerOf, failureOf, wireOf } from '@coxswain/bus';
import { BLOBS_STREAM, JOURNAL_STREAMS, STREAMS } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';

const NAMES = [STREAMS.commands, ...JOURNAL_STREAMS, STREAMS.snapshots, BLOBS_STREAM];

interface StreamInfo {
  readonly config?: { readonly max_bytes?: number };
  readonly state?: { readonly bytes?: number };
}

/** The bytes of each limited stream as a share of its limit, 0 to 1. @throws NatsUnavailableError, NatsRefusedError. */
export async function streamFill(nc: NatsConnection): Promise<ReadonlyMap<string, number>> {
  const filled = await Promise.all(
    NAMES.map(async (name): Promise<[string, number] | null> => {
      const answer = answerOf<StreamInfo>(await wireOf(nc).request(`$JS.API.STREAM.INFO.${name}`, new Uint8Array()));
      if (answer.error) throw failureOf(`asking about ${name}`, answer.error);
      const { config, state } = answer;
      const most = config?.max_bytes ?? -1;
      return most > 0 ? [name, (state?.bytes ?? 0) / most] : null;
    }),
  );
  return new Map(filled.filter((one) => one !== null));
}
