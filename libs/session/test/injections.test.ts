/** Messages that wait, are taken back or replaced, and reminders that live: what senders are told and models shown. */
import { type Message, SessionStatus, sessionRef, textOf } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { ask, call, say } from './fake-model.ts';
import { taking } from './fake-tools.ts';
import { type TestBed, testBed } from './test-bed.ts';

/** A session that hauls, one call of 100 ms a turn, as often as asked, and then ends. */
async function hauling(turns: number): Promise<TestBed> {
  const bed = testBed();
  bed.tools = { haul: { run: taking(100) } };
  bed.models.answers = [
    ...Array.from({ length: turns }, (_, i) => ask(call(`c${i + 1}`, 'haul'))),
    say('done', { delayMs: 100 }),
  ];
  await bed.host();
  await bed.start();
  return bed;
}

const receipt = (bed: TestBed, id: string) => bed.receipts.filter(({ command_id }) => command_id === id).at(-1);
/** Which of these texts the n-th request showed. */
const shownOf = (bed: TestBed, request: number, ...texts: string[]) => {
  const messages: readonly Message[] = bed.models.requests[request - 1]?.messages ?? [];
  return texts.filter((text) => messages.some((message) => textOf(message) === text));
};

test('the sender of a revoked message learns who revoked it, and the message is never delivered', async () => {
  const bed = await hauling(1);
  const steer = await bed.send('steer', 'north');
  const next = await bed.send('followup', 'then moor');
  const revoke = await bed.send('revoke', { command_id: steer, actor: 'ada' });
  await bed.send('revoke', { command_id: next });
  expect(bed.told(revoke)).toEqual(['accepted']);
  expect(bed.told(steer)).toEqual(['accepted', 'revoked']);
  expect(receipt(bed, steer)).toMatchObject({ reason: 'revoked by ada', detail: { revoked_by: revoke } });
  expect(bed.told(next)).toEqual(['accepted', 'revoked']);
  await bed.time.advance(1_000);
  expect(await bed.eventsOf('message_injected')).toEqual([]);
});

test('the sender of a collapsed message learns which message replaced it', async () => {
  const bed = await hauling(1);
  const older = await bed.send('steer', { body: 'north', dedupe_key: 'course' });
  const newer = await bed.send('steer', { body: 'north by east', dedupe_key: 'course' });
  expect(bed.told(older)).toEqual(['accepted', 'revoked']);
  expect(receipt(bed, older)).toMatchObject({ detail: { collapsed_into: newer } });
  await bed.time.advance(1_000);
  expect(bed.told(newer)).toEqual(['accepted', 'delivered post_tool_dispatch']);
  expect(shownOf(bed, 2, 'north', 'north by east')).toEqual(['north by east']);
});

test('the sender of a replaced message learns that it was delivered with another text', async () => {
  const bed = await hauling(1);
  const steer = await bed.send('steer', 'slower');
  const replace = await bed.send('replace', { command_id: steer, body: 'slower, by two knots' });
  expect(bed.told(replace)).toEqual(['accepted']);
  await bed.time.advance(1_000);
  expect(bed.told(steer)).toEqual(['accepted', 'delivered post_tool_dispatch']);
  expect(receipt(bed, steer)).toMatchObject({ turn: 1, detail: { replaced_by: replace } });
  expect(shownOf(bed, 2, 'slower', 'slower, by two knots')).toEqual(['slower, by two knots']);
});

test('a revocation that comes too late is rejected with the state of the message', async () => {
  const bed = await hauling(1);
  const steer = await bed.send('steer', 'north');
  await bed.time.advance(150);
  const late = await bed.send('revoke', { command_id: steer });
  const lost = await bed.send('replace', { command_id: 'nothing', body: 'x' });
  expect(bed.told(late)).toEqual(['rejected already_delivered']);
  expect(bed.told(lost)).toEqual(['rejected unknown_command_id']);
  expect((await bed.eventsOf('control_outcome')).map(({ status, target }) => `${status} ${target}`)).toEqual([
    `already_delivered ${steer}`,
    'unknown_command_id nothing',
  ]);
});

