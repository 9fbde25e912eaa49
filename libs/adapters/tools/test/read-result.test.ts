/** read_result: more of a result that was cut, within the bounds of a result. */
import type { ResultPiece, Toolset, WholeResults } from '@coxswain/ports';
import { BOUNDS, type JsonObject, sessionRef } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { createBuiltInTools } from '../src/mod.ts';
import { builtIns, codeOf, freshGround, textOf } from './session-tools.ts';

/** Opens the built-ins of a session that keeps one result. */
async function reading(read: WholeResults['read']) {
  const { root } = await freshGround();
  const spec = { ref: sessionRef('s1'), root, mcpServers: {}, results: { read } };
  const toolset = (await createBuiltInTools().open(spec, new AbortController().signal)) as Toolset;
  const head = {
    idempotencyKey: 'k',
    ref: spec.ref,
    callId: 'c',
    tool: 'read_result',
    epoch: 1,
    onProgress: () => {},
    onFeedback: () => {},
  };
  return (args: JsonObject) => toolset.call({ ...head, args }, new AbortController().signal);
}
const piece = (text: string, next: number | null, bytes = 1_000_000): ResultPiece => ({
  text,
  offset: 10,
  next,
  bytes,
});

test('it is there only where the session keeps results', async () => {
  const { toolset } = await builtIns();
  expect(toolset.tools.map(({ name }) => name)).not.toContain('read_result');
});

describe('a piece', () => {
  test('comes exactly, with where to go on', async () => {
    const call = await reading(async () => piece('exactly this', 22));
    const outcome = await call({ ref: 'a'.repeat(64) });
    expect(outcome.result.content).toEqual([
      { type: 'text', text: 'exactly this' },
      { type: 'text', text: '[bytes 10 to 22 of 1000000: read more with offset 22]' },
    ]);
    expect(outcome.result.detail).toEqual({ bytes: 1_000_000, next_offset: 22 });
  });

  test('at the end says so', async () => {
    const call = await reading(async () => piece('fin', null, 13));
    expect(textOf(await call({ ref: 'a'.repeat(64), offset: 10 }))).toBe('fin\n[bytes 10 to 13 of 13: the end]');
  });

  test('is asked for where and as much as the call says, a bounded piece from the beginning if it does not', async () => {
    const asked: unknown[] = [];
    const call = await reading(async (...request) => {
      asked.push(request);
      return piece('x', null);
    });
    await call({ ref: 'r'.repeat(64) });
    await call({ ref: 'r'.repeat(64), offset: 7, limit: 16 });
    expect(asked).toEqual([
      ['r'.repeat(64), 0, 32_768],
      ['r'.repeat(64), 7, 16],
    ]);
  });

  test('that takes more room in a record than it has bytes is cut, and the offset fits what is shown', async () => {
    const control = '\u0001'.repeat(60_000);
    const call = await reading(async () => piece(control, null, 60_010));
    const outcome = await call({ ref: 'a'.repeat(64), limit: 65_536 });
    const [shown] = outcome.result.content as { text: string }[];
    expect(JSON.stringify(outcome.result).length).toBeLessThanOrEqual(BOUNDS.toolResultInlineMaxBytes);
    expect(outcome.result.detail).toEqual({ bytes: 60_010, next_offset: 10 + (shown?.text.length ?? 0) });
  });
});

test.each(['unknown', 'gone'] as const)('a reference that is %s is an error with a code', async (what) => {
  const call = await reading(async () => what);
  const outcome = await call({ ref: 'a'.repeat(64) });
  expect(outcome.status).toBe('error');
  expect(codeOf(outcome)).toBe('result_unknown');
});

test.each([
  [{}, 'ref'],
  [{ ref: 'a'.repeat(65) }, 'ref'],
  [{ ref: 'a', offset: -1 }, 'offset'],
  [{ ref: 'a', limit: 15 }, 'limit'],
  [{ ref: 'a', limit: 65_537 }, 'limit'],
])('arguments that cannot be are refused by name: %j', async (args, field) => {
  const call = await reading(async () => 'unknown');
  const outcome = await call(args as JsonObject);
  expect(outcome.result.detail).toMatchObject({ code: 'invalid_call_arguments', field });
});

test('what a command wrote beyond its bound is kept whole for reading on', async () => {
  const { call } = await builtIns();
  const outcome = await call('run_command', { command: 'seq 1 30000' });
  expect(textOf(outcome)).toContain('bytes of output are omitted here');
  expect(outcome.whole).toBe(Array.from({ length: 30_000 }, (_, index) => `${index + 1}\n`).join(''));
  expect((await call('run_command', { command: 'seq 1 30' })).whole).toBeUndefined();
});
