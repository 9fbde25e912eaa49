/** Spans drawn for people, at any width. */
import type { EndedSpan } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { columnsOf, createStyle, durationText, spanTrees, waterfall } from '../src/terminal/mod.ts';

const span = (
  id: string,
  parent: string | null,
  name: string,
  startMs: number,
  endMs: number,
  more: Partial<EndedSpan> = {},
): EndedSpan => ({
  context: { traceId: 't', spanId: id, sampled: true },
  parent: parent === null ? null : { traceId: 't', spanId: parent, sampled: true },
  name,
  kind: 'internal',
  startMs,
  endMs,
  error: null,
  attributes: {},
  moments: [],
  links: [],
  ...more,
});

const SPANS = [
  span('c', 'b', 'chat model', 100, 600, {
    attributes: { 'gen_ai.operation.name': 'chat', 'gen_ai.usage.input_tokens': 9, 'gen_ai.usage.output_tokens': 2 },
  }),
  span('d', 'b', 'execute_tool 検索', 600, 700, { error: { type: 'tool_failed' } }),
  span('b', 'a', 'turn 1', 100, 1_000, { attributes: { 'coxswain.open': true } }),
  span('a', null, 'invoke_agent lead', 0, 1_000),
];
const [tree] = spanTrees(SPANS, ({ parent }) => parent === null);
const drawn = (columns: number, colours = false) =>
  waterfall(tree as NonNullable<typeof tree>, columns, createStyle(colours));

test('a span is drawn below its parent, from its start to its end', () => {
  expect(drawn(80)).toMatchInlineSnapshot(`
    "invoke_agent lead      ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━    1.0 s
    └ turn 1                  ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╌   900 ms in progress
      ├ chat model            ━━━━━━━━━━━━━━━━━━━                 500 ms 9 in, 2 out
      └ execute_tool 検索                       ━━━━━             100 ms tool_failed
    "
  `);
});

describe.each([20, 40, 60, 80, 120, 300])('at %i columns', (columns) => {
  test('each span has one line within the width', () => {
    const lines = drawn(columns).trimEnd().split('\n');
    expect(lines).toHaveLength(SPANS.length);
    for (const line of lines) expect(columnsOf(line), line).toBeLessThanOrEqual(columns);
  });
});

test('colours change no text', () => {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a colour begins with one
  expect(drawn(80, true).replaceAll(/\u001b\[\d+m/g, '')).toBe(drawn(80));
  expect(drawn(80, true)).not.toBe(drawn(80));
});

test('spans that are parents of each other are drawn once', () => {
  const circle = [span('x', 'y', 'x', 0, 1), span('y', 'x', 'y', 0, 1)];
  const [top] = spanTrees(circle, ({ name }) => name === 'x');
  expect(
    waterfall(top as NonNullable<typeof top>, 80, createStyle(false))
      .trim()
      .split('\n'),
  ).toHaveLength(2);
});

test.each([
  [0, '0 ms'],
  [999, '999 ms'],
  [2_450, '2.5 s'],
  [61_000, '1 m 01 s'],
  [7_500_000, '2 h 05 m'],
])('%i ms are %s', (ms, text) => expect(durationText(ms)).toBe(text));

test('a cancelled run, and its turns and answers, are marked as cancelled', () => {
  const usage = { 'gen_ai.usage.input_tokens': 9, 'gen_ai.usage.output_tokens': 2 };
  const cancelled = [
    span('c', 'b', 'chat model', 100, 600, {
      attributes: { 'gen_ai.operation.name': 'chat', ...usage, 'coxswain.status': 'cancelled' },
    }),
    span('b', 'a', 'turn 1', 100, 600, { attributes: { ...usage, 'coxswain.status': 'cancelled' } }),
    span('a', null, 'invoke_agent lead', 0, 600, {
      attributes: { 'gen_ai.operation.name': 'invoke_agent', ...usage, 'coxswain.stop_reason': 'cancelled' },
    }),
  ];
  const [top] = spanTrees(cancelled, ({ parent }) => parent === null);
  const lines = waterfall(top as NonNullable<typeof top>, 120, createStyle(false))
    .trimEnd()
    .split('\n');
  expect(lines.map((line) => line.replace(/^.* ms /, ''))).toEqual([
    'cancelled, 9 in, 2 out',
    'cancelled',
    'cancelled, 9 in, 2 out',
  ]);
});

test('a claim of the session by a host is drawn at its time', () => {
  const owned = { name: 'owned', atMs: 500, attributes: { 'coxswain.epoch': 2, 'coxswain.host': 'host-b' } };
  const spans = [
    span('b', 'a', 'turn 1', 0, 400),
    span('c', 'a', 'turn 2', 600, 1_000),
    span('a', null, 'invoke_agent lead', 0, 1_000, { moments: [owned] }),
  ];
  const [top] = spanTrees(spans, ({ parent }) => parent === null);
  expect(waterfall(top as NonNullable<typeof top>, 80, createStyle(false))).toMatchInlineSnapshot(`
    "invoke_agent lead             ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━    1.0 s
    ├ turn 1                      ━━━━━━━━━━━━━━                       400 ms
    ├ claimed by a host, epoch 2                   ▲                          host-b
    └ turn 2                                          ━━━━━━━━━━━━━━   400 ms
    "
  `);
});
