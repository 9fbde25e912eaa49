/**
 * Results of calls: large ones are in the object store and can be read on, and files reach the model.
 */
import type { WholeResults } from '@coxswain/ports';
import { BOUNDS, type FilePart, type JsonObject, type TextPart, type ToolResult } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { sha256Hex } from '../src/mod.ts';
import { hook, returns } from './fake-hooks.ts';
import { ask, call, say } from './fake-model.ts';
import type { FakeTool } from './fake-tools.ts';
import { refOf, type TestBed, testBed } from './test-bed.ts';

const PNG = Buffer.from('\x89PNG\r\n\x1a\n and what follows', 'latin1');
const text = (value: string): TextPart => ({ type: 'text', text: value });
const file = (media_type: string, bytes: Uint8Array, filename?: string): FilePart => ({
  type: 'file',
  media_type,
  data: Buffer.from(bytes).toString('base64'),
  ...(filename === undefined ? {} : { filename }),
});
const giving = (result: Partial<ToolResult>, whole?: string): FakeTool => ({
  run: async () => ({ status: 'ok', result: { content: [], is_error: false, ...result }, whole }),
});

/** The tool that reads the rest of a result, like the built-in one. */
function reading(bed: TestBed): FakeTool {
  return {
    run: async ({ args }) => {
      const results = bed.toolSource.specs.at(-1)?.results as WholeResults;
      const piece = await results.read(args.ref as string, (args.offset as number) ?? 0, (args.limit as number) ?? 1e9);
      const said = typeof piece === 'string' ? piece : `${piece.offset}>${piece.next}/${piece.bytes}:${piece.text}`;
      return { status: 'ok', result: { content: [text(said)], is_error: false } };
    },
  };
}

/** Runs these calls, one per turn, and returns the model's view of each. */
async function shown(bed: TestBed, tools: Record<string, FakeTool>, calls: [string, JsonObject?][], settings = {}) {
  bed.tools = tools;
  bed.models.answers = [...calls.map(([tool, args], index) => ask(call(`c${index}`, tool, args))), say('done')];
  await bed.host();
  await bed.start(settings);
  await bed.time.settle();
  return (await bed.eventsOf('call_ended')).map(({ result }) => result);
}

const textOf = (result: ToolResult | undefined) =>
  (result?.content ?? []).map((part) => (part.type === 'text' ? part.text : `<${part.media_type}>`)).join('\n');
const refIn = (result: ToolResult | undefined) =>
  ((result as ToolResult).detail as { whole: { sha256: string } }).whole.sha256;

