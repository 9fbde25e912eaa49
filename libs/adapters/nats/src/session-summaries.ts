/**
 * Summaries of sessions: headers of their newest snapshots, read without the snapshots themselves. The server goes through the blocks of
 * one partition's newest snapshots; some 200 bytes of each session come over the network.
 */
import type { SessionSummary, SummarizedSession } from '@coxswain/ports';
import { STREAMS, sessionRef, subjects } from '@coxswain/protocol';
import { createInbox, type Msg, type MsgHdrs, MsgHdrsImpl, type NatsConnection, nanos, nuid } from '@nats-io/nats-core';
import { answerOf, NatsRefusedError, NatsUnavailableError, statusOf } from './nats-status.ts';
import { inboxPrefixOf, wireOf } from './wire.ts';

const STATE = 'Cox-State';
/** How many calls wait for a person, and since when the first of them has: `2 1700000000000`. */
const APPROVALS = 'Cox-Approvals';

const PULLED_AT_ONCE = 500;
/** A server without an answer for so long is taken to be away. */
const ANSWERS_WITHIN_MS = 5_000;
/** After so long without a pull the server removes the consumer of a reader that has died. */
const UNUSED_MS = 30_000;

/** A summary as the headers of its snapshot. */
export function summaryHeaders({ state, approvals, oldestApprovalMs }: SessionSummary): MsgHdrs {
  const waiting = approvals > 0 ? { [APPROVALS]: [`${approvals} ${oldestApprovalMs ?? 0}`] } : {};
  return MsgHdrsImpl.fromRecord({ [STATE]: [state], ...waiting });
}

/** Reads the summaries of a partition. @throws NatsUnavailableError, NatsRefusedError. */
export async function readSummaries(nc: NatsConnection, partition: number): Promise<readonly SummarizedSession[]> {
  const wire = wireOf(nc);
  const name = `summaries-${nuid.next()}`;
  const filter = subjects.snapshotsOf(partition);
  const config = {
    name,
    filter_subject: filter,
    deliver_policy: 'last_per_subject',
    ack_policy: 'none',
    headers_only: true,
    mem_storage: true,
    num_replicas: 1,
    inactive_threshold: nanos(UNUSED_MS),
  };
  const request = JSON.stringify({ stream_name: STREAMS.snapshots, config, action: 'create' });
  const subject = `$JS.API.CONSUMER.CREATE.${STREAMS.snapshots}.${name}.${filter}`;
  const made = answerOf<{ readonly num_pending?: number }>(
    await wire.request(subject, new TextEncoder().encode(request)),
  );
  if (made.error) throw new NatsRefusedError('reading the summaries of sessions', made.error);
  try {
    const found: SummarizedSession[] = [];
    for (let left = made.num_pending ?? 0; left > 0; ) {
      const messages = await pull(nc, name, Math.min(left, PULLED_AT_ONCE));
      // What was replaced meanwhile does not come.
      if (messages.length === 0) break;
      left -= messages.length;
      for (const { subject: of, headers } of messages) {
        const [, , tenant = '', sessionId = ''] = of.split('.');
        const summary = summaryIn(headers);
        if (summary) found.push({ ref: sessionRef(sessionId, tenant), summary });
      }
    }
    return found;
  } finally {
    // Otherwise the server removes it when it was not used for a while.
    await wire.request(`$JS.API.CONSUMER.DELETE.${STREAMS.snapshots}.${name}`, new Uint8Array()).catch(() => undefined);
  }
}

/** At most so many messages that the consumer has now. */
function pull(nc: NatsConnection, consumer: string, batch: number): Promise<readonly Msg[]> {
  const inbox = createInbox(inboxPrefixOf(nc));
  const messages: Msg[] = [];
  return new Promise((resolve, reject) => {
    const end = (error?: Error) => {
      clearTimeout(late);
      subscription.unsubscribe();
      if (error) reject(error);
      else resolve(messages);
    };
    const late = setTimeout(
      () => end(new NatsUnavailableError(`the store did not answer within ${ANSWERS_WITHIN_MS} ms`)),
      ANSWERS_WITHIN_MS,
    );
    const subscription = nc.subscribe(inbox, {
      callback(error, message) {
        if (error) return end(new NatsUnavailableError(error.message, { cause: error }));
        late.refresh();
        // A status stands for the end of what there is.
        if (statusOf(message) !== 0) return end();
        messages.push(message);
        if (messages.length >= batch) end();
      },
    });
    const pulled = JSON.stringify({ batch, no_wait: true });
    nc.publish(`$JS.API.CONSUMER.MSG.NEXT.${STREAMS.snapshots}.${consumer}`, pulled, { reply: inbox });
  });
}

function summaryIn(headers: MsgHdrs | undefined): SessionSummary | null {
  const state = headers?.get(STATE);
  if (!state) return null;
  const [approvals = 0, oldest = 0] = (headers?.get(APPROVALS) ?? '').split(' ').map(Number);
  return approvals > 0
    ? { state, approvals, oldestApprovalMs: oldest }
    : { state, approvals: 0, oldestApprovalMs: null };
}
