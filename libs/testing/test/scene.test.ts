import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { defineHooks, definePersona, defineTool, type ToolCallContext } from '@coxswain/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  approve,
  atSeam,
  calls,
  cancel,
  cancelCall,
  deny,
  during,
  duringAnswer,
  followup,
  given,
  type Journal,
  prompt,
  remind,
  resume,
  says,
  signal,
  steer,
  suspend,
  wait,
} from '../src/mod.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'testing-'));
});
afterAll(() => rm(folder, { recursive: true }));

const clerk = definePersona({ name: 'clerk', prompt: 'You count.', permissions: { default: 'allow' } });

const countWords = defineTool({
  name: 'count_words',
  description: 'How many words a text has.',
  schema: {
    type: 'object',
    properties: { text: { type: 'string' } },
    required: ['text'],
    additionalProperties: false,
  },
  run: ({ text }) => `${String(text).split(/\s+/).filter(Boolean).length} words`,
});

const counting = [calls('count_words', { text: 'one two' }), says('Two words.')];

test('a prompt runs to its end, and the journal says what happened', async () => {
  const journal = await given({ persona: clerk, model: counting, tools: [countWords] }).when(prompt('How many?'));
  expect(journal.of('call_started').map(({ tool, args }) => [tool, args])).toEqual([
    ['count_words', { text: 'one two' }],
  ]);
  journal
    .expect('prompt_received', { type: 'call_ended', tool: 'count_words', status: 'ok' }, 'agent_end')
    .expectNone('run_failed')
    .expectCalls([{ tool: 'count_words', status: 'ok', text: '2 words' }])
    .expectMessage({ role: 'user', text: 'How many?' })
    .expectResult({ stopReason: 'end_turn', text: 'Two words.', turns: 2 });
  await journal.expectReplay();
});

test('the value of an output schema is part of the result', async () => {
  const output = { type: 'object', properties: { words: { type: 'integer' } }, required: ['words'] };
  const answers = [says('Two words.'), says('{"words": 2}')];
  const journal = await given({ persona: clerk, model: answers, start: { output } }).when(prompt('How many?'));
  journal.expect({ type: 'output_rejected', turn: 1 }).expectResult({ output: { words: 2 }, turns: 2 });
});

test('the same scene gives the same bytes', async () => {
  const play = () => given({ persona: clerk, model: counting, tools: [countWords] }).when(prompt('How many?'));
  const [one, two] = [await play(), await play()];
  expect(one.bytes.map((bytes) => Buffer.from(bytes).toString())).toEqual(
    two.bytes.map((bytes) => Buffer.from(bytes).toString()),
  );
});

test('a session goes on over several prompts, and only what was added is looked at', async () => {
  const scene = given({ persona: clerk, model: [says('One.'), says('Two.')] });
  await scene.when(prompt('first'));
  const journal = await scene.when(prompt('second'));
  journal.added.expect('prompt_received').expectResult({ text: 'Two.', run: 2 });
  expect(journal.of('agent_end')).toHaveLength(2);
  expect(journal.added.of('agent_end')).toHaveLength(1);
});

describe('tools', () => {
  test('may be functions by name, take their time, and throw', async () => {
    const journal = await given({
      persona: clerk,
      model: [calls('fetch', { url: 'x' }), calls('fail'), says('So.')],
      tools: {
        fetch: async ({ url }) => {
          await sleep(20);
          return `the page of ${url}`;
        },
        fail: () => {
          throw new Error('no such thing');
        },
      },
    }).when(prompt('go'));
    journal.expectCalls([
      { tool: 'fetch', status: 'ok', text: 'the page of x' },
      { tool: 'fail', status: 'error', text: 'no such thing' },
    ]);
  });

  test('get arguments that fit their schema, or are not run', async () => {
    const journal = await given({
      persona: clerk,
      model: [calls('count_words', { txet: 'a' }), says('So.')],
      tools: [countWords],
    }).when(prompt('go'));
    journal.expectNone('call_started').expectCalls([{ tool: 'count_words', status: 'error', text: /txet|text/ }]);
  });

  test('that are built in work on a folder, and give way to those of the test', async () => {
    await writeFile(join(folder, 'notes.txt'), 'the tide turns at six');
    const journal = await given({
      persona: clerk,
      root: folder,
      model: [calls('read_file', { path: 'notes.txt' }), calls('list_files', {}), says('So.')],
      tools: { list_files: 'nothing here' },
    }).when(prompt('go'));
    journal.expectCalls([
      { tool: 'read_file', status: 'ok', text: /the tide turns at six/ },
      { tool: 'list_files', status: 'ok', text: 'nothing here' },
    ]);
  });
});

