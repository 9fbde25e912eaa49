/**
 * The cost of a turn, and the order in which it becomes visible: RUNNER-1 to RUNNER-6.
 */
import { HEADERS } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { ask, call, say } from './fake-model.ts';
import { taking } from './fake-tools.ts';
import type { AppendFault } from './faulty-journal.ts';
import { ALLOW, recordOf, refOf, testBed } from './test-bed.ts';

test('a run is in the journal from its prompt to its end', async () => {
  const bed = testBed();
  bed.models.answers = [ask(call('c1', 'read')), say('done')];
  await bed.host();
  await bed.start();
  expect(await bed.lines()).toEqual([
    'prompt_received run 1',
    'persona_changed',
    'tools_changed',
    'hooks_changed',
    'agent_start run 1',
    'turn_start 1',
    'message_complete asks c1',
    'call_started c1',
    'call_ended c1 ok',
    'turn_end 1',
    'turn_start 2',
    'message_complete "done"',
    'turn_end 2',
    'tools_closed',
    'agent_end end_turn',
  ]);
});

test('RUNNER-2: a plain turn costs exactly two appends, however many there are', async () => {
  const bed = testBed();
  const turns = 12;
  bed.models.answers = [...Array.from({ length: turns }, (_, i) => ask(call(`c${i}`, 'read'))), say('done')];
  await bed.host();
  await bed.start();
  // In addition to the turns: the prompt, the provision, the last answer, the end.
  expect(bed.journal.tried).toHaveLength(2 * turns + 4);
});

test('RUNNER-2: a batch of calls that end one after another costs one append for the answer and one for each result', async () => {
  const bed = testBed();
  bed.tools = { a: { run: taking(10) }, b: { run: taking(20) }, c: { run: taking(30) } };
  bed.models.answers = [ask(call('c1', 'a'), call('c2', 'b'), call('c3', 'c')), say('done')];
  await bed.host();
  await bed.start();
  const before = bed.journal.tried.length;
  await bed.time.advance(100);
  expect(bed.journal.tried.length - before).toBe(3 + 2);
});

/** The next append is stored, and its acknowledgement is delayed. @returns a function that delivers it. */
function holdAcknowledgement({ journal }: ReturnType<typeof testBed>): () => void {
  let acknowledge = () => {};
  journal.next = [
    async (append) => {
      const result = await append();
      await new Promise<void>((resolve) => {
        acknowledge = resolve;
      });
      return result;
    },
  ];
  return () => acknowledge();
}

test('RUNNER-3: a record has no receipts and no effects before its append is acknowledged', async () => {
  const bed = testBed();
  await bed.host();
  await bed.start();
  const seenBefore = bed.receipts.length;
  const acknowledge = holdAcknowledgement(bed);
  const id = await bed.send('prompt', 'again');
  expect(bed.told(id)).toEqual([]);
  expect(bed.receipts).toHaveLength(seenBefore);
  const requests = bed.models.requests.length;

  acknowledge();
  await bed.time.settle();
  expect(bed.told(id)).toEqual(['accepted']);
  expect(bed.models.requests.length).toBeGreaterThan(requests);
});

test('a status includes each stored record, also before its host has read the acknowledgement', async () => {
  const bed = testBed();
  const host = await bed.host();
  await bed.start();
  const acknowledge = holdAcknowledgement(bed);
  await bed.send('prompt', 'again');
  const stored = (await bed.records()).length;
  expect(await host.status(refOf())).toMatchObject({ n: stored, run: 2 });
  acknowledge();
  await bed.time.settle();
  expect((await host.status(refOf()))?.n).toBeGreaterThan(stored);
});

test('RUNNER-3: no consumer sees a state, a message or an end that is not durable', async () => {
  const bed = testBed();
  bed.models.answers = [say('the answer', { delayMs: 1_000 })];
  const host = await bed.host();
  await bed.start();
  const heard: string[] = [];
  bed.bus.subscribeEvents(refOf(), ({ bytes }) => {
    for (const { type } of recordOf(bytes).events) heard.push(type);
  });
  const acknowledge: (() => void)[] = [];
  const held: AppendFault = async (append) => {
    await new Promise<void>((resolve) => {
      acknowledge.push(resolve);
    });
    return append();
  };
  bed.journal.next = [held, held];
  const seen = async () => {
    const status = await host.status(refOf());
    return [status?.state, heard.filter((type) => type === 'message_complete' || type === 'agent_end')];
  };

  await bed.time.advance(1_000);
  expect(await seen()).toEqual([{ assistant_streaming: 'streaming' }, []]);
  acknowledge[0]?.();
  await bed.time.settle();
  // The answer is durable; the derived end is not.
  expect(await seen()).toEqual([{ tearing_down: 'closing_tools' }, ['message_complete']]);
  acknowledge[1]?.();
  await bed.time.settle();
  expect(await seen()).toEqual(['stopped', ['message_complete', 'agent_end']]);
});

