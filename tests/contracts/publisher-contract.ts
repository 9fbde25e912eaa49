import type { Publisher } from '@coxswain/ports';
import type { Delta, Receipt, SessionRef } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { eventually } from './eventually.ts';
import { freshSession } from './fresh-session.ts';

/** A publisher under test, and how its messages are heard. */
export interface PublisherDoors {
  readonly publisher: Publisher;
  watchDeltas(ref: SessionRef, handler: (delta: Delta) => void): Promise<() => void>;
  watchReceipts(subject: string, handler: (receipt: Receipt) => void): Promise<() => void>;
}

/** What every publisher promises. */
export function publisherContract(name: string, doors: () => PublisherDoors): void {
  describe(`a publisher in ${name}`, () => {
    test('sends deltas to those who watch the session, in order, until they stop', async () => {
      const { publisher, watchDeltas } = doors();
      const [ref, other] = [freshSession(), freshSession()];
      const heard: number[] = [];
      const stop = await watchDeltas(ref, (delta) => void heard.push(delta.index));
      publisher.delta(other, deltaOf(other, 99));
      for (const index of [0, 1, 2]) publisher.delta(ref, deltaOf(ref, index));
      await eventually('all are heard', () => heard.length === 3);
      expect(heard).toEqual([0, 1, 2]);
      stop();
      publisher.delta(ref, deltaOf(ref, 3));
      const later: number[] = [];
      await watchDeltas(ref, (delta) => void later.push(delta.index));
      publisher.delta(ref, deltaOf(ref, 4));
      await eventually('the next watcher hears', () => later.includes(4));
      expect(heard).toEqual([0, 1, 2]);
    });

    test('sends receipts to the inbox that the command named', async () => {
      const { publisher, watchReceipts } = doors();
      const ref = freshSession();
      const inbox = `_INBOX.${ref.sessionId}.1`;
      const receipt: Receipt = { type: 'receipt', session_id: ref.sessionId, command_id: 'c', stage: 'accepted', n: 3 };
      const heard: Receipt[] = [];
      await watchReceipts(inbox, (one) => void heard.push(one));
      publisher.receipt(inbox, receipt);
      await eventually('it is heard', () => heard.length === 1);
      expect(heard).toEqual([receipt]);
    });

    test('does nothing where nobody listens', () => {
      const ref = freshSession();
      doors().publisher.delta(ref, deltaOf(ref, 0));
    });
  });
}

/** A delta of some text. */
export function deltaOf(ref: SessionRef, index: number): Delta {
  return {
    type: 'message_update',
    session_id: ref.sessionId,
    effect_id: '1-0',
    epoch: 1,
    attempt: 1,
    turn: 1,
    index,
    kind: 'text',
    offset: index,
    text: 'x',
  };
}
