/**
 * Hooks that are notified, remind, start jobs, have no handler, or change while a session runs.
 */
import {
  BOUNDS,
  DEFAULT_TENANT,
  HOOK_PAYLOADS,
  type HookTable,
  readRegistration,
  TenantId,
  textOf,
} from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { hook, returns, silent, throws } from './fake-hooks.ts';
import { ask, call, say } from './fake-model.ts';
import { answer, taking } from './fake-tools.ts';
import { type TestBed, testBed } from './test-bed.ts';

const written = (more: Record<string, unknown>) => {
  const read = readRegistration(more);
  if (!read.ok) throw new Error(read.problem.message);
  return read.registration;
};
const shown = (bed: TestBed, request = -1) => bed.models.requests.at(request)?.messages.map(textOf) ?? [];
const asked = (bed: TestBed) => bed.hooks.asked.map(({ registration }) => registration.id);

async function bedWith(hooks: HookTable, more: (bed: TestBed) => void = () => {}): Promise<TestBed> {
  const bed = testBed();
  bed.hooks.registrations = hooks;
  bed.models.answers = [ask(call('c1', 'read')), say('done')];
  more(bed);
  await bed.host();
  return bed;
}

describe('a reminder of a hook', () => {
  test('follows the results of the open batch, and is in every later prompt', async () => {
    const bed = await bedWith([hook('PreToolUse', 'h')]);
    bed.hooks.handlers = { h: returns({ body: 'mind the rocks' }) };
    await bed.start();
    expect(shown(bed)).toEqual(['hello', '', 'read ran', 'mind the rocks']);
  });

  test('does not continue a run, however often it is sent', async () => {
    const bed = await bedWith([hook('post_turn', 'h')], ({ models }) => {
      models.answers = [say('done')];
    });
    bed.hooks.handlers = { h: returns({ body: 'mind the rocks' }) };
    await bed.start();
    expect(bed.models.requests).toHaveLength(1);
    expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
  });

  test('does not wake a daemon that idles', async () => {
    const bed = await bedWith([
      hook('session_idle', 'h'),
      hook('loop_checkpoint', 'c', { pattern: 'daemon_idle_pre' }),
    ]);
    bed.hooks.handlers = { h: returns({ body: 'sleep well' }), c: returns({ body: 'sleep on' }) };
    await bed.start({ persona: { name: 'mate', daemon: {} } });
    await bed.time.advance(10_000);
    expect(bed.models.requests).toHaveLength(2);
    await bed.send('steer', { body: 'up' });
    expect(shown(bed)).toEqual(['hello', '', 'read ran', 'done', 'sleep well', 'sleep on', 'up']);
  });

  test('counts its turns, and can be revoked like a sent reminder', async () => {
    const bed = await bedWith([hook('session_start', 'h')]);
    bed.hooks.handlers = {
      h: returns([{ reminder: { body: 'once', ttl_turns: 1 } }, { reminder: { body: 'always' } }]),
    };
    await bed.start();
    expect(shown(bed, 0)).toEqual(['hello', 'once', 'always']);
    expect(shown(bed, 1)).not.toContain('once');
    const [, always] = await bed.eventsOf('reminder_injected');
    const id = await bed.send('revoke', { command_id: always?.command_id ?? '' });
    expect(bed.told(id)).toEqual(['accepted']);
    expect((await bed.eventsOf('reminder_expired')).map(({ reason }) => reason)).toEqual(['ttl', 'cleared']);
  });

  test('under the key of a shown one replaces it', async () => {
    const bed = await bedWith([hook('post_turn', 'h')]);
    bed.hooks.handlers = { h: returns({ body: 'mind the rocks', dedupe_key: 'rocks' }) };
    await bed.start();
    expect(await bed.eventsOf('reminder_fired')).toHaveLength(2);
    expect(await bed.eventsOf('reminder_deduped')).toHaveLength(1);
  });
});

