/**
 * Delegation on running sessions: answers arrive once, ends apply to the whole tree, limits and rules apply.
 */
import { BOUNDS, childIdOf, type EventOf, Quotas, textOf } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { type CrewBed, crewBed, delegate } from './crew-bed.ts';
import { hook } from './fake-hooks.ts';
import { ask, call, say } from './fake-model.ts';
import { recordOf, refOf } from './test-bed.ts';

const results = async (bed: CrewBed, session = 's1') =>
  (await bed.eventsOf('call_ended', session)).map(({ call_id, status, result }) => [
    call_id,
    status,
    result.content.map((part) => (part.type === 'text' ? part.text : '')).join(''),
  ]);
const codes = async (bed: CrewBed, session = 's1') =>
  (await bed.eventsOf('call_ended', session)).map(({ status, result, denial }) =>
    [status, denial?.rule ?? result.detail?.code].filter(Boolean).join(' '),
  );
const end = async (bed: CrewBed, session = 's1') =>
  ((await bed.eventsOf('agent_end', session)).at(-1) as EventOf<'agent_end'> | undefined)?.stop_reason;
const SLOW = [say('done', { delayMs: 60_000 })];

describe('delegated work', () => {
  test('runs in child sessions concurrently, and their answers are the results', async () => {
    const bed = crewBed();
    bed.parts = {
      lead: [delegate(['mate', 'sound'], ['mate', 'look'], ['cook', 'cook']), say('all done')],
      mate: (prompt) => [say(`I did ${prompt}`, { delayMs: prompt === 'sound' ? 300 : 100 })],
      cook: [say('soup', { delayMs: 200 })],
    };
    await bed.crewHost();
    await bed.begin('lead');
    await bed.time.advance(1_000);
    expect(await results(bed)).toEqual([
      ['d2', 'ok', 'I did look'],
      ['d3', 'ok', 'soup'],
      ['d1', 'ok', 'I did sound'],
    ]);
    expect(await end(bed)).toBe('end_turn');
    const [first] = await bed.childrenOf();
    expect(first).toBe(childIdOf('s1', '3-0'));
    const [begun] = await bed.eventsOf('prompt_received', first);
    expect(begun).toMatchObject({
      actor: { name: 'session:s1', verified: false },
      parent: { session: 's1', root: 's1', depth: 1, depth_left: BOUNDS.depthDefault - 1, call_id: 'd1' },
      settings: { trace: 's1' },
    });
    // Two records of the parent and one of the child for each.
    expect((await bed.eventsOf('parent_notified', first)).length).toBe(1);
  });

  test('lets an idle parent leave memory until the answer wakes it', async () => {
    const bed = crewBed();
    bed.parts = { lead: [delegate(['mate', 'wait']), say('all done')], mate: [say('waited', { delayMs: 120_000 })] };
    const host = await bed.crewHost({ passivateAfterMs: 1_000, sweepEveryMs: 500 });
    await bed.begin('lead');
    await bed.time.advance(20_000);
    expect(host.live).toBe(1);
    await bed.time.advance(120_000);
    expect(await results(bed)).toEqual([['d1', 'ok', 'waited']]);
    expect(await end(bed)).toBe('end_turn');
  });

  test('shows its progress to watchers of the parent', async () => {
    const bed = crewBed();
    const seen: string[] = [];
    bed.bus.subscribeDeltas(refOf(), ({ kind, text, call_id }) => {
      if (kind === 'progress') seen.push(`${call_id} ${text}`);
    });
    bed.parts = { lead: [delegate(['mate', 'go']), say('ok')], mate: [ask(call('c1', 'read')), say('done')] };
    await bed.crewHost();
    await bed.begin('lead');
    expect(seen).toEqual(['d1 mate: turn 1', 'd1 mate: read', 'd1 mate: turn 2']);
  });

  test.each([
    ['fails', [{ fail: { code: 'model_failed', message: 'broken' } }], 'error', 'error: broken'],
    ['comes to its cap', [ask(call('c1', 'read'))], 'max_turns', 'max_turns'],
  ] as const)('that %s is an error result, and not the end of the parent', async (_, part, reason, text) => {
    const bed = crewBed();
    bed.parts = { lead: [delegate(['mate', 'go', { limits: { max_turns: 2 } }]), say('so be it')], mate: part };
    await bed.crewHost();
    await bed.begin('lead');
    const [child = ''] = await bed.childrenOf();
    expect(await end(bed, child)).toBe(reason);
    expect(await codes(bed)).toEqual(['error child_failed']);
    expect((await results(bed))[0]?.[2]).toContain(text);
    expect(await end(bed)).toBe('end_turn');
  });

  test('is restarted in another session if so configured, up to the configured number of times', async () => {
    const bed = crewBed();
    const broken = { fail: { code: 'model_failed', message: 'broken' } };
    bed.parts = {
      lead: [delegate(['mate', 'go', { restart: 'on_failure', max_restarts: 2 }]), say('ok')],
      mate: [broken],
    };
    await bed.crewHost();
    await bed.begin('lead');
    const children = await bed.childrenOf();
    expect(new Set(children).size).toBe(3);
    expect((await bed.eventsOf('child_ended')).map(({ restarts = false }) => restarts)).toEqual([true, true, false]);
    expect(await codes(bed)).toEqual(['error child_failed']);
    expect(await bed.eventsOf('call_started')).toHaveLength(1);
  });

  test.each([
    ['to nobody known', { persona: 'nobody' }, 'error persona_not_found'],
    ['in a mode that there is not', { persona: 'mate', mode: 'odd' }, 'error child_failed'],
  ])('%s is an error result', async (_, args, code) => {
    const bed = crewBed();
    bed.parts = { lead: [ask(call('d1', 'delegate', { prompt: 'go', ...args })), say('ok')], mate: SLOW };
    await bed.crewHost();
    await bed.begin('lead');
    expect(await codes(bed)).toEqual([code]);
    expect(await end(bed)).toBe('end_turn');
    expect(bed.toolSource.runs).toEqual([]);
  });

  test('does not start if another session has the id', async () => {
    const bed = crewBed();
    bed.parts = { lead: [delegate(['mate', 'go']), say('ok')], mate: SLOW };
    await bed.crewHost();
    await bed.start({}, { session: childIdOf('s1', '3-0') });
    await bed.begin('lead');
    expect(await codes(bed)).toEqual(['error session_exists']);
  });

  test('that does not start leaves its place to another, also if PostToolUse hooks check its result', async () => {
    const bed = crewBed();
    bed.hooks.registrations = [hook('PostToolUse', 'check')];
    bed.parts = { lead: [delegate(['mate', 'go']), delegate(['mate', 'go again']), say('ok')], mate: [say('done')] };
    await bed.crewHost();
    await bed.start({}, { session: childIdOf('s1', '3-0') });
    await bed.begin('lead', { limits: { children: 1 } });
    expect(await codes(bed)).toEqual(['error session_exists', 'ok']);
  });

  test('does not start if the journal with its id is unreadable: the run continues', async () => {
    const bed = crewBed();
    bed.parts = { lead: [delegate(['mate', 'go']), say('ok')], mate: SLOW };
    await bed.crewHost();
    const child = childIdOf('s1', '3-0');
    await bed.bus.journal.append(refOf(child), Buffer.from('{"v":999}'), 0);
    bed.forget(child);
    await bed.begin('lead');
    expect(await codes(bed)).toEqual(['error child_not_started']);
    expect(await end(bed)).toBe('end_turn');
  });

  test('does not start if no replica serves the first record with its id: the run continues', async () => {
    const bed = crewBed();
    bed.parts = { lead: [delegate(['mate', 'go']), say('ok')], mate: SLOW };
    await bed.crewHost();
    bed.journal.firstAfter = () =>
      Promise.reject(Object.assign(new Error('no replica'), { code: 'record_unreadable' }));
    await bed.begin('lead');
    expect(await codes(bed)).toEqual(['error child_not_started']);
    expect(await end(bed)).toBe('end_turn');
  });

  test('does not start if the personas of the host cannot be read: the run continues', async () => {
    const bed = crewBed();
    bed.parts = { lead: [delegate(['stranger', 'go']), say('ok')] };
    const broken = () => Promise.reject(new Error('the folder is unreadable'));
    await bed.crewHost({}, { personas: { find: broken, names: async () => [] } });
    await bed.begin('lead');
    expect(await codes(bed)).toEqual(['error child_not_started']);
    expect(await end(bed)).toBe('end_turn');
  });

  test('of a daemon persona ends with its answer', async () => {
    const bed = crewBed();
    bed.personas = { mate: { daemon: {} } };
    bed.parts = { lead: [delegate(['mate', 'go']), say('ok')], mate: [say('once')] };
    await bed.crewHost();
    await bed.begin('lead');
    expect(await results(bed)).toEqual([['d1', 'ok', 'once']]);
  });
});

