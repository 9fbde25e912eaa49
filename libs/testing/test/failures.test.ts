/** What a person reads when a test fails. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  approve,
  atSeam,
  calls,
  cancelCall,
  command,
  deny,
  during,
  duringAnswer,
  ExpectationError,
  expectReplay,
  given,
  type Journal,
  prompt,
  remind,
  SceneError,
  says,
  startBus,
  steer,
  suspend,
  wait,
} from '../src/mod.ts';

const persona = { name: 'clerk', permissions: { default: 'allow' } } as const;
const model = [calls('count', { text: 'one two' }), says('Two words.')];
const tools = { count: '2 words' };

let folder: string;
let journal: Journal;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'testing-'));
  journal = await given({ persona, model, tools }).when(prompt('How many?'));
});
afterAll(() => rm(folder, { recursive: true }));

function failure(expectation: () => unknown): ExpectationError {
  try {
    expectation();
  } catch (error) {
    if (error instanceof ExpectationError) return error;
    throw error;
  }
  throw new Error('the expectation held');
}

describe('an expectation that fails', () => {
  test('says which event did not happen, what the nearest was, and shows the journal', () => {
    const { message, expected, actual } = failure(() =>
      journal.expect('call_started', { type: 'call_ended', tool: 'count', status: 'denied' }, 'agent_end'),
    );
    const lines = message.split('\n');
    expect(lines.slice(0, 5)).toEqual([
      'expected these events, in this order (other events may come between them):',
      '  ✓ call_started',
      '  ✗ call_ended {"tool":"count","status":"denied"}',
      '    agent_end',
      'the nearest is in record 4: call_ended c1_1 ok (count); its status: "ok" is not "denied"',
    ]);
    expect(lines.slice(5)).toContain('    4  call_ended c1_1 ok (count)');
    expect(expected).toHaveLength(3);
    expect(actual).toContain('call_ended c1_1 ok (count)');
  });

  test('says so where the event stands earlier, or nowhere', () => {
    expect(failure(() => journal.expect('agent_end', 'call_started')).message).toContain(
      'there is none at this position; an earlier one is in record 3: call_started c1_1 (count)',
    );
    expect(failure(() => journal.expect('run_failed')).message).toContain('there is no run_failed\n');
    expect(failure(() => journal.expect('agent_end', 'agent_end')).message).toContain('an earlier one is');
  });

  test('names the event that must not be', () => {
    const { message } = failure(() => journal.expectNone('run_failed', { type: 'call_started', tool: /^c/ }));
    expect(message.split('\n').slice(0, 2)).toEqual([
      'expected no call_started {"tool":"/^c/"}, and record 3 holds one:',
      '  call_started c1_1 (count)',
    ]);
  });

  test('names the member of a result or a call that is otherwise', () => {
    expect(failure(() => journal.expectResult({ stopReason: 'end_turn', text: /three/ })).message).toContain(
      'result.text: "Two words." does not match /three/',
    );
    expect(failure(() => journal.expectCalls([{ tool: 'count', args: { text: 'one' } }])).message).toContain(
      'calls[0].args.text: "one two" is not "one"',
    );
    expect(failure(() => journal.expectCalls([])).message).toContain('calls: it has 1 members, expected 0');
  });

  test('lists the messages where none is like the one that was expected', () => {
    expect(failure(() => journal.expectMessage({ role: 'user', text: /tide/ })).message).toBe(
      [
        'expected a message {"role":"user","text":"/tide/"} in the transcript, which has:',
        '  user: "How many?"',
        '  assistant: ""',
        '  tool: "2 words"',
        '  assistant: "Two words."',
      ].join('\n'),
    );
  });

  test('says where a session is whose run has not ended', async () => {
    const waiting = await given({ persona: { name: 'asks' }, model, tools }).when(prompt('go'));
    expect(failure(() => waiting.expectResult({ stopReason: 'end_turn' })).message).toMatch(
      /^expected the run to end, and the session is function_awaiting_approval\n/,
    );
  });
});

describe('a replay that fails', () => {
  test('names the record and the member', async () => {
    const file = join(folder, 'recorded.jsonl');
    await journal.save(file);
    expect(await expectReplay(file)).toEqual({ records: journal.records.length, sessionId: 'test' });
    const changed = join(folder, 'changed.jsonl');
    await writeFile(changed, (await readFile(file, 'utf8')).replace('"turn":1,', '"turn":7,'));
    const error = await expectReplay(changed).then(
      () => null,
      (thrown: Error) => thrown,
    );
    expect(error).toBeInstanceOf(ExpectationError);
    expect(error?.message).toMatch(/changed\.jsonl does not replay: record \d+ differs at \/events\/\d+/);
  });

  test('of a file without records fails: nothing was compared', async () => {
    const file = join(folder, 'empty.jsonl');
    await writeFile(file, '\n');
    await expect(expectReplay(file)).rejects.toThrow(/empty\.jsonl cannot be replayed: it has no records/);
    const journal = await given({ persona, model, tools }).journal();
    await expect(journal.expectReplay()).rejects.toThrow('the journal cannot be replayed: it has no records');
  });

  test('says that the file is none', async () => {
    const file = join(folder, 'none.jsonl');
    await writeFile(file, '{"at": 1}\n');
    await expect(expectReplay(file)).rejects.toThrow(/none\.jsonl (cannot be replayed|does not replay)/);
  });
});

describe('a scene that cannot be played says why', () => {
  const scene = (more: object = {}) => given({ persona, model, tools, ...more });
  const problem = async (play: () => Promise<unknown> | unknown): Promise<string> => {
    const thrown = await Promise.resolve()
      .then(play)
      .then(
        () => null,
        (error: Error) => error,
      );
    expect(thrown).toBeInstanceOf(SceneError);
    return thrown?.message ?? '';
  };

  test('an event that is misspelt', async () => {
    expect(await problem(() => journal.expectNone('call_startd' as never))).toContain('did you mean "call_started"?');
  });

  test('an event type that is misspelt where its events are asked for', async () => {
    expect(await problem(() => journal.of('call_startd' as never))).toContain('did you mean "call_started"?');
  });

  test('a member that no event of the type has, which would never be found', async () => {
    const misspelt = { type: 'call_ended', tol: 'count' } as const;
    for (const hold of [() => journal.expectNone(misspelt), () => journal.expect(misspelt)])
      expect(await problem(hold)).toMatch(/^call_ended has no "tol"; did you mean "tool"\? It has: .*status/);
    // An event of a call has its tool, each has its record, and what is optional may be looked for.
    journal.expectNone({ type: 'approval_requested', tool: 'count', n: 1 }, { type: 'call_ended', timed_out: true });
  });

  test('a pattern without a type', async () => {
    expect(await problem(() => journal.expect({ tool: 'count' } as never))).toMatch(/^unknown event nothing: /);
  });

  test('what is no move, and would be left out', async () => {
    expect(await problem(() => scene().when('How many?' as never))).toMatch(/^when\(…\) takes .* not "How many\?"$/);
    expect(await problem(() => scene().when(prompt('go'), undefined as never))).toMatch(/ not nothing$/);
    expect(await problem(() => during('count', 'stop' as never))).toMatch(/^during\("count", …\) takes .* not "stop"$/);
    expect(await problem(() => duringAnswer(1, wait(5) as never))).toMatch(/^duringAnswer\(1, …\) takes /);
    expect(await problem(() => command('frob' as never, {} as never))).toMatch(/^unknown command "frob"; there are /);
  });

  test('a path that leads nowhere, by its key', async () => {
    const nowhere = join(folder, 'nowhere');
    for (const key of ['model', 'journal', 'root'] as const)
      expect(await problem(() => scene({ [key]: nowhere }).when(prompt('go')))).toBe(
        `${key}: there is nothing at ${nowhere}`,
      );
    expect(await problem(() => scene({ model: folder }).when(prompt('go')))).toBe(`model: ${folder} is a folder`);
  });

  test('a journal to cut that is not given, and a scene of nothing', async () => {
    expect(await problem(() => given({ model, upTo: 3 }))).toContain('there is no journal to cut');
    expect(await problem(() => given(undefined as never))).toMatch(/^given\(\{ … \}\) takes an object/);
  });

  test('a key that given does not have', async () => {
    expect(await problem(() => given({ modell: [] } as never))).toMatch(
      /^given\(\{ … \}\) has no "modell"; did you mean "model"\? it has: /,
    );
  });

  // Each would have no effect, and the test would pass or fail for another reason.
  test.each<[what: string, made: () => unknown, says: string]>([
    [
      'approve',
      () => approve({ tol: 'pay' } as never),
      'approve({ … }) has no "tol"; did you mean "tool"? it has: tool, ',
    ],
    ['deny', () => deny({ args: {} } as never), 'deny({ … }) has no "args". it has: tool, callId, remember, reason'],
    [
      'cancelCall',
      () => cancelCall({ reason: 'x' } as never),
      'cancelCall({ … }) has no "reason". it has: tool, callId',
    ],
    ['steer', () => steer('a', { mod: 'steer' } as never), 'steer(…, { … }) has no "mod"; did you mean "mode"?'],
    ['remind', () => remind('a', { ttl: 1 } as never), 'remind(…, { … }) has no "ttl"'],
    ['suspend', () => suspend({ til: 1 } as never), 'suspend({ … }) has no "til"'],
    ['command', () => command('cancel', { why: 'x' } as never), 'command("cancel", { … }) has no "why"'],
    ['approve of no object', () => approve('pay' as never), 'approve({ … }) takes an object, { … }; it has: tool, '],
    ['startBus', () => startBus({ hook: [] } as never), 'startBus({ … }) has no "hook"; did you mean "hooks"?'],
  ])('an unknown key of %s', async (_what, made, says) => {
    expect(await problem(made)).toContain(says);
  });

  test('a scene without a model', async () => {
    expect(await problem(() => given({ persona }).when(prompt('go')))).toContain('the scene has no model');
    expect(await problem(() => given({ persona: { ...persona, model: 'openai/gpt-5' } }).when(prompt('go')))).toContain(
      'the persona asks openai/gpt-5, and a scene calls no real model',
    );
  });

  test('a script that is none', async () => {
    expect(await problem(() => scene({ model: [{ txet: 'a' }] }).when(prompt('go')))).toContain('turns[0]');
  });

  test('a persona that is none', async () => {
    expect(await problem(() => scene({ persona: { name: 'a b' } }).when(prompt('go')))).toContain('name');
  });

  test('a start that is refused', async () => {
    expect(await problem(() => scene({ start: { maxTurns: 0 } }).when(prompt('go')))).toMatch(
      /the session was not started: invalid_field: .*max_turns/,
    );
  });

  test('a command before the first prompt', async () => {
    expect(await problem(() => scene().when(steer('now')))).toBe(
      'steer was sent before the session started: send a prompt first',
    );
  });

  test('a call that does not wait, or that is one of several', async () => {
    expect(await problem(() => scene().when(prompt('go'), approve({ tool: 'count' })))).toBe(
      'approve: no call of count waits for a person; those that do: none',
    );
    const two = [{ calls: [{ tool: 'count' }, { tool: 'count' }] }, says('So.')];
    expect(await problem(() => scene({ persona: { name: 'asks' }, model: two }).when(prompt('go'), deny()))).toBe(
      'approve: more than one call waits for a person (c1_1 of count, c1_2 of count): say which by { tool } or { callId }',
    );
  });

  test('a seam that does not take it, that there is not, or that is not passed', async () => {
    expect(await problem(() => atSeam('pre_tool_dispatch', steer('a', { mode: 'finish_step' })))).toBe(
      'atSeam("pre_tool_dispatch", …): this seam takes interrupt_immediate, not finish_step',
    );
    expect(await problem(() => atSeam('nowhere' as never, steer('a')))).toContain('unknown seam "nowhere"');
    for (const seam of ['pre_compact', 'post_compact'] as const)
      expect(await problem(() => atSeam(seam, steer('a')))).toMatch(
        /is ever delivered at this seam, which takes feedback alone: .* context\.feedback\(…\), or use iteration_start, /,
      );
    const never = (seam: 'daemon_idle_pre' | 'daemon_idle_post') =>
      problem(() => scene({ model: [says('So.')] }).when(prompt('go'), atSeam(seam, steer('a'))));
    expect(await never('daemon_idle_pre')).toContain('no SessionIdle hook was asked');
    expect(await never('daemon_idle_post')).toContain('its persona needs daemon: {}');
    expect(await problem(() => atSeam('iteration_end', cancelCall()))).toContain('takes steer or remind');
    expect(
      await problem(() => scene({ model: [says('So.')] }).when(prompt('go'), atSeam('post_tool_dispatch', steer('a')))),
    ).toMatch(/^atSeam\("post_tool_dispatch", steer\(…\)\) was never sent: .* it passed: iteration_start, /);
  });

  test('a moment that never came', async () => {
    expect(await problem(() => scene().when(prompt('go'), during('pay', steer('a'))))).toBe(
      'during("pay", steer(…)) was never sent: no call of pay was made; calls were made of: count',
    );
  });

  test('a tool that never ends', async () => {
    const never = { count: () => new Promise<string>(() => undefined) };
    expect(await problem(() => scene({ tools: never, patienceMs: 50 }).when(prompt('go')))).toContain(
      'the tool count has not finished within 50 ms',
    );
  });

  test('a session that does not rest', async () => {
    const slow = [{ text: 'a', delayMs: 10_000 }];
    expect(await problem(() => scene({ model: slow, withinMs: 1_000 }).when(prompt('go')))).toMatch(
      /^the session has not become idle within 1000 ms of its own time: it is in assistant_streaming/,
    );
    expect(await problem(() => wait(-1))).toContain('wait(-1)');
  });
});