describe('more than a session keeps', () => {
  const count = BOUNDS.remindersLiveMax / BOUNDS.remindersPerReturnMax + 1;
  const many = (from: number) =>
    Array.from({ length: BOUNDS.remindersPerReturnMax }, (_, i) => ({ reminder: { body: `${from}-${i}` } }));

  test('of reminders is dropped, each with its code', async () => {
    const hooks = Array.from({ length: count }, (_, i) => hook('session_start', `h${i}`));
    const bed = await bedWith(hooks);
    bed.hooks.handlers = Object.fromEntries(hooks.map(({ id }, i) => [id, returns(many(i))]));
    await bed.start();
    expect(await bed.eventsOf('reminder_injected')).toHaveLength(BOUNDS.remindersLiveMax);
    const dropped = await bed.eventsOf('reminder_dropped');
    expect(dropped).toHaveLength(BOUNDS.remindersPerReturnMax);
    expect(new Set(dropped.map((one) => `${one.hook} ${one.code}`))).toEqual(
      new Set([`h${count - 1} too_many_reminders`]),
    );
  });

  // The process of the oldest one may have died: it must not exclude new jobs for the life of the session.
  test('of jobs replaces the oldest one, which is then no longer tracked', async () => {
    const hooks = Array.from({ length: BOUNDS.jobsOpenMax + 1 }, (_, i) => hook('session_start', `h${i}`));
    const bed = await bedWith(hooks);
    bed.hooks.handlers = Object.fromEntries(
      hooks.map(({ id }) => [id, returns({ job: { status: 'queued', job_id: `of-${id}` } })]),
    );
    await bed.start();
    const untracked = [{ type: 'job_untracked', hook: 'h0', job_id: 'of-h0', code: 'too_many_jobs' }];
    expect(await bed.eventsOf('job_untracked')).toMatchObject(untracked);
    const late = await bed.send('feedback', { job: { job_id: 'of-h0', status: 'succeeded' } });
    expect(bed.told(late)).toEqual(['rejected job_unknown']);
    const newest = await bed.send('feedback', { job: { job_id: `of-h${BOUNDS.jobsOpenMax}`, status: 'succeeded' } });
    expect(bed.told(newest)).not.toContain('rejected job_unknown');
  });

  test('of jobs has a free place after the end of a job in the same consult', async () => {
    const jobs = Array.from({ length: BOUNDS.jobsOpenMax }, (_, i) => ({ status: 'queued', job_id: `j${i}` }));
    const receipts = [...jobs, { status: 'succeeded', job_id: 'j0' }, { status: 'queued', job_id: 'new' }];
    const hooks = receipts.map((_, i) => hook('session_start', `h${i}`));
    const bed = await bedWith(hooks);
    bed.hooks.handlers = Object.fromEntries(hooks.map(({ id }, i) => [id, returns({ job: receipts[i] })]));
    await bed.start();
    expect(await bed.eventsOf('job_untracked')).toEqual([]);
  });
});

describe('a job of a hook', () => {
  const job = { status: 'queued', job_id: 'j1', affected_paths: ['b', 'a', 'b'] };
  const lint = (bed: TestBed) => {
    bed.models.answers = [say('done', { delayMs: 100 })];
    bed.hooks.handlers = { h: returns({ job }), end: returns(undefined) };
  };

  test('is reported to the model at its end, once', async () => {
    const bed = await bedWith([hook('session_start', 'h')], lint);
    await bed.start();
    const ended = { job_id: 'j1', status: 'failed', error: { message: 'line 3' } };
    const first = await bed.send('feedback', { job: ended });
    const again = await bed.send('feedback', { job: ended });
    expect([...bed.told(first), ...bed.told(again)]).toEqual(['accepted', 'rejected job_unknown']);
    await bed.time.advance(200);
    await bed.send('prompt', { body: 'and?' });
    const notice = shown(bed).find((text) => text.includes('Job j1 has failed. Error: line 3'));
    expect(notice).toContain('hook:h');
  });

  test('that ends before its receipt is decided when the hook has answered; an unknown one is rejected once', async () => {
    let answer = (_raw: unknown) => {};
    const bed = await bedWith([hook('session_start', 'h', { timeout_ms: 600_000 })], (one) => {
      lint(one);
      one.hooks.handlers = {
        h: () =>
          new Promise((resolve) => {
            answer = (raw) => resolve({ status: 'returned', raw });
          }),
      };
    });
    await bed.start();
    const early = await bed.send('feedback', { job: { job_id: 'j1', status: 'succeeded' } });
    const unknown = await bed.send('feedback', { job: { job_id: 'another', status: 'failed' } });
    await bed.time.advance(60_000);
    expect([...bed.told(early), ...bed.told(unknown)]).toEqual([]);
    answer({ job });
    await bed.time.advance(1);
    expect([...bed.told(early), ...bed.told(unknown)]).toEqual(['accepted', 'rejected job_unknown']);
    expect(await bed.eventsOf('job_reported')).toMatchObject([{ source: 'hook:h', receipt: { job_id: 'j1' } }]);
    expect(await bed.eventsOf('feedback_received')).toHaveLength(1);
    expect(await bed.eventsOf('command_rejected')).toMatchObject([{ code: 'job_unknown', command_id: unknown }]);
  });

  test('may report progress before it ends', async () => {
    const bed = await bedWith([hook('session_start', 'h')], lint);
    await bed.start();
    await bed.send('feedback', { job: { job_id: 'j1', status: 'running' } });
    expect(await bed.eventsOf('feedback_received')).toEqual([]);
    await bed.send('feedback', { job: { job_id: 'j1', status: 'succeeded' }, body: 'two warnings' });
    expect(await bed.eventsOf('feedback_received')).toMatchObject([{ source: 'hook:h', body: 'two warnings' }]);
  });

  test('that is open at the end is unsettled', async () => {
    const bed = await bedWith([hook('session_start', 'h'), hook('on_unsettled_detected', 'end')], lint);
    await bed.start();
    await bed.time.advance(200);
    expect(bed.hooks.asked.at(-1)?.payload).toMatchObject({ unsettled: { undelivered: 0, open_jobs: ['j1'] } });
  });
});