describe('the end of a tree', () => {
  /** Three generations of two. */
  async function grown(bed: CrewBed) {
    bed.parts = {
      lead: [delegate(['mate', 'a'], ['mate', 'b']), say('ok')],
      mate: [delegate(['hand', 'a'], ['hand', 'b']), say('ok')],
      hand: SLOW,
    };
    await bed.begin('lead');
    const mates = await bed.childrenOf();
    return { mates, hands: (await Promise.all(mates.map((mate) => bed.childrenOf(mate)))).flat() };
  }

  test('a cancel of the root ends every session below, and aborts their models', async () => {
    const bed = crewBed();
    await bed.crewHost();
    const { mates, hands } = await grown(bed);
    expect([mates.length, hands.length]).toEqual([2, 4]);
    await bed.send('cancel', { reason: 'storm' });
    expect(await Promise.all(['s1', ...mates, ...hands].map((id) => end(bed, id)))).toEqual(Array(7).fill('cancelled'));
    expect([...bed.stopped].sort()).toEqual([...hands].sort());
    const [ended] = await bed.eventsOf('agent_end', hands[0]);
    expect(ended?.reason).toContain('storm');
    expect(await codes(bed)).toEqual(['cancelled', 'cancelled']);
    expect((await bed.eventsOf('child_ended')).map(({ stop_reason }) => stop_reason)).toEqual([
      'cancelled',
      'cancelled',
    ]);
  });

  test('and is durable: no session remains even if every host dies meanwhile', async () => {
    const bed = crewBed();
    const first = await bed.crewHost();
    const { mates, hands } = await grown(bed);
    bed.bus.publish(`cox.default.session.s1.cancel`, Buffer.from('{}'), {});
    await Promise.resolve();
    first.abandon();
    await bed.crewHost();
    await bed.time.advance(20_000);
    expect(await Promise.all(['s1', ...mates, ...hands].map((id) => end(bed, id)))).toEqual(Array(7).fill('cancelled'));
  });

  test('a cancelled call ends its child alone', async () => {
    const bed = crewBed();
    await bed.crewHost();
    const { mates } = await grown(bed);
    await bed.send('cancel_call', { call_id: 'd1' });
    expect(await end(bed, mates[0])).toBe('cancelled');
    expect(await end(bed, mates[1])).toBeUndefined();
    expect(await codes(bed)).toEqual(['cancelled']);
    await bed.time.advance(60_000);
    expect(await end(bed)).toBe('end_turn');
  });

  test('an exhausted time budget ends all sessions below', async () => {
    const bed = crewBed();
    await bed.crewHost();
    bed.parts = { lead: [delegate(['mate', 'a']), say('ok')], mate: SLOW };
    await bed.begin('lead', { limits: { wall_time_ms: 5_000 } });
    await bed.time.advance(5_000);
    const [mate = ''] = await bed.childrenOf();
    expect([await end(bed), await end(bed, mate)]).toEqual(['budget_exceeded', 'cancelled']);
  });

  test('a child that is cancelled alone is a cancelled call', async () => {
    const bed = crewBed();
    await bed.crewHost();
    bed.parts = { lead: [delegate(['mate', 'a', { restart: 'on_failure' }]), say('ok')], mate: SLOW };
    await bed.begin('lead');
    const [mate = ''] = await bed.childrenOf();
    await bed.send('cancel', { reason: 'enough' }, { session: mate });
    expect(await results(bed)).toMatchObject([['d1', 'cancelled', expect.stringContaining('enough')]]);
    expect(await end(bed)).toBe('end_turn');
  });
});

