/** Starts under a message id: repeated, they get the receipt of the first, for as long as the journal exists. */
import { BOUNDS, type JsonObject } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { say } from './fake-model.ts';
import { type TestBed, testBed } from './test-bed.ts';

const SAME = { message_id: 'order-17' };

async function started(settings: JsonObject = SAME): Promise<TestBed> {
  const bed = testBed();
  bed.models.answers = [say('done'), say('again')];
  await bed.host();
  await bed.start(settings, { id: 'first' });
  return bed;
}

const receiptsOf = (bed: TestBed, id: string) => bed.receipts.filter(({ command_id }) => command_id === id);

test('a start is repeated under another command id, also after later runs and by another sender', async () => {
  const bed = await started();
  await bed.send('prompt', 'go on');
  const before = (await bed.records()).length;
  const headers = { 'Cox-Restricted': '1', traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01` };
  expect(receiptsOf(bed, 'first')).toMatchObject([{ stage: 'accepted', n: 1 }]);
  expect(receiptsOf(bed, 'first')[0]).not.toHaveProperty('duplicate');
  for (const id of ['second', 'third', 'first']) {
    await bed.start(SAME, { id, headers });
    expect(receiptsOf(bed, id).at(-1)).toMatchObject({
      ...{ stage: 'accepted', n: 1, duplicate: true, detail: { command_id: 'first' } },
    });
  }
  expect(await bed.records()).toHaveLength(before);
});

test('another body under the same message id is rejected, and recorded', async () => {
  const bed = await started();
  await bed.start({ ...SAME, prompt: 'something else' }, { id: 'other' });
  expect(bed.told('other')).toEqual(['rejected message_id_reused']);
  expect(await bed.eventsOf('command_rejected')).toMatchObject([{ code: 'message_id_reused', field: 'message_id' }]);
});

test('a start with another message id, or without one, is another start', async () => {
  const bed = await started();
  await bed.start({ message_id: 'order-18' }, { id: 'other' });
  await bed.start({}, { id: 'none' });
  const plain = await started({});
  await plain.start(SAME, { id: 'late' });
  expect([bed.told('other'), bed.told('none'), plain.told('late')].flat()).toEqual([
    'rejected session_exists',
    'rejected session_exists',
    'rejected session_exists',
  ]);
});

test('rejections at their bound do not change this', async () => {
  const bed = await started();
  for (let i = 0; i <= BOUNDS.rejectionsRecordedMax; i++) await bed.send('steer', { mode: 'nope', body: 'x' });
  await bed.start(SAME, { id: 'flooded' });
  await bed.start({ ...SAME, prompt: 'something else' }, { id: 'other' });
  expect(bed.told('flooded')).toEqual(['accepted']);
  expect(bed.told('other')).toEqual(['rejected message_id_reused']);
});

test('a fork has its own message id, and not the one of its origin', async () => {
  const bed = await started();
  const fork = { fork: { session: 's1', n: 2, changes: { model: 'fake/other' } } };
  const send = (body: JsonObject, id: string) => bed.send('start', body, { session: 'f1', id });
  await send({ ...fork, message_id: 'fork-1' }, 'forks');
  await send({ ...fork, message_id: 'fork-1' }, 'again');
  await send({ fork: { session: 's1', n: 1 }, message_id: 'fork-1' }, 'other');
  await bed.start(SAME, { session: 'f1', id: 'of-origin' });
  expect(receiptsOf(bed, 'again')).toMatchObject([{ duplicate: true, detail: { command_id: 'forks' } }]);
  expect([bed.told('other'), bed.told('of-origin')].flat()).toEqual([
    'rejected message_id_reused',
    'rejected session_exists',
  ]);
});

test('a deleted session cannot be started again', async () => {
  const bed = await started();
  await bed.send('delete', {});
  await bed.start(SAME, { id: 'late' });
  expect(bed.told('late')).toEqual(['rejected session_deleted']);
});
