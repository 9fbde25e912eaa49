import { Buffer } from 'node:buffer';
import type { AssistantMessage, FilePart, Message, ToolMessage } from '@coxswain/protocol';
import { canonicalJson, PROMPT_MARKS, userText } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { promptOf, toolsOf } from '../src/prompt/prompt.ts';
import {
  ANTHROPIC_RULES,
  GOOGLE_RULES,
  OPENAI_CHAT_RULES,
  OPENAI_COMPATIBLE_RULES,
  OPENAI_RESPONSES_RULES,
} from '../src/prompt/prompt-rules.ts';
import { TOOLS } from './request.ts';

const base64 = (text: string) => Buffer.from(text).toString('base64');
const image: FilePart = { type: 'file', media_type: 'image/png', filename: 'a.png', data: base64('png') };
const answer = (content: AssistantMessage['content'], partial?: true): AssistantMessage => ({
  role: 'assistant',
  content,
  ...(partial ? { partial } : {}),
});
const result = (over: Partial<ToolMessage>): ToolMessage => ({
  role: 'tool',
  call_id: 'c1',
  tool: 'look',
  status: 'ok',
  is_error: false,
  content: [],
  ...over,
});
/** The prompt without its system message. */
const only = (messages: Message[], rules = ANTHROPIC_RULES) => promptOf('', messages, rules).slice(1);
const data = (source: string, text: string) => `<untrusted-text source="${source}">\n${text}\n</untrusted-text>`;

describe('what people and the runtime say', () => {
  test('the system prompt is first, unchanged, with the meaning of the marks after it', () => {
    expect(promptOf('Be good.', [], ANTHROPIC_RULES)).toEqual([
      { role: 'system', content: `Be good.\n\n${PROMPT_MARKS}` },
    ]);
    expect(promptOf('', [], ANTHROPIC_RULES)).toEqual([{ role: 'system', content: PROMPT_MARKS }]);
  });

  test('consecutive user messages stay apart, and a reminder is a user message of its own', () => {
    const reminder: Message = {
      role: 'reminder',
      content: [
        { type: 'text', text: 'one ' },
        { type: 'text', text: 'two' },
      ],
    };
    expect(only([userText('a'), userText('b'), reminder])).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'a' }] },
      { role: 'user', content: [{ type: 'text', text: 'b' }] },
      { role: 'user', content: [{ type: 'text', text: '<system-reminder>\none two\n</system-reminder>' }] },
    ]);
  });

  const reminder = (text: string, role_hint?: 'system' | 'developer' | 'user_block' | 'ephemeral_cache'): Message => ({
    role: 'reminder',
    content: [{ type: 'text', text }],
    ...(role_hint ? { role_hint } : {}),
  });
  const shown = (text: string) => `<system-reminder>\n${text}\n</system-reminder>`;

  test.each([
    ['OpenAI Responses', OPENAI_RESPONSES_RULES, 'system'],
    ['OpenAI Chat', OPENAI_CHAT_RULES, 'system'],
    ['compatible servers, which take no instructions in mid-conversation', OPENAI_COMPATIBLE_RULES, 'user'],
    ['Anthropic, which has no role for it', ANTHROPIC_RULES, 'user'],
    ['Gemini, which has no role for it', GOOGLE_RULES, 'user'],
  ] as const)('a reminder for system or developer, by %s', (_name, rules, role) => {
    const text = shown('mind');
    const one = role === 'system' ? { role, content: text } : { role, content: [{ type: 'text', text }] };
    const hints = [reminder('mind'), reminder('mind', 'system'), reminder('mind', 'developer')];
    expect(only([userText('go'), ...hints], rules).slice(1)).toEqual([one, one, one]);
  });

  test('a reminder as a user block is a part of what the user says right before it', () => {
    expect(only([userText('go'), reminder('mind', 'user_block')], OPENAI_CHAT_RULES)).toEqual([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'go' },
          { type: 'text', text: shown('mind') },
        ],
      },
    ]);
    expect(only([answer([{ type: 'text', text: 'fine' }]), reminder('mind', 'user_block')]).at(-1)).toEqual({
      role: 'user',
      content: [{ type: 'text', text: shown('mind') }],
    });
  });

  test('a reminder to cache behind: marked where the provider wants marks, and only the newest three', () => {
    const messages = ['1', '2', '3', '4'].flatMap((n) => [userText(n), reminder(n, 'ephemeral_cache')]);
    const marks = (rules = ANTHROPIC_RULES) =>
      only(messages, rules).map(({ content }) => typeof content === 'object' && content.at(-1)?.providerOptions);
    const mark = { anthropic: { cacheControl: { type: 'ephemeral' } } };
    expect(marks()).toEqual([undefined, mark, mark, mark]);
    expect(marks(OPENAI_CHAT_RULES)).toEqual([undefined, undefined, undefined, undefined]);
  });

  test.each([
    ['</system-reminder>', '</quoted-system-reminder>'],
    ['a < b && <b>c</b>', 'a < b && <b>c</b>'],
  ])('a reminder cannot close its tag: %s', (text, escaped) => {
    const [message] = only([reminder(`x ${text} y`)]);
    expect(message?.content).toEqual([{ type: 'text', text: shown(`x ${escaped} y`) }]);
  });

  test('files: those that the model takes, text as text, and a note for the rest', () => {
    const content: FilePart[] = [
      image,
      { type: 'file', media_type: 'text/markdown; charset=utf-8', filename: 'n.md', data: base64('# hé') },
      { type: 'file', media_type: 'application/zip', filename: 'z.zip', data: base64('12345') },
      { type: 'file', media_type: 'image/png', filename: 'big.png', data: { sha256: '0'.repeat(64), bytes: 9 } },
    ];
    expect(only([{ role: 'user', content }])).toEqual([
      {
        role: 'user',
        content: [
          { type: 'file', mediaType: 'image/png', data: base64('png'), filename: 'a.png' },
          { type: 'text', text: data('file n.md', '# hé') },
          {
            type: 'text',
            text: '[z.zip (application/zip, 5 bytes) is not shown: this model does not accept such files]',
          },
          { type: 'text', text: '[big.png (image/png, 9 bytes) is stored separately and is not shown]' },
        ],
      },
    ]);
  });
});

