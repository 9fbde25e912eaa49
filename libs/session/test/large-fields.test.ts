/**
 * Records within their bound: large fields are stored first, and put back byte for byte. RUNNER-8.
 */
import { BOUNDS, blobRefsOf, type Json, LARGE_FIELDS_MAX, RecordTooLargeError } from '@coxswain/protocol';
import { emptyState } from '@coxswain/turn';
import { expect, test } from 'vitest';
import { buildRecord, readRecord, type SealedRecord, sealRecord, sha256Hex } from '../src/mod.ts';
import { ask, call, say } from './fake-model.ts';
import { taking } from './fake-tools.ts';
import { recordOf, refOf, testBed } from './test-bed.ts';

const FRAME = { sessionId: 's1', n: 1, attempt: 'host', prevHash: '0'.repeat(64), at: '2030-01-01T00:00:00.000Z' };
const seal = (body: { [key: string]: Json }): SealedRecord =>
  sealRecord(buildRecord(FRAME, { type: 'command', verb: 'prompt', command_id: 'p1', body }, [], emptyState('s1')));
const unseal = ({ bytes, blobs }: SealedRecord) =>
  readRecord(bytes, { get: async (sha256) => blobs.find((blob) => blob.sha256 === sha256)?.bytes ?? null });
const bodyOf = async (sealed: SealedRecord) => {
  const { input } = await unseal(sealed);
  return input.type === 'command' ? input.body : null;
};

test('a field at its bound stays inline, one over it becomes a blob', async () => {
  const at = seal({ body: 'x'.repeat(BOUNDS.fieldInlineMaxBytes) });
  const over = seal({ body: 'x'.repeat(BOUNDS.fieldInlineMaxBytes + 1) });
  expect(at.blobs).toEqual([]);
  expect(over.blobs).toHaveLength(1);
  expect(over.bytes.length).toBeLessThan(1_000);
  expect(await bodyOf(over)).toEqual({ body: 'x'.repeat(BOUNDS.fieldInlineMaxBytes + 1) });
});

test('the bound counts bytes, not characters', async () => {
  const text = '漢'.repeat(BOUNDS.fieldInlineMaxBytes / 3 + 1);
  const sealed = seal({ body: text });
  expect(sealed.blobs.map((blob) => blob.bytes.length)).toEqual([Buffer.byteLength(text)]);
  expect(await bodyOf(sealed)).toEqual({ body: text });
});

test('restored fields equal the original bytes, at every position', async () => {
  const large = (seed: string) => `${seed}\u0000"\\\u2028é漢😀`.repeat(20_000);
  const body = {
    'a/b~c': large('1'),
    list: [large('2'), { deep: large('3') }, 'small'],
    same: large('1'),
    '': large('4'),
  };
  const sealed = seal(body);
  expect(await bodyOf(sealed)).toEqual(body);
  // Equal texts are stored once; sealing what was read gives the same bytes.
  expect(sealed.blobs).toHaveLength(4);
  const again = sealRecord(await unseal(sealed));
  expect(Buffer.compare(again.bytes, sealed.bytes)).toBe(0);
  for (const { sha256, bytes } of sealed.blobs) expect(sha256Hex(bytes)).toBe(sha256);
});

test('half a surrogate pair stays inline, because JSON can escape it', async () => {
  const body = { body: `${'x'.repeat(BOUNDS.fieldInlineMaxBytes)}\ud83d` };
  const sealed = seal(body);
  expect(sealed.blobs).toEqual([]);
  expect(await bodyOf(sealed)).toEqual(body);
});

test('a value that only looks like a reference is unchanged', async () => {
  const body = { sha256: 'a'.repeat(64), bytes: 1, nested: { blobs: ['/input'], text: '"blobs":["/input/body"]' } };
  expect(await bodyOf(seal(body))).toEqual(body);
});

test('fields under the bound become blobs if their sum exceeds the record’s bound', async () => {
  const body = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`k${i}`, `${i}`.repeat(2_000)]));
  const sealed = seal(body);
  expect(sealed.bytes.length).toBeLessThanOrEqual(BOUNDS.recordMaxBytes);
  expect(await bodyOf(sealed)).toEqual(body);
});

test('a record with the maximum number of large fields is readable, one with more is not made', async () => {
  // Together they exceed the bound of a record, and their references do not.
  const texts = (count: number) => Array.from({ length: count }, (_, i) => String(i).padEnd(135, 'x'));
  const body = { texts: texts(LARGE_FIELDS_MAX) };
  expect(await bodyOf(seal(body))).toEqual(body);
  expect(() => seal({ texts: texts(LARGE_FIELDS_MAX + 1) })).toThrow(RecordTooLargeError);
});

