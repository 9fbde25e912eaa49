/**
 * Published commands: accepted bodies, and rejections with a code that names the field.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { z } from 'zod';
import { nearestVerb } from '../src/commands/commands.ts';
import {
  BOUNDS,
  CallOutcomeBody,
  COMMAND_BODIES,
  CopyOrigin,
  CREW_BODIES,
  type ErrorCode,
  EVENT_SCHEMAS,
  isErrorCode,
  modelName,
  parseBody,
  parseCommand,
  VERBS,
  WorkReport,
} from '../src/mod.ts';

const bytes = (text: string) => new TextEncoder().encode(text);
const parse = (verb: string, body: unknown) => parseCommand(verb, bytes(JSON.stringify(body)));

/** The problem of a body, as `code field`; or `ok`. */
function verdict(verb: string, body: unknown): string {
  const parsed = parse(verb, body);
  return parsed.ok ? 'ok' : `${parsed.problem.code} ${parsed.problem.field ?? ''}`;
}

describe('plain text', () => {
  test.each(['prompt', 'steer', 'remind', 'followup'])('is the body of %s', (verb) => {
    expect(parseCommand(verb, bytes('  try again \n'))).toMatchObject({ ok: true, body: { body: '  try again \n' } });
  });

  test.each(VERBS.filter((verb) => !['prompt', 'steer', 'remind', 'followup'].includes(verb)))(
    'is rejected by %s, and an empty payload is an empty object',
    (verb) => {
      expect(parseCommand(verb, bytes('because'))).toMatchObject({ ok: false, problem: { code: 'invalid_json' } });
      expect(parseCommand(verb, bytes(' '))).not.toMatchObject({ problem: { code: 'invalid_json' } });
    },
  );

  test.each(['', ' ', '\n\t', '\u0000', ' \u001b '])(
    'with only blanks and control characters is empty_body: %j',
    (text) => {
      expect(parseCommand('steer', bytes(text))).toMatchObject({
        ok: false,
        problem: { code: 'empty_body', field: 'body' },
      });
    },
  );

  test.each(['{', ' {"body": "x"', '\n{body: x}', '{"body":"x"} and more', "{'body': 'x'}"])(
    'cannot start with a brace: %j is invalid_json',
    (text) => {
      expect(parseCommand('steer', bytes(text))).toMatchObject({
        ok: false,
        problem: { code: 'invalid_json', field: 'body' },
      });
    },
  );

  test.each(['[1, 2]', '"quoted"', '7', 'null', 'x{"body":1}'])('may start with any other character: %j', (text) => {
    expect(parseCommand('steer', bytes(text))).toMatchObject({ ok: true, body: { body: text } });
  });

  test('that is not UTF-8 is invalid_utf8', () => {
    const cut = bytes('naïve').slice(0, 3);
    expect(parseCommand('steer', cut)).toMatchObject({ ok: false, problem: { code: 'invalid_utf8', field: 'body' } });
  });
});

describe('the size of a body', () => {
  const steer = (size: number) => parseCommand('steer', new Uint8Array(size).fill(97));

  test('may equal the bound', () => {
    expect(steer(BOUNDS.commandBodyMaxBytes).ok).toBe(true);
  });

  test('may not exceed the bound by one byte', () => {
    expect(steer(BOUNDS.commandBodyMaxBytes + 1)).toMatchObject({
      ok: false,
      problem: { code: 'body_too_large', field: 'body' },
    });
  });

  test('is counted in bytes, not in characters', () => {
    const text = 'é'.repeat(BOUNDS.commandBodyMaxBytes / 2);
    expect(parseCommand('steer', bytes(text)).ok).toBe(true);
    expect(parseCommand('steer', bytes(`${text}é`))).toMatchObject({ problem: { code: 'body_too_large' } });
  });
});