describe('an announcement', () => {
  test('delays no call and no answer; the next turn waits for it', async () => {
    const bed = await bedWith([hook('loop_checkpoint', 'h', { timeout_ms: 600_000 })]);
    bed.tools = { read: { run: taking(10) } };
    let release = () => {};
    bed.hooks.handlers = {
      h: () =>
        new Promise((resolve) => {
          release = () => resolve({ status: 'returned', raw: undefined });
        }),
    };
    await bed.start();
    await bed.time.advance(100);
    expect(bed.toolSource.runs).toHaveLength(1);
    expect(bed.models.requests).toHaveLength(1);
    for (let i = 0; i < 20; i++) {
      release();
      await bed.time.advance(100);
    }
    expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
    const kinds = bed.hooks.asked.map(({ payload }) => payload.kind);
    expect(kinds).toEqual((await bed.eventsOf('loop_checkpoint')).map(({ kind }) => kind));
  });

  test('an interrupt stops a call although a notification hook is still running', async () => {
    const bed = await bedWith([hook('loop_checkpoint', 'h', { timeout_ms: 600_000 })]);
    bed.hooks.handlers = { h: silent };
    bed.models.answers = [{ ...ask(call('c1', 'read')), delayMs: 100 }, say('done')];
    await bed.start();
    await bed.send('steer', { body: 'stop', mode: 'interrupt' });
    await bed.time.advance(100);
    expect(bed.toolSource.runs).toEqual([]);
    expect(await bed.eventsOf('call_ended')).toMatchObject([{ status: 'skipped' }]);
  });

  test('the decision about a call names its author', async () => {
    const bed = await bedWith([hook('permission_replied', 'h')], (each) => {
      each.tools = { read: {}, write: {}, ask: {} };
    });
    bed.models.answers = [ask(call('c1', 'read'), call('c2', 'write'), call('c3', 'ask')), say('done')];
    await bed.start({
      permissions: {
        rules: [
          { tool: 'read', action: 'allow' },
          { tool: 'write', action: 'deny' },
          { tool: 'ask', action: 'ask' },
        ],
      },
    });
    await bed.send('approve', { call_id: 'c3', decision: 'deny', reason: 'no' });
    const told = bed.hooks.asked.map(({ payload }) => [payload.tool, payload.decision, payload.by]);
    expect(told).toMatchObject([
      [{ call_id: 'c2' }, 'deny', 'rule:rules[1]'],
      [{ call_id: 'c1' }, 'allow', 'rule:rules[0]'],
      [{ call_id: 'c3' }, 'deny', 'user'],
    ]);
  });

  test('a budget threshold is announced once per run, whatever requested it', async () => {
    const hooks = [
      written({ id: 'bare', point: 'on_budget_threshold' }),
      written({ id: 'sixty', point: 'OnBudgetThreshold(60)' }),
    ];
    const bed = await bedWith(hooks, ({ models }) => {
      models.answers = [ask(call('c1', 'read')), ask(call('c2', 'read')), say('done')];
    });
    await bed.start({ limits: { tokens: 40 } });
    const told = bed.hooks.asked.map(({ registration, payload }) => `${registration.id} ${payload.budget_pct}`);
    expect(told).toEqual([...new Set(told)]);
    expect(told).toEqual(expect.arrayContaining(['bare 50', 'sixty 60']));
    expect(told).not.toContain('bare 60');
  });

  test('a cancelled run ends without waiting for a handler that never answers', async () => {
    const bed = await bedWith([hook('loop_checkpoint', 'h', { timeout_ms: 600_000, pattern: 'iteration_start' })]);
    bed.hooks.handlers = { h: silent };
    bed.models.answers = [say('done', { delayMs: 100_000 })];
    await bed.start();
    await bed.send('cancel');
    await bed.time.advance(BOUNDS.abortGraceMs);
    expect((await bed.lines()).at(-1)).toBe('agent_end cancelled');
  });

  test('hooks of other points are not called, and a journal without such hooks does not mention them', async () => {
    const bed = await bedWith([hook('session_end', 'h')]);
    await bed.start();
    expect(asked(bed)).toEqual(['h']);
    expect(await bed.eventsOf('announced')).toEqual([]);
  });
});