describe('approvals', () => {
  const asking = definePersona({
    name: 'careful',
    prompt: 'You ask.',
    permissions: { rules: [{ tool: 'pay', action: 'ask' }], default: 'allow' },
  });
  const paying = [calls('pay', { amount: 5 }), says('Done.')];

  test('a call waits for a person, and runs as it was allowed', async () => {
    const scene = given({ persona: asking, model: paying, tools: { pay: ({ amount }) => `paid ${amount}` } });
    const waiting = await scene.when(prompt('pay'));
    expect(waiting.state).toBe('function_awaiting_approval');
    const journal = await scene.when(approve({ tool: 'pay', args: { amount: 3 } }));
    journal.expectCalls([{ tool: 'pay', status: 'ok', text: 'paid 3', args: { amount: 3 } }]);
  });

  test('an edit that a hook denies leaves the call waiting', async () => {
    const atMost4 = defineHooks({
      PreToolUse: ({ tool }) => ((tool.args as { amount: number }).amount > 4 ? { deny: 'over 4' } : undefined),
    });
    const model = [calls('pay', { amount: 2 }), says('Done.')];
    const scene = given({ persona: asking, model, tools: { pay: ({ amount }) => `paid ${amount}` }, hooks: atMost4 });
    const journal = await scene.when(prompt('pay'), approve({ args: { amount: 5 } }));
    journal.expect({ type: 'command_rejected', code: 'edited_call_denied' }).expectNone('call_started');
    const later = await scene.when(approve({ args: { amount: 3 } }));
    later.expectCalls([{ tool: 'pay', status: 'ok', text: 'paid 3', args: { amount: 3 } }]);
  });

  test('a call that is refused never runs', async () => {
    const journal = await given({ persona: asking, model: paying, tools: { pay: 'paid' } }).when(
      prompt('pay'),
      deny({ reason: 'not today' }),
    );
    journal.expectNone('call_started').expectCalls([{ tool: 'pay', status: 'denied', text: /not today/ }]);
  });
});

describe('hooks', () => {
  const policy = defineHooks({
    PreToolUse: { pattern: 'pay', handler: ({ tool }) => ({ deny: `${tool.name} is not for today` }) },
    UserPromptSubmit: ({ prompt: text }) => (/secret/.test(text) ? { block: true, reason: 'no secrets' } : true),
  });

  test('decide about calls', async () => {
    const journal = await given({
      persona: clerk,
      model: [calls('pay'), says('Then not.')],
      tools: { pay: 'paid' },
      hooks: policy,
    }).when(prompt('pay'));
    journal
      .expect('hook_vetoed', { type: 'call_ended', tool: 'pay', status: 'denied' })
      .expectNone('call_started')
      .expectCalls([{ tool: 'pay', text: /not for today/ }]);
  });

  test('decide about prompts and steering', async () => {
    const blocked = await given({ persona: clerk, model: [says('Hm.')], hooks: policy }).when(prompt('a secret'));
    blocked.expectResult({ stopReason: 'user_prompt_submit_blocked' });
    const steered = await given({ persona: clerk, model: counting, tools: [countWords], hooks: policy }).when(
      prompt('How many?'),
      atSeam('post_tool_dispatch', steer('the secret')),
    );
    steered.expect('injection_blocked').expectNone('message_injected');
  });

  test('are read from a file as well', async () => {
    const file = join(folder, 'policy.mjs');
    await writeFile(file, `export default { PreToolUse: () => ({ deny: 'by the file' }) };`);
    const journal = await given({ persona: clerk, model: counting, tools: [countWords], hooks: file }).when(
      prompt('go'),
    );
    journal.expectCalls([{ status: 'denied', text: /by the file/ }]);
  });

  test('of a persona run with it', async () => {
    const persona = definePersona({
      name: 'strict',
      permissions: { default: 'allow' },
      hooks: [{ event: 'PreToolUse', handler: () => ({ deny: 'by the persona' }) }],
    });
    const journal = await given({ persona, model: counting, tools: [countWords] }).when(prompt('go'));
    journal.expectCalls([{ status: 'denied', text: /by the persona/ }]);
  });
});

