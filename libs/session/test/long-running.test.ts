/**
 * Calls that outlive their host, and calls with an unknown outcome that a person decides, on running sessions.
 */
import { BOUNDS, type JsonObject } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { sha256Hex } from '../src/mod.ts';
import { ask, call, say } from './fake-model.ts';
import { answer, type FakeTool, taking } from './fake-tools.ts';
import { refOf, type TestBed, testBed } from './test-bed.ts';

const LATER: FakeTool = {
  traits: { long_running: true },
  run: async () => ({ status: 'accepted', result: { content: [], is_error: false } }),
};
const outcome = (more: JsonObject = {}): JsonObject => ({
  call_id: 'c1',
  effect_id: '3-0',
  epoch: 1,
  status: 'ok',
  result: { content: [{ type: 'text', text: 'built' }], is_error: false },
  ...more,
});

async function takenUp(bed: TestBed, tool: FakeTool = LATER) {
  bed.tools = { build: tool };
  bed.models.answers = [ask(call('c1', 'build')), say('done')];
  const host = await bed.host();
  await bed.start();
  return host;
}
const ends = async (bed: TestBed) =>
  (await bed.eventsOf('call_ended')).map(({ call_id, status, timed_out }) =>
    [call_id, status, timed_out && 'timed_out'].filter(Boolean).join(' '),
  );

