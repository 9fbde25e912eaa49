/** Data that is too long for a request: the host offers it on an inbox, and an instance fetches it in parts. */
import { randomUUID } from 'node:crypto';
import { HEADERS, SERVED_BOUNDS, WorkFetch } from '@coxswain/protocol';
import { createInbox, headers, type NatsConnection } from '@nats-io/nats-core';
import { valueIn } from '../value-in.ts';
import { inboxPrefixOf, wireOf } from '../wire.ts';
import type { NoteProblem } from './asking.ts';

/** Builds the data of a request. Called at most once for each kind. @throws if it is too long. */
export type BuildData = (want: WorkFetch['want']) => Buffer | null;

/** The data that a host offers on one connection. */
export interface OfferedData {
  /** Offers data until `withdraw`. @returns the subject to fetch it from; only the holder of the subject can read it. */
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
      const build = error ? undefined : offered.get(message.subject.slice(inbox.length + 1));
      const wanted = build && valueIn(message.data, WorkFetch);
      if (!wanted) return;
      try {
        const whole = build(wanted.want);
        if (!whole) return;
        const head = headers();
        head.set(HEADERS.total, String(whole.length));
        const { offset } = wanted;
        message.respond(whole.subarray(offset, offset + SERVED_BOUNDS.fetchedPartBytes), { headers: head });
      } catch (error) {
        noteProblem({ want: wanted.want, error }, 'data that an instance requested could not be sent');
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
        const data = build(want);
        built.set(want, data);
        return data;
      });
      return { subject: `${inbox}.${token}`, withdraw: () => void offered.delete(token) };
    },
    stop: () => subscription.unsubscribe(),
  };
}

/**
 * Fetches offered data.
 * @param maxBytes the limit of its size.
 * @returns its JSON text.
 * @throws Error if it is longer, or the host does not offer it any longer; NatsUnavailableError.
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
    const part = await wireOf(nc).request(subject, new TextEncoder().encode(JSON.stringify(wanted)));
    total = Number(part.headers?.get(HEADERS.total));
    if (!(total <= maxBytes) || part.data.length === 0) throw new Error('the host did not provide it');
    parts.push(part.data);
    offset += part.data.length;
  }
  return Buffer.concat(parts).toString('utf8');
}