test('RUNNER-4: a tool runs only after the record that says so is acknowledged', async () => {
  const bed = testBed();
  bed.models.answers = [ask(call('c1', 'read')), say('done')];
  await bed.host();
  const runsAtAppend: number[] = [];
  bed.journal.always = async (append) => {
    const result = await append();
    await bed.time.clock().sleep(50);
    runsAtAppend.push(bed.toolSource.runs.length);
    return result;
  };
  await bed.start();
  await bed.time.advance(1_000);
  const records = await bed.records();
  const started = records.findIndex((record) => record.events.some((event) => event.type === 'call_started'));
  expect(runsAtAppend.slice(0, started + 1)).toEqual(Array(started + 1).fill(0));
  expect(runsAtAppend[started + 1]).toBe(1);
});

test('RUNNER-4: a tool does not run for a record that was refused', async () => {
  const bed = testBed();
  bed.models.answers = [ask(call('c1', 'read'))];
  await bed.host();
  await bed.start({ permissions: { rules: [{ tool: '*', action: 'ask' }] } });
  bed.journal.next = ['lost'];
  bed.journal.always = 'lost';
  await bed.send('approve', { call_id: 'c1', decision: 'allow' });
  await bed.time.advance(60_000);
  expect(bed.toolSource.runs).toEqual([]);
});

test('RUNNER-5: outcomes of concurrent calls are recorded one after another, each in its own record', async () => {
  const bed = testBed();
  bed.tools = { a: { run: taking(10) }, b: { run: taking(10) } };
  bed.models.answers = [ask(call('c1', 'a'), call('c2', 'b')), say('done')];
  await bed.host();
  await bed.start();
  await bed.time.advance(100);
  const outcomes = (await bed.records()).filter((record) => record.input.type === 'call_outcome');
  expect(outcomes.map((record) => record.events.filter((event) => event.type === 'call_ended').length)).toEqual([1, 1]);
});

test('RUNNER-5: an instant model and an instant tool do not keep a steering message from coming in', async () => {
  const bed = testBed();
  bed.models.answers = [ask(call('c1', 'read'))];
  await bed.host();
  // A user of the event loop: it must get a turn before the run ends.
  let turns = 0;
  setImmediate(() => {
    turns = bed.models.requests.length;
    bed.bus.publish('cox.default.session.s1.steer', Buffer.from('listen'), { [HEADERS.commandId]: 'steer-1' });
  });
  await bed.start({ max_turns: 200 });
  expect(turns).toBeLessThan(100);
  const lines = await bed.lines();
  const received = lines.indexOf('steering_received steer-1 finish_step');
  expect(received).toBeGreaterThan(0);
  expect(received).toBeLessThan(lines.indexOf('agent_end max_turns'));
});

test('RUNNER-6: what is no longer wanted is aborted after the record that says so', async () => {
  const bed = testBed();
  bed.tools = { slow: { run: taking(60_000) } };
  bed.models.answers = [ask(call('c1', 'slow'))];
  await bed.host();
  await bed.start();
  expect(bed.toolSource.runs).toMatchObject([{ callId: 'c1', ended: false, aborted: false }]);
  await bed.send('cancel', { reason: 'enough' });
  expect(bed.toolSource.runs).toMatchObject([{ callId: 'c1', ended: true, aborted: true }]);
  expect((await bed.lines()).slice(-5)).toEqual([
    'control_outcome cancel cancelled because enough',
    'call_ended c1 cancelled',
    'turn_end 1',
    'tools_closed',
    'agent_end cancelled',
  ]);
});

test('RUNNER-6: recovery starts what is missing, by the same code', async () => {
  const bed = testBed();
  bed.models.answers = [say('done', { delayMs: 1_000 })];
  const first = await bed.host();
  await bed.start();
  first.abandon();
  expect(bed.models.requests).toHaveLength(1);
  const second = await bed.host();
  await bed.time.advance(2_000);
  expect(bed.models.requests.map((request) => request.idempotencyKey)).toEqual(['default.s1.2-0', 'default.s1.2-0']);
  expect((await second.status(refOf()))?.state).toBe('stopped');
  expect((await bed.lines()).filter((line) => line.startsWith('owned'))).toEqual(['owned 2']);
});

test('a session that is unknown has no status', async () => {
  const bed = testBed();
  const host = await bed.host();
  expect(await host.status(refOf('nobody'))).toBeNull();
  await bed.start({ permissions: ALLOW });
  expect(await host.status(refOf())).toMatchObject({ state: 'stopped', run: 1, turn: 1, stop_reason: 'end_turn' });
});
