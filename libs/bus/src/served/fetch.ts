/** Data that is too long for a request: the host offers it on an inbox, and an instance fetches it in parts. */
import { randomUUID } from 'node:crypto';
import { type ErrorCode, HEADERS, isAnswerSubject, SERVED_BOUNDS, WorkFetch } from '@coxswain/protocol';
import { createInbox, headers, type NatsConnection } from '@nats-io/nats-core';
import { NoRespondersError } from '../errors.ts';
import { retryRequest } from '../retry-while-unavailable.ts';
import { valueIn } from '../value-in.ts';
import { inboxPrefixOf, wireOf } from '../wire.ts';
import type { NoteProblem } from './open-ask.ts';

/** Builds the data of a request. Called at most once for each kind. @throws if it is too long. */
export type BuildData = (want: WorkFetch['want']) => Buffer | null;

/** The data that a host offers on one connection. */
export interface OfferedData {
  /**
   * Offers data until `withdraw`. A fetch of unknown, missing or too long data is answered with an error.
   * @returns the subject to fetch it from; only the holder of the subject can read it.
   */
  offer(build: BuildData): { readonly subject: string; withdraw(): void };
  /** Unsubscribes. */
  stop(): void;
}

/** Offers data on a connection. */
export function offerData(nc: Pick<NatsConnection, 'subscribe'>, noteProblem: NoteProblem): OfferedData {
  // The permissions of services contain this form of the subject.
  const inbox = `${createInbox(inboxPrefixOf(nc))}.c`;
  const offered = new Map<string, BuildData>();
  const subscription = nc.subscribe(`${inbox}.*`, {
    callback(error, message) {
      // The sender chooses the subject of the reply, and a host may publish on many.
      if (error || !isAnswerSubject(message.reply ?? '')) return;
      const build = offered.get(message.subject.slice(inbox.length + 1));
      const wanted = valueIn(message.data, WorkFetch, SERVED_BOUNDS.orderMaxBytes);
      const whole = (build && wanted && build(wanted.want)) ?? null;
      const head = headers();
      if (whole && wanted) {
        head.set(HEADERS.total, String(whole.length));
        const part = whole.subarray(wanted.offset, wanted.offset + SERVED_BOUNDS.fetchedPartBytes);
        message.respond(part, { headers: head });
      } else {
        // Without an answer, the instance would wait until its request times out.
        head.set(HEADERS.error, 'query_failed' satisfies ErrorCode);
        message.respond(undefined, { headers: head });
      }
    },
  });
  return {
    offer(build) {
      // Every tenant may publish to this inbox. Only the random token protects the data from the other tenants.
      const token = randomUUID();
      const built = new Map<WorkFetch['want'], Buffer | null>();
      offered.set(token, (want) => {
        const known = built.get(want);
        if (known !== undefined) return known;
        // Also remembered without data: an instance may ask often.
        built.set(want, null);
        try {
          built.set(want, build(want));
        } catch (error) {
          noteProblem({ want, error }, 'data that an instance requested could not be sent');
        }
        return built.get(want) ?? null;
      });
      return { subject: `${inbox}.${token}`, withdraw: () => void offered.delete(token) };
    },
    stop: () => subscription.unsubscribe(),
  };
}

/**
 * Fetches offered data. A part without an answer is requested again within ten seconds: the connection may be lost for a
 * short time.
 * @param maxBytes the limit of its size.
 * @returns its JSON text.
 * @throws Error if it is longer, or if the host cannot provide it or no longer offers it; NatsUnavailableError.
 */
export async function fetchWhole(
  nc: NatsConnection,
  subject: string,
  want: WorkFetch['want'],
  maxBytes: number,
): Promise<string> {
  const parts: Uint8Array[] = [];
  let offset = 0;
  let total = Number.POSITIVE_INFINITY;
  while (offset < total) {
    const wanted: WorkFetch = { want, offset };
    const part = await retryRequest(
      () => wireOf(nc).request(subject, new TextEncoder().encode(JSON.stringify(wanted))),
      // Without responders, the host is gone. A lost connection is restored soon.
      { retriesAfter: (error) => !error.isFinal && !(error instanceof NoRespondersError) },
    );
    total = Number(part.headers?.get(HEADERS.total));
    if (!(total <= maxBytes) || part.data.length === 0) throw new Error('the host did not provide it');
    parts.push(part.data);
    offset += part.data.length;
  }
  return Buffer.concat(parts).toString('utf8');
}
