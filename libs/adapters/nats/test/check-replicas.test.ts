/** A check of replicas where a stream cannot be asked. */
import type { Msg, NatsConnection, Subscription } from '@nats-io/nats-core';
import { expect, test } from 'vitest';
import { CHECKED_STREAMS, type CheckedStream, checkReplicas } from '../src/check-replicas.ts';

type Callback = (error: Error | null, message: Msg) => void;

/** A bus of empty streams, one of which has no leader. */
function busWithLeaderless(leaderless: string): NatsConnection {
  let wireCallback: Callback | undefined;
  const nc = {
    isClosed: () => false,
    closed: () => new Promise(() => undefined),
    status: () => (async function* () {})(),
    subscribe(subject: string, { callback }: { callback: Callback }) {
      // The wire's answers have one token, those of traced reads two.
      if (!subject.endsWith('.*.*')) wireCallback = callback;
      return { isClosed: () => false, unsubscribe: () => undefined } as unknown as Subscription;
    },
    publish(subject: string, _: Uint8Array, { reply }: { reply: string }) {
      const error = { code: 503, err_code: 10_008, description: 'JetStream system temporarily unavailable' };
      const info = {
        state: { first_seq: 1, last_seq: 0, messages: 0 },
        config: { allow_direct: true },
        cluster: { leader: 'n1', replicas: [] },
      };
      const answer = JSON.stringify(subject.endsWith(`.${leaderless}`) ? { error } : info);
      const message = {
        subject: reply,
        data: Buffer.from(answer),
        string: () => answer,
        json: () => JSON.parse(answer),
      };
      queueMicrotask(() => wireCallback?.(null, message as unknown as Msg));
    },
  };
  return nc as unknown as NatsConnection;
}

test('reports a stream that has no leader as unchecked, and checks all others', async () => {
  const leaderless = CHECKED_STREAMS[3] as string;
  const checked: CheckedStream[] = [];
  for await (const one of checkReplicas(busWithLeaderless(leaderless), { confirmMs: 0 })) checked.push(one);
  expect(checked.map(({ stream }) => stream)).toEqual(CHECKED_STREAMS);
  expect(checked.flatMap(({ findings }) => findings)).toMatchObject([
    { stream: leaderless, kind: 'unchecked', server: null, message: expect.stringContaining(leaderless) },
  ]);
});
