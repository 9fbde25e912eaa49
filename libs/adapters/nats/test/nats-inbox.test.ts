/** What an inbox reads where a replica of the command stream lacks commands. */
import type { Log } from '@coxswain/ports';
import { STREAMS, sessionRef, subjects } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { createNatsInbox } from '../src/nats-inbox.ts';
import { damaged, FakeCluster, whole } from './fake-cluster.ts';

const ref = sessionRef('s1');
const log: Log = { debug() {}, info() {}, warn() {}, error() {} };
const command = (seq: number) => ({ seq, subject: subjects.inbox(ref).replace('>', 'steer') });
const three = whole(command(1), command(2), command(3));

test('a notification brings every command before it, also where replicas step over the first', async () => {
  for (const missing of [[1], [2], [1, 2]]) {
    const broken = damaged(three, ...missing);
    const replicas = { n1: three, n2: broken, n3: broken, n4: broken, n5: broken };
    const { nc } = new FakeCluster({ [STREAMS.commands]: { leader: 'n1', replicas } });
    const inbox = await createNatsInbox(nc, log);
    for (let read = 0; read < 5; read++)
      expect(
        (await inbox.read(ref, 0, 3)).map(({ seq }) => seq),
        `without ${missing}`,
      ).toEqual([1, 2, 3]);
  }
});
