import type { LanguageModelV3StreamPart } from '@ai-sdk/provider';
import type { ModelPart } from '@coxswain/ports';
import type { Message } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { Answer } from '../src/stream/answer.ts';
import { CallIds, effectOf } from '../src/stream/call-ids.ts';

const NO_TOKENS = {
  inputTokens: { total: undefined, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: undefined, text: undefined, reasoning: undefined },
};
const finish = (
  unified: 'stop' | 'tool-calls' | 'length' | 'other' | 'error',
  raw?: string,
): LanguageModelV3StreamPart => ({
  type: 'finish',
  finishReason: { unified, raw },
  usage: NO_TOKENS,
});
const call = (toolCallId: string, input: string, over: object = {}): LanguageModelV3StreamPart => ({
  type: 'tool-call',
  toolCallId,
  toolName: 'look',
  input,
  ...over,
});

function taken(stream: LanguageModelV3StreamPart[], messages: Message[] = []): { answer: Answer; parts: ModelPart[] } {
  const parts: ModelPart[] = [];
  const answer = new Answer((part) => parts.push(part), new CallIds(messages, effectOf('t.s.12-0')));
  for (const part of stream) answer.take(part);
  return { answer, parts };
}

describe('content', () => {
  test('pieces of one block are one part, and its metadata is what start, deltas and end say together', () => {
    const { answer, parts } = taken([
      { type: 'reasoning-start', id: '0', providerMetadata: { p: { a: 1, gone: undefined as unknown as null } } },
      { type: 'reasoning-delta', id: '0', delta: 'h' },
      { type: 'reasoning-delta', id: '0', delta: 'm', providerMetadata: { p: { b: 2 } } },
      { type: 'reasoning-end', id: '0', providerMetadata: { p: { a: 3 } } },
      { type: 'text-start', id: '0' },
      { type: 'text-delta', id: '0', delta: 'so' },
      { type: 'text-end', id: '0' },
      { type: 'text-start', id: '0' },
      { type: 'text-delta', id: '0', delta: 'again' },
    ]);
    expect(answer.content).toEqual([
      { type: 'reasoning', text: 'hm', provider_metadata: { p: { a: 3, b: 2 } } },
      { type: 'text', text: 'so' },
      { type: 'text', text: 'again' },
    ]);
    expect(parts.map((part) => part.type)).toEqual(['reasoning', 'reasoning', 'text', 'text']);
  });

  test('empty text is left out; empty reasoning stays where its provider wants it back', () => {
    const { answer, parts } = taken([
      { type: 'reasoning-start', id: '0', providerMetadata: { anthropic: { redactedData: 'x' } } },
      { type: 'reasoning-start', id: '1' },
      { type: 'text-start', id: '2', providerMetadata: { openai: { itemId: 'm' } } },
      { type: 'text-delta', id: '2', delta: '' },
    ]);
    expect(answer.content).toEqual([
      { type: 'reasoning', text: '', provider_metadata: { anthropic: { redactedData: 'x' } } },
    ]);
    expect(parts).toEqual([]);
    expect(answer.hasPublished).toBe(false);
  });

  test('an answer cut short keeps its words, and neither calls nor signatures', () => {
    const { answer } = taken([
      { type: 'text-start', id: '0', providerMetadata: { openai: { itemId: 'm' } } },
      { type: 'text-delta', id: '0', delta: 'half' },
      call('c1', '{}'),
    ]);
    expect(answer.partialContent).toEqual([{ type: 'text', text: 'half' }]);
  });
});