describe('steering', () => {
  const scene = () => given({ persona: clerk, model: counting, tools: [countWords], start: { maxTurns: 5 } });

  test.each([
    ['iteration_start', 'finish_step'],
    ['post_tool_dispatch', 'finish_step'],
    ['iteration_end', 'finish_step'],
    ['loop_exit', 'audit_only'],
    ['pre_tool_dispatch', 'interrupt_immediate'],
  ] as const)('arrives at the seam %s, as %s', async (seam, mode) => {
    const journal = await given({
      persona: clerk,
      model: [...counting, says('More.')],
      tools: [countWords],
    }).when(prompt('go'), atSeam(seam, steer('be brief')));
    journal.expect({ type: 'steering_received', mode }, { type: 'message_injected', seam });
  });

  test('arrives before a daemon waits, while a hook is asked, and after it has waited', async () => {
    const daemon = (hooks = {}) =>
      given({
        persona: { name: 'watch', daemon: {} },
        model: [says('One.'), says('Two.'), says('Three.')],
        hooks: defineHooks(hooks),
      });
    const before = await daemon({ SessionIdle: () => undefined }).when(
      prompt('go'),
      atSeam('daemon_idle_pre', steer('not yet')),
    );
    before.expect('steering_received', { type: 'message_injected', seam: 'daemon_idle_pre' });
    expect(before.state).toBe('daemon_idle');

    const own = definePersona({
      name: 'watch',
      daemon: {},
      hooks: [{ event: 'SessionIdle', handler: () => undefined }],
    });
    (
      await given({ persona: own, model: [says('One.'), says('Two.')] }).when(
        prompt('go'),
        atSeam('daemon_idle_pre', steer('not yet')),
      )
    ).expect({ type: 'message_injected', seam: 'daemon_idle_pre' });

    const after = await daemon().when(
      prompt('go'),
      atSeam('daemon_idle_post', steer('wake up')),
      atSeam('daemon_idle_post', remind('it is noon')),
    );
    after
      .expect({ type: 'message_injected', seam: 'daemon_idle_post' })
      .expectMessage({ role: 'user', text: /wake up/ })
      .expectMessage({ role: 'reminder', text: /it is noon/ });
    await after.expectReplay();
  });

  test('what a tool says as feedback arrives at the seams of compaction', async () => {
    const tool = {
      ...countWords,
      run: (_: unknown, { feedback }: ToolCallContext) => {
        feedback('ahoy');
        return 'one word';
      },
    };
    const journal = await given({ persona: clerk, model: counting, tools: [tool] }).when(prompt('go'));
    journal.expect('feedback_received', { type: 'message_injected', seam: 'pre_compact' });
  });

  test('a reminder goes the same way', async () => {
    const journal = await scene().when(prompt('go'), atSeam('post_tool_dispatch', remind('the tide turns')));
    journal.expect({ type: 'reminder_fired', seam: 'post_tool_dispatch' }).expectMessage({
      role: 'reminder',
      text: /the tide turns/,
    });
  });

  test('arrives while a tool is at work, and while an answer is made', async () => {
    const journal = await scene().when(
      prompt('go'),
      duringAnswer(1, steer('first')),
      during('count_words', steer('second')),
    );
    journal.expect('steering_received', 'call_started', 'steering_received', 'message_injected', 'message_injected');
  });

  test('a follow-up is done when the run would end', async () => {
    const journal = await given({ persona: clerk, model: [says('One.'), says('Two.')] }).when(
      prompt('go'),
      duringAnswer(1, followup('and then?')),
    );
    journal
      .expect('followup_received', { type: 'message_injected', origin: 'followup' })
      .expectResult({ text: 'Two.' });
  });

  test('a call that hears of it is cancelled, and so is a run', async () => {
    const slow = {
      count_words: (_: unknown, { signal: stop }: { signal: AbortSignal }) =>
        new Promise<string>((_resolve, reject) => {
          stop.addEventListener('abort', () => reject(stop.reason), { once: true });
        }),
    };
    const one = await given({ persona: clerk, model: counting, tools: slow }).when(
      prompt('go'),
      during('count_words', cancelCall({}, 'too slow')),
    );
    one.expectCalls([{ status: 'cancelled' }]).expectResult({ stopReason: 'end_turn' });
    const all = await given({ persona: clerk, model: counting, tools: slow }).when(
      prompt('go'),
      during('count_words', cancel()),
    );
    all.expectResult({ stopReason: 'cancelled' });
  });
});

describe('time', () => {
  test('passes when the scene lets it, and costs nothing', async () => {
    const journal = await given({
      persona: clerk,
      model: [{ text: 'Slow.', delayMs: 600_000 }],
    }).when(prompt('go'));
    journal.expectResult({ text: 'Slow.' });
    const [first, last] = [journal.records[0], journal.records.at(-1)];
    expect(Date.parse(last?.at ?? '') - Date.parse(first?.at ?? '')).toBeGreaterThanOrEqual(600_000);
  });

  test('a suspended session wakes by a signal, by a command, or when its time has come', async () => {
    const asleep = () => given({ persona: clerk, model: [says('One.'), says('Two.')] });
    const bySignal = asleep();
    const waiting = await bySignal.when(prompt('go'), duringAnswer(1, suspend({ signal: 'tide' })));
    expect(waiting.state).toBe('suspended');
    (await bySignal.when(signal('tide'))).expect({ type: 'resumed', cause: 'signal' });
    (await asleep().when(prompt('go'), duringAnswer(1, suspend()), resume())).expect('suspended', 'resumed');
  });

  test('an approval that nobody gives expires', async () => {
    const persona = definePersona({
      name: 'careful',
      permissions: { default: 'ask', expireAfterMs: 60_000 },
    });
    const scene = given({ persona, model: counting, tools: [countWords] });
    const journal = await scene.when(prompt('go'), wait(120_000));
    journal.expectCalls([{ status: 'denied' }]);
  });
});

