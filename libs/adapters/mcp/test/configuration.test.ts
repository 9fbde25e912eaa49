/** Reading configuration, expanding variables, naming tools, and mapping results to the protocol. */
import { BOUNDS, McpServers, ToolResult } from '@coxswain/protocol';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { expandVariables, withoutValues } from '../src/expand-variables.ts';
import { outcomeOf } from '../src/mcp-result.ts';
import { MessageLines } from '../src/message-lines.ts';
import { MCP_BOUNDS, MissingVariableError, parseMcpConfig } from '../src/mod.ts';
import { ProgressRate } from '../src/progress-rate.ts';
import { nameTools } from '../src/tool-names.ts';

describe('an MCP configuration', () => {
  test('is read as it is usually written', () => {
    const servers = parseMcpConfig(`{
      "mcpServers": {
        "files": {"type": "stdio", "command": "npx", "args": ["-y", "server-files", "."], "env": {"A": "$\{B}"}},
        "bare": {"command": "server", "cwd": "sub"},
        "web": {"type": "http", "url": "https://example.org/mcp", "headers": {"Authorization": "Bearer $\{KEY}"}}
      }
    }`);
    expect(servers).toEqual({
      files: { command: 'npx', args: ['-y', 'server-files', '.'], env: { A: `$\{B}` } },
      bare: { command: 'server', args: [], cwd: 'sub' },
      web: { type: 'http', url: 'https://example.org/mcp', headers: { Authorization: `Bearer $\{KEY}` } },
    });
    expect(McpServers.parse(servers)).toEqual(servers);
    expect(Object.keys(servers)).toEqual(['files', 'bare', 'web']);
  });

  test.each([
    ['no JSON', '{', 'is not JSON'],
    ['no object', '[]', 'must be an object with the key mcpServers'],
    ['another key in its place', '{"servers": {}}', 'has no key mcpServers, only servers'],
    ['another key beside it', '{"mcpServers": {}, "inputs": []}', 'has the key inputs'],
    ['a list of servers', '{"mcpServers": []}', 'mcpServers must be an object'],
    ['a name that would be lost', '{"mcpServers": {"__proto__": {"command": "x"}}}', 'mcpServers.__proto__: this name'],
    ['a server that is none', '{"mcpServers": {"a": 7}}', 'mcpServers.a must be an object'],
    ['a server without either', '{"mcpServers": {"a": {}}}', 'mcpServers.a has neither a command nor a url'],
    ['a server with both', '{"mcpServers": {"a": {"command": "x", "url": "http://y"}}}', 'has a command and a url'],
    ['a name that does not fit', '{"mcpServers": {"a b": {"command": "x"}}}', 'the name "a b" must be 1 to 48'],
    ['arguments that are no list', '{"mcpServers": {"a": {"command": "x", "args": "y"}}}', 'mcpServers.a.args'],
    [
      'arguments that are no text',
      '{"mcpServers": {"a": {"command": "x", "args": [1]}}}',
      'mcpServers.a.args[0]: must be a text',
    ],
    ['a URL that is none', '{"mcpServers": {"a": {"url": "example.org"}}}', 'mcpServers.a.url'],
    ['another scheme', '{"mcpServers": {"a": {"url": "ftp://example.org"}}}', 'mcpServers.a.url'],
    [
      'the old transport',
      '{"mcpServers": {"a": {"type": "sse", "url": "http://y"}}}',
      'mcpServers.a.type: the transport sse',
    ],
    [
      'an unknown key',
      '{"mcpServers": {"a": {"command": "x", "disabled": true}}}',
      'unknown key "mcpServers.a.disabled"',
    ],
  ])('with %s is refused in a sentence', (_name, text, message) => {
    expect(parseMcpConfig(text)).toEqual(expect.stringContaining(message));
  });

  test('is never thrown about', () => {
    fc.assert(
      fc.property(fc.json(), (json) => {
        const parsed = parseMcpConfig(`{"mcpServers": ${json}}`);
        if (typeof parsed !== 'string') McpServers.parse(parsed);
      }),
    );
  });
});