test('a restart loses neither the addresses of receipts nor the states of messages', async () => {
  const bed = testBed();
  bed.models.answers = [say('one', { delayMs: 1_000 }), say('two')];
  const first = await bed.host({ snapshotEvery: 1 });
  await bed.start();
  const gone = await bed.send('steer', 'north');
  await bed.send('revoke', { command_id: gone });
  const waits = await bed.send('steer', 'south');
  first.abandon();
  await bed.host();
  const again = await bed.send('revoke', { command_id: gone });
  await bed.send('revoke', { command_id: waits });
  expect(bed.told(again)).toEqual(['rejected already_revoked']);
  expect(bed.told(waits)).toEqual(['accepted', 'revoked']);
});

test('a delivered steer stays verbatim in every later prompt of its run', async () => {
  const bed = await hauling(3);
  const text = '  keep <this> as it is,\n\tlittle & all  ';
  await bed.send('steer', { body: text });
  await bed.time.advance(1_000);
  expect(bed.models.requests).toHaveLength(4);
  expect([1, 2, 3, 4].map((request) => shownOf(bed, request, text).length)).toEqual([0, 1, 1, 1]);
});

test('a reminder is shown in its number of turns, and in no later prompt', async () => {
  const bed = await hauling(4);
  await bed.send('remind', { body: 'mind the tide', ttl_turns: 2 });
  await bed.send('remind', { body: 'mind the lamps' });
  await bed.time.advance(1_000);
  expect([1, 2, 3, 4, 5].map((request) => shownOf(bed, request, 'mind the tide', 'mind the lamps').length)).toEqual([
    0, 2, 2, 1, 1,
  ]);
  expect(await bed.lines()).toContain('reminder_expired remind-2 ttl');
});

test('of two reminders with one key, only the newer is shown, at its own position', async () => {
  const bed = await hauling(3);
  await bed.send('remind', { body: 'wind west', dedupe_key: 'wind' });
  await bed.time.advance(150);
  await bed.send('remind', { body: 'wind north', dedupe_key: 'wind' });
  await bed.time.advance(1_000);
  expect([2, 3, 4].map((request) => shownOf(bed, request, 'wind west', 'wind north'))).toEqual([
    ['wind west'],
    ['wind north'],
    ['wind north'],
  ]);
});

test('a cleared reminder is missing from the next prompt; the prompt in progress keeps it', async () => {
  const bed = await hauling(2);
  const id = await bed.send('remind', 'mind the tide');
  await bed.time.advance(150);
  // The second call runs; the request that asked for it is not made anew.
  await bed.send('revoke', { command_id: id });
  await bed.time.advance(1_000);
  expect([2, 3].map((request) => shownOf(bed, request, 'mind the tide').length)).toEqual([1, 0]);
});

test('a recovered session shows its current reminders, and no expired ones', async () => {
  const bed = testBed();
  bed.tools = { haul: { run: taking(100) } };
  bed.models.answers = [ask(call('c1', 'haul')), ask(call('c2', 'haul')), say('done', { delayMs: 1_000 })];
  const first = await bed.host();
  await bed.start();
  await bed.send('remind', { body: 'once', ttl_turns: 1 });
  await bed.send('remind', { body: 'always' });
  await bed.time.advance(300);
  const before = bed.models.requests.at(-1);
  first.abandon();
  await bed.host();
  expect(bed.models.requests.at(-1)).not.toBe(before);
  expect(bed.models.requests.at(-1)).toEqual(before);
  expect(shownOf(bed, bed.models.requests.length, 'once', 'always')).toEqual(['always']);
});