describe('an unknown verb', () => {
  test.each([
    ['stear', 'steer'],
    ['cancel-call', 'cancel_call'],
    ['aprove', 'approve'],
    ['STEER', 'steer'],
    ['follow_up', 'followup'],
  ])('%s gets the suggestion %s', (asked, nearest) => {
    const parsed = parseCommand(asked, bytes('x'));
    expect(parsed).toMatchObject({ ok: false, problem: { code: 'unknown_command', field: 'verb' } });
    if (!parsed.ok) expect(parsed.problem.message).toContain(`"${nearest}"`);
  });

  test.each([
    ['nothing', ''],
    ['*', '*'],
    ['>', '>'],
    ['hooks_changed', 'hooks_changed'],
    ['unknwon', 'unknwon'],
    ['__proto__', '__proto__'],
    ['constructor', 'constructor'],
    ['10,000 characters', 'x'.repeat(10_000)],
  ])('without a similar verb gets the list of all verbs. %s', (_name, verb) => {
    const parsed = parseCommand(verb, bytes('x'));
    expect(parsed).toMatchObject({ ok: false, problem: { code: 'unknown_command' } });
    if (!parsed.ok) expect(parsed.problem.message.length).toBeLessThan(250);
    expect(nearestVerb(verb)).toBeNull();
    expect(parsed).toMatchObject({ problem: { message: expect.stringContaining(VERBS.join(', ')) } });
  });
});

