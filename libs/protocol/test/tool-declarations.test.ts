/**
 * Declarations of tools: rejected definitions and return values, and the member that the message names.
 */
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { readTool, toolAnswerToWire } from '../src/tools/tool-declarations.ts';

describe('the return value of a tool', () => {
  test('is a success without isError', () => {
    const content = [{ type: 'text', text: 'whole' }];
    const result = { content, is_error: false };
    expect(toolAnswerToWire({ content })).toEqual({ ok: true, result });
    expect(toolAnswerToWire({ content, isError: undefined })).toEqual({ ok: true, result });
  });

  test.each<[object, string]>([
    [{ content: [], isError: 'yes' }, 'isError: must be true or false, not a text'],
    [{ content: [{ type: 'file', mediaType: 5 }] }, 'content[0].mediaType: must be a text, not a number'],
  ])('%o is rejected with TypeScript names in the message', (returned, problem) => {
    expect(toolAnswerToWire(returned)).toMatchObject({ ok: false, problem: expect.stringContaining(problem) });
  });

  test.each([new Map([['a', 1]]), { found: new Set([1]) }, new Error('no'), { page: Promise.resolve(1) }, /x/])(
    '%o is rejected: JSON would lose its entries',
    (returned) => {
      expect(toolAnswerToWire(returned)).toMatchObject({ ok: false, problem: expect.stringContaining('has no JSON') });
    },
  );
});

describe('a definition', () => {
  const tool = { name: 't', description: 'd', inputSchema: { type: 'object' }, execute: () => 'x' };

  test.each<[string, object, string]>([
    ['hooks', { PreToolUse: { handler: () => null } }, 'execute }); found PreToolUse'],
    ['nothing', {}, 'execute }); found no member'],
  ])('%s in place of a tool: the message names what was found', (_, given, found) => {
    expect(() => readTool(given)).toThrow(`not a tool: expected defineTool({ name, description, inputSchema, ${found}`);
  });

  test.each<[string, object, string]>([
    ['a Zod schema of a text', { inputSchema: z.string() }, 'inputSchema must describe an object, not "string"'],
    ['JSON Schema of a list', { inputSchema: { type: 'array' } }, 'inputSchema must describe an object, not "array"'],
    ['half a surrogate pair in the description', { description: 'a\ud83d' }, 'description: ill-formed Unicode'],
    [
      'half a surrogate pair in the schema',
      { inputSchema: { type: 'object', properties: { a: { description: '\udc00' } } } },
      'inputSchema.properties.a.description: ill-formed Unicode',
    ],
  ])('with %s is rejected', (_what, wrong, words) => {
    expect(() => readTool({ ...tool, ...wrong })).toThrow(
      expect.objectContaining({ code: 'tool_definition_invalid', message: expect.stringContaining(words) }),
    );
  });

  test.each([{}, { type: ['object', 'null'] }, { anyOf: [{ type: 'object' }] }])(
    'with the schema %o is accepted',
    (inputSchema) => {
      expect(readTool({ ...tool, inputSchema }).definition.input_schema).toEqual(inputSchema);
    },
  );
});
