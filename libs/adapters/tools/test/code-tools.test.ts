/** Tools of the embedding program, and several sources as one. */
import { setTimeout as delay } from 'node:timers/promises';
import type { ToolSource, Toolset } from '@coxswain/ports';
import { sessionRef, type Tool, ToolDefinitionError } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { combineToolSources, createBuiltInTools, createCodeTools } from '../src/mod.ts';
import { codeOf, freshGround, openTools, textOf } from './session-tools.ts';

const schema = { type: 'object' };
const tool = (name: string, execute: Tool['execute']): Tool => ({
  name,
  description: name,
  inputSchema: schema,
  execute,
});

async function opened(...definitions: Tool[]) {
  const { root } = await freshGround();
  return { root, ...(await openTools(createCodeTools(definitions), root)) };
}

describe('a code tool', () => {
  test('is shown as it was given', async () => {
    const { toolset } = await opened({ ...tool('add', () => ''), idempotent: true });
    expect(toolset.tools).toEqual([
      {
        name: 'add',
        description: 'add',
        input_schema: schema,
        source: 'code',
        traits: { idempotent: true, long_running: false, sequential: false, terminates: false },
      },
    ]);
  });

  test('is given its arguments and what it must know of its call', async () => {
    const shown: string[] = [];
    const { root, call } = await opened(
      tool('look', async (args, { toolCallId, idempotencyKey, ref, root, progress, abortSignal }) => {
        progress('looking');
        return JSON.stringify({ args, toolCallId, idempotencyKey, ref, root, aborted: abortSignal.aborted });
      }),
    );
    const outcome = await call('look', { a: 1 }, undefined, (text) => shown.push(text));
    expect(JSON.parse(textOf(outcome))).toEqual({
      args: { a: 1 },
      toolCallId: 'c1',
      idempotencyKey: 'default.s1.c1',
      ref: { tenant: 'default', sessionId: 's1' },
      root,
      aborted: false,
    });
    expect(shown).toEqual(['looking']);
  });

  test('may tell the model more than its result', async () => {
    const { call, feedback } = await opened(
      tool('look', (_args, context) => {
        context.feedback('the figures are of last night');
        return '7';
      }),
    );
    expect(textOf(await call('look', {}))).toBe('7');
    expect(feedback).toEqual(['the figures are of last night']);
  });

  test.each<[string, Tool['execute'], string, string]>([
    ['a string', () => 'text', 'ok', 'text'],
    ['a result', async () => ({ content: [{ type: 'text', text: 'whole' }], isError: false }), 'ok', 'whole'],
    ['a result that is an error', () => ({ content: [{ type: 'text', text: 'no' }], isError: true }), 'error', 'no'],
    ['an object', () => ({ answer: 42 }), 'ok', '{"answer":42}'],
    ['a list', async () => [1, 'two'], 'ok', '[1,"two"]'],
    ['a number', () => 5, 'ok', '5'],
    ['null', () => null, 'ok', 'null'],
    ['nothing at all', () => undefined, 'ok', ''],
    [
      'a bigint in an object',
      () => ({ n: 1n }),
      'error',
      'cannot be written as JSON: Do not know how to serialize a BigInt',
    ],
    ['a function', () => () => 'x', 'error', 'an invalid result: a function has no JSON'],
    ['an object with content that is no list', () => ({ content: 'no list' }), 'error', 'content'],
    [
      'a result with a name of the wire',
      () => ({ content: [], is_error: true }),
      'error',
      'is_error is unknown; did you mean isError?',
    ],
  ])('that returns %s', async (_name, run, status, text) => {
    const { call } = await opened(tool('t', run));
    const outcome = await call('t', {});
    expect(outcome.status).toBe(status);
    expect(textOf(outcome)).toContain(text);
  });

  test.each<[string, Tool['execute']]>([
    [
      'throws',
      () => {
        throw new Error('it broke');
      },
    ],
    ['rejects', () => Promise.reject(new Error('it broke'))],
    [
      'throws what is no error',
      () => {
        throw 'it broke';
      },
    ],
    [
      'rejects with an error whose message is no text',
      () => Promise.reject(Object.assign(new Error(), { message: ['it broke'] })),
    ],
  ])('that %s is an error outcome', async (_name, run) => {
    const { call } = await opened(tool('t', run));
    const outcome = await call('t', {});
    expect([outcome.status, codeOf(outcome), textOf(outcome)]).toEqual(['error', 'tool_failed', 'it broke']);
  });

  test('that throws a value that cannot be converted to text is an error outcome', async () => {
    const { call } = await opened(tool('t', () => Promise.reject(Object.create(null))));
    const outcome = await call('t', {});
    expect([outcome.status, textOf(outcome)]).toEqual(['error', 'it threw a value that cannot be converted to text']);
  });

  test('that stops because it is told to is cancelled; one that finishes first is not', async () => {
    const { call } = await opened(
      tool('stops', async (_args, { abortSignal: signal }) => {
        await delay(60_000, undefined, { signal });
        return 'never';
      }),
      tool(
        'finishes',
        (_args, { abortSignal: signal }) =>
          new Promise((resolve) => signal.addEventListener('abort', () => resolve('done'))),
      ),
    );
    const abort = new AbortController();
    const both = Promise.all([call('stops', {}, abort.signal), call('finishes', {}, abort.signal)]);
    abort.abort();
    expect((await both).map(({ status }) => status)).toEqual(['cancelled', 'ok']);
  });

  test.each([
    ['a name with other characters', [tool('a b', () => '')]],
    ['no name', [tool('', () => '')]],
    ['the same name twice', [tool('a', () => ''), tool('a', () => '')]],
  ])('with %s is a mistake that is thrown', (_name, definitions) => {
    expect(() => createCodeTools(definitions)).toThrow(ToolDefinitionError);
  });
});

