/** One copy of what many sessions hold alike. */
import { expect, test } from 'vitest';
import { Transcript } from '../src/mod.ts';
import { Interned } from '../src/view/interned.ts';
import { ask, call } from './fake-model.ts';
import { ASKING, refOf, testBed } from './test-bed.ts';

test('equal values are kept once; a different value with the same fingerprint is not shared', () => {
  const interned = new Interned<readonly string[]>();
  const first = ['read', 'write'];
  expect(interned.of('a', first)).toBe(first);
  expect(interned.of('a', ['read', 'write'])).toBe(first);
  expect(interned.of('b', ['read', 'write'])).not.toBe(first);
  expect(interned.of('a', ['read'])).toEqual(['read']);
});

test('copies of the newest 256 values are kept', () => {
  const interned = new Interned<readonly number[]>();
  const all = Array.from({ length: 257 }, (_, i) => [i]);
  for (const [i, value] of all.entries()) interned.of(String(i), value);
  expect(interned.of('256', [256])).toBe(all[256]);
  expect(interned.of('1', [1])).toBe(all[1]);
  expect(interned.of('0', [0])).not.toBe(all[0]);
});

test('sessions with the same tools hold one copy of them', async () => {
  const bed = testBed();
  bed.tools = { ask: {}, read: {} };
  await bed.host();
  const frames = [];
  for (const session of ['one', 'two']) {
    bed.models.answers = [ask(call('c1', 'ask'))];
    await bed.start({ permissions: ASKING }, { session });
    const transcript = new Transcript();
    for (const { events } of await bed.records(refOf(session).sessionId))
      for (const event of events) transcript.push(event);
    frames.push(transcript.frame);
  }
  expect(frames[0]?.tools.map(({ name }) => name)).toEqual(['ask', 'read']);
  expect(frames[1]?.tools).toBe(frames[0]?.tools);
  expect(frames[1]?.persona).toBe(frames[0]?.persona);
});