describe('variables', () => {
  test.each([
    [`a$\{X}b`, 'axb'],
    [`$\{X}$\{X}`, 'xx'],
    ['$X and $ {X}', '$X and $ {X}'],
    [`$\{NONE:-fallback}`, 'fallback'],
    [`$\{EMPTY:-fallback}`, 'fallback'],
    [`$\{constructor:-fallback}`, 'fallback'],
    [`$\{EMPTY}`, ''],
    [`$\{X:-fallback}`, 'x'],
    [`$\{DOLLARS}`, `$& $1 $\{X}`],
  ])('%s becomes %s', (value, expanded) => {
    const host = { X: 'x', EMPTY: '', DOLLARS: `$& $1 $\{X}` };
    expect(expandVariables({ key: value }, host, 'env', new Map())).toEqual({ key: expanded });
  });

  test('without end stay as they are, in linear time', () => {
    // Quadratic work over this value would take minutes.
    const value = `}${'$'}{X}${`${'$'}{A:-`.repeat(100_000)}`;
    const expanded = `}x${`${'$'}{A:-`.repeat(100_000)}`;
    expect(expandVariables({ key: value }, { X: 'x' }, 'env', new Map()).key === expanded).toBe(true);
  });

  test('are redacted although one contains another, and as part of JSON', () => {
    const values = { DB_USER: 'captain', DB_URL: 'postgres://captain:hunter2@db/sea', PEM: '-----BEGIN\nkey"of"sea\n' };
    const used = new Map(Object.entries(values));
    expect(withoutValues(`cannot reach ${values.DB_URL} as captain`, used)).toBe('cannot reach [DB_URL] as [DB_USER]');
    expect(withoutValues(JSON.stringify({ pem: values.PEM }), used)).toBe('{"pem":"[PEM]"}');
  });

  test('that are missing are named, and no other is shown', () => {
    const expand = () =>
      expandVariables({ a: `$\{SECRET}`, b: `$\{NONE}` }, { SECRET: 'secret' }, 'headers', new Map());
    expect(expand).toThrow(new MissingVariableError('headers.b needs the environment variable NONE, which is not set'));
  });
});

test('of many progress reports the first, the newest of each interval and the last are shown', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const shown: string[] = [];
  const timers = vi.getTimerCount();
  const rate = new ProgressRate((text) => shown.push(text));
  for (let report = 1; report <= 1_000; report++) rate.add(String(report));
  expect(shown).toEqual(['1']);
  await vi.advanceTimersByTimeAsync(10 * MCP_BOUNDS.progressIntervalMs);
  expect(shown).toEqual(['1', '1000']);
  rate.add('1001');
  rate.add('1002');
  rate.stop();
  expect(shown).toEqual(['1', '1000', '1001', '1002']);
  expect(vi.getTimerCount()).toBe(timers);
});

describe('names of tools', () => {
  const name = (...tools: string[]) => nameTools(tools.map((tool) => ({ server: 's', tool })));

  test.each([
    ['that fit stay', ['echo', 'get-sum'], ['s__echo', 's__get-sum']],
    ['with other characters are made to fit', ['a.b', 'größe', 'x/y z'], ['s__a_b', 's__gr__e', 's__x_y_z']],
    [
      'that fit go before those that are made to',
      ['a.b', 'a_b'],
      [expect.stringMatching(/^s__a_b_[0-9a-f]{8}$/), 's__a_b'],
    ],
    ['that become the same are told apart', ['a.b', 'a/b'], ['s__a_b', expect.stringMatching(/^s__a_b_[0-9a-f]{8}$/)]],
    ['that are the same are told apart', ['a', 'a'], ['s__a', expect.stringMatching(/^s__a_[0-9a-f]{8}$/)]],
  ])('%s', (_name, tools, names) => {
    expect(name(...tools)).toEqual(names);
  });

  test('of two servers that meet are told apart', () => {
    const [one, other] = nameTools([
      { server: 'a', tool: 'b__c' },
      { server: 'a__b', tool: 'c' },
    ]);
    expect([one, other]).toEqual(['a__b__c', expect.stringMatching(/^a__b__c_[0-9a-f]{8}$/)]);
  });

  // In quadratic time it would not end within the time limit of a test.
  test('of 100,000 tools take linear time', () => {
    const names = nameTools(Array.from({ length: 100_000 }, (_, index) => ({ server: 's', tool: `tool-${index}` })));
    expect(new Set(names).size).toBe(100_000);
  });

  test('always fit, differ, and depend on nothing but the tools', () => {
    const tool = fc.record({
      server: fc.stringMatching(/^[A-Za-z0-9_-]{1,48}$/),
      tool: fc.oneof(fc.string({ maxLength: 200 }), fc.constantFrom('a', 'a.b', 'a_b', 'x'.repeat(200))),
    });
    fc.assert(
      fc.property(fc.uniqueArray(tool, { selector: ({ server, tool }) => `${server}\0${tool}` }), (tools) => {
        const names = nameTools(tools);
        expect(names).toHaveLength(tools.length);
        for (const one of names) expect(one).toMatch(/^[A-Za-z0-9_-]{1,128}$/);
        expect(new Set(names).size).toBe(names.length);
        expect(nameTools(tools)).toEqual(names);
      }),
    );
  });
});

describe('a result', () => {
  const { resultTextMaxBytes, resultFilesMaxBytes, structuredMaxBytes } = MCP_BOUNDS;

  test.each([
    ['at the bound is whole', resultTextMaxBytes, false],
    ['over the bound is cut', resultTextMaxBytes + 1, true],
  ])('of text %s, and says so', (_name, bytes, cut) => {
    const { result } = outcomeOf({ content: [{ type: 'text', text: 'x'.repeat(bytes) }] });
    const [part] = result.content;
    const text = part?.type === 'text' ? part.text : '';
    expect(text.endsWith('[truncated: 1 bytes of text are omitted]')).toBe(cut);
    expect(text.startsWith('x'.repeat(resultTextMaxBytes))).toBe(true);
  });

  test('that is cut keeps whole characters', () => {
    const { result } = outcomeOf({ content: [{ type: 'text', text: `x${'€'.repeat(resultTextMaxBytes / 2)}` }] });
    expect(JSON.stringify(result)).not.toContain('\ufffd');
  });

  test('with files over the bound leaves them out, and says so', () => {
    const data = Buffer.alloc((resultFilesMaxBytes / 4) * 3).toString('base64');
    const image = { type: 'image' as const, mimeType: 'image/png', data };
    const { result } = outcomeOf({ content: [image, image] });
    expect(result.content.map(({ type }) => type)).toEqual(['file', 'text']);
    expect(result.content[1]).toMatchObject({ text: expect.stringContaining('[omitted: a file (image/png) of') });
  });

  test('of audio, of an unnamed kind, and with lax base64 has the journal’s shape', () => {
    const { result } = outcomeOf({
      content: [
        { type: 'audio', mimeType: 'audio/wav', data: 'AAA' },
        { type: 'resource', resource: { uri: 'file:///a/b.bin?x', blob: 'AA==' } },
      ],
    });
    expect(ToolResult.parse(result).content).toEqual([
      { type: 'file', media_type: 'audio/wav', data: 'AAA=' },
      { type: 'file', media_type: 'application/octet-stream', filename: 'b.bin', data: 'AA==' },
    ]);
  });

  test.each([
    ['file:///a/b.bin', 'b.bin'],
    ['file:///a/b.bin#/c', 'b.bin'],
    ['C:\\a\\b.bin', 'b.bin'],
    ['file:///a/', undefined],
    // Quadratic work over this address would take minutes.
    [`${'a'.repeat(400_000)}/`, undefined],
  ])('of a file is named by the end of its address', (uri, filename) => {
    const { result } = outcomeOf({ content: [{ type: 'resource', resource: { uri, blob: 'AA==' } }] });
    expect(result.content).toMatchObject([filename === undefined ? { type: 'file' } : { type: 'file', filename }]);
    expect(result.content[0]).toSatisfy((part: object) => 'filename' in part === (filename !== undefined));
  });

  test('of structured content alone is shown as text too', () => {
    const outcome = outcomeOf({ content: [], structuredContent: { answer: 42 } });
    expect(outcome.result).toEqual({
      content: [{ type: 'text', text: '{"answer":42}' }],
      is_error: false,
      detail: { structured_content: { answer: 42 } },
    });
  });

  test('of large structured content keeps it out of the detail', () => {
    const structuredContent = { text: 'x'.repeat(structuredMaxBytes) };
    const { result } = outcomeOf({ content: [{ type: 'text', text: 'short' }], structuredContent });
    expect(result.detail).toEqual({ structured_content_left_out_bytes: structuredMaxBytes + 11 });
  });

  test.each([
    ['nested too deep', `${'{"a":'.repeat(BOUNDS.jsonDepthMax)}1${'}'.repeat(BOUNDS.jsonDepthMax)}`],
    ['nested too deep for the stack', `{"a":${'['.repeat(20_000)}${']'.repeat(20_000)}}`],
    ['with a number that is too large', '{"a":1e999}'],
  ])('of structured content %s keeps its text, and says that it is omitted', (_what, json) => {
    const content = [{ type: 'text' as const, text: 'kept' }];
    const { status, result } = outcomeOf({ content, structuredContent: JSON.parse(json) });
    expect(status).toBe('ok');
    const note = expect.stringMatching(/^\[omitted: structured content, nested at least 128 deep or with a number/);
    expect(result).toEqual({ content: [...content, { type: 'text', text: note }], is_error: false });
  });

  test('that says it is an error is one', () => {
    expect(outcomeOf({ content: [], isError: true })).toEqual({
      status: 'error',
      result: { content: [], is_error: true },
    });
  });
});

test('lines are the same however their bytes arrive', () => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ unit: 'grapheme', maxLength: 20 })),
      fc.array(fc.nat({ max: 30 })),
      (texts, cuts) => {
        const clean = texts.map((text) => text.replace(/[\r\n]/g, ''));
        const bytes = Buffer.from(clean.map((text) => `${text}\n`).join(''));
        const lines = new MessageLines(1_000);
        const read: string[] = [];
        let from = 0;
        for (const cut of [...cuts, bytes.length]) {
          read.push(...lines.add(bytes.subarray(from, from + cut)));
          from += cut;
        }
        expect(read).toEqual(clean);
      },
    ),
  );
});
