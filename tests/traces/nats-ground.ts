/** The server on which scenarios are played once more: one for a file, with empty streams for each of them. */
import { connectionTo, connectNats, ensureStreams } from '@coxswain/adapter-nats';
import type { NatsConnection } from '@nats-io/nats-core';
import { afterAll, beforeAll, vi } from 'vitest';
import { deleteStreams, type Ground, layGround } from '../e2e/kit/ground.ts';
import { removeScratch } from '../e2e/kit/scratch.ts';

const BOUND_MS = 10_000;

/** See the top of the file. */
export interface NatsGround {
  readonly nc: NatsConnection;
  /** Takes away what the scenario before has left. */
  empty(): Promise<void>;
}

/** Lays the ground before the tests of the file or of the `describe` that calls it, and leaves it after them. */
export function natsGround(): NatsGround {
  let ground: Ground;
  let nc: NatsConnection;
  beforeAll(async () => {
    ground = await layGround();
    nc = await connectNats(connectionTo({ servers: ground.natsUrl }));
  }, 300_000);
  afterAll(async () => {
    await nc?.close();
    await ground?.stop();
    await removeScratch();
  });
  return {
    get nc() {
      return nc;
    },
    async empty() {
      await deleteStreams(nc, BOUND_MS);
      // A server takes the files of a stream away after it has said that the stream is gone.
      await vi.waitFor(() => ensureStreams(nc), { timeout: BOUND_MS });
    },
  };
}