describe('a registration', () => {
  test('whose condition is false is not asked', async () => {
    const bed = await bedWith([
      hook('PreToolUse', 'other', { pattern: 'tool.args.path == "b"' }),
      hook('PreToolUse', 'mine', { pattern: 'tool.args.path =~ "^a"' }),
      hook('user_prompt_submit', 'steers', { pattern: 'origin != "prompt"' }),
    ]);
    bed.models.answers = [ask(call('c1', 'read', { path: 'a.ts' })), say('done')];
    await bed.start();
    expect(asked(bed)).toEqual(['mine']);
    expect(bed.toolSource.runs).toHaveLength(1);
  });

  test('a guard whose condition is false for a steer allows it', async () => {
    const bed = await bedWith([hook('user_prompt_submit', 'guard', { pattern: 'prompt =~ "secret"' })]);
    bed.hooks.handlers = { guard: returns({ block: true }) };
    bed.models.answers = [ask(call('c1', 'read')), say('done', { delayMs: 50 }), say('done')];
    await bed.start();
    const open = await bed.send('steer', { body: 'go on' });
    const secret = await bed.send('steer', { body: 'the secret' });
    await bed.time.advance(100);
    expect([bed.told(open).at(-1), bed.told(secret).at(-1)]).toEqual(['delivered iteration_end', 'blocked']);
  });

  test('of another persona is not asked', async () => {
    const bed = await bedWith([hook('post_turn', 'h', { persona: 'review*' })]);
    await bed.start();
    expect(asked(bed)).toEqual([]);
  });

  test.each([
    ['fail_closed', []],
    ['fail_open', ['c1']],
  ] as const)('without heartbeats is not called; its on_error %s decides', async (on_error, ran) => {
    const bed = await bedWith([hook('PreToolUse', 'h', { unavailable: true, on_error })]);
    await bed.start();
    expect(asked(bed)).toEqual([]);
    expect(await bed.eventsOf('hook_returned')).toMatchObject([{ failure: { code: 'hook_unavailable' } }]);
    expect(bed.toolSource.runs.map(({ callId }) => callId)).toEqual(ran);
  });

  test('that needs no handler applies also while its service is unavailable', async () => {
    const bed = await bedWith([
      hook('PreToolUse', 'deny', { pattern: 'write', deny: 'read only', unavailable: true, on_error: 'fail_open' }),
      hook('PostToolUse', 'cut', { max_output: 10, no_handler: true, unavailable: true }),
    ]);
    bed.tools = { read: { run: async () => answer('x'.repeat(100)) }, write: {} };
    bed.models.answers = [ask(call('c1', 'read'), call('c2', 'write')), say('done')];
    await bed.start();
    expect((await bed.eventsOf('hook_returned')).filter(({ failure }) => failure)).toEqual([]);
    const statuses = (await bed.eventsOf('call_ended')).map(({ call_id, status }) => [call_id, status]);
    expect(Object.fromEntries(statuses)).toEqual({ c1: 'ok', c2: 'denied' });
  });

  test('with a reason refuses without a handler; with a bound truncates its handler’s result', async () => {
    const bed = await bedWith([
      hook('PreToolUse', 'deny', { pattern: 'write', deny: 'read only' }),
      hook('PostToolUse', 'cut', { max_output: 10 }),
    ]);
    bed.tools = { read: { run: async () => answer('x'.repeat(100)) }, write: {} };
    bed.hooks.handlers = { cut: returns(undefined), deny: throws };
    bed.models.answers = [ask(call('c1', 'read'), call('c2', 'write')), say('done')];
    await bed.start();
    expect(asked(bed)).toEqual(['cut']);
    const [denied, cut] = await bed.eventsOf('call_ended');
    expect(denied).toMatchObject({ status: 'denied', denial: { hook: 'deny', reason: 'read only' } });
    expect(cut?.result.content).toEqual([{ type: 'text', text: 'x'.repeat(10) }]);
  });

  test('sees calls that threw, and the flag follows the last rewrite', async () => {
    const bed = await bedWith([hook('PostToolUse', 'one'), hook('PostToolUse', 'two')]);
    bed.tools = { read: { run: async () => answer('broken', 'error') } };
    bed.hooks.handlers = { one: returns({ is_error: false }), two: returns('mended') };
    await bed.start();
    expect(bed.hooks.asked.map(({ payload }) => payload.is_error)).toEqual([true, false]);
    expect(await bed.eventsOf('call_ended')).toMatchObject([{ status: 'ok', is_error: false }]);
  });

  test('too many of them, or a duplicate, make the table invalid: no run starts with it', async () => {
    const bed = await bedWith([hook('post_turn', 'h'), hook('post_turn', 'h')]);
    await bed.start();
    expect((await bed.eventsOf('agent_end'))[0]?.error?.code).toBe('hooks_invalid');
  });
});