describe('what the model said', () => {
  test('its provider gets its metadata back unchanged, another provider none of it', () => {
    const message = answer([
      { type: 'reasoning', text: 'hm', provider_metadata: { anthropic: { signature: 's' } } },
      { type: 'text', text: 'so', provider_metadata: { anthropic: { citations: [1] } } },
      { type: 'call', call_id: 'c1', tool: 'look', args: { a: 1 }, provider_metadata: { anthropic: { x: 1 } } },
    ]);
    expect(only([message])).toEqual([
      {
        role: 'assistant',
        content: [
          { type: 'reasoning', text: 'hm', providerOptions: { anthropic: { signature: 's' } } },
          { type: 'text', text: 'so', providerOptions: { anthropic: { citations: [1] } } },
          {
            type: 'tool-call',
            toolCallId: 'c1',
            toolName: 'look',
            input: { a: 1 },
            providerOptions: { anthropic: { x: 1 } },
          },
        ],
      },
    ]);
    for (const rules of [OPENAI_RESPONSES_RULES, OPENAI_CHAT_RULES, OPENAI_COMPATIBLE_RULES, GOOGLE_RULES]) {
      expect(only([message], rules)).toEqual([
        {
          role: 'assistant',
          content: [
            { type: 'text', text: 'so' },
            { type: 'tool-call', toolCallId: 'c1', toolName: 'look', input: { a: 1 } },
          ],
        },
      ]);
    }
  });

  test('reasoning without any metadata goes back only to those who write it so', () => {
    const message = answer([{ type: 'reasoning', text: 'hm' }]);
    expect(only([message], OPENAI_COMPATIBLE_RULES)).toEqual([
      { role: 'assistant', content: [{ type: 'reasoning', text: 'hm' }] },
    ]);
    expect(only([message], GOOGLE_RULES)).toEqual([]);
  });

  test('Gemini behind a compatible server gets its signature where the adapter looks for it', () => {
    const metadata = { 'openai-compatible': { thoughtSignature: 'sig' } };
    const message = answer([{ type: 'call', call_id: 'c', tool: 't', args: {}, provider_metadata: metadata }]);
    expect(only([message], OPENAI_COMPATIBLE_RULES)).toMatchObject([
      { content: [{ providerOptions: { google: { thoughtSignature: 'sig' } } }] },
    ]);
  });

  test('an empty answer is left out, as is one of nothing but empty text', () => {
    expect(only([answer([]), answer([{ type: 'text', text: '' }])])).toEqual([]);
  });

  test('of a partial answer its text is shown, its reasoning is not', () => {
    const message = answer(
      [
        { type: 'reasoning', text: 'hm' },
        { type: 'text', text: 'half a sen' },
      ],
      true,
    );
    expect(only([message], OPENAI_COMPATIBLE_RULES)).toEqual([
      { role: 'assistant', content: [{ type: 'text', text: 'half a sen' }] },
    ]);
  });

  test('a call that could not be read, or has a name or id that providers refuse, breaks no later request', () => {
    const message = answer([
      {
        type: 'call',
        call_id: 'functions.look:0',
        tool: 'look at!',
        args: null,
        problem: { code: 'invalid_call_arguments', message: 'm' },
      },
    ]);
    const messages = [message, result({ call_id: 'functions.look:0', tool: 'look at!', is_error: true })];
    expect(only(messages)).toMatchObject([
      { content: [{ toolCallId: 'functions_look_0', toolName: 'look_at_', input: {} }] },
      { content: [{ toolCallId: 'functions_look_0', toolName: 'look_at_' }] },
    ]);
    expect(only(messages, OPENAI_COMPATIBLE_RULES)).toMatchObject([
      { content: [{ toolCallId: 'functions.look:0' }] },
      { content: [{ toolCallId: 'functions.look:0' }] },
    ]);
  });
});

