/** Receipts: accepted or rejected, then delivered; never before it is so. RUNNER-3. */
import { expect, test } from 'vitest';
import { ask, call, say } from './fake-model.ts';
import { taking } from './fake-tools.ts';
import { INBOX, testBed } from './test-bed.ts';

test('a steering message is accepted when it is durable, and delivered at the seam that took it', async () => {
  const bed = testBed();
  bed.tools = { slow: { run: taking(1_000) } };
  bed.models.answers = [ask(call('c1', 'slow')), say('done')];
  await bed.host();
  await bed.start();
  const id = await bed.send('steer', 'try something else');
  expect(bed.told(id)).toEqual(['accepted']);
  await bed.time.advance(2_000);
  expect(bed.told(id)).toEqual(['accepted', 'delivered post_tool_dispatch']);
  const delivered = bed.receipts.at(-1);
  const record = (await bed.records()).find(({ events }) =>
    events.some((event) => event.type === 'message_injected' && event.command_id === id),
  );
  expect(delivered).toMatchObject({ command_id: id, n: record?.n, turn: 1 });
});

test('a message that the same record accepts and delivers gets both receipts, in this order', async () => {
  const bed = testBed();
  bed.models.answers = [ask(call('c1', 'read')), say('done')];
  await bed.host();
  await bed.start({ permissions: { default: 'ask', rules: [{ tool: '*', action: 'ask' }] } });
  const id = await bed.send('steer', { body: 'stop', mode: 'interrupt' });
  expect(bed.told(id)).toEqual(['accepted', 'delivered pre_tool_dispatch']);
  expect(bed.toolSource.runs).toEqual([]);
});

test('a follow-up is delivered when its run starts', async () => {
  const bed = testBed();
  bed.models.answers = [say('one', { delayMs: 100 }), say('two')];
  await bed.host();
  await bed.start();
  const id = await bed.send('followup', 'and then');
  await bed.time.advance(1_000);
  expect(bed.told(id)).toEqual(['accepted', 'delivered steering_check']);
});

test('a message after the end is reported as pending for the next run, and delivered there', async () => {
  const bed = testBed();
  await bed.host();
  await bed.start();
  const id = await bed.send('steer', 'later');
  expect(bed.receipts.at(-1)).toMatchObject({ command_id: id, stage: 'accepted', pending_for_next_run: true });
  await bed.send('prompt', 'go on');
  expect(bed.told(id)).toEqual(['accepted pending', 'delivered iteration_start']);
});

test('an undelivered message is reported at the end of its run as pending for the next', async () => {
  const bed = testBed();
  bed.models.answers = [say('one', { delayMs: 1_000 }), say('two')];
  const first = await bed.host();
  await bed.start({ max_turns: 1 });
  const steer = await bed.send('steer', 'listen');
  const next = await bed.send('followup', 'and then');
  const note = await bed.send('steer', { body: 'for the record', mode: 'audit_only' });
  first.abandon();
  await bed.host();
  await bed.time.advance(5_000);
  expect(bed.told(steer)).toEqual(['accepted', 'accepted pending']);
  expect(bed.told(next)).toEqual(['accepted', 'accepted pending']);
  expect(bed.told(note)).toEqual(['accepted', 'delivered loop_exit']);
  const end = (await bed.records()).find(({ events }) => events.some(({ type }) => type === 'agent_end'));
  expect(bed.receipts.at(-1)).toMatchObject({ n: end?.n, pending_for_next_run: true });
  await bed.send('prompt', 'go on');
  expect(bed.told(steer)).toEqual(['accepted', 'accepted pending', 'delivered iteration_start']);
});

test('a restart between acceptance and delivery does not lose the addresses of receipts', async () => {
  const bed = testBed();
  bed.models.answers = [say('one', { delayMs: 1_000 }), say('two')];
  const first = await bed.host();
  await bed.start();
  const id = await bed.send('steer', 'listen');
  first.abandon();
  await bed.host();
  await bed.time.advance(5_000);
  expect(bed.told(id)).toEqual(['accepted', 'delivered iteration_end']);
});

test('nor does a passivation', async () => {
  const bed = testBed();
  const host = await bed.host();
  await bed.start();
  const id = await bed.send('steer', 'later');
  await bed.time.advance(60_000);
  expect(host.live).toBe(0);
  await bed.send('prompt', 'go on');
  expect(bed.told(id)).toEqual(['accepted pending', 'delivered iteration_start']);
});

test('the receipt of a prompt with if_running says how it was applied, and a steer gets a delivery receipt', async () => {
  const bed = testBed();
  bed.models.answers = [say('one', { delayMs: 1_000 }), say('two'), say('three')];
  await bed.host();
  await bed.start();
  const body = { body: 'and this', if_running: 'steer' };
  const steer = await bed.send('prompt', body);
  expect(bed.receipts.at(-1)).toMatchObject({ command_id: steer, stage: 'accepted', became: 'steer' });
  await bed.time.advance(2_000);
  expect(bed.told(steer)).toEqual(['accepted', 'delivered iteration_end']);
  const prompt = await bed.send('prompt', body);
  expect(bed.receipts.at(-1)).toMatchObject({ command_id: prompt, stage: 'accepted', became: 'prompt' });
});

test('receipts are sent only on request', async () => {
  const bed = testBed();
  await bed.host();
  await bed.start({}, { tell: false });
  await bed.send('steer', 'quietly', { tell: false });
  await bed.send('cancel', {}, { tell: false });
  expect(bed.receipts).toEqual([]);
});

test('receipts go to inboxes only', async () => {
  const bed = testBed();
  await bed.host();
  await bed.start();
  const subjects = ['cox.default.session.s2.cancel', 'foo', '_INBOX.>', '_INBOX.*', `_INBOX.${'x'.repeat(300)}`];
  for (const [index, subject] of subjects.entries()) {
    await bed.send('prompt', 'hi', { headers: { 'Cox-Receipt-To': subject }, id: `p${index}` });
  }
  const codes = (await bed.eventsOf('command_rejected')).map(({ code, field }) => `${code} ${field}`);
  expect(codes).toEqual(Array(5).fill('receipt_subject_refused Cox-Receipt-To'));
  expect(bed.receipts.every((receipt) => receipt.command_id.startsWith('start'))).toBe(true);
  expect(INBOX).toMatch(/^_INBOX/);
});