test('the status of a session lists queued and shown injections, with every field', async () => {
  const bed = testBed();
  bed.tools = { haul: { run: taking(1_000) } };
  bed.models.answers = [ask(call('c1', 'haul')), ask(call('c2', 'haul')), say('done')];
  const host = await bed.host();
  await bed.start();
  const shown = await bed.send('remind', { body: 'shown', ttl_turns: 3, tags: ['water'] });
  await bed.time.advance(1_500);
  await bed.send('steer', { body: 'go', mode: 'interrupt', dedupe_key: 'k', actor: 'ada' }, { id: 's' });
  await bed.send('remind', { body: 'mind', dedupe_key: 'r', role_hint: 'developer', propagate: 'all' }, { id: 'r' });
  await bed.send('followup', { body: 'then', dedupe_key: 'f' }, { id: 'f' });
  await bed.send('replace', { command_id: 'f', body: 'then this' }, { id: 'x' });
  const status = await host.status(sessionRef('s1'));
  const at = expect.stringMatching(/^\d{4}-/);
  expect(status?.pending).toEqual([
    {
      command_id: 's',
      kind: 'steer',
      body: 'go',
      mode: 'interrupt_immediate',
      dedupe_key: 'k',
      actor: { name: 'ada', verified: false },
      at,
    },
    {
      command_id: 'r',
      kind: 'remind',
      body: 'mind',
      mode: 'finish_step',
      dedupe_key: 'r',
      tags: [],
      preserve_on_compact: false,
      propagate: 'all',
      role_hint: 'developer',
      at,
    },
    { command_id: 'f', kind: 'followup', body: 'then this', dedupe_key: 'f', replaced_by: 'x', at },
  ]);
  expect(status?.reminders).toEqual([
    {
      command_id: shown,
      body: 'shown',
      tags: ['water'],
      ttl_turns: 3,
      ttl_left: 3,
      preserve_on_compact: false,
      propagate: 'session',
      role_hint: 'system',
    },
  ]);
});

test('by default, all steering is delivered together, and follow-ups one at a time', async () => {
  const bed = testBed();
  bed.models.answers = [say('one', { delayMs: 100 }), say('two'), say('three'), say('four')];
  await bed.host();
  await bed.start();
  for (const body of ['north', 'south']) await bed.send('steer', body);
  for (const body of ['moor', 'sleep']) await bed.send('followup', body);
  await bed.time.advance(1_000);
  const texts = ['north', 'south', 'moor', 'sleep'];
  expect([1, 2, 3, 4].map((request) => shownOf(bed, request, ...texts))).toEqual([
    [],
    ['north', 'south'],
    ['north', 'south', 'moor'],
    texts,
  ]);
});

test('if the persona says so, steering is delivered one at a time and follow-ups together', async () => {
  const bed = testBed();
  bed.models.answers = [say('one', { delayMs: 100 }), say('two'), say('three'), say('four'), say('five')];
  await bed.host();
  await bed.start({ persona: { name: 'mate', steering: { steering: 'one_at_a_time', followups: 'all' } } });
  for (const body of ['north', 'south', 'east']) await bed.send('steer', body);
  for (const body of ['moor', 'sleep']) await bed.send('followup', body);
  await bed.time.advance(1_000);
  // One in each request, though a seam ends a turn and another begins the next.
  const texts = ['north', 'south', 'east', 'moor', 'sleep'];
  expect([1, 2, 3, 4, 5].map((request) => shownOf(bed, request, ...texts))).toEqual([
    [],
    ['north'],
    ['north', 'south'],
    ['north', 'south', 'east'],
    texts,
  ]);
});

test('the call that an interrupt ends is in no list of queued messages', async () => {
  const bed = testBed();
  bed.tools = { haul: { run: taking(1_000) } };
  bed.models.answers = [ask(call('c1', 'haul')), say('done')];
  const host = await bed.host();
  await bed.start();
  await bed.send('suspend');
  const id = await bed.send('steer', { body: 'stop', mode: 'interrupt' });
  const status = await host.status(sessionRef('s1'));
  expect(SessionStatus.parse(status).pending).toEqual([
    { command_id: id, kind: 'steer', body: 'stop', mode: 'interrupt_immediate', at: expect.any(String) },
  ]);
});