describe('crashes', () => {
  test.each(Array.from({ length: 16 }, (_, at) => at + 1))(
    'of the host at append %i neither lose an answer nor bring it twice',
    async (appends) => {
      const bed = crewBed();
      bed.parts = {
        lead: [delegate(['mate', 'a'], ['mate', 'b']), say('ok')],
        mate: (prompt) => [say(`did ${prompt}`)],
      };
      let left = appends;
      const journal = bindAll(bed.bus.journal);
      const first = await bed.crewHost(
        {},
        {
          journal: {
            ...journal,
            append: (ref, bytes, fence) => {
              if (--left > 0) return journal.append(ref, bytes, fence);
              first.abandon();
              return Promise.resolve({ status: 'ambiguous', cause: 'gone' });
            },
          },
        },
      );
      await bed.begin('lead');
      await bed.crewHost();
      await bed.time.advance(30_000);
      expect((await results(bed)).map(([, , text]) => text).sort()).toEqual(['did a', 'did b']);
      expect(await end(bed)).toBe('end_turn');
      expect(new Set(await bed.childrenOf()).size).toBe(2);
      expect(await bed.eventsOf('child_ended')).toHaveLength(2);
    },
  );
});

test('a child that has started stays the child of its call, though the next host may start no further session', async () => {
  const bed = crewBed();
  bed.parts = { lead: [delegate(['mate', 'a']), say('ok')], mate: [say('did a')] };
  const first = await bed.crewHost();
  let childStarts = () => {};
  const started = new Promise<void>((resolve) => {
    childStarts = resolve;
  });
  // The host ends when the child has a record, before the record of its acceptance.
  bed.journal.always = async (append, { ref, bytes }) => {
    if (ref.sessionId !== 's1') return append().finally(childStarts);
    if (recordOf(bytes).input.type !== 'call_accepted') return append();
    await started;
    first.abandon();
    return { status: 'ambiguous', cause: 'gone' };
  };
  await bed.begin('lead');
  bed.journal.always = 'none';
  const quotas = Quotas.parse({ sessions: 2 });
  await bed.crewHost({ quotas: () => quotas }, { usage: { of: () => ({ sessions: 2, storedBytes: 0 }) } });
  await bed.time.advance(30_000);
  expect(await results(bed)).toEqual([['d1', 'ok', 'did a']]);
  expect(await end(bed)).toBe('end_turn');
});

