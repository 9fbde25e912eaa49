/**
 * Asks the retention job on NATS for its purge deadlines, and answers for it. Without a job there are no responders.
 */
import { NatsRefusedError, NatsUnavailableError, valueIn, wireOf } from '@coxswain/bus';
import type { PurgesWithin, Retention } from '@coxswain/ports';
import { RetentionAnswer, subjects } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';

/**
 * Timeout of the question, milliseconds. The job answers from memory, and the receipt of a deletion waits for the
 * answer.
 */
const ANSWER_TIMEOUT_MS = 2_000;

/** Creates the retention port on this connection. */
export function createNatsRetention(nc: NatsConnection): Retention {
  return {
    async purgesWithin() {
      try {
        const { data } = await wireOf(nc, ANSWER_TIMEOUT_MS).request(subjects.retention, new Uint8Array());
        const answer = valueIn(data, RetentionAnswer);
        return answer && { recordsMs: answer.records_ms, filesMs: answer.files_ms };
      } catch (error) {
        // No job, a job that hangs, or a key without permission to ask: then no deadline is promised.
        if (error instanceof NatsUnavailableError || error instanceof NatsRefusedError) return null;
        throw error;
      }
    },
  };
}

/** Answers the questions to a retention job until the returned function is called. Times are milliseconds. */
export function answerRetention(nc: NatsConnection, { recordsMs, filesMs }: PurgesWithin): () => void {
  const answer = JSON.stringify({ v: 1, records_ms: recordsMs, files_ms: filesMs } satisfies RetentionAnswer);
  const subscription = nc.subscribe(subjects.retention, {
    queue: 'cox-retention',
    callback: (error, message) => {
      if (!error) message.respond(answer);
    },
  });
  return () => subscription.unsubscribe();
}
