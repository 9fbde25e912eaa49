/**
 * Basic types: messages, JSON and codes.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  AssistantMessage,
  assertNever,
  BOUNDS,
  callsOf,
  ERROR_CATALOGUE,
  EVENT_TYPES,
  isErrorCode,
  Json,
  JsonObject,
  Message,
  SessionEvent,
  textOf,
  userText,
} from '../src/mod.ts';

describe('JSON', () => {
  test('is any JSON value, returned unchanged', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const parsed = Json.safeParse(value);
        expect(parsed.success && Object.is(parsed.data, value)).toBe(true);
      }),
    );
  });

  test.each([
    ['undefined', undefined],
    ['undefined inside', { a: undefined }],
    ['NaN', [Number.NaN]],
    ['a date', new Date(0)],
    ['a map', new Map()],
    ['a bigint', { n: 1n }],
    ['a function', [() => 1]],
  ])('is not %s', (_name, value) => {
    expect(Json.safeParse(value).success).toBe(false);
  });

  test('has no cycles', () => {
    const cyclic: unknown[] = [];
    cyclic.push(cyclic, cyclic);
    expect(Json.safeParse(cyclic).success).toBe(false);
  });

  test('may be nested up to its bound', () => {
    const nested = (depth: number) => JSON.parse(`${'['.repeat(depth)}1${']'.repeat(depth)}`);
    expect(Json.safeParse(nested(BOUNDS.jsonDepthMax)).success).toBe(true);
    expect(Json.safeParse(nested(BOUNDS.jsonDepthMax + 1)).success).toBe(false);
  });

  test.each([[null], [[]], ['x'], [1]])('object does not include %j', (value) => {
    expect(JsonObject.safeParse(value).success).toBe(false);
  });
});

describe('a message', () => {
  const answer = AssistantMessage.parse({
    role: 'assistant',
    content: [
      { type: 'reasoning', text: 'hm' },
      { type: 'text', text: 'I ' },
      { type: 'call', call_id: 'c1', tool: 'read', args: {} },
      { type: 'text', text: 'read' },
    ],
  });

  test('has a text, without reasoning', () => {
    expect(textOf(answer)).toBe('I read');
    expect(textOf(userText('hello'))).toBe('hello');
  });

  test('has its calls in order', () => {
    expect(callsOf(answer).map((call) => call.call_id)).toEqual(['c1']);
  });

  test.each([
    ['a role that nobody has', { role: 'system', content: [] }],
    ['no content', { role: 'user', content: [] }],
    ['a part too many', { role: 'user', content: [{ type: 'text', text: 'x', mood: 1 }] }],
    ['a call of a user', { role: 'user', content: [{ type: 'call', call_id: 'c', tool: 't', args: {} }] }],
    ['a call without an id', { role: 'assistant', content: [{ type: 'call', call_id: '', tool: 't', args: {} }] }],
    ['a file that is not base64', { role: 'user', content: [{ type: 'file', media_type: 'a/b', data: '%%' }] }],
  ])('is rejected with %s', (_name, message) => {
    expect(Message.safeParse(message).success).toBe(false);
  });
});

describe('codes', () => {
  test('are snake_case, and recognized by name', () => {
    for (const code of Object.keys(ERROR_CATALOGUE)) {
      expect(code).toMatch(/^[a-z]+(_[a-z0-9]+)*$/);
      expect(isErrorCode(code)).toBe(true);
    }
  });

  test.each(['', 'toString', 'constructor', 'no_such_code'])('do not include %j', (code) => {
    expect(isErrorCode(code)).toBe(false);
  });
});

describe('events', () => {
  test('are snake_case on the wire', () => {
    for (const type of EVENT_TYPES) expect(type).toMatch(/^[a-z]+(_[a-z]+)*$/);
  });

  test('of an unknown type are rejected', () => {
    expect(SessionEvent.safeParse({ type: 'slept' }).success).toBe(false);
  });
});

test('a union member without a case throws an error with the member', () => {
  expect(() => assertNever({ kind: 'new' } as never)).toThrow('unexpected {"kind":"new"}');
});
