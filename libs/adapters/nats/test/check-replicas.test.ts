/** A check of replicas where a stream cannot be asked. */
import {
  type Msg,
  type MsgHdrs,
  type NatsConnection,
  PermissionViolationError,
  type Subscription,
} from '@nats-io/nats-core';
import { expect, test } from 'vitest';
import { CHECKED_STREAMS, type CheckedStream, checkReplicas } from '../src/check-replicas.ts';

type Callback = (error: Error | null, message: Msg) => void;

/** A bus of empty streams. One may have no leader; one may hold a message that this user may not read. */
function busWith({
  leaderless,
  forbidden,
  refused = 'request',
}: {
  leaderless?: string;
  forbidden?: string;
  refused?: 'request' | 'trace';
}): NatsConnection {
  let wireCallback: Callback | undefined;
  let refuse: (status: object) => void = () => undefined;
  const refusal = new Promise<object>((resolve) => {
    refuse = resolve;
  });
  const nc = {
    isClosed: () => false,
    closed: () => new Promise(() => undefined),
    async *status() {
      yield await refusal;
    },
    subscribe(subject: string, { callback }: { callback: Callback }) {
      // The wire's answers have one token, those of traced reads two.
      if (!subject.endsWith('.*.*')) wireCallback = callback;
      return { isClosed: () => false, unsubscribe: () => undefined } as unknown as Subscription;
    },
    publish(subject: string, _: Uint8Array, { reply, headers: head }: { reply: string; headers?: MsgHdrs }) {
      if (subject.startsWith('$JS.API.DIRECT.GET.')) {
        const about = refused === 'trace' ? (head?.get('Nats-Trace-Dest') ?? '') : subject;
        refuse({ type: 'error', error: new PermissionViolationError('no', 'publish', about) });
        return;
      }
      const error = { code: 503, err_code: 10_008, description: 'JetStream system temporarily unavailable' };
      const info = {
        state: subject.endsWith(`.${forbidden}`)
          ? { first_seq: 1, last_seq: 1, messages: 1 }
          : { first_seq: 1, last_seq: 0, messages: 0 },
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
  for await (const one of checkReplicas(busWith({ leaderless }), { confirmMs: 0 })) checked.push(one);
  expect(checked.map(({ stream }) => stream)).toEqual(CHECKED_STREAMS);
  expect(checked.flatMap(({ findings }) => findings)).toMatchObject([
    { stream: leaderless, kind: 'unchecked', server: null, message: expect.stringContaining(leaderless) },
  ]);
});

// The server checks the subject of the trace first.
test.each([['request'], ['trace']] as const)('says that the user may not read a stream: its %s', async (refused) => {
  const forbidden = CHECKED_STREAMS[3] as string;
  const check = async () => {
    for await (const { findings } of checkReplicas(busWith({ forbidden, refused }), { confirmMs: 0 }))
      expect(findings).toEqual([]);
  };
  await expect(check()).rejects.toMatchObject({ code: 'not_permitted' });
});
