/**
 * Summaries of sessions: headers of their newest snapshots, read without the snapshots themselves. The server reads the
 * blocks with the newest snapshots of one partition, and sends about 200 bytes per session.
 */
import { askJetStream, inboxPrefixOf, NatsUnavailableError, statusOf, wireOf } from '@coxswain/bus';
import type { SessionSummary, SummarizedSession } from '@coxswain/ports';
import { STREAMS, sessionRef, subjects } from '@coxswain/protocol';
import { createInbox, type Msg, type MsgHdrs, MsgHdrsImpl, type NatsConnection, nanos, nuid } from '@nats-io/nats-core';

const STATE = 'Cox-State';
/**
 * Header: the number of calls that wait for approval, and the start of the oldest wait, ms since 1970:
 * `2 1700000000000`.
 */
const APPROVALS = 'Cox-Approvals';

const PULLED_AT_ONCE = 500;
/** Timeout of each message of an answer, milliseconds. */
const ANSWER_TIMEOUT_MS = 5_000;
/** The server removes a consumer that was not pulled for this time, milliseconds: its reader has died. */
const UNUSED_MS = 30_000;

/** Converts a summary to the headers of its snapshot. */
export function summaryHeaders({ state, approvals, oldestApprovalMs }: SessionSummary): MsgHdrs {
  const waiting = approvals > 0 ? { [APPROVALS]: [`${approvals} ${oldestApprovalMs ?? 0}`] } : {};
  return MsgHdrsImpl.fromRecord({ [STATE]: [state], ...waiting });
}

/** Reads the summaries of a partition's sessions. @throws NatsUnavailableError, NatsRefusedError. */
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
  const request = { stream_name: STREAMS.snapshots, config, action: 'create' };
  const made = await askJetStream<{ readonly num_pending?: number }>(
    wire,
    'reading the summaries of sessions',
    `CONSUMER.CREATE.${STREAMS.snapshots}.${name}.${filter}`,
    request,
  );
  try {
    const found: SummarizedSession[] = [];
    for (let left = made.num_pending ?? 0; left > 0; ) {
      const messages = await pull(nc, name, Math.min(left, PULLED_AT_ONCE));
      // Snapshots that were replaced meanwhile are not delivered.
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
    // If this fails, the server removes the unused consumer later.
    await wire.request(`$JS.API.CONSUMER.DELETE.${STREAMS.snapshots}.${name}`, new Uint8Array()).catch(() => undefined);
  }
}

/** Pulls at most `batch` messages that the consumer has now. @throws NatsUnavailableError. */
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
    // The subscription first: it throws if the connection is closed, and the timer would end a missing one.
    const subscription = nc.subscribe(inbox, {
      callback(error, message) {
        if (error) return end(new NatsUnavailableError(error.message, { cause: error }));
        late.refresh();
        // A status message means that there are no more messages.
        if (statusOf(message) !== 0) return end();
        messages.push(message);
        if (messages.length >= batch) end();
      },
    });
    const late = setTimeout(
      () => end(new NatsUnavailableError(`the store did not answer within ${ANSWER_TIMEOUT_MS} ms`)),
      ANSWER_TIMEOUT_MS,
    );
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