test('a child whose start the next host may not repeat is cancelled: it does not run without its call', async () => {
  const bed = crewBed();
  bed.parts = { lead: [delegate(['mate', 'a']), say('ok')], mate: SLOW };
  const first = await bed.crewHost();
  // The host ends when the start is in the child's inbox, before the child has a record.
  bed.journal.always = async (append, { ref, bytes }) => {
    if (ref.sessionId === 's1' && recordOf(bytes).input.type !== 'call_accepted') return append();
    first.abandon();
    return { status: 'ambiguous', cause: 'gone' };
  };
  await bed.begin('lead');
  let callEnds = () => {};
  const ended = new Promise<void>((resolve) => {
    callEnds = resolve;
  });
  bed.journal.always = async (append, { ref, bytes }) => {
    if (ref.sessionId !== 's1') await ended;
    else if (recordOf(bytes).input.type === 'call_outcome') callEnds();
    return append();
  };
  const quotas = Quotas.parse({ sessions: 2 });
  await bed.crewHost({ quotas: () => quotas }, { usage: { of: () => ({ sessions: 2, storedBytes: 0 }) } });
  await bed.time.advance(30_000);
  const [child = ''] = await bed.childrenOf();
  expect(await codes(bed)).toEqual(['error quota_exceeded']);
  expect(await end(bed, child)).toBe('cancelled');
});

function bindAll<T extends object>(port: T): T {
  return Object.fromEntries(
    Object.entries(port).map(([name, member]) => [name, typeof member === 'function' ? member.bind(port) : member]),
  ) as T;
}