describe('calls', () => {
  test.each([
    ['{"path": "a', 'not valid JSON'],
    ['[1]', 'not a list'],
    ['null', 'not null'],
    ['"text"', 'not a string'],
  ])('arguments %s are a problem and not an error', (input, message) => {
    const { answer } = taken([call('c1', input)]);
    expect(answer.content).toMatchObject([
      { args: null, problem: { code: 'invalid_call_arguments', message: expect.stringContaining(message) } },
    ]);
  });

  test('no arguments at all are the empty object', () => {
    for (const end of [finish('stop', 'stop'), finish('tool-calls', 'tool_calls')])
      expect(taken([call('c1', ''), end]).answer.content).toMatchObject([{ args: {} }]);
  });

  test.each([
    ['length', 'max_tokens'],
    ['other', 'something'],
  ] as const)('no arguments at all are no arguments where the answer was cut off: %s', (unified, raw) => {
    const cut = { args: null, problem: { code: 'invalid_call_arguments', message: expect.stringContaining(unified) } };
    const ending = finish(unified, raw);
    expect(taken([call('c1', ''), ending]).answer.content).toMatchObject([cut]);
    expect(taken([call('c1', ' '), call('c2', '{"a": 1}'), ending]).answer.content).toMatchObject([
      cut,
      { args: { a: 1 } },
    ]);
    // An adapter has written the braces, unless something has come behind them.
    expect(taken([call('c1', '{}'), call('c2', '{}'), ending]).answer.content).toMatchObject([{ args: {} }, cut]);
    for (const part of taken([call('c1', '{}'), call('c2', '{"a": 1}'), ending]).answer.content)
      expect(part).not.toHaveProperty('problem');
  });

  test('ids that are empty, repeated or known from before are replaced, the same each time', () => {
    const before: Message[] = [
      { role: 'assistant', content: [{ type: 'call', call_id: 'call_0', tool: 'look', args: {} }] },
    ];
    const stream = [call('call_0', '{}'), call('', '{}'), call('', '{}'), call('a', '{}'), call('a', '{}')];
    const ids = () => taken(stream, before).parts.map((part) => (part.type === 'call' ? part.callId : ''));
    expect(ids()).toEqual(['call_0_12-0_1', 'call_12-0_2', 'call_12-0_3', 'a', 'a_12-0_4']);
    expect(ids()).toEqual(ids());
    expect(taken([call('x'.repeat(300), '{}')]).answer.content).toMatchObject([
      { call_id: expect.stringMatching(/^x{200}_12-0_1$/) },
    ]);
  });

  test('what the provider runs itself is no call of the session', () => {
    expect(taken([call('c1', '{}', { providerExecuted: true })]).answer.content).toEqual([]);
  });
});

describe('endings', () => {
  test('a finish without a reason never was one', () => {
    expect(() => taken([finish('other')])).toThrow('without a final frame');
    expect(() => taken([finish('error', 'MALFORMED_FUNCTION_CALL')])).toThrow('MALFORMED_FUNCTION_CALL');
    expect(taken([finish('other', 'pause')]).answer.complete).toBe(true);
  });

  test('an answer without end is broken off', () => {
    const delta: LanguageModelV3StreamPart = { type: 'text-delta', id: '0', delta: 'x'.repeat(4 * 1024 * 1024) };
    expect(() => taken([delta, delta, delta, delta, delta])).toThrow('characters long');
  });

  test('usage is whole tokens, and nothing where nothing was told', () => {
    const { answer } = taken([
      {
        type: 'finish',
        finishReason: { unified: 'stop', raw: 'stop' },
        usage: {
          inputTokens: { total: 10, noCache: 4, cacheRead: 6, cacheWrite: undefined },
          outputTokens: { total: 5, text: 3, reasoning: 2 },
        },
      },
    ]);
    expect(answer.usage).toEqual({
      input_tokens: 10,
      output_tokens: 5,
      cached_input_tokens: 6,
      reasoning_tokens: 2,
    });
    expect(taken([finish('stop', 'stop')]).answer.usage).toEqual({ input_tokens: 0, output_tokens: 0 });
  });

  test('the usage of an answer that broke off is what its raw frames have reported', () => {
    const raw = (rawValue: unknown): LanguageModelV3StreamPart => ({ type: 'raw', rawValue });
    const usageAfter = (...frames: unknown[]) => taken(frames.map(raw)).answer.usage;
    const cached = { cache_read_input_tokens: 5, cache_creation_input_tokens: 7 };
    const start = { type: 'message_start', message: { usage: { input_tokens: 3, output_tokens: 1, ...cached } } };
    expect(usageAfter(start, { usage: { output_tokens: 9 } })).toEqual({
      input_tokens: 15,
      output_tokens: 9,
      cached_input_tokens: 5,
    });
    expect(
      usageAfter({
        response: { usage: { input_tokens: 4, output_tokens: 2, input_tokens_details: { cached_tokens: 1 } } },
      }),
    ).toEqual({ input_tokens: 4, output_tokens: 2, cached_input_tokens: 1 });
    for (const frame of [null, 7, 'x', [], { usage: null }, { message: { usage: 1 } }])
      expect(usageAfter(frame)).toEqual({ input_tokens: 0, output_tokens: 0 });
  });
});

test('an id of a provider with characters that could drive a terminal or end an address is replaced', () => {
  const ids = new CallIds([], effectOf('t.s.12-0'));
  const given = ['call_1|fc_2', 'functions.get:0', 'a\u001b[2J\u202e', 'a/../b', '</untrusted-text>'];
  const expected = [given[0], given[1], 'a_2J__12-0_1', 'a_.._b_12-0_2', '_untrusted-text__12-0_3'];
  expect(given.map((id) => ids.unique(id))).toEqual(expected);
});