describe('personas', () => {
  test('are read from a file, and from a module with its tools', async () => {
    const yaml = join(folder, 'clerk.yaml');
    await writeFile(yaml, 'name: filed\nprompt: You count.\npermissions: { default: allow }\n');
    (await given({ persona: yaml, model: counting, tools: [countWords] }).when(prompt('go'))).expectCalls([
      { status: 'ok' },
    ]);
    const module = join(folder, 'clerk.mjs');
    await writeFile(
      module,
      `export default { name: 'coded', permissions: { default: 'allow' } };
       export const tools = [{ name: 'count_words', description: 'counts', schema: { type: 'object' }, run: () => 'two' }];`,
    );
    (await given({ persona: module, model: counting }).when(prompt('go'))).expectCalls([{ text: 'two' }]);
  });

  test('delegate to each other', async () => {
    const lead = definePersona({ name: 'lead', prompt: 'You lead.', permissions: { default: 'allow' } });
    const journal = await given({
      persona: lead,
      crew: [definePersona({ name: 'reader', prompt: 'You read.' })],
      model: [
        { matchSystem: 'You lead', ...calls('delegate', { persona: 'reader', prompt: 'read this' }) },
        { matchSystem: 'You read', text: 'It says six.' },
        { matchSystem: 'You lead', text: 'Six, then.' },
      ],
    }).when(prompt('What does it say?'));
    journal.expect('child_started', 'child_ended').expectResult({ text: 'Six, then.' });
  });
});

test('a session goes on from a recorded journal, and from the middle of it', async () => {
  const file = join(folder, 'recorded.jsonl');
  const scene = given({ persona: clerk, model: counting, tools: [countWords] });
  await (await scene.when(prompt('How many?'))).save(file);

  const next = await given({ journal: file, model: [says('a'), says('b'), says('Three.')] }).when(prompt('And now?'));
  next.added.expect('prompt_received').expectResult({ run: 2 });
  expect(next.of('call_started')).toHaveLength(1);
  await next.expectReplay();
});

describe('of a recorded journal only the records up to one', () => {
  const record = async (name: string) => {
    const file = join(folder, name);
    const whole = await given({ persona: clerk, model: counting, tools: [countWords] }).when(prompt('How many?'));
    await whole.save(file);
    return { file, whole };
  };
  /** How many records there are up to the first that has this event. */
  const upToEvent = (journal: Journal, type: string) =>
    journal.records.findIndex(({ events }) => events.some((event) => event.type === type)) + 1;

  const eventsOf = (journal: Journal, count: number) =>
    journal.records
      .slice(0, count)
      .map(({ events }) => events.map((event) => event.type).filter((type) => type !== 'session_copied'));

  test('are there, and nothing of what came then', async () => {
    const { file, whole } = await record('prefix.jsonl');
    const upTo = upToEvent(whole, 'message_complete');
    const journal = await given({ journal: file, upTo, model: counting }).journal();
    expect(journal.records).toHaveLength(upTo);
    expect(eventsOf(journal, upTo)).toEqual(eventsOf(whole, upTo));
    journal.expect('session_copied', 'message_complete').expectNone('agent_end');
    await journal.expectReplay();
  });

  test('the session goes on from there once something is sent, with the models and tools of now', async () => {
    const { file, whole } = await record('elsewhere.jsonl');
    const upTo = upToEvent(whole, 'message_complete');
    const tools = [{ ...countWords, idempotent: true, run: () => 'ninety' }];
    const scene = given({ journal: file, upTo, model: [says('a'), says('Ninety.')], tools });
    const resumed = await scene.when(steer('go on'));
    resumed.expectMessage({ role: 'user', text: /go on/ }).expectResult({ text: 'Ninety.' });
    whole.expectResult({ text: 'Two words.' });
    await resumed.expectReplay();
  });

  test('a number behind its end takes it whole', async () => {
    const { file, whole } = await record('behind.jsonl');
    const journal = await given({ journal: file, upTo: whole.records.length + 1, model: counting }).journal();
    expect(eventsOf(journal, journal.records.length)).toEqual(eventsOf(whole, whole.records.length));
  });
});