test('a record at its bound is kept, one byte more is not', () => {
  // Small members, which cannot become blobs; the last key fills the rest of the bound.
  const body: { [key: string]: Json } = { '': 0 };
  const room = () => BOUNDS.recordMaxBytes - seal(body).bytes.length;
  for (let i = 0; i < 40_000; i++) body[`k${String(i).padStart(6, '0')}`] = 0;
  expect(room()).toBeGreaterThan(0);
  const last = 'l'.repeat(room() - '"":0,'.length);
  expect(seal({ ...body, [last]: 0 }).bytes).toHaveLength(BOUNDS.recordMaxBytes);
  expect(() => seal({ ...body, [`${last}l`]: 0 })).toThrow(RecordTooLargeError);
});

test('a session stores blobs before the record that refers to them, and shows the model the whole text', async () => {
  const bed = testBed();
  const order: string[] = [];
  const { blobs } = bed.bus;
  const spied = {
    ...blobs,
    put: async (sha256: string, bytes: Uint8Array) => {
      order.push('blob');
      await blobs.put(sha256, bytes);
    },
  };
  bed.journal.always = (append) => {
    order.push('record');
    return append();
  };
  await bed.host({}, { blobs: spied });
  const prompt = 'word '.repeat(30_000);
  await bed.start({ prompt });
  expect(order.slice(0, 2)).toEqual(['blob', 'record']);
  const [first] = await bed.bytes();
  expect(blobRefsOf(first as Uint8Array)).toHaveLength(2);
  expect(recordOf(first as Uint8Array).events[0]).toMatchObject({
    messages: [{ content: [{ text: expect.stringContaining('stored apart') }] }],
  });
  expect(bed.models.requests[0]?.messages[0]?.content[0]).toMatchObject({ text: prompt });
});

test('a failure of the object store only delays the session, and a running call keeps its outcome', async () => {
  const bed = testBed();
  bed.tools = { slow: { run: taking(10_000) } };
  bed.models.answers = [ask(call('c1', 'slow')), say('done')];
  const { blobs } = bed.bus;
  let failures = 0;
  const flaky = {
    ...blobs,
    put: async (sha256: string, bytes: Uint8Array) => {
      if (failures-- > 0) throw new Error('no quorum');
      await blobs.put(sha256, bytes);
    },
  };
  await bed.host({}, { blobs: flaky });
  await bed.start();
  await bed.time.advance(1_000);
  failures = 3;
  await bed.send('steer', { body: 'x'.repeat(150_000) });
  await bed.time.advance(60_000);
  expect(failures).toBeLessThan(0);
  expect((await bed.eventsOf('call_ended')).map(({ status }) => status)).toEqual(['ok']);
  expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
});

test('a session whose newest record has a large field continues after a restart', async () => {
  const bed = testBed();
  const body = 'x'.repeat(150_000);
  bed.models.answers = [ask(call('c1', 'read')), say('done', { delayMs: 1_000 })];
  const first = await bed.host();
  await bed.start();
  await bed.send('steer', { body });
  first.abandon();
  await bed.host();
  await bed.time.advance(5_000);
  expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
  expect(JSON.stringify(bed.models.requests.at(-1)?.messages)).toContain(body);
});

test('RUNNER-8: a thousand injections that are delivered at one seam fit into its record', async () => {
  const bed = testBed();
  bed.models.answers = [say('one', { delayMs: 60_000 }), say('two')];
  await bed.host();
  await bed.start();
  for (let i = 0; i < 1_000; i++) {
    bed.bus.publish('cox.default.session.s1.steer', Buffer.from(`${i} `.padEnd(500, 'x')));
    if (i % 200 === 0) await bed.time.settle();
  }
  await bed.time.advance(120_000);
  const lines = await bed.lines();
  expect(lines.filter((one) => one.startsWith('message_injected'))).toHaveLength(1_000);
  expect(lines.at(-1)).toBe('agent_end end_turn');
  expect(bed.models.requests.at(-1)?.messages).toHaveLength(1_002);
});

test('a missing blob stops its session with an error that names it, and no other session', async () => {
  const bed = testBed();
  const host = await bed.host();
  await bed.start({ prompt: 'word '.repeat(30_000) });
  // Without a snapshot, which a stopping host would write.
  host.abandon();
  const next = await bed.host({}, { blobs: { ...bed.bus.blobs, get: async () => null } });
  await expect(next.status(refOf())).rejects.toMatchObject({ code: 'blob_missing' });
  await bed.start({}, { session: 's2' });
  expect((await bed.lines('s2')).at(-1)).toBe('agent_end end_turn');
});