describe('limits', () => {
  test('no more generations than the root allows', async () => {
    const bed = crewBed();
    bed.parts = { lead: [delegate(['lead', 'deeper']), say('ok')] };
    await bed.crewHost();
    await bed.begin('lead', { limits: { depth: 2 } });
    let deepest = 's1';
    let depth = 0;
    for (let [child] = await bed.childrenOf(deepest); child !== undefined; [child] = await bed.childrenOf(child)) {
      deepest = child;
      depth++;
    }
    expect(depth).toBe(2);
    expect(await codes(bed, deepest)).toEqual(['error too_deep']);
    expect(await end(bed)).toBe('end_turn');
  });

  test('no more concurrent children than allowed', async () => {
    const bed = crewBed();
    bed.parts = { lead: [delegate(['mate', 'a'], ['mate', 'b'], ['mate', 'c']), say('ok')], mate: SLOW };
    await bed.crewHost();
    await bed.begin('lead', { limits: { children: 2 } });
    expect(await codes(bed)).toEqual(['error too_many_children']);
    expect(await bed.childrenOf()).toHaveLength(2);
  });

  test('a budget is divided, and the usage of children counts', async () => {
    const bed = crewBed();
    const usage = { input_tokens: 100, output_tokens: 20 };
    bed.parts = {
      lead: [{ ...delegate(['mate', 'a'], ['mate', 'b'], ['mate', 'c']), usage }, say('ok', { usage })],
      mate: [{ ...ask(call('c1', 'read')), usage }],
    };
    await bed.crewHost();
    await bed.begin('lead', { limits: { tokens: 4_120 } });
    // 4,000 are left: four equal parts.
    expect((await bed.eventsOf('child_started')).map(({ budget }) => budget)).toEqual(Array(3).fill({ tokens: 1_000 }));
    const ended = await bed.eventsOf('child_ended');
    expect(ended.map(({ stop_reason }) => stop_reason)).toEqual(Array(3).fill('budget_exceeded'));
    const used = ended.reduce((sum, { usage: one }) => sum + one.input_tokens + one.output_tokens, 0);
    expect(used).toBeLessThanOrEqual(3 * 1_000 + 3 * 120);
    const status = await (await bed.crewHost()).status(refOf());
    expect(status?.budgets).toEqual([{ budget: 'tokens', used: 240 + used, limit: 4_120 }]);
    expect(status?.usage).toEqual({ input_tokens: 200, output_tokens: 40 });
  });

  test('a share that is too small starts no child', async () => {
    const bed = crewBed();
    bed.parts = { lead: [delegate(['mate', 'a']), say('ok')], mate: SLOW };
    await bed.crewHost();
    await bed.begin('lead', { limits: { tokens: 13 } });
    expect(await codes(bed)).toEqual(['error budget_not_left']);
  });
});