describe('a result over its bound', () => {
  const long = Array.from({ length: 30_000 }, (_, line) => `zeile ${line}: ä€😀`).join('\n');

  test('states the total size and how to read on, and reading to the end gives all of it', async () => {
    const bed = testBed();
    const bytes = Buffer.byteLength(long);
    const [first] = await shown(bed, { long: giving({ content: [text(long)] }), read_result: reading(bed) }, [
      ['long'],
    ]);
    const ref = sha256Hex(long);
    const match =
      /\n\[Truncated: the first (\d+) of (\d+) bytes are shown\. To continue, call read_result with (\{.*\})\.\]$/.exec(
        textOf(first),
      );
    expect(match?.[2]).toBe(String(bytes));
    expect(JSON.parse(match?.[3] as string)).toEqual({ ref, offset: Number(match?.[1]) });
    const { results } = bed.toolSource.specs[0] as { results: WholeResults };
    let all = textOf(first).slice(0, match?.index);
    for (let offset: number | null = Number(match?.[1]); offset !== null; ) {
      const piece = await results.read(ref, offset, 10_001);
      if (typeof piece === 'string') throw new Error(piece);
      expect(piece.offset).toBe(offset);
      expect(Buffer.byteLength(piece.text)).toBeLessThanOrEqual(10_001);
      all += piece.text;
      offset = piece.next;
    }
    expect(all).toBe(long);
  });

  test('is in the journal only by reference', async () => {
    const bed = testBed();
    await shown(bed, { long: giving({ content: [text(long)] }) }, [['long']]);
    for (const bytes of await bed.bytes()) {
      expect(bytes.length).toBeLessThan(200_000);
      expect(Buffer.from(bytes).includes('zeile 29999')).toBe(false);
    }
  });

  test('can be read on after a claim by another host', async () => {
    const bed = testBed();
    bed.tools = { long: giving({ content: [text(long)] }), read_result: reading(bed) };
    const args = { ref: sha256Hex(long), offset: 0, limit: 8 };
    bed.models.answers = [ask(call('c1', 'long')), say('done'), ask(call('c2', 'read_result', args)), say('done')];
    const first = await bed.host();
    await bed.start();
    first.abandon();
    await bed.host();
    await bed.send('prompt', { body: 'read on' });
    expect(textOf((await bed.eventsOf('call_ended')).at(-1)?.result)).toBe(`0>8/${Buffer.byteLength(long)}:zeile 0:`);
  });

  test('of a tool with a smaller bound, by the persona or its own, is truncated there', async () => {
    const bed = testBed();
    const persona = {
      name: 'p',
      tool_settings: [
        { tool: 'l*', max_output: 2_000 },
        { tool: '*', max_output: 1_024 },
      ],
    };
    const results = await shown(
      bed,
      { long: giving({ content: [text(long)] }), other: giving({ content: [text(long)] }) },
      [['long'], ['other']],
      { persona },
    );
    expect(results.map((result) => Buffer.byteLength(textOf(result)))).toEqual([
      expect.toSatisfy((size: number) => size <= 2_000 && size > 1_700),
      expect.toSatisfy((size: number) => size <= 1_024 && size > 700),
    ]);
  });

  test('without a tool to read on names its hash', async () => {
    const [result] = await shown(testBed(), { long: giving({ content: [text(long)] }) }, [['long']]);
    expect(textOf(result)).toMatch(new RegExp(`The complete text is stored as sha256 ${sha256Hex(long)}\\.\\]$`));
  });

  test('that a tool has truncated itself is stored whole, and stays as the tool shows it', async () => {
    const bed = testBed();
    const tools = { cut: giving({ content: [text('begin … end')] }, long), read_result: reading(bed) };
    const [result] = await shown(bed, tools, [['cut']]);
    expect(textOf(result)).toMatch(
      /^begin … end\n\[Only a part of \d+ stored bytes is shown\. To continue, call read_result/,
    );
    expect(refIn(result)).toBe(sha256Hex(long));
  });

  test('that a tool has truncated itself and is still too large names no range of the whole', async () => {
    const bed = testBed();
    const whole = `begin ${long}`;
    const tools = { cut: giving({ content: [text(long)] }, whole), read_result: reading(bed) };
    const [result] = await shown(bed, tools, [['cut']]);
    expect(textOf(result)).toMatch(
      /\n\[Truncated: a part of \d+ bytes is shown\. To continue, call read_result with \{.*"offset": 0\}\.\]$/,
    );
    expect(refIn(result)).toBe(sha256Hex(whole));
  });

  test.each([
    [BOUNDS.toolResultKeptMaxBytes, 'ok', undefined],
    [BOUNDS.toolResultKeptMaxBytes + 1, 'error', 'tool_result_too_large'],
  ])('of %i bytes ends %s', async (size, status, code) => {
    const bed = testBed();
    const [result] = await shown(bed, { huge: giving({ content: [text('x'.repeat(size))] }) }, [['huge']]);
    expect((await bed.eventsOf('call_ended')).map((event) => event.status)).toEqual([status]);
    expect(result?.detail?.code).toBe(code);
    expect(bed.toolSource.runs).toHaveLength(1);
  });

  test('that is too large to store stays as the tool shows it, with a note', async () => {
    const whole = 'x'.repeat(BOUNDS.toolResultKeptMaxBytes + 1);
    const bed = testBed();
    const [result] = await shown(bed, { cut: giving({ content: [text('begin … end')] }, whole) }, [['cut']]);
    expect((await bed.eventsOf('call_ended')).map((event) => event.status)).toEqual(['ok']);
    expect(textOf(result)).toMatch(
      /^begin … end\n\[Only a part is shown\. The complete result has more than \d+ bytes/,
    );
    expect(result?.detail?.whole).toBeUndefined();
  });

  test('of very many parts becomes one', async () => {
    const parts = Array.from({ length: 20_000 }, () => text('x'));
    const [result] = await shown(testBed(), { many: giving({ content: parts }) }, [['many']]);
    expect(result?.content).toEqual([text(parts.map(() => 'x').join('\n'))]);
    expect(result?.detail).toBeUndefined();
  });

  test('with a detail over its bound keeps the detail’s code', async () => {
    const detail = { code: 'custom', rows: Array.from({ length: 30_000 }, (_, row) => ({ row })) };
    const [result] = await shown(testBed(), { detailed: giving({ content: [text('fine')], detail }) }, [['detailed']]);
    expect(result?.detail).toEqual({ code: 'custom', detail_left_out_bytes: expect.any(Number) });
  });
});

describe('reading on', () => {
  test('accepts references of this session alone', async () => {
    const bed = testBed();
    const secret = 'of another session '.repeat(10_000);
    await bed.bus.blobs.put(sha256Hex(secret), Buffer.from(secret));
    const forged = giving({ content: [text('x')], detail: { whole: { sha256: sha256Hex(secret), bytes: 9 } } });
    const results = await shown(bed, { forged, read_result: reading(bed) }, [
      ['read_result', { ref: sha256Hex(secret) }],
      ['forged'],
      ['read_result', { ref: sha256Hex(secret) }],
    ]);
    expect(results.map(textOf)).toEqual(['unknown', 'x', 'unknown']);
  });

  test('returns nothing that a hook removed from a result', async () => {
    const bed = testBed();
    const secret = 'password '.repeat(20_000);
    bed.hooks.registrations = [hook('PostToolUse', 'h', { pattern: 'leak' })];
    bed.hooks.handlers = { h: returns({ result: '(kept back)' }) };
    const results = await shown(bed, { leak: giving({ content: [text(secret)] }), read_result: reading(bed) }, [
      ['leak'],
      ['read_result', { ref: sha256Hex(secret) }],
    ]);
    expect(results.map(textOf)).toEqual(['(kept back)', 'unknown']);
    expect(results[0]?.detail).toBeUndefined();
  });

  test('starts and ends at whole characters, at any offset', async () => {
    const bed = testBed();
    const long = 'ä€😀'.repeat(20_000);
    await shown(bed, { long: giving({ content: [text(long)] }) }, [['long']]);
    const { results } = bed.toolSource.specs[0] as { results: WholeResults };
    const ref = sha256Hex(long);
    expect(await results.read(ref, 3, 7)).toMatchObject({ text: '€😀', offset: 2, next: 9 });
    expect(await results.read(ref, 1e9, 7)).toMatchObject({ text: '', next: null, bytes: 180_000 });
  });
});

test('reports a result that is missing in the object store', async () => {
  const bed = testBed();
  const long = 'x'.repeat(100_000);
  bed.tools = { long: giving({ content: [text(long)] }) };
  bed.models.answers = [ask(call('c1', 'long')), say('done')];
  await bed.host({}, { blobs: { ...bed.bus.blobs, get: async () => null } });
  await bed.start();
  const { results } = bed.toolSource.specs[0] as { results: WholeResults };
  expect(await results.read(sha256Hex(long), 0, 9)).toBe('gone');
});

describe('a file in a result', () => {
  const large = Buffer.concat([PNG, Buffer.alloc(100_000, 7)]);

  test('that is small stays in its record', async () => {
    const [result] = await shown(testBed(), { draw: giving({ content: [file('image/png', PNG, 'a.png')] }) }, [
      ['draw'],
    ]);
    expect(result?.content).toEqual([file('image/png', PNG, 'a.png')]);
  });

  test('over the bound is in the object store, and the model still gets it in every later request', async () => {
    const bed = testBed();
    const [result] = await shown(bed, { draw: giving({ content: [file('image/png', large)] }) }, [['draw'], ['draw']]);
    expect(result?.content).toEqual([
      { type: 'file', media_type: 'image/png', data: { sha256: sha256Hex(large), bytes: large.length } },
    ]);
    const requests = bed.models.requests.map(({ messages }) =>
      messages.flatMap((message) => (message.role === 'tool' ? message.content : [])),
    );
    const whole = file('image/png', large);
    expect(requests).toEqual([[], [whole], [whole, whole]]);
  });

  test('shares the bound with the text, which is measured in bytes', async () => {
    const most = 'é'.repeat(BOUNDS.toolResultInlineMaxBytes / 2);
    const [result] = await shown(testBed(), { draw: giving({ content: [text(most), file('image/png', PNG)] }) }, [
      ['draw'],
    ]);
    expect(result?.content[1]).toMatchObject({ data: { sha256: sha256Hex(PNG) } });
  });

  test('that is missing in the object store is named', async () => {
    const bed = testBed();
    bed.tools = { draw: giving({ content: [file('image/png', large)] }) };
    bed.models.answers = [ask(call('c1', 'draw')), say('done')];
    await bed.host({}, { blobs: { ...bed.bus.blobs, get: async () => Promise.reject(new Error('away')) } });
    await bed.start();
    expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
    expect(bed.models.requests[1]?.messages.at(-1)?.content).toMatchObject([{ data: { bytes: large.length } }]);
  });

  test.each([
    ['a media type that is none', file('image', PNG), '[file omitted: its media type is invalid]'],
    ['a hostile one', file('text/html\r\nX-Evil: 1', PNG), '[file omitted: its media type is invalid]'],
    [
      'another kind than it says',
      file('image/png', Buffer.from('GIF nothing')),
      '[file omitted: its content is not image/png]',
    ],
    [
      'a reference of its own',
      { ...file('image/png', PNG), data: { sha256: 'a'.repeat(64), bytes: 3 } },
      '[file omitted: it is a reference, not a file]',
    ],
    [
      'too many bytes',
      file('image/png', Buffer.concat([PNG, Buffer.alloc(BOUNDS.toolResultFilesMaxBytes)]), 'big.png'),
      `[big.png omitted: it has ${BOUNDS.toolResultFilesMaxBytes + PNG.length} bytes; all files of a result may have at most ${BOUNDS.toolResultFilesMaxBytes}]`,
    ],
  ])('with %s is left out, and that is said', async (_what, part, said) => {
    const [result] = await shown(testBed(), { draw: giving({ content: [part] }) }, [['draw']]);
    expect(textOf(result)).toBe(said);
  });

  test('with a wrong image type gets the type of its content', async () => {
    const [result] = await shown(testBed(), { draw: giving({ content: [file('image/jpg; q=1', PNG)] }) }, [['draw']]);
    expect(result?.content).toMatchObject([{ media_type: 'image/png' }]);
  });

  test('has a name that is safe in any context', async () => {
    const evil = file('image/png', PNG, 'a"\n<b>\u0000.png');
    const [result] = await shown(testBed(), { draw: giving({ content: [evil] }) }, [['draw']]);
    expect(result?.content).toMatchObject([{ filename: 'a___b__.png' }]);
  });

  test('that a client refers to in a prompt is not fetched for it', async () => {
    const bed = testBed();
    await bed.bus.blobs.put(sha256Hex(large), large);
    bed.tools = { draw: giving({ content: [file('image/png', large)] }) };
    const stolen = { sha256: sha256Hex('x'), bytes: 1 };
    await bed.bus.blobs.put(stolen.sha256, Buffer.from('x'));
    bed.models.answers = [ask(call('c1', 'draw')), say('done')];
    await bed.host();
    const messages = [{ role: 'user', content: [{ type: 'file', media_type: 'text/plain', data: stolen }] }];
    await bed.send('start', { model: 'fake/model', messages });
    expect(bed.models.requests[0]?.messages[0]?.content).toMatchObject([{ data: stolen }]);
  });
});

test('a journal with results and files as blobs replays without the object store of its files', async () => {
  const bed = testBed();
  await shown(bed, { draw: giving({ content: [file('image/png', Buffer.concat([PNG, Buffer.alloc(90_000)]))] }) }, [
    ['draw'],
  ]);
  expect((await bed.records()).every(({ n }) => n > 0)).toBe(true);
  for await (const { bytes } of bed.bus.journal.read(refOf())) {
    expect(Buffer.from(bytes).includes('"blobs":[')).toBe(false);
  }
});
