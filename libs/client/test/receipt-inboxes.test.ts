/** One subscription for the receipts of all commands of a connection. */
import type { Msg, NatsConnection, SubscriptionOptions } from '@nats-io/nats-core';
import { expect, test } from 'vitest';
import { openInbox } from '../src/receipt-inboxes.ts';

/** A connection as far as inboxes need one. */
function connection(inboxPrefix?: string) {
  const open: { subject: string; closed: boolean; callback: NonNullable<SubscriptionOptions['callback']> }[] = [];
  const nc = {
    options: { inboxPrefix },
    subscribe(subject: string, { callback }: SubscriptionOptions) {
      if (!callback) throw new Error('is listened to with a callback');
      const subscription = { subject, closed: false, callback };
      open.push(subscription);
      const unsubscribe = () => {
        subscription.closed = true;
      };
      return { unsubscribe };
    },
  } as unknown as NatsConnection;
  const deliver = (subject: string, text: string) => {
    const { callback } = open.at(-1) ?? {};
    callback?.(null, { subject, string: () => text } as Msg);
  };
  return { nc, open, deliver };
}

function listener() {
  const heard: string[] = [];
  const failed: string[] = [];
  return {
    onMessage: (message: Msg) => void heard.push(message.string()),
    onError: (error: Error) => void failed.push(error.message),
    seen: heard,
    errors: failed,
  };
}

test('many inboxes are one subscription, and each hears what is sent to it alone', () => {
  const { nc, open, deliver } = connection();
  const [a, b] = [listener(), listener()];
  const [ofA, ofB] = [openInbox(nc, a), openInbox(nc, b)];
  expect(open).toHaveLength(1);
  expect(ofA.subject).not.toBe(ofB.subject);
  deliver(ofB.subject, 'for b');
  deliver(ofA.subject, 'for a');
  expect([a.seen, b.seen]).toEqual([['for a'], ['for b']]);
});

test('a closed inbox hears nothing, and the others go on', () => {
  const { nc, deliver } = connection();
  const [a, b] = [listener(), listener()];
  const [ofA, ofB] = [openInbox(nc, a), openInbox(nc, b)];
  ofA.close();
  deliver(ofA.subject, 'late');
  deliver(ofB.subject, 'for b');
  expect([a.seen, b.seen]).toEqual([[], ['for b']]);
});

test('inboxes stand below the prefix that the user of the bus has', () => {
  const { nc, open } = connection('_INBOX_acme.steerer');
  const inbox = openInbox(nc, listener());
  expect(inbox.subject).toMatch(/^_INBOX_acme\.steerer\.[^.]+\.[^.]+$/);
  expect(open[0]?.subject).toMatch(/^_INBOX_acme\.steerer\.[^.]+\.\*$/);
});

test('where the bus refuses the subscription everybody who waits is told, and the next one tries anew', () => {
  const { nc, open, deliver } = connection();
  const [a, b] = [listener(), listener()];
  openInbox(nc, a);
  openInbox(nc, b);
  open[0]?.callback(new Error('not permitted'), {} as Msg);
  expect([a.errors, b.errors]).toEqual([['not permitted'], ['not permitted']]);
  expect(open[0]?.closed).toBe(true);
  const c = listener();
  const ofC = openInbox(nc, c);
  expect(open).toHaveLength(2);
  deliver(ofC.subject, 'for c');
  expect(c.seen).toEqual(['for c']);
});

test('each connection has its own', () => {
  const [one, other] = [connection(), connection()];
  openInbox(one.nc, listener());
  openInbox(other.nc, listener());
  expect([one.open.length, other.open.length]).toEqual([1, 1]);
});