describe('a child’s permissions are at most its parent’s', () => {
  const rules = (action: 'deny' | 'ask') => ({
    rules: [
      { tool: 'read', action },
      { tool: '*', action: 'allow' },
    ],
  });

  test('a call that the parent’s rules deny is denied, by a rule that names the parent', async () => {
    const bed = crewBed();
    bed.personas = { mate: { permissions: { rules: [{ tool: '*', action: 'allow' }] } } };
    bed.parts = {
      lead: [delegate(['mate', 'go']), say('ok')],
      mate: [delegate(['hand', 'go']), say('ok')],
      hand: [ask(call('c1', 'read')), say('no')],
    };
    await bed.crewHost();
    await bed.begin('lead', { permissions: rules('deny') });
    const [mate = ''] = await bed.childrenOf();
    const [hand = ''] = await bed.childrenOf(mate);
    expect(await codes(bed, hand)).toEqual(['denied session s1: rules[0]']);
    expect(bed.toolSource.runs).toEqual([]);
    expect(await results(bed)).toEqual([['d1', 'ok', 'ok']]);
  });

  test('whatever id the parent has', async () => {
    const bed = crewBed();
    bed.personas = { mate: { permissions: { rules: [{ tool: '*', action: 'allow' }] } } };
    bed.parts = { lead: [delegate(['mate', 'go']), say('ok')], mate: [ask(call('c1', 'read')), say('no')] };
    await bed.crewHost();
    await bed.begin('lead', { permissions: rules('deny') }, 'host-policy');
    const [mate = ''] = await bed.childrenOf('host-policy');
    expect(await codes(bed, mate)).toEqual(['denied session host-policy: rules[0]']);
  });

  test('a call that the parent would ask about is asked about in the child', async () => {
    const bed = crewBed();
    bed.personas = { mate: { permissions: { rules: [{ tool: '*', action: 'allow' }] } } };
    bed.parts = { lead: [delegate(['mate', 'go']), say('ok')], mate: [ask(call('c1', 'read')), say('read')] };
    await bed.crewHost();
    await bed.begin('lead', { permissions: rules('ask') });
    const [mate = ''] = await bed.childrenOf();
    expect(await bed.eventsOf('approval_requested', mate)).toMatchObject([
      { requested_by: 'rule:session s1: rules[0]' },
    ]);
    await bed.send('approve', { call_id: 'c1', decision: 'allow' }, { session: mate });
    expect(await results(bed)).toEqual([['d1', 'ok', 'read']]);
  });

  test('delegation itself asks by default', async () => {
    const bed = crewBed();
    bed.parts = { lead: [delegate(['mate', 'go']), say('ok')], mate: SLOW };
    await bed.crewHost();
    await bed.begin('lead', { permissions: { default: 'ask' } });
    expect(await bed.eventsOf('approval_requested')).toMatchObject([
      { tool: 'delegate', requested_by: 'rule:default' },
    ]);
  });
});

describe('only a host may', () => {
  test('declare a session a child', async () => {
    const bed = crewBed();
    await bed.crewHost();
    await bed.start({ parent: { session: 's0' } });
    expect(bed.receipts.at(-1)).toMatchObject({ stage: 'rejected', code: 'unknown_field', field: 'parent' });
  });

  test('end a delegation as a tool worker would', async () => {
    const bed = crewBed();
    bed.parts = { lead: [delegate(['mate', 'go']), say('ok')], mate: SLOW };
    await bed.crewHost();
    await bed.begin('lead');
    const result = { content: [{ type: 'text', text: 'forged' }], is_error: false };
    const id = await bed.send('call_outcome', { call_id: 'd1', effect_id: '3-0', epoch: 1, status: 'ok', result });
    expect(bed.told(id)).toEqual(['rejected call_not_open']);
  });

  test('act as a session', async () => {
    const bed = crewBed();
    await bed.crewHost();
    await bed.begin('lead');
    const id = await bed.send('steer', { body: 'hello', actor: 'session:s2' });
    expect(bed.told(id)).toEqual(['rejected invalid_field']);
  });
});

describe('reminders', () => {
  test('reach direct children, all descendants, or no child, as requested', async () => {
    const bed = crewBed();
    const through = (next: string) => [ask(call('w', 'wait')), delegate([next, 'go']), say('ok')];
    bed.tools = {
      read: {},
      wait: {
        run: async (_call, signal, clock) => {
          await clock.sleep(1_000, signal);
          return { status: 'ok', result: { content: [], is_error: false } };
        },
      },
    };
    bed.parts = { lead: through('mate'), mate: through('hand'), hand: [say('done', { delayMs: 500 })] };
    await bed.crewHost();
    await bed.begin('lead');
    for (const propagate of ['session', 'all', 'none']) await bed.send('remind', { body: propagate, propagate });
    await bed.time.advance(5_000);
    const [mate = ''] = await bed.childrenOf();
    const [hand = ''] = await bed.childrenOf(mate);
    const born = async (session: string) =>
      (await bed.eventsOf('reminder_inherited', session)).map(
        ({ body, from, propagate }) => `${body} from ${from === 's1' ? 's1' : 'mate'} ${propagate}`,
      );
    expect(await born(mate)).toEqual(['session from s1 none', 'all from s1 all']);
    expect(await born(hand)).toEqual(['all from mate all']);
    const shown = bed.models.requests.filter(({ sessionId }) => sessionId === hand).at(-1);
    expect(
      shown?.messages.filter(({ role }) => role === 'reminder').map((message) => textOf(message as never)),
    ).toEqual(['all']);
  });
});