describe('the common members of bodies', () => {
  const minimal: Readonly<Record<string, object>> = {
    start: { prompt: 'x' },
    prompt: { body: 'x' },
    steer: { body: 'x' },
    remind: { body: 'x' },
    followup: { body: 'x' },
    approve: { call_id: 'c', decision: 'allow' },
    cancel: {},
    cancel_call: { call_id: 'c' },
    suspend: {},
    resume: {},
    signal: { name: 'go' },
    revoke: { command_id: 'm' },
    replace: { command_id: 'm', body: 'x' },
    delete: {},
  };

  test('are tested here for every verb', () => {
    expect(Object.keys(minimal)).toEqual(VERBS);
  });

  describe.each(Object.entries(minimal))('%s', (verb, body) => {
    test('the smallest body is accepted', () => {
      expect(parse(verb, body)).toMatchObject({ ok: true, verb, id: undefined, actor: undefined });
    });

    test('id and actor are not part of the body', () => {
      const parsed = parse(verb, { ...body, id: 'k-1_A', actor: ' ada ' });
      expect(parsed).toMatchObject({ ok: true, id: 'k-1_A', actor: { name: 'ada', verified: false } });
      if (parsed.ok) expect(Object.keys(parsed.body)).not.toEqual(expect.arrayContaining(['id', 'actor']));
    });

    test('id and actor are returned for a rejected body too', () => {
      const identity = { id: 'k-1_A', actor: 'ada' };
      const refused = { ok: false, id: 'k-1_A', actor: { name: 'ada', verified: false } };
      expect(parse(verb, { ...body, ...identity, bogus: 1 })).toMatchObject(refused);
      expect(parse(verb, { ...body, ...identity, id: '*', bogus: 1 })).toMatchObject({
        problem: { code: 'invalid_id', field: 'id' },
        actor: refused.actor,
      });
      expect(parse(verb, { ...body, id: 'k-1_A', actor: 7 })).toMatchObject({ ok: false, id: 'k-1_A' });
    });

    test('an invalid id is rejected with the same code as in a header', () => {
      for (const id of ['', '*', '>', 'a.b', 'a b', 'ä', 'x'.repeat(65), 'x'.repeat(10_000), '\n', 'a\n', 5, null]) {
        expect(verdict(verb, { ...body, id }), String(id)).toBe('invalid_id id');
      }
    });

    test('an actor may not claim to be verified', () => {
      expect(verdict(verb, { ...body, actor: { name: 'ada', verified: true } })).toBe('invalid_field actor.verified');
    });

    test.each([
      ['', 'actor'],
      [{ name: '' }, 'actor.name'],
      [{ name: 'x'.repeat(BOUNDS.actorMaxChars + 1) }, 'actor.name'],
      [7, 'actor'],
    ])('an actor needs a name: %j', (actor, field) => {
      expect(verdict(verb, { ...body, actor })).toBe(`invalid_field ${field}`);
    });

    test('an unknown field is rejected by name, with the list of known fields', () => {
      const parsed = parse(verb, { ...body, bogus: 1 });
      expect(parsed).toMatchObject({ ok: false, problem: { code: 'unknown_field', field: 'bogus' } });
      if (!parsed.ok)
        for (const field of Object.keys(COMMAND_BODIES.resume.shape)) expect(parsed.problem.message).toContain(field);
    });

    test.each(['__proto__', 'constructor', 'toString'])(
      'a field named like a property of Object.prototype is unknown: %s',
      (field) => {
        const text = JSON.stringify(body).replace(/^\{/, `{"${field}": {"body": "y"}, `).replace(', }', '}');
        expect(parseCommand(verb, bytes(text))).toMatchObject({ ok: false, problem: { code: 'unknown_field', field } });
      },
    );

    test('a body must be an object', () => {
      for (const value of [null, [], 'x', 7]) {
        expect(parseBody(verb as 'steer', value)).toMatchObject({ ok: false, problem: { field: 'body' } });
      }
    });
  });

  test('a parent in a client’s start is rejected: only hosts set it', () => {
    expect(verdict('start', { prompt: 'x', parent: { session: 'p' } })).toBe('unknown_field parent');
  });
});

describe('bad input is refused with the field named:', () => {
  const deep = JSON.parse(`${'['.repeat(BOUNDS.jsonDepthMax)}${']'.repeat(BOUNDS.jsonDepthMax)}`);
  const cases: readonly [verb: string, body: object, expected: `${ErrorCode} ${string}`][] = [
    // start
    ['prompt', {}, 'invalid_field body'],
    ['prompt', { body: ' ' }, 'empty_body body'],
    [
      'prompt',
      { body: 'x', messages: [{ role: 'user', content: [{ type: 'text', text: 'x' }] }] },
      'invalid_field messages',
    ],
    ['prompt', { messages: [] }, 'invalid_field messages'],
    ['prompt', { messages: [{ role: 'user', content: [{ type: 'text', text: ' ' }] }] }, 'invalid_field messages.0'],
    ['prompt', { body: 'x', provider: 'openai' }, 'invalid_field provider'],
    ['prompt', { body: 'x', model: 'gpt' }, 'invalid_field model'],
    ['prompt', { body: 'x', mode: 'a b' }, 'invalid_field mode'],
    ['prompt', { body: 'x', if_running: 'followup' }, 'invalid_field if_running'],
    ['prompt', { body: 'x', if_running: 'steer', model: 'a/b' }, 'invalid_field model'],
    ['prompt', { body: 'x', persona: 'other' }, 'unknown_field persona'],
    ['start', {}, 'invalid_field prompt'],
    ['start', { prompt: ' ' }, 'invalid_field prompt'],
    [
      'start',
      { prompt: 'x', messages: [{ role: 'user', content: [{ type: 'text', text: 'x' }] }] },
      'invalid_field prompt',
    ],
    ['start', { messages: [] }, 'invalid_field messages'],
    ['start', { messages: [{ role: 'user', content: [] }] }, 'invalid_field messages.0.content'],
    ['start', { messages: [{ role: 'user', content: [{ type: 'text', text: ' ' }] }] }, 'invalid_field messages.0'],
    ['start', { messages: [{ role: 'assistant', content: [] }] }, 'invalid_field messages.0.role'],
    ['start', { prompt: 'x', persona: 'a.b' }, 'invalid_field persona'],
    ['start', { prompt: 'x', persona: {} }, 'invalid_field persona.name'],
    ['start', { prompt: 'x', persona: { name: 'a', tols: [] } }, 'unknown_field persona.tols'],
    ['start', { prompt: 'x', provider: 'openai' }, 'invalid_field provider'],
    ['start', { prompt: 'x', provider: 'Open AI', model: 'm' }, 'invalid_field provider'],
    ['start', { prompt: 'x', model: 'gpt' }, 'invalid_field model'],
    ['start', { prompt: 'x', base_url: 'file:///etc/passwd' }, 'invalid_field base_url'],
    ['start', { prompt: 'x', base_url: 'nowhere' }, 'invalid_field base_url'],
    ['start', { prompt: 'x', mode: 'a b' }, 'invalid_field mode'],
    ['start', { prompt: 'x', max_turns: 0 }, 'invalid_field max_turns'],
    ['start', { prompt: 'x', max_turns: 1.5 }, 'invalid_field max_turns'],
    ['start', { prompt: 'x', limits: { turns: 1 } }, 'unknown_field limits.turns'],
    ['start', { prompt: 'x', tools: { allow: 'all' } }, 'invalid_field tools.allow'],
    ['start', { prompt: 'x', mcp_servers: { 'a b': { command: 'x' } } }, 'invalid_field mcp_servers.a b'],
    ['start', { prompt: 'x', mcp_servers: { a: { command: '' } } }, 'invalid_field mcp_servers.a.command'],
    ['start', { prompt: 'x', permissions: { rules: [{ tool: '*' }] } }, 'invalid_field permissions.rules.0.action'],
    [
      'start',
      { prompt: 'x', permissions: { rules: [{ tool: '*', when: 'path =~ "("', action: 'ask' }] } },
      'invalid_field permissions.rules.0.when',
    ],
    ['start', { prompt: 'x', permissions: { default: 'maybe' } }, 'invalid_field permissions.default'],
    [
      'start',
      { prompt: 'x', permissions: { rules: [{ tool: '[', action: 'deny' }] } },
      'invalid_field permissions.rules.0.tool',
    ],
    ['start', { prompt: 'x', tools: { deny: ['fs.*'] } }, 'invalid_field tools.deny.0'],
    ['steer', { text: 'x' }, 'unknown_field text'],
    ['start', { prompt: 'x', root: '' }, 'invalid_field root'],
    ['start', { prompt: 'x', root: 'src' }, 'invalid_field root'],
    ['start', { prompt: 'x', root: '~/src' }, 'invalid_field root'],
    ['start', { prompt: 'x', metadata: [] }, 'invalid_field metadata'],
    ['start', { prompt: 'x', metadata: { deep } }, 'invalid_field metadata'],
    ['start', { prompt: 'x', message_id: 'x'.repeat(257) }, 'invalid_field message_id'],
    ['start', { prompt: 'x', fork: { session: 'a', n: 1 } }, 'invalid_field prompt'],
    ['start', { fork: { session: 'a', n: 1 }, model: 'a/b' }, 'invalid_field model'],
    ['start', { fork: { session: 'a.b', n: 1 } }, 'invalid_field fork.session'],
    ['start', { fork: { session: 'a', n: 0 } }, 'invalid_field fork.n'],
    ['start', { fork: { session: 'a', n: 1, changes: {} } }, 'invalid_field fork.changes'],
    ['start', { fork: { session: 'a', n: 1, changes: { verdict: 1 } } }, 'unknown_field fork.changes.verdict'],
    ['start', { fork: { session: 'a', n: 1, changes: { verdicts: {} } } }, 'invalid_field fork.changes.verdicts'],
    // messages to a session
    ['prompt', {}, 'invalid_field body'],
    ['prompt', { body: '' }, 'empty_body body'],
    ['prompt', { body: 5 }, 'invalid_field body'],
    ['steer', { body: ' \n' }, 'empty_body body'],
    ['steer', { body: 'x', mode: 'now' }, 'invalid_mode mode'],
    ['steer', { body: 'x', mode: '' }, 'invalid_mode mode'],
    ['steer', { body: 'x', mode: null }, 'invalid_mode mode'],
    ['steer', { body: 'x', preempt: 1 }, 'invalid_field preempt'],
    ['steer', { body: 'x', preempt: true, mode: 'finish_step' }, 'invalid_field preempt'],
    ['steer', { body: 'x', preempt: true, mode: 'steer' }, 'invalid_field preempt'],
    ['steer', { body: 'x', preempt: true, mode: 'audit_only' }, 'invalid_field preempt'],
    ['steer', { body: 'x', preempt: true, mode: 'now' }, 'invalid_mode mode'],
    ['remind', { body: 'x', preempt: true, mode: 'finish_step' }, 'invalid_field preempt'],
    ['followup', { body: 'x', preempt: true }, 'unknown_field preempt'],
    ['steer', { body: 'x', dedupe_key: 7 }, 'invalid_field dedupe_key'],
    ['replace', { command_id: 'm', body: ' ' }, 'empty_body body'],
    ['remind', { body: 'x', mode: 'soon' }, 'invalid_mode mode'],
    ['remind', { body: 'x', tagz: [] }, 'unknown_field tagz'],
    ['followup', { body: '' }, 'empty_body body'],
    ['followup', { body: 'x', mode: 'finish_step' }, 'unknown_field mode'],
    // decisions and control
    ['approve', { decision: 'allow' }, 'invalid_field call_id'],
    ['approve', { call_id: '', decision: 'allow' }, 'invalid_field call_id'],
    ['approve', { call_id: 'x'.repeat(257), decision: 'allow' }, 'invalid_field call_id'],
    ['approve', { call_id: 'c' }, 'invalid_field decision'],
    ['approve', { call_id: 'c', decision: 'maybe' }, 'invalid_field decision'],
    ['approve', { call_id: 'c', decision: 'allow', args: 'x' }, 'invalid_field args'],
    ['approve', { call_id: 'c', decision: 'deny', args: {} }, 'invalid_field args'],
    ['approve', { call_id: 'c', decision: 'allow', args: { deep } }, 'invalid_field args'],
    ['approve', { call_id: 'c', decision: 'allow', remember: 'always' }, 'invalid_field remember'],
    ['cancel', { reason: 'é'.repeat(BOUNDS.reasonMaxBytes / 2 + 1) }, 'invalid_field reason'],
    ['cancel', { reason: 5 }, 'invalid_field reason'],
    ['cancel_call', {}, 'invalid_field call_id'],
    ['cancel_call', { call_id: 'c', inject_reminder: 'no' }, 'invalid_field inject_reminder'],
    ['cancel_call', { call_id: 'c', timeout_ms: -1 }, 'invalid_field timeout_ms'],
    ['cancel_call', { call_id: 'c', timeout_ms: 600_001 }, 'invalid_field timeout_ms'],
    ['cancel_call', { call_id: 'c', timeout_ms: 1.5 }, 'invalid_field timeout_ms'],
    ['suspend', { until: 'noon' }, 'invalid_field until'],
    ['suspend', { until: '2030-01-01T00:00:00' }, 'invalid_field until'],
    ['suspend', { until: '2030-01-01' }, 'invalid_field until'],
    ['suspend', { until: '2030-01-01T00:00:00Z', for_ms: 1 }, 'invalid_field for_ms'],
    ['suspend', { for_ms: 0 }, 'invalid_field for_ms'],
    ['suspend', { for_ms: BOUNDS.longWaitMaxMs + 1 }, 'invalid_field for_ms'],
    ['suspend', { for_ms: '1h' }, 'invalid_field for_ms'],
    ['suspend', { signal: 'two words' }, 'invalid_field signal'],
    ['suspend', { on_timeout: 'fail' }, 'invalid_field on_timeout'],
    ['suspend', { signal: 'go', on_timeout: 'fail' }, 'invalid_field on_timeout'],
    ['suspend', { for_ms: 1, on_timeout: 'resume' }, 'invalid_field on_timeout'],
    ['suspend', { for_ms: 1, on_timeout: 'resume_with_input' }, 'invalid_field input'],
    ['suspend', { for_ms: 1, on_timeout: 'resume_with_input', input: ' ' }, 'invalid_field input'],
    ['suspend', { for_ms: 1, input: 'x' }, 'invalid_field input'],
    ['suspend', { for_ms: 1, on_timeout: 'fail', input: 'x' }, 'invalid_field input'],
    ['signal', {}, 'invalid_field name'],
    ['signal', { name: '' }, 'invalid_field name'],
    ['signal', { name: 'go', data: { deep } }, 'invalid_field data'],
    ['signal', { name: 'go', data: 'x'.repeat(BOUNDS.signalDataMaxBytes - 1) }, 'invalid_field data'],
    ['signal', { name: 'go', date: 1 }, 'unknown_field date'],
    ['suspend', { till: 'noon' }, 'unknown_field till'],
  ];

  test.each(cases.map(([verb, body, expected]) => [verb, JSON.stringify(body).slice(0, 100), expected, body] as const))(
    '%s %s: %s',
    (verb, _text, expected, body) => {
      expect(verdict(verb, body)).toBe(expected);
      const [code] = expected.split(' ');
      expect(isErrorCode(code as string)).toBe(true);
    },
  );

  test.each([
    [{ tags: 'deploy' }, 'tags'],
    [{ tags: [''] }, 'tags.0'],
    [{ tags: Array(33).fill('t') }, 'tags'],
    [{ tags: ['x'.repeat(65)] }, 'tags.0'],
    [{ dedupe_key: '' }, 'dedupe_key'],
    [{ dedupe_key: 'x'.repeat(257) }, 'dedupe_key'],
    [{ ttl_turns: 0 }, 'ttl_turns'],
    [{ ttl_turns: 1.5 }, 'ttl_turns'],
    [{ ttl_turns: '3' }, 'ttl_turns'],
    [{ preserve_on_compact: 'yes' }, 'preserve_on_compact'],
    [{ propagate: 'children' }, 'propagate'],
    [{ role_hint: 'user' }, 'role_hint'],
  ])('remind with %j', (fields, field) => {
    expect(verdict('remind', { body: 'x', ...fields })).toBe(`invalid_field ${field}`);
  });

  test('remind rejects unknown fields by name', () => {
    expect(verdict('remind', { body: 'x', ttl: 3 })).toBe('unknown_field ttl');
  });

  test.each([
    ['revoke', {}, 'command_id'],
    ['revoke', { command_id: 'a.b' }, 'command_id'],
    ['replace', { command_id: 'm' }, 'body'],
    ['replace', { body: 'x' }, 'command_id'],
  ])('%s %j', (verb, body, field) => {
    expect(verdict(verb, body)).toBe(`invalid_field ${field}`);
  });

  test('a number outside the range of JavaScript is rejected', () => {
    expect(parseCommand('start', bytes('{"prompt": "x", "metadata": {"n": 1e999}}'))).toMatchObject({
      ok: false,
      problem: { code: 'invalid_field', field: 'metadata.n' },
    });
  });

  test('values at their bounds are accepted', () => {
    expect(
      verdict('suspend', { for_ms: 1, on_timeout: 'resume_with_input', input: 'x', signal: 'go', reason: 'r' }),
    ).toBe('ok');
    expect(verdict('suspend', { until: '2030-01-01T00:00:00+02:00', on_timeout: 'fail' })).toBe('ok');
    expect(verdict('suspend', { for_ms: BOUNDS.longWaitMaxMs })).toBe('ok');
    expect(verdict('signal', { name: 'go', data: 'x'.repeat(BOUNDS.signalDataMaxBytes - 2) })).toBe('ok');
  });

  test('a reason at its bound is accepted', () => {
    expect(verdict('cancel', { reason: 'x'.repeat(BOUNDS.reasonMaxBytes) })).toBe('ok');
  });
});

describe('an unknown verb with an id', () => {
  test('is rejected under that id', () => {
    expect(parse('stear', { id: 'k1', actor: 'ada', body: 'x' })).toMatchObject({
      ok: false,
      problem: { code: 'unknown_command' },
      id: 'k1',
      actor: { name: 'ada' },
    });
  });
});

describe('preempt', () => {
  test.each(['steer', 'remind'])('%s: alone it implies an interrupt; with a mode, that mode applies', (verb) => {
    const read = (body: object) => {
      const parsed = parseCommand(verb, bytes(JSON.stringify(body)));
      return parsed.ok ? parsed.body : parsed.problem;
    };
    const asked = { body: 'x', mode: 'interrupt_immediate', preempt: true };
    expect(read({ body: 'x', preempt: true })).toMatchObject(asked);
    expect(read({ body: 'x', preempt: true, mode: 'interrupt' })).toMatchObject(asked);
    expect(read({ body: 'x', preempt: false })).toMatchObject({ mode: 'finish_step' });
    expect(read({ body: 'x', preempt: false, mode: 'audit_only' })).toMatchObject({ mode: 'audit_only' });
  });
});

describe('modes', () => {
  test.each([
    ['interrupt_immediate', 'interrupt_immediate'],
    ['interrupt', 'interrupt_immediate'],
    ['finish_step', 'finish_step'],
    ['steer', 'finish_step'],
    ['audit_only', 'audit_only'],
    [undefined, 'finish_step'],
  ])('%s is %s', (mode, meant) => {
    expect(parse('steer', { body: 'x', mode })).toMatchObject({ body: { mode: meant } });
    expect(parse('remind', { body: 'x', mode })).toMatchObject({ body: { mode: meant } });
  });
});

describe('a start', () => {
  test('accepts a model as one name or in two parts', () => {
    expect(modelName({ model: 'openai/gpt' })).toBe('openai/gpt');
    expect(modelName({ provider: 'openai', model: 'gpt' })).toBe('openai/gpt');
    expect(modelName({ provider: 'openrouter', model: 'meta/llama' })).toBe('openrouter/meta/llama');
    expect(modelName({})).toBeUndefined();
  });

  test('keeps a member named __proto__ in free JSON', () => {
    const parsed = parseCommand('start', bytes('{"prompt": "x", "metadata": {"__proto__": {"a": 1}}}'));
    expect(parsed.ok && Object.keys(parsed.body.metadata as object)).toEqual(['__proto__']);
  });
});

describe('defaults', () => {
  test('of cancel_call: a reminder, and the default grace period', () => {
    expect(parse('cancel_call', { call_id: 'c' })).toMatchObject({
      body: { inject_reminder: true, timeout_ms: BOUNDS.abortGraceMs },
    });
  });
});

describe('for any payload', () => {
  test('parseCommand returns and never throws', () => {
    const verbs = fc.oneof(fc.constantFrom<string>(...VERBS), fc.string());
    const payloads = fc.oneof(
      fc.uint8Array({ maxLength: 200 }),
      fc.string({ unit: 'binary' }).map(bytes),
      fc.json().map(bytes),
      fc
        .dictionary(
          fc.constantFrom('id', 'body', 'mode', 'actor', 'prompt', 'call_id', 'args', 'persona'),
          fc.jsonValue(),
        )
        .map((value) => bytes(JSON.stringify(value))),
    );
    fc.assert(
      fc.property(verbs, payloads, (verb, payload) => {
        const parsed = parseCommand(verb, payload);
        if (!parsed.ok) {
          expect(isErrorCode(parsed.problem.code)).toBe(true);
          expect(parsed.problem.field).toBeTypeOf('string');
        }
      }),
      { numRuns: 500 },
    );
  });

  test.each([
    ['lists', '[', ']'],
    ['objects', '{"a":', '}'],
  ])('deeply nested brackets do not overflow the stack: %s', (_name, left, right) => {
    const depth = 40_000;
    const nested = `${left.repeat(depth)}${left === '[' ? '' : '1'}${right.repeat(depth)}`;
    for (const body of [`{"prompt":"x","metadata":{"a":${nested}}}`, `{"bogus":${nested}}`, `{"prompt":${nested}}`]) {
      expect(parseCommand('start', bytes(body))).toMatchObject({ ok: false });
    }
  });
});

describe('a body with many invalid members', () => {
  /** A JSON text of 256 KiB: as many members as there is space for. */
  function full(member: (index: number) => string, head: string, tail: string): Uint8Array {
    const members: string[] = [];
    for (let left = BOUNDS.commandBodyMaxBytes - head.length - tail.length; ; ) {
      const next = member(members.length);
      left -= next.length + 1;
      if (left < 0) return bytes(`${head}${members.join(',')}${tail}`);
      members.push(next);
    }
  }
  /** The issues of zod, with those of the alternatives of unions. */
  const issuesIn = (issues: readonly z.core.$ZodIssue[]): number =>
    issues.reduce((sum, one) => sum + 1 + (one.code === 'invalid_union' ? issuesIn(one.errors.flat()) : 0), 0);
  const inList = () => '1';
  const inMap = (index: number) => `"k${index}":1`;
  const server = '{"prompt":"x","mcp_servers":{"a":{"command":"x",';

  test.each<[string, (index: number) => string, string, string]>([
    ['mcp_servers', inMap, '{"prompt":"x","mcp_servers":{', '}}'],
    ['args of a server', inList, `${server}"args":[`, ']}}}'],
    ['env of a server', inMap, `${server}"env":{`, '}}}}'],
    ['modes', inMap, '{"prompt":"x","persona":{"name":"a","modes":{', '}}}'],
    [
      'provider_options',
      inMap,
      '{"prompt":"x","persona":{"name":"a","model":{"name":"a/b","provider_options":{',
      '}}}}',
    ],
    ['content', inList, '{"messages":[{"role":"user","content":[', ']}]}'],
    ['messages', () => `{"role":"user","content":[${'1,'.repeat(120)}1]}`, '{"messages":[', ']}'],
    [
      'provider_metadata',
      inMap,
      '{"messages":[{"role":"user","content":[{"type":"text","text":"a","provider_metadata":{',
      '}}]}]}',
    ],
    [
      'skills',
      () => `{"name":"a","skills":[${`{"files":[${'1,'.repeat(60)}1]},`.repeat(60)}1]}`,
      '{"prompt":"x","personas":[',
      ']}',
    ],
    ['verdicts', (index) => `"k ${index}":1`, '{"fork":{"session":"a","n":1,"changes":{"verdicts":{', '}}}}'],
  ])('is rejected after few of them: %s', (_what, member, head, tail) => {
    const body = full(member, head, tail);
    const parsed = COMMAND_BODIES.start.safeParse(JSON.parse(new TextDecoder().decode(body)));
    expect(issuesIn(parsed.error?.issues ?? [])).toBeLessThan(400);
    expect(parseCommand('start', body)).toMatchObject({ ok: false, problem: { code: 'invalid_field' } });
  });

  test('has no list or map that is read to its end', () => {
    const unbounded: string[] = [];
    const seen = new Set<object>();
    const look = (schema: z.core.$ZodType, at: string): void => {
      if (seen.has(schema)) return;
      seen.add(schema);
      const { def, traits } = schema._zod;
      if (def.type === 'array' && !traits.has('CoxswainList')) unbounded.push(at);
      if (def.type === 'record' && !traits.has('CoxswainMap')) unbounded.push(at);
      for (const [key, part] of Object.entries({ ...def, ...(def as { shape?: object }).shape }))
        for (const one of Array.isArray(part) ? part : [part])
          if (typeof one === 'object' && one !== null && '_zod' in one)
            look(one as unknown as z.core.$ZodType, `${at}.${key}`);
    };
    const bodies = { ...COMMAND_BODIES, ...CREW_BODIES, call_outcome: CallOutcomeBody, WorkReport };
    for (const [verb, body] of Object.entries(bodies)) look(body, verb);
    // Its keys are an enumeration.
    expect(unbounded).toEqual(['start.stand_ins.innerType']);
  });
});

test('a start may have 64 MCP servers, and a journal may contain more', () => {
  const servers = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`s${index}`, { url: 'http://a.example' }]));
  const persona = (count: number) => ({ name: 'a', mcp_servers: servers(count) });
  const fork = (count: number) => ({ fork: { session: 'a', n: 1, changes: { persona: persona(count) } } });
  expect(verdict('start', { prompt: 'x', mcp_servers: servers(64), persona: persona(64) })).toBe('ok');
  expect(verdict('start', { prompt: 'x', mcp_servers: servers(65) })).toBe('invalid_field mcp_servers');
  expect(verdict('start', { prompt: 'x', persona: persona(65) })).toBe('invalid_field persona.mcp_servers');
  expect(verdict('start', { prompt: 'x', personas: [persona(65)] })).toBe('invalid_field personas.0.mcp_servers');
  expect(verdict('start', fork(64))).toBe('ok');
  expect(verdict('start', fork(65))).toBe('invalid_field fork.changes.persona.mcp_servers');

  const settings = { mcp_servers: servers(65), persona: persona(65), personas: [persona(65)] };
  expect(EVENT_SCHEMAS.prompt_received.shape.settings.safeParse(settings)).toMatchObject({ success: true });
  const copy = { how: 'fork', session: 'a', n: 1, hash: '0'.repeat(64), changes: fork(65).fork.changes };
  expect(CopyOrigin.safeParse(copy)).toMatchObject({ success: true });
  expect(CopyOrigin.safeParse({ ...copy, changes: {} })).toMatchObject({ success: false });
});