describe('a call of a long_running tool', () => {
  test('needs no memory while it runs elsewhere, and its outcome ends it on any host', async () => {
    const bed = testBed();
    const first = await takenUp(bed);
    expect(await bed.lines()).toContain('call_accepted c1');
    first.abandon();
    await bed.host();
    await bed.time.advance(3 * 24 * 60 * 60 * 1_000);
    expect(await ends(bed)).toEqual([]);
    const id = await bed.send('call_outcome', outcome());
    expect(bed.told(id)).toEqual(['accepted']);
    expect(await ends(bed)).toEqual(['c1 ok']);
    expect(bed.toolSource.runs).toHaveLength(1);
    expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
  });

  test('does not delay a stopping host', async () => {
    const bed = testBed();
    const host = await takenUp(bed);
    const stopped = host.stop();
    await bed.time.settle();
    await stopped;
    expect(await ends(bed)).toEqual([]);
  });

  test('rejects a second outcome, and outcomes of another epoch or effect, without other changes', async () => {
    const bed = testBed();
    await takenUp(bed);
    const codes = [];
    for (const wrong of [{ epoch: 2 }, { effect_id: '4-0' }, { call_id: 'c2' }]) {
      codes.push(bed.told(await bed.send('call_outcome', outcome(wrong))));
    }
    expect(codes).toEqual([['rejected stale_epoch'], ['rejected call_not_open'], ['rejected call_not_open']]);
    const id = await bed.send('call_outcome', outcome());
    await bed.send('call_outcome', outcome(), { id });
    expect(bed.told(id)).toEqual(['accepted', 'accepted']);
    expect(bed.told(await bed.send('call_outcome', outcome()))).toEqual(['rejected call_not_open']);
    expect(await ends(bed)).toEqual(['c1 ok']);
  });

  test.each([
    ['{', 'invalid_json'],
    [JSON.stringify(outcome({ status: 'interrupted' })), 'invalid_field'],
    [JSON.stringify(outcome({ more: 1 })), 'unknown_field'],
    [JSON.stringify(outcome({ effect_id: '3' })), 'invalid_field'],
    [JSON.stringify(outcome({ result: { content: [{ type: 'text' }], is_error: false } })), 'invalid_field'],
    [JSON.stringify(outcome({ result: 'x'.repeat(BOUNDS.commandBodyMaxBytes) })), 'body_too_large'],
  ])('is refused what is no outcome: %#', async (body, code) => {
    const bed = testBed();
    await takenUp(bed);
    expect(bed.told(await bed.send('call_outcome', body))).toEqual([`rejected ${code}`]);
    expect(await ends(bed)).toEqual([]);
  });

  test('has its result bounded like any other', async () => {
    const bed = testBed();
    await takenUp(bed);
    const long = 'y'.repeat(200_000);
    await bed.send('call_outcome', outcome({ result: { content: [{ type: 'text', text: long }], is_error: false } }));
    const [ended] = await bed.eventsOf('call_ended');
    expect(ended?.result.detail).toEqual({ whole: { sha256: sha256Hex(long), bytes: long.length } });
    expect(Buffer.from((await bed.bus.blobs.get(sha256Hex(long))) as Uint8Array).toString()).toBe(long);
  });

  test.each([false, true])(
    'is judged later while the object store is away: its result stays whole (%s)',
    async (isFull) => {
      const bed = testBed();
      await takenUp(bed);
      // A session whose rejections have used their share checks each command before it owns the session.
      const rejections = isFull ? BOUNDS.rejectionsRecordedMax : 0;
      for (let i = 0; i < rejections; i++) await bed.send('steer', { mode: 'nope', body: 'x' }, { id: `full-${i}` });
      const { put } = bed.bus.blobs;
      let isAway = true;
      Object.assign(bed.bus.blobs, {
        put: async (...of: Parameters<typeof put>) => {
          if (isAway) throw Object.assign(new Error('no answer'), { code: 'nats_unreachable' });
          return put(...of);
        },
      });
      const long = 'y'.repeat(200_000);
      const result = { content: [{ type: 'text', text: long }], is_error: false };
      const id = await bed.send('call_outcome', outcome({ result }));
      const later = await bed.send('cancel');
      expect([bed.told(id), bed.told(later), await ends(bed)]).toEqual([[], [], []]);
      isAway = false;
      await bed.time.advance(60_000);
      expect([bed.told(id), await ends(bed)]).toEqual([['accepted'], ['c1 ok']]);
      const [ended] = await bed.eventsOf('call_ended');
      expect(ended?.result.detail).toEqual({ whole: { sha256: sha256Hex(long), bytes: long.length } });
    },
  );

  test('waits for the object store for a minute: then its result is cut, and a cancel behind several results is taken', async () => {
    const bed = testBed();
    const calls = [0, 1, 2, 3, 4];
    bed.tools = { build: LATER };
    bed.models.answers = [ask(...calls.map((n) => call(`c${n}`, 'build'))), say('done')];
    await bed.host();
    await bed.start();
    Object.assign(bed.bus.blobs, {
      put: async () => {
        await bed.time.clock().sleep(10_000);
        throw Object.assign(new Error('no answer'), { code: 'nats_unreachable' });
      },
    });
    const result = { content: [{ type: 'text', text: 'y'.repeat(200_000) }], is_error: false };
    for (const n of calls) await bed.send('call_outcome', outcome({ call_id: `c${n}`, effect_id: `3-${n}`, result }));
    const id = await bed.send('cancel');
    await bed.time.advance(50_000);
    expect([bed.told(id), await ends(bed)]).toEqual([[], []]);
    await bed.time.advance(30_000);
    expect(bed.told(id)).toEqual(['accepted']);
    const ended = await bed.eventsOf('call_ended');
    expect(ended).toHaveLength(calls.length);
    for (const { result } of ended) expect(JSON.stringify(result)).toContain('The rest could not be stored.');
    expect(bed.log.filter(({ message }) => message.includes('the object store cannot be reached'))).toHaveLength(1);
  });

  test('that is cancelled informs its worker, and ends with the worker’s outcome or after the grace period', async () => {
    const told: string[] = [];
    const stoppable: FakeTool = { ...LATER, stop: (key, reason) => void told.push(`${key} ${reason}`) };
    const bed = testBed();
    await takenUp(bed, stoppable);
    await bed.send('cancel_call', { call_id: 'c1', reason: 'too slow', timeout_ms: 2_000 });
    expect(told).toEqual(['default.s1.3-0 too slow']);
    await bed.time.advance(1_000);
    await bed.send('call_outcome', outcome({ status: 'cancelled' }));
    expect(await ends(bed)).toEqual(['c1 cancelled']);
    expect(await bed.eventsOf('control_outcome')).toMatchObject([{ status: 'cancelled' }]);

    const deaf = testBed();
    await takenUp(deaf, stoppable);
    await deaf.send('cancel_call', { call_id: 'c1', timeout_ms: 2_000 });
    await deaf.time.advance(1_999);
    expect(await ends(deaf)).toEqual([]);
    await deaf.time.advance(1);
    expect(await ends(deaf)).toEqual(['c1 cancelled timed_out']);
    expect(deaf.told(await deaf.send('call_outcome', outcome()))).toEqual(['rejected call_not_open']);
  });

  test('that no worker can stop is abandoned at once', async () => {
    const bed = testBed();
    await takenUp(bed);
    await bed.send('cancel');
    expect(await ends(bed)).toEqual(['c1 cancelled timed_out']);
    expect((await bed.lines()).at(-1)).toBe('agent_end cancelled');
    // No grace period began, so neither text may say that one ended.
    const inputs = (await bed.records()).map(({ input }) => JSON.stringify(input));
    expect(inputs.find((input) => input.includes('"call_outcome"'))).toContain(
      'the order to stop reached no worker. The tool did not confirm that it stopped. Its later output is ignored.',
    );
    const [ended] = await bed.eventsOf('call_ended');
    expect(JSON.stringify(ended?.result.content)).toContain(
      'The tool did not confirm that it stopped, so the outcome of this tool call is unknown.',
    );
  });

  test('cancelled while a worker accepts it is stopped at that worker', async () => {
    const told: string[] = [];
    const bed = testBed();
    await takenUp(bed, {
      traits: { long_running: true },
      run: async (_call, _signal, clock) => {
        await clock.sleep(1_000);
        return { status: 'accepted', result: { content: [], is_error: false } };
      },
      stop: (key) => void told.push(key),
    });
    await bed.send('cancel_call', { call_id: 'c1', timeout_ms: 5_000 });
    await bed.time.advance(1_000);
    expect(told).toEqual(['default.s1.3-0']);
    await bed.send('call_outcome', outcome({ status: 'cancelled' }));
    expect(await ends(bed)).toEqual(['c1 cancelled']);
  });

  test('cancelled while a worker accepts it is stopped also if the answer to that record is lost', async () => {
    const told: string[] = [];
    const bed = testBed();
    bed.tools = {
      build: {
        traits: { long_running: true },
        run: async (_call, _signal, clock) => {
          await clock.sleep(1_000);
          return { status: 'accepted', result: { content: [], is_error: false } };
        },
        stop: (key) => void told.push(key),
      },
    };
    bed.models.answers = [ask(call('c1', 'build')), say('done')];
    await bed.host({ appendBounds: { attemptsMax: 3, firstDelayMs: 10, maxDelayMs: 10 } });
    await bed.start();
    await bed.send('cancel_call', { call_id: 'c1', timeout_ms: 5_000 });
    bed.journal.next = [
      async (append) => {
        await append();
        return { status: 'ambiguous', cause: 'no answer' };
      },
      'lost',
      'lost',
    ];
    await bed.time.advance(30_000);
    expect((await bed.eventsOf('owned')).map(({ epoch }) => epoch)).toEqual([2]);
    expect(told).toEqual(['default.s1.3-0']);
    expect(await ends(bed)).toEqual(['c1 cancelled timed_out']);
    expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
  });

  test('whose host crashed before a worker accepted it is in doubt like any other', async () => {
    const bed = testBed();
    const first = await takenUp(bed, { traits: { long_running: true }, run: taking(60_000) });
    first.abandon();
    await bed.host();
    await bed.time.advance(1_000);
    expect(await ends(bed)).toEqual(['c1 interrupted']);
    expect(bed.told(await bed.send('call_outcome', outcome()))).toEqual(['rejected call_not_open']);
  });

  test('is accepted with the epoch that the worker got, and ends with an outcome of that epoch', async () => {
    const bed = testBed();
    const first = await takenUp(bed, {
      traits: { long_running: true },
      run: taking(60_000),
      probe: () => ({
        state: 'running',
        attach: async () => ({ status: 'accepted', result: { content: [], is_error: false }, epoch: 1 }),
      }),
    });
    first.abandon();
    await bed.host();
    await bed.time.advance(1_000);
    expect(await bed.eventsOf('call_accepted')).toMatchObject([{ call_id: 'c1', epoch: 1 }]);
    expect(bed.told(await bed.send('call_outcome', outcome({ epoch: 2 })))).toEqual(['rejected stale_epoch']);
    expect(bed.told(await bed.send('call_outcome', outcome({ epoch: 1 })))).toEqual(['accepted']);
    expect(await ends(bed)).toEqual(['c1 ok']);
  });

  test('whose worker dies before its function returned LATER is interrupted, and runs again only if idempotent', async () => {
    const lost: FakeTool['run'] = async (_call, _signal, clock) => {
      await clock.sleep(500);
      return { ...answer('whoever ran it has gone', 'error'), status: 'lost' };
    };
    const once = testBed();
    await takenUp(once, { traits: { long_running: true }, run: lost });
    await once.time.advance(1_000);
    expect(await ends(once)).toEqual(['c1 interrupted']);
    expect(once.toolSource.runs).toHaveLength(1);

    const again = testBed();
    let runs = 0;
    await takenUp(again, {
      traits: { long_running: true, idempotent: true },
      run: (...given) => (runs++ === 0 ? lost(...given) : LATER.run?.(...given)) as ReturnType<typeof lost>,
    });
    await again.time.advance(1_000);
    expect(again.toolSource.runs).toHaveLength(2);
    expect(await again.lines()).toContain('call_accepted c1');
    expect(await ends(again)).toEqual([]);
  });

  test('may also answer directly', async () => {
    const bed = testBed();
    await takenUp(bed, { traits: { long_running: true }, run: async () => answer('at once') });
    expect(await ends(bed)).toEqual(['c1 ok']);
  });
});

test('a tool that answers later without the declaration fails', async () => {
  const bed = testBed();
  await takenUp(bed, { ...LATER, traits: {} });
  expect(await ends(bed)).toEqual(['c1 error']);
});

test('a persona that asks about unknown outcomes parks the call, shows the question, and runs it again when allowed', async () => {
  const bed = testBed();
  bed.tools = { build: { run: taking(60_000) } };
  bed.models.answers = [ask(call('c1', 'build')), say('done')];
  const first = await bed.host();
  await bed.start({ persona: { name: 'p', on_unknown_outcome: 'ask' } });
  first.abandon();
  bed.tools = { build: { run: async () => answer('second time') } };
  const second = await bed.host();
  await bed.time.settle();
  const [asked] = await bed.eventsOf('approval_requested');
  expect(asked?.question).toContain('Allow to re-run it. Deny to report the unknown outcome to the model.');
  expect((await second.status(refOf()))?.approvals).toMatchObject([{ call_id: 'c1', question: asked?.question }]);
  await bed.send('approve', { call_id: 'c1', decision: 'allow' });
  expect(await ends(bed)).toEqual(['c1 ok']);
  expect(new Set(bed.toolSource.runs.map(({ key }) => key)).size).toBe(2);
});
