/** RUNNER-11: rejections beyond a session's share leave no record, and are answered all the same. */
import type { CommandInbox } from '@coxswain/ports';
import { BOUNDS } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { say } from './fake-model.ts';
import { refOf, type TestBed, testBed } from './test-bed.ts';

const SHARE = BOUNDS.rejectionsRecordedMax;

/** A session whose rejections have their share already; nothing of it runs. */
async function fullOfRejections(inbox?: (inbox: CommandInbox) => CommandInbox): Promise<TestBed> {
  const bed = testBed();
  bed.models.answers = [say('done')];
  await bed.host({}, inbox ? { inbox: inbox(bed.bus.createInbox()) } : {});
  await bed.start();
  for (let i = 0; i < SHARE; i++) await bed.send('steer', { mode: 'nope', body: 'x' }, { id: `full-${i}` });
  return bed;
}

test.each([
  ['commands that are invalid', 'steer', { mode: 'nope', body: 'x' }, 'invalid_mode'],
  ['commands that are valid and come too late', 'approve', { call_id: 'c9', decision: 'allow' }, 'not_pending'],
] as const)('of 400 %s 64 leave a record, and each gets its receipt', async (_, verb, body, code) => {
  const bed = testBed();
  bed.models.answers = [say('done'), say('again')];
  await bed.host();
  await bed.start({}, { id: 'first' });
  for (let i = 0; i < 400; i++) await bed.send(verb, body, { id: `bad-${i}` });
  expect(await bed.eventsOf('command_rejected')).toHaveLength(SHARE);
  for (let i = 0; i < 400; i++) expect(bed.told(`bad-${i}`)).toEqual([`rejected ${code}`]);
  const [line] = bed.log.filter(({ message }) => message === 'a command was rejected without a record');
  expect(line).toMatchObject({ level: 'warn', fields: { tenant: 'default', session_id: 's1', code } });
  // The flood has made nothing be forgotten, and keeps nobody out.
  await bed.start({}, { id: 'first' });
  expect(bed.told('first').at(-1)).toBe('accepted');
  await bed.send('prompt', 'go on', { id: 'next' });
  expect(bed.told('next')).toEqual(['accepted']);
});

test('the same id with a valid body is accepted later', async () => {
  const bed = await fullOfRejections();
  await bed.send('steer', { mode: 'nope', body: 'x' }, { id: 'again' });
  await bed.send('steer', { body: 'x' }, { id: 'again' });
  expect(bed.told('again')).toEqual(['rejected invalid_mode', 'accepted pending']);
});

test('accepted commands free space for records of rejections', async () => {
  const bed = await fullOfRejections();
  for (let i = 0; i < BOUNDS.rejectionWindowCommands - SHARE; i++) await bed.send('followup', `f${i}`);
  await bed.send('steer', { mode: 'nope', body: 'x' }, { id: 'still' });
  await bed.send('followup', 'one more');
  await bed.send('steer', { mode: 'nope', body: 'x' }, { id: 'recorded' });
  expect((await bed.eventsOf('command_rejected')).slice(SHARE).map(({ command_id }) => command_id)).toEqual([
    'recorded',
  ]);
});

test('without its acknowledgement a rejection without a record has no receipt: the next host judges the command', async () => {
  let held = false;
  const bed = await fullOfRejections((inbox) => ({
    ...inbox,
    read: async (ref, after, until) => (held ? [] : inbox.read(ref, after, until)),
  }));
  // Both are read together, and the record of the second is not stored.
  held = true;
  await bed.send('approve', { call_id: 'c9', decision: 'allow' }, { id: 'late' });
  await bed.send('steer', 'kept', { id: 'valid' });
  bed.journal.always = 'lost';
  held = false;
  await bed.send('steer', 'rings', { id: 'rings' });
  await bed.time.advance(60_000);
  expect(bed.told('late')).toEqual([]);
  bed.journal.always = 'none';
  await bed.time.advance(60_000);
  expect(bed.told('late')).toEqual(['rejected not_pending']);
  expect(bed.told('valid')).toEqual(['accepted pending']);
});

test('a replaced host rejects no command by its old state', async () => {
  const bed = await fullOfRejections();
  const newest = await bed.bus.journal.last(refOf());
  const record = JSON.parse(Buffer.from(newest?.bytes ?? '').toString()) as { n: number };
  const foreign = { ...record, n: record.n + 1, attempt: 'another' };
  await bed.bus.journal.append(refOf(), Buffer.from(JSON.stringify(foreign)), newest?.fence ?? 0);
  await bed.send('approve', { call_id: 'c9', decision: 'allow' }, { id: 'late' });
  expect(bed.told('late')).toEqual([]);
  expect(bed.log.at(-1)?.message).toContain('was written by another');
  bed.forget('s1');
});