describe('combined sources', () => {
  const failing = (message: string): ToolSource => ({ open: async () => ({ code: 'mcp_server_failed', message }) });

  /** A source that says when it is closed, and opens when it is told to. */
  function watched(name: string, gate: Promise<unknown> = Promise.resolve()) {
    const state = { opening: false, closed: 0 };
    const source: ToolSource = {
      async open(spec, signal) {
        state.opening = true;
        await gate;
        const toolset = (await createCodeTools([tool(name, () => `from ${name}`)]).open(spec, signal)) as Toolset;
        return {
          ...toolset,
          close: async () => {
            state.closed += 1;
            return [`${name} is closed`];
          },
        };
      },
    };
    return { source, state };
  }
  const spec = { ref: sessionRef('s1'), root: '/', mcpServers: {} };
  const { signal } = new AbortController();

  test('are opened side by side and keep their order', async () => {
    let open = () => {};
    const first = watched(
      'a',
      new Promise<void>((resolve) => {
        open = resolve;
      }),
    );
    const second = watched('b');
    const opening = combineToolSources([first.source, second.source]).open(spec, signal);
    expect([first.state.opening, second.state.opening]).toEqual([true, true]);
    open();
    const toolset = (await opening) as Toolset;
    expect(toolset.tools.map(({ name }) => name)).toEqual(['a', 'b']);
    expect(await toolset.close()).toEqual(['a is closed', 'b is closed']);
  });

  test('run a call where its tool is', async () => {
    const { root } = await freshGround();
    const { call, toolset } = await openTools(
      combineToolSources([createBuiltInTools(), createCodeTools([tool('mine', () => 'from mine')])]),
      root,
    );
    expect(textOf(await call('mine', {}))).toBe('from mine');
    expect(textOf(await call('list_files', {}))).toBe('[the folder is empty]');
    expect((await call('other', {})).status).toBe('unavailable');
    expect(await toolset.probe('k', 'mine', 1)).toEqual({ state: 'unknown' });
    expect(await toolset.probe('k', 'other', 1)).toEqual({ state: 'unknown' });
  });

  test('fail with the first failure by order, and close what was opened', async () => {
    const { source, state } = watched('a');
    const combined = combineToolSources([source, failing('first'), failing('second')]);
    expect(await combined.open(spec, signal)).toEqual({ code: 'mcp_server_failed', message: 'first (a is closed)' });
    expect(state.closed).toBe(1);
  });

  test('fail when two have a tool of the same name', async () => {
    const [one, other] = [watched('a'), watched('a')];
    const failure = await combineToolSources([one.source, other.source]).open(spec, signal);
    expect(failure).toMatchObject({
      code: 'provision_failed',
      message: expect.stringContaining('two tools are named a'),
    });
    expect([one.state.closed, other.state.closed]).toEqual([1, 1]);
  });

  test('stand behind the others where they yield, and give way to a tool of the same name', async () => {
    const [bus, own, other] = [watched('a'), watched('a'), watched('b')];
    const strangers: ToolSource = { hasLowerPrecedence: true, open: bus.source.open };
    const toolset = await combineToolSources([strangers, own.source, other.source]).open(spec, signal);
    if (!('call' in toolset)) throw new Error(toolset.message);
    expect(toolset.tools.map(({ name }) => name)).toEqual(['a', 'b']);
    await toolset.close();
    expect(bus.state.closed).toBe(1);
  });

  test('close the others when one throws, although it must not', async () => {
    const { source, state } = watched('a');
    const rude: ToolSource = { open: () => Promise.reject(new Error('rude')) };
    const failure = await combineToolSources([source, rude]).open(spec, signal);
    expect(failure).toMatchObject({ code: 'provision_failed', message: expect.stringContaining('rude') });
    expect(state.closed).toBe(1);
  });

  test('a name that appears twice later belongs to the first', async () => {
    const tools = [{ ...((await watched('b').source.open(spec, signal)) as Toolset).tools[0] }];
    const changing: ToolSource = {
      open: async (...args) => {
        const toolset = (await watched('b').source.open(...args)) as Toolset;
        return Object.defineProperty({ ...toolset }, 'tools', { get: () => tools }) as Toolset;
      },
    };
    const toolset = (await combineToolSources([watched('a').source, changing]).open(spec, signal)) as Toolset;
    tools.push({ ...tools[0], name: 'a' });
    expect(toolset.tools.map(({ name }) => name)).toEqual(['a', 'b']);
  });

  test('none at all is a toolset without tools', async () => {
    const toolset = (await combineToolSources([]).open(spec, signal)) as Toolset;
    expect(toolset.tools).toEqual([]);
    expect(await toolset.close()).toEqual([]);
  });
});
