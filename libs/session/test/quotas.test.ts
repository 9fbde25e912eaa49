/**
 * Quotas of a host: commands rejected without a record, and commands that never are.
 */
import type { MeasuredUsage } from '@coxswain/ports';
import { HEADERS, Quotas, type QuotasInput, sessionRef, subjects, tenantSubjects } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { crewBed, delegate } from './crew-bed.ts';
import { say } from './fake-model.ts';
import { INBOX, type SendOptions, type TestBed, testBed } from './test-bed.ts';

/** A bed whose host has these quotas, for every tenant the same. */
async function limited(quotas: QuotasInput, usage: { now: MeasuredUsage | null } = { now: null }): Promise<TestBed> {
  const bed = testBed();
  bed.models.answers = Array.from({ length: 20 }, () => say('done'));
  const all = Quotas.parse(quotas);
  await bed.host({ quotas: () => all }, { usage: { of: () => usage.now } });
  return bed;
}

const rejectedIn = (bed: TestBed) =>
  bed.receipts
    .filter(({ stage }) => stage === 'rejected')
    .map(({ command_id, code, detail }) => [command_id, code, detail]);

test('a sender above its rate is rejected without a record, and its command is accepted a second later under the same id', async () => {
  const bed = await limited({ sender_commands_per_second: 1, sender_commands_burst: 3 });
  await bed.start();
  const n = (await bed.records()).length;
  for (const id of ['a', 'b', 'c']) await bed.send('steer', 'x', { id });
  expect(rejectedIn(bed)).toEqual([
    ['c', 'quota_exceeded', { quota: 'sender_commands_per_second', retry_after_ms: 1_000 }],
  ]);
  expect((await bed.records()).length).toBe(n + 2);
  await bed.time.advance(1_000);
  await bed.send('steer', 'x', { id: 'c' });
  expect(bed.told('c').at(-1)).toMatch(/^accepted/);
});

test('other senders continue until the tenant’s rate is exceeded; a run can still be cancelled then', async () => {
  const bed = await limited({ sender_commands_burst: 2, commands_burst: 4, commands_per_second: 1 });
  bed.models.answers = [say('late', { delayMs: 10_000 })];
  const by = (actor: string, id: string): SendOptions => ({ id, headers: { 'Cox-Actor': actor } });
  await bed.start({}, by('ann', 's'));
  for (const id of ['a1', 'a2']) await bed.send('steer', 'x', by('ann', id));
  for (const id of ['b1', 'b2']) await bed.send('steer', 'x', by('bob', id));
  await bed.send('steer', 'x', by('cem', 'c1'));
  expect(rejectedIn(bed).map(([id, , detail]) => [id, (detail as { quota: string }).quota])).toEqual([
    ['a2', 'sender_commands_per_second'],
    ['c1', 'commands_per_second'],
  ]);
  await bed.send('cancel', {}, by('ann', 'stop'));
  expect(bed.told('stop')).toEqual(['accepted']);
});

test('keys of a tenant are different senders, and two connections of one key are the same', async () => {
  const bed = await limited({ sender_commands_burst: 2, sender_commands_per_second: 1 });
  await bed.start();
  const told: string[] = [];
  const by = async (key: string, id: string) => {
    const inbox = `${tenantSubjects.inboxPrefix('default', key)}.connection-of-${id}.1`;
    const stop = bed.bus.subscribeReceipts(inbox, ({ command_id, stage }) => void told.push(`${command_id} ${stage}`));
    await bed.send('steer', 'x', { id, headers: { [HEADERS.receiptTo]: inbox } });
    stop();
  };
  for (const id of ['a1', 'a2', 'a3']) await by('steerer-ann', id);
  await by('steerer-bob', 'b1');
  expect(told).toEqual(['a1 accepted', 'a2 accepted', 'a3 rejected', 'b1 accepted']);
});

test('quotas are separate for each tenant', async () => {
  const bed = await limited({ commands_burst: 1, commands_per_second: 1 });
  await bed.start();
  bed.bus.publish(
    subjects.command(sessionRef('s1', 'other'), 'start'),
    Buffer.from('{"prompt":"x","model":"fake/model"}'),
    {
      'Cox-Command-Id': 'theirs',
      'Cox-Receipt-To': INBOX,
    },
  );
  await bed.time.settle();
  expect(bed.told('theirs')).toEqual(['accepted']);
});

test('the queue of all sessions of a tenant is bounded, and delivery frees space', async () => {
  const bed = await limited({ pending_bytes: 100 });
  for (const session of ['s1', 's2']) await bed.start({}, { session });
  await bed.send('steer', 'x'.repeat(80), { session: 's1' });
  await bed.send('steer', 'x'.repeat(30), { session: 's2', id: 'beyond' });
  expect(bed.told('beyond')).toEqual(['rejected quota_exceeded']);
  await bed.send('prompt', 'go on', { session: 's1' });
  await bed.send('steer', 'x'.repeat(30), { session: 's2', id: 'within' });
  expect(bed.told('within')[0]).toMatch(/^accepted/);
});

test('a tenant at its maximum of sessions starts no other, until the store reports fewer', async () => {
  const usage = { now: { sessions: 1, storedBytes: 0 } };
  const bed = await limited({ sessions: 3 }, usage);
  for (const session of ['s1', 's2', 's3']) await bed.start({}, { session, id: session });
  expect(rejectedIn(bed)).toEqual([['s3', 'quota_exceeded', { quota: 'sessions' }]]);
  await bed.send('prompt', 'go on', { session: 's1', id: 'p' });
  expect(bed.told('p')).toEqual(['accepted']);
  usage.now = { sessions: 2, storedBytes: 0 };
  await bed.start({}, { session: 's3', id: 'again' });
  expect(bed.told('again')).toEqual(['accepted']);
});

test('a delegation starts none either: its call has an error result', async () => {
  const bed = crewBed();
  bed.parts = { lead: [delegate(['mate', 'x']), say('alone, then')], mate: [say('never')] };
  const quotas = Quotas.parse({ sessions: 2 });
  const measured = { sessions: 1, storedBytes: 0 };
  await bed.crewHost({ quotas: () => quotas }, { usage: { of: () => measured } });
  await bed.begin('lead');
  const [end] = await bed.eventsOf('call_ended');
  expect(end).toMatchObject({ status: 'error', result: { detail: { code: 'quota_exceeded' } } });
});

test('a tenant with full journals sends no more messages, and its runs end', async () => {
  const usage = { now: { sessions: 1, storedBytes: 1 } };
  const bed = await limited({ stored_bytes: 1_000 }, usage);
  bed.models.answers = [say('late', { delayMs: 10_000 })];
  await bed.start();
  usage.now = { sessions: 1, storedBytes: 1_000 };
  await bed.send('steer', 'x', { id: 'steer' });
  expect(rejectedIn(bed)).toEqual([['steer', 'quota_exceeded', { quota: 'stored_bytes' }]]);
  await bed.send('cancel', {}, { id: 'stop' });
  expect(bed.told('stop')).toEqual(['accepted']);
});
