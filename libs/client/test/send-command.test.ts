/** A command on its way into the command stream, and the wait for its receipt. */
import { HEADERS, type Receipt, SessionId, sessionRef, TenantId, tombstoneBytes } from '@coxswain/protocol';
import { expect, onTestFinished, test, vi } from 'vitest';
import { sendCommand } from '../src/send-command.ts';
import { FULL, NO_LEADER, type Published, storeConnection } from './store-connection.ts';

const ref = sessionRef(SessionId.parse('s'), TenantId.parse('default'));
/** Whether a request reads the newest record of a journal. */
const readsJournal = ({ subject }: Published) => subject.startsWith('$JS.API.STREAM.MSG.GET.');
/** The answer to that request. */
const newest = (bytes: string | Uint8Array) => ({
  message: { subject: 'j', seq: 1, time: '2026-01-01T00:00:00Z', data: Buffer.from(bytes).toString('base64') },
});
/** A receipt for a command, and its subject. */
function receiptFor({ headers }: Published, stage: Receipt['stage']): [string, Receipt] {
  const command_id = headers?.get(HEADERS.commandId) ?? '';
  return [headers?.get(HEADERS.receiptTo) ?? '', { type: 'receipt', session_id: 's', command_id, stage, n: 2 }];
}

test.each([
  ['it was refused each time', [FULL], 'quota_exceeded'],
  ['an earlier attempt has no acknowledgement', [NO_LEADER, FULL], 'command_not_stored'],
  ['the stream knows its id', [{ seq: 7, duplicate: true }, FULL], 'command_not_stored'],
])(
  'a command that finds the stream full is rejected only if it is certainly not stored: %s',
  async (_when, answers, code) => {
    const { nc } = storeConnection(() => answers.shift());
    await expect(sendCommand({ nc }, ref, 'signal', { name: 'tide' })).rejects.toMatchObject({ code });
  },
);

test('a receipt arrives although the journal cannot be read', async () => {
  const refused = { error: { code: 400, err_code: 10_003, description: 'bad request' } };
  const answers: object[] = [newest('{"n":1}'), { seq: 7 }, refused];
  const { nc, published, deliver } = storeConnection((request) => {
    // The second read of the journal, after the command was stored.
    if (readsJournal(request) && answers.length === 1)
      setImmediate(() => deliver(...receiptFor(published.find(({ headers }) => headers) as Published, 'delivered')));
    return answers.shift();
  });
  const sent = await sendCommand({ nc }, ref, 'signal', { name: 'tide' }, { wait: 'delivered' });
  expect(sent.receipt).toMatchObject({ stage: 'delivered', n: 2 });
});

test.each([
  ['after seconds', [{ seq: 7 }]],
  ['for a command whose first acknowledgement was lost', [NO_LEADER, { seq: 7, duplicate: true }, { seq: 8 }]],
])('a deletion that takes effect has its receipt, which arrives %s', async (_when, acknowledgements) => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const tombstone = newest(
    tombstoneBytes({
      tombstone: 1,
      session_id: 's',
      deleted_at: '2026-01-01T00:00:00Z',
      records: 1,
      last_hash: '0'.repeat(64),
    }),
  );
  const { nc, published, deliver } = storeConnection((request) =>
    readsJournal(request) ? tombstone : acknowledgements.shift(),
  );
  const sent = sendCommand({ nc }, ref, 'delete', {}, { wait: 'accepted' });
  sent.catch(() => undefined);
  await vi.waitUntil(() => acknowledgements.length === 0);
  await vi.advanceTimersByTimeAsync(3_000);
  deliver(...receiptFor(published[0] as Published, 'accepted'));
  expect((await sent).receipt).toMatchObject({ stage: 'accepted', n: 2 });
});
