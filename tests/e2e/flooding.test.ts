/** A key that may only steer floods a session: its journal stays small, the sender is answered, others go on. */
import { BOUNDS, sessionRef, subjects, tenantSubjects } from '@coxswain/protocol';
import { createInbox, headers } from '@nats-io/nats-core';
import { expect, test } from 'vitest';
import { guardedBusAndHost } from './kit/guarded-fixture.ts';
import { scripted } from './kit/scripts.ts';
import { until } from './kit/until.ts';

const fixture = guardedBusAndHost();
const FLOOD = 400;

test('of 400 invalid steers 64 leave a record; each is answered, none waits in the store, and a valid steer is taken', async () => {
  const { bus } = fixture;
  const operator = await bus.client('operator');
  const session = await operator.startSession({ prompt: 'Go.', model: await scripted([{ text: 'Done.' }]) });
  await session.result();

  const steerer = await bus.as('steerer');
  const inbox = createInbox(tenantSubjects.inboxPrefix('default', 'steerer'));
  const told: string[] = [];
  steerer.subscribe(inbox, { callback: (_, message) => void told.push(message.json<{ code: string }>().code) });
  const head = headers();
  head.set('Cox-Receipt-To', inbox);
  const subject = subjects.command(sessionRef(session.id), 'steer');
  for (let i = 0; i < FLOOD; i++) steerer.publish(subject, '{"body":"x","mode":"nope"}', { headers: head });
  await until('every receipt', () => (told.length === FLOOD ? true : null));
  expect(new Set(told)).toEqual(new Set(['invalid_mode']));
  let rejections = 0;
  for await (const { record } of session.journal())
    rejections += record.events.filter(({ type }) => type === 'command_rejected').length;
  expect(rejections).toBe(BOUNDS.rejectionsRecordedMax);

  const sent = await (await bus.client('steerer')).session(session.id).steer('for the next run', { wait: 'accepted' });
  expect(sent.receipt).toMatchObject({ stage: 'accepted', pendingForNextRun: true });
  const admin = await bus.as('admin');
  await until('an empty command stream', async () => {
    const info = (await admin.request('$JS.API.STREAM.INFO.COX_COMMANDS')).json<{ state: { messages: number } }>();
    return info.state.messages === 0 ? true : null;
  });
});

test('a full command stream rejects with quota_exceeded', async () => {
  const { bus } = fixture;
  const admin = await bus.as('admin');
  const ask = async (what: string, payload = '') =>
    (await admin.request(`$JS.API.STREAM.${what}.COX_COMMANDS`, payload)).json();
  const { config } = (await ask('INFO')) as { config: object };
  await fixture.host.terminate();
  await ask('UPDATE', JSON.stringify({ ...config, max_msgs_per_subject: 1 }));
  const steerer = (await bus.client('steerer')).session('nobodys');
  await steerer.steer('kept');
  await expect(steerer.steer('beyond')).rejects.toMatchObject({ code: 'quota_exceeded' });
  await ask('UPDATE', JSON.stringify(config));
  fixture.host = await bus.startHost();
});
