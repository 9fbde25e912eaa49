/**
 * The mapper between wire names and TypeScript names.
 */
import { describe, expect, expectTypeOf, test } from 'vitest';
import * as z from 'zod';
import { COMMAND_BODIES } from '../src/commands/commands.ts';
import { SessionStatus } from '../src/journal/session-status.ts';
import { type CamelCased, fromWire, pathFromWire, toWire } from '../src/wire/casing.ts';
import type { Json } from '../src/wire/json.ts';

const START = COMMAND_BODIES.start;
const wire = (value: object) => toWire(START, value as never);

describe('to the wire', () => {
  test('members of a schema are renamed, at every depth', () => {
    const given = {
      baseUrl: 'http://127.0.0.1',
      limits: { maxTurns: 3 },
      persona: { name: 'mate', steps: [{ name: 'one', prompt: 'x', maxTokens: 5 }], toolSettings: [{ tool: '*' }] },
      messages: [{ role: 'user', content: [{ type: 'file', mediaType: 'image/png', data: '' }] }],
    };
    expect(wire(given)).toEqual({
      ok: true,
      value: {
        base_url: 'http://127.0.0.1',
        limits: { max_turns: 3 },
        persona: { name: 'mate', steps: [{ name: 'one', prompt: 'x', max_tokens: 5 }], tool_settings: [{ tool: '*' }] },
        messages: [{ role: 'user', content: [{ type: 'file', media_type: 'image/png', data: '' }] }],
      },
    });
  });

  test('data is not renamed: metadata, names of servers, modes and tools, arguments', () => {
    const data = {
      metadata: { ticketId: 1, in_wire: { alsoKept: 2 } },
      mcpServers: { myServer: { command: 'x', env: { myPath: '/', MY_HOME: '/' } } },
      standIns: { read_file: 'editorRead' },
      persona: { name: 'mate', modes: { deepWork: { prompt: '' } } },
    };
    const { mcpServers: mcp_servers, standIns: stand_ins, ...others } = data;
    expect(wire(data)).toEqual({ ok: true, value: { ...others, mcp_servers, stand_ins } });
    const approve = { callId: 'c', decision: 'allow', args: { filePath: 'a', file_path: 'b' } };
    expect(toWire(COMMAND_BODIES.approve, approve as never)).toEqual({
      ok: true,
      value: { call_id: 'c', decision: 'allow', args: approve.args },
    });
  });

  test.each<[given: object, path: unknown[], words: string]>([
    [{ max_turns: 3 }, ['max_turns'], 'is unknown; did you mean maxTurns?'],
    [{ limits: { maxTurn: 3 } }, ['limits', 'maxTurn'], 'is unknown; did you mean maxTurns?'],
    [{ persona: { name: 'x', steps: [{ max_usd: 1 }] } }, ['persona', 'steps', 0, 'max_usd'], 'did you mean maxUsd?'],
    [{ mcpServers: { a: { commnd: 'x' } } }, ['mcpServers', 'a', 'commnd'], 'did you mean command?'],
  ])('an unknown name is reported with its path: %j', (given, path, words) => {
    expect(wire(given)).toEqual({ ok: false, path, words: expect.stringContaining(words) });
  });

  test('a member with the value undefined is not unknown', () => {
    expect(wire({ prompt: 'go', nonsense: undefined })).toMatchObject({ ok: true });
  });

  test('a path in an error is renamed as far as the schema declares it', () => {
    expect(pathFromWire(START, 'limits.max_turns')).toBe('limits.maxTurns');
    expect(pathFromWire(START, 'mcp_servers.my_server.command')).toBe('mcpServers.my_server.command');
    expect(pathFromWire(START, 'persona.steps[0].max_tokens')).toBe('persona.steps[0].maxTokens');
    expect(pathFromWire(COMMAND_BODIES.approve, 'args.file_path')).toBe('args.file_path');
  });
});

describe('from the wire', () => {
  test('a session status is renamed, and the data in it is not', () => {
    const approval = { call_id: 'c', tool: 't', args: { file_path: 'a' }, requested_by: 'rule:*', since: 'now' };
    const status = { session_id: 's', state: { daemon_idle: 'waiting' }, approvals: [approval], stop_reason: null };
    const read = fromWire(SessionStatus, status as never);
    expect(read).toEqual({
      sessionId: 's',
      state: { daemon_idle: 'waiting' },
      approvals: [{ callId: 'c', tool: 't', args: { file_path: 'a' }, requestedBy: 'rule:*', since: 'now' }],
      stopReason: null,
    });
    expect(toWire(SessionStatus, read)).toEqual({ ok: true, value: status });
  });

  test('members of a union are distinguished by their literals and their names', () => {
    const Either = z.union([
      z.strictObject({ kind: z.literal('data'), in_wire: z.unknown() }),
      z.strictObject({ kind: z.literal('object'), in_wire: z.strictObject({ a_name: z.number() }) }),
    ]);
    const inWire = { a_name: 1 };
    expect(fromWire(Either, { kind: 'data', in_wire: inWire })).toEqual({ kind: 'data', inWire });
    expect(fromWire(Either, { kind: 'object', in_wire: inWire })).toEqual({ kind: 'object', inWire: { aName: 1 } });
  });

  test('a member named like a property of prototypes is data', () => {
    const value = JSON.parse('{"__proto__":{"x":1}}') as Record<string, unknown>;
    const read = fromWire(z.record(z.string(), z.unknown()), value) as object;
    expect(JSON.stringify(read)).toBe('{"__proto__":{"x":1}}');
  });
});

test('types are renamed like values', () => {
  expectTypeOf<CamelCased<{ a_b?: { c_d: number }[]; data: Json; map: Record<string, { e_f: 1 }> }>>().toEqualTypeOf<{
    aB?: { cD: number }[];
    data: Json;
    map: { [key: string]: { eF: 1 } };
  }>();
});