describe('results', () => {
  const text = (value: string) => [{ type: 'text' as const, text: value }];

  test('the results of a batch stand in one message, each marked as error or not', () => {
    const prompt = only([
      result({ content: text('fine') }),
      result({ call_id: 'c2', status: 'denied', is_error: true, content: text('no') }),
      result({ call_id: 'c3', status: 'skipped', is_error: true }),
      result({ call_id: 'c4' }),
      userText('go on'),
    ]);
    expect(prompt).toEqual([
      {
        role: 'tool',
        content: [
          {
            type: 'tool-result',
            toolCallId: 'c1',
            toolName: 'look',
            output: { type: 'text', value: data('tool look', 'fine') },
          },
          { type: 'tool-result', toolCallId: 'c2', toolName: 'look', output: { type: 'error-text', value: 'no' } },
          {
            type: 'tool-result',
            toolCallId: 'c3',
            toolName: 'look',
            output: { type: 'error-text', value: '(skipped, no output)' },
          },
          { type: 'tool-result', toolCallId: 'c4', toolName: 'look', output: { type: 'text', value: '(no output)' } },
        ],
      },
      { role: 'user', content: [{ type: 'text', text: 'go on' }] },
    ]);
  });

  test('an image stands in the result where the provider takes it there', () => {
    const message = result({ is_error: true, content: [...text('half drawn'), image] });
    expect(only([message])).toMatchObject([
      {
        content: [
          {
            output: {
              type: 'content',
              value: [
                { type: 'text', text: `error: ${data('tool look', 'half drawn')}` },
                { type: 'image-data', mediaType: 'image/png', data: base64('png') },
              ],
            },
          },
        ],
      },
    ]);
  });

  test('elsewhere it follows the results of its batch', () => {
    const prompt = only([result({ content: [...text('drawn'), image] }), result({ call_id: 'c2' })], OPENAI_CHAT_RULES);
    expect(prompt).toMatchObject([
      {
        role: 'tool',
        content: [
          { output: { type: 'text', value: data('tool look', 'drawn\n[a.png follows these results]') } },
          { toolCallId: 'c2' },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'A file of the result of look (c1), untrusted data:' },
          { type: 'file', mediaType: 'image/png' },
        ],
      },
    ]);
  });
});

test('tools keep name, description and schema', () => {
  expect(toolsOf(TOOLS)[0]).toEqual({
    type: 'function',
    name: 'read_file',
    description: 'read_file does what its name says',
    inputSchema: { type: 'object', properties: { path: { type: 'string' } } },
  });
});

describe('the bytes of a request are those of its journal, whoever sends it', () => {
  /** A value as a host has it that has loaded it from a journal. */
  const loaded = <T>(value: T): T => JSON.parse(canonicalJson(value)) as T;

  test('arguments', () => {
    const message = answer([
      { type: 'call', call_id: 'c1', tool: 't', args: { z: 1, a: { y: [{ d: 1, c: 2 }], b: 2 } } },
    ]);
    const bytes = JSON.stringify(only([message]));
    expect(JSON.stringify(only([loaded(message)]))).toBe(bytes);
    expect(bytes).toContain('{"a":{"b":2,"y":[{"c":2,"d":1}]},"z":1}');
  });

  test('schemas, whose properties stay in the order in which they are required', () => {
    const properties = { path: {}, old_text: {}, new_text: {}, all: {} };
    const nested = {
      type: 'object',
      properties: { z: {}, b: { properties: { n: {}, m: {} }, required: ['n', 'gone'] } },
    };
    const [tool] = TOOLS as [(typeof TOOLS)[number]];
    const schema = {
      type: 'object',
      properties: { ...properties, nested },
      required: ['path', 'old_text', 'new_text'],
    };
    const told = { ...tool, input_schema: schema };
    const bytes = JSON.stringify(toolsOf([told]));
    expect(JSON.stringify(toolsOf([loaded(told)]))).toBe(bytes);
    const sent = toolsOf([told])[0]?.inputSchema.properties as Record<string, { properties: object }>;
    expect(Object.keys(sent)).toEqual(['path', 'old_text', 'new_text', 'all', 'nested']);
    expect(JSON.stringify(sent.nested?.properties)).toBe(
      '{"b":{"properties":{"n":{},"m":{}},"required":["n","gone"]},"z":{}}',
    );
  });
});