describe('a table that changes', () => {
  const slow = (bed: TestBed) => {
    bed.models.answers = [{ ...ask(call('c1', 'read')), delayMs: 100 }, say('done', { delayMs: 100 })];
  };

  test('is recorded as an input, and applies from then on', async () => {
    const bed = await bedWith([], slow);
    await bed.start();
    bed.hooks.change([hook('PreToolUse', 'late')]);
    await bed.time.advance(300);
    expect((await bed.records()).filter(({ input }) => input.type === 'hooks_changed')).toHaveLength(1);
    expect(asked(bed)).toEqual(['late']);
  });

  test('of one tenant concerns the sessions of that tenant', async () => {
    const bed = await bedWith([], slow);
    await bed.start();
    const changes = async () => (await bed.records()).filter(({ input }) => input.type === 'hooks_changed').length;
    bed.hooks.change([hook('PreToolUse', 'late')], TenantId.parse('other'));
    await bed.time.settle();
    expect(await changes()).toBe(0);
    bed.hooks.change([hook('PreToolUse', 'late')], DEFAULT_TENANT);
    await bed.time.settle();
    expect(await changes()).toBe(1);
  });

  test('that is equal leaves no record; nor does a change between runs, which the next run records', async () => {
    const bed = await bedWith([hook('post_turn', 'h')], slow);
    await bed.start();
    bed.hooks.change([hook('post_turn', 'h')]);
    await bed.time.advance(300);
    bed.hooks.change([]);
    await bed.time.settle();
    expect((await bed.records()).filter(({ input }) => input.type === 'hooks_changed')).toEqual([]);
    await bed.send('prompt', { body: 'again' });
    await bed.time.advance(300);
    expect((await bed.eventsOf('hooks_changed')).map(({ table }) => table.length)).toEqual([1, 0]);
  });

  test('does not affect an open consultation: its hooks answer, by the previous policy', async () => {
    const bed = await bedWith([hook('PreToolUse', 'h', { on_error: 'fail_open', timeout_ms: 1_000 })]);
    bed.hooks.handlers = { h: silent };
    await bed.start();
    bed.hooks.change([hook('PreToolUse', 'h', { on_error: 'fail_closed' }), hook('PreToolUse', 'new')]);
    await bed.time.advance(1_000);
    expect(await bed.eventsOf('hook_returned')).toMatchObject([{ hook: 'h', failure: { code: 'hook_timeout' } }]);
    expect(bed.toolSource.runs).toHaveLength(1);
  });

  test('is recorded by a session’s next host before it acts', async () => {
    const bed = testBed();
    slow(bed);
    const before = await bed.host();
    await bed.start();
    const first = (await bed.records()).length;
    before.abandon();
    bed.hooks.registrations = [hook('PreToolUse', 'late')];
    await bed.host();
    await bed.time.advance(300);
    const inputs = (await bed.records()).slice(first).map(({ input }) => input.type);
    expect(inputs.slice(0, 2)).toEqual(['owned', 'hooks_changed']);
    expect(asked(bed)).toEqual(['late']);
  });
});

test('every sent payload matches the schema of its point', async () => {
  const points = [
    'session_start',
    'PreToolUse',
    'gate_tool_calls',
    'PostToolUse',
    'loop_checkpoint',
    'post_finish',
  ] as const;
  const bed = await bedWith(points.map((point) => hook(point, point)));
  bed.hooks.handlers = { gate_tool_calls: returns([{ allow: true }]) };
  await bed.start();
  for (const { point, payload } of await bed.eventsOf('hook_call'))
    expect([point, HOOK_PAYLOADS[point].safeParse(payload).error]).toEqual([point, undefined]);
});
