/** Results stay within their bound: just under it nothing is cut, at and over it what is missing is said. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ToolOutcome } from '@coxswain/ports';
import { BOUNDS } from '@coxswain/protocol';
import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { headWithin, jsonBytes, middleCut, tailWithin } from '../src/bounded-text.ts';
import { KeptOutput } from '../src/kept-output.ts';
import { TOOL_BOUNDS } from '../src/mod.ts';
import { builtIns, textOf } from './session-tools.ts';

vi.setConfig({ testTimeout: 60_000 });

const TEXT_MAX = TOOL_BOUNDS.resultMaxBytes - TOOL_BOUNDS.resultFrameMaxBytes;
const resultBytes = (outcome: ToolOutcome) => Buffer.byteLength(JSON.stringify(outcome.result));

describe.each([
  ['under', TEXT_MAX - 1, false],
  ['at', TEXT_MAX, false],
  ['over', TEXT_MAX + 1, true],
  ['far over', 5 * TEXT_MAX, true],
])('%s the bound', (_name, bytes, cut) => {
  test('read_file', async () => {
    const { root, call } = await builtIns();
    await writeFile(join(root, 'one-line.txt'), 'x'.repeat(bytes));
    const outcome = await call('read_file', { path: 'one-line.txt' });
    expect(resultBytes(outcome)).toBeLessThanOrEqual(BOUNDS.toolResultInlineMaxBytes);
    expect(textOf(outcome)).toBe(
      cut
        ? `${'x'.repeat(TEXT_MAX)}\n[line 1 is truncated: it is longer than the limit of a result. The next line has offset 2]`
        : 'x'.repeat(bytes),
    );
  });

  test('run_command', async () => {
    const { call } = await builtIns();
    const outcome = await call('run_command', { command: `head -c ${bytes} /dev/zero | tr '\\0' x` });
    expect(resultBytes(outcome)).toBeLessThanOrEqual(BOUNDS.toolResultInlineMaxBytes);
    expect(outcome.result.detail).toMatchObject({ output_bytes: bytes });
    const [output] = outcome.result.content;
    const text = output?.type === 'text' ? output.text : '';
    if (!cut) expect(text === 'x'.repeat(bytes)).toBe(true);
    else {
      const missing = Number(/\[\.\.\. (\d+) bytes of output are omitted here/.exec(text)?.[1]);
      expect(text.split('x').length - 1 + missing).toBe(bytes);
    }
  });
});

test('run_command keeps the beginning and the end of its output, and more of the end', async () => {
  const { call } = await builtIns();
  const text = textOf(await call('run_command', { command: 'seq 1 200000' }));
  expect(text.startsWith('1\n2\n3\n')).toBe(true);
  expect(text).toContain('199999\n200000\n\n[exit code 0]');
  const [head, tail] = text.split('[...');
  expect(tail?.length).toBeGreaterThan(2 * (head as string).length);
});

test('what takes more room as JSON than as text counts as what it takes', async () => {
  const { root, call } = await builtIns();
  await writeFile(join(root, 'control.txt'), '\x01'.repeat(TEXT_MAX));
  expect(resultBytes(await call('read_file', { path: 'control.txt' }))).toBeLessThanOrEqual(
    BOUNDS.toolResultInlineMaxBytes,
  );
  const outcome = await call('run_command', { command: 'cat control.txt' });
  expect(resultBytes(outcome)).toBeLessThanOrEqual(BOUNDS.toolResultInlineMaxBytes);
});

test('list_files and search_files stay within the bound', async () => {
  const { call } = await builtIns({ resultMaxBytes: 8_192 });
  const name = 'n'.repeat(100);
  await call('run_command', { command: `for i in $(seq 100); do echo needle ${name} > ${name}$i; done` });
  for (const [tool, args] of [
    ['list_files', {}],
    ['search_files', { pattern: 'needle' }],
  ] as const) {
    const outcome = await call(tool, args);
    expect(resultBytes(outcome)).toBeLessThanOrEqual(8_192);
    expect(textOf(outcome)).toContain('[there are more than these');
  }
});

describe('cutting text', () => {
  const texts = fc.string({ unit: 'binary', maxLength: 60 });
  const bounds = fc.nat({ max: 120 });

  test('from its beginning keeps whole characters, as many as fit', () => {
    fc.assert(
      fc.property(texts, bounds, (text, max) => {
        const head = headWithin(text, max);
        expect(text.startsWith(head)).toBe(true);
        expect(jsonBytes(head)).toBeLessThanOrEqual(max);
        const [next] = text.slice(head.length);
        if (next !== undefined)
          expect(jsonBytes(head + String.fromCodePoint(text.codePointAt(head.length) as number))).toBeGreaterThan(max);
      }),
    );
  });

  test('from its end keeps whole characters, as many as fit', () => {
    fc.assert(
      fc.property(texts, bounds, (text, max) => {
        const tail = tailWithin(text, max);
        expect(text.endsWith(tail)).toBe(true);
        expect(jsonBytes(tail)).toBeLessThanOrEqual(max);
        const before = [...text].slice(0, [...text].length - [...tail].length).at(-1);
        if (before !== undefined) expect(jsonBytes(before + tail)).toBeGreaterThan(max);
      }),
    );
  });

  test('in its middle stays within the bound', () => {
    fc.assert(
      fc.property(texts, texts, fc.nat({ max: 50 }), fc.integer({ min: 130, max: 300 }), (head, tail, dropped, max) => {
        const cut = middleCut(head, tail, dropped, max);
        expect(jsonBytes(cut)).toBeLessThanOrEqual(max);
        if (dropped === 0 && jsonBytes(head + tail) <= max) expect(cut).toBe(head + tail);
      }),
    );
  });
});

test('kept output is the first and the last bytes, however they arrive', () => {
  fc.assert(
    fc.property(
      fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 30 }),
      fc.integer({ min: 1, max: 50 }),
      (chunks, max) => {
        const output = new KeptOutput(max, max);
        for (const chunk of chunks) output.add(Buffer.from(chunk));
        const whole = Buffer.concat(chunks);
        const { head, tail, dropped, total } = output.kept();
        expect(total).toBe(whole.length);
        expect(head).toEqual(whole.subarray(0, max));
        expect(tail).toEqual(whole.subarray(Math.max(head.length, whole.length - max)));
        expect(dropped).toBe(Math.max(0, whole.length - 2 * max));
      },
    ),
  );
});

test('kept output takes about as much memory as it has bytes, also if it arrives byte by byte', () => {
  const bytes = 2_000_000;
  const output = new KeptOutput(bytes, 1);
  const byte = Buffer.from('x');
  const beforeBytes = process.memoryUsage().heapUsed;
  for (let count = 0; count < bytes; count++) output.add(byte);
  // A list of chunks takes more than 200 MiB.
  expect(process.memoryUsage().heapUsed - beforeBytes).toBeLessThan(64 * 1024 * 1024);
  expect(output.kept().head.equals(Buffer.alloc(bytes, 'x'))).toBe(true);
});
