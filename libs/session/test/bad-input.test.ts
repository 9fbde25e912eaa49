/**
 * Bad input on every verb: a coded rejection that names the field; the host continues, and nothing is lost.
 */
import {
  BOUNDS,
  ControlVerb,
  HEADERS,
  isErrorCode,
  type JsonObject,
  RecordTooLargeError,
  subjects,
  unroutableField,
  VERBS,
} from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { hook, returns } from './fake-hooks.ts';
import { ask, call, say } from './fake-model.ts';
import { ASKING, INBOX, refOf, testBed } from './test-bed.ts';

type Case = readonly [verb: string, body: string | object | Uint8Array, code: string, field: string];

const tooLarge = { body: 'x'.repeat(BOUNDS.commandBodyMaxBytes) };
const CASES: readonly Case[] = [
  ...VERBS.flatMap((verb): Case[] => [
    [verb, '{"body": ', 'invalid_json', 'body'],
    [verb, new Uint8Array([0x7b, 0xff, 0xfe]), 'invalid_utf8', 'body'],
    [verb, tooLarge, 'body_too_large', 'body'],
    [verb, { actor: 'x\ud800' }, 'invalid_unicode', 'actor'],
  ]),
  ...VERBS.filter((verb) => !['signal', 'revoke', 'replace', 'delete'].includes(verb)).map(
    (verb): Case => [verb, { call_id: 'c1', decision: 'allow', body: 'x', prompt: 'x', surprise: 1 }, '', ''],
  ),
  ['start', { prompt: 'a\udc00' }, 'invalid_unicode', 'prompt'],
  ['start', { prompt: 'a', metadata: { a: ['\ud83d'] } }, 'invalid_unicode', 'metadata.a.0'],
  ['start', { prompt: 'a', metadata: { '\ud83d': 1 } }, 'invalid_unicode', 'metadata.\ufffd'],
  ['start', { prompt: 'a', persona: { name: 'p', prompt: '\ude00\ud83d' } }, 'invalid_unicode', 'persona.prompt'],
  [
    'prompt',
    { messages: [{ role: 'user', content: [{ type: 'text', text: 'a\ud800' }] }] },
    'invalid_unicode',
    'messages.0.content.0.text',
  ],
  ['approve', { call_id: 'c', decision: 'allow', args: { text: '\ud800' } }, 'invalid_unicode', 'args.text'],
  ['signal', { name: 'x', data: ['\udfff'] }, 'invalid_unicode', 'data.0'],
  ['steer', '{"body":"x","\\ud800":1}', 'invalid_unicode', '\ufffd'],
  ['steer', '\u200b\u2060\ufeff\u00ad\u3164', 'empty_body', 'body'],
  ['start', 'plain text', 'invalid_json', 'body'],
  ['start', {}, 'invalid_field', 'prompt'],
  [
    'start',
    { prompt: 'a', messages: [{ role: 'user', content: [{ type: 'text', text: 'b' }] }] },
    'invalid_field',
    'prompt',
  ],
  ['start', { prompt: ' ' }, 'invalid_field', 'prompt'],
  ['start', { prompt: 'a', max_turns: 0 }, 'invalid_field', 'max_turns'],
  ['start', { prompt: 'a', model: 'no-slash' }, 'invalid_field', 'model'],
  ['start', { prompt: 'a', fork: { session: 's2', n: 1 } }, 'invalid_field', 'prompt'],
  ['start', { prompt: 'a', persona: { name: 'p', on_finish: {} } }, 'invalid_field', 'persona.on_finish'],
  [
    'start',
    { prompt: 'a', persona: { name: 'p', hooks: [{ event: 'PreToolUse', pattern: 'tool.nam == "x"', deny: 'no' }] } },
    'invalid_field',
    'persona.hooks.0.pattern',
  ],
  ['start', { prompt: 'a', persona: { name: 'p', skills: ['x'] } }, 'invalid_field', 'persona.skills.0'],
  ['start', { prompt: 'a', limits: { depth: 9 } }, 'invalid_field', 'limits.depth'],
  ['start', { prompt: 'a', personas: [{ name: 'a' }, { name: 'a' }] }, 'invalid_field', 'personas'],
  ['start', { prompt: 'a', personas: [{ name: 'a', hooks: [{}] }] }, 'invalid_field', 'personas.0.hooks.0.event'],
  [
    'start',
    { prompt: 'a', personas: [{ name: 'a', hooks: [{ event: 'post_turn' }] }] },
    'invalid_field',
    'personas.0.hooks.0',
  ],
  ['start', { prompt: 'a', personas: [{ name: 'a', skills: ['x'] }] }, 'invalid_field', 'personas.0.skills.0'],
  ['start', { prompt: 'a', trace: 'a b' }, 'invalid_field', 'trace'],
  ['start', { messages: [{ role: 'assistant', content: [] }] }, 'invalid_field', 'messages.0.role'],
  ['prompt', '', 'empty_body', 'body'],
  ['prompt', { body: ' \n' }, 'empty_body', 'body'],
  ['prompt', { body: 7 }, 'invalid_field', 'body'],
  ['steer', '', 'empty_body', 'body'],
  ['steer', { body: 'x', mode: 'now' }, 'invalid_mode', 'mode'],
  ['steer', { body: 'x', mode: 'finish_step', preempt: true }, 'invalid_field', 'preempt'],
  ['remind', { body: '' }, 'empty_body', 'body'],
  ['remind', { body: 'x', mode: '' }, 'invalid_mode', 'mode'],
  ['remind', { body: 'x', ttl_turns: 0 }, 'invalid_field', 'ttl_turns'],
  ['remind', { body: 'x', ttl: 1 }, 'unknown_field', 'ttl'],
  ['followup', { body: '\t' }, 'empty_body', 'body'],
  ['approve', {}, 'invalid_field', 'call_id'],
  ['approve', { call_id: 'c1', decision: 'maybe' }, 'invalid_field', 'decision'],
  ['approve', { call_id: 'c1', decision: 'allow', args: [] }, 'invalid_field', 'args'],
  [
    'approve',
    { call_id: 'c1', decision: 'deny', reason: 'x'.repeat(BOUNDS.reasonMaxBytes + 1) },
    'invalid_field',
    'reason',
  ],
  ['approve', 'yes', 'invalid_json', 'body'],
  ['cancel', { reason: 7 }, 'invalid_field', 'reason'],
  ['cancel_call', {}, 'invalid_field', 'call_id'],
  ['cancel_call', { call_id: 'c1', timeout_ms: -1 }, 'invalid_field', 'timeout_ms'],
  ['suspend', { until: '2030-01-01' }, 'invalid_field', 'until'],
  ['resume', [1], 'invalid_json', 'body'],
  ['signal', { name: 'two words' }, 'invalid_field', 'name'],
  ['signal', { name: 'x', surprise: 1 }, 'unknown_field', 'surprise'],
  ['revoke', {}, 'invalid_field', 'command_id'],
  ['revoke', { command_id: '*' }, 'invalid_field', 'command_id'],
  ['replace', { command_id: 'x', body: ' ' }, 'empty_body', 'body'],
  ['delete', { why: 'x' }, 'unknown_field', 'why'],
  ['steeer', 'x', 'unknown_command', 'verb'],
  ['x'.repeat(10_000), 'x', 'unknown_command', 'verb'],
  ['timer', {}, 'internal_subject', 'verb'],
  ['call_outcome', {}, 'invalid_field', 'call_id'],
  ['session_failed', {}, 'internal_subject', 'verb'],
];

const payload = (body: Case[1]): string | Uint8Array =>
  typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body);

describe('a running session rejects', () => {
  const name = ([verb, body, code]: Case) =>
    `${verb.slice(0, 20)} ${String(payload(body)).slice(0, 40)} ${code || 'unknown_field'}`;
  test.each(CASES.map((one) => [name(one), one] as const))('%s', async (_name, [verb, body, code, field]) => {
    const bed = testBed();
    bed.models.answers = [say('done', { delayMs: 60_000 })];
    await bed.host();
    await bed.start();
    const before = (await bed.records()).length;
    bed.bus.publish(`cox.default.session.s1.${verb}`, Buffer.from(payload(body)), {
      [HEADERS.commandId]: 'bad',
      [HEADERS.receiptTo]: INBOX,
    });
    await bed.time.settle();
    const receipt = bed.receipts.find((one) => one.command_id === 'bad');
    expect(receipt).toMatchObject({
      stage: 'rejected',
      code: code || 'unknown_field',
      field: field || expect.any(String),
    });
    expect(isErrorCode(receipt?.code ?? '')).toBe(true);
    expect(receipt?.message).not.toBe('');
    // One record with the rejection, and for a control its outcome. It changes nothing, and the session continues.
    const records = await bed.records();
    expect(records.length).toBe(before + 1);
    expect(records.at(-1)?.events.map((event) => event.type)).toEqual([
      'command_rejected',
      ...(ControlVerb.safeParse(verb).success ? ['control_outcome'] : []),
    ]);
    await bed.time.advance(60_000);
    expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
  });
});

test('a rejected command has its id from the body or from the header', async () => {
  const bed = testBed();
  bed.models.answers = [say('done', { delayMs: 60_000 })];
  await bed.host();
  await bed.start();
  const steer = (body: object) =>
    bed.bus.publish(subjects.command(refOf('s1'), 'steer'), Buffer.from(JSON.stringify(body)), {
      [HEADERS.receiptTo]: INBOX,
    });
  steer({ id: 'mine', actor: 'ada', body: 'x', bogus: 1 });
  await bed.time.settle();
  const [rejected] = (await bed.records()).at(-1)?.events ?? [];
  expect(rejected).toMatchObject({ type: 'command_rejected', command_id: 'mine', code: 'unknown_field' });
  expect((await bed.records()).at(-1)?.input).toMatchObject({ actor: { name: 'ada', verified: false } });
  expect(bed.receipts.at(-1)).toMatchObject({ command_id: 'mine', stage: 'rejected', code: 'unknown_field' });
  // The id is taken: a second command under it changes nothing.
  const before = (await bed.records()).length;
  steer({ id: 'mine', body: 'x' });
  await bed.time.settle();
  expect(await bed.records()).toHaveLength(before);
  expect(bed.receipts.at(-1)).toMatchObject({ command_id: 'mine', stage: 'rejected', code: 'unknown_field' });
});

test.each(['', '*', '>', 'a.b', 'a b', 'x'.repeat(65), 'x'.repeat(10_000), 'ünïcode', '../x'])(
  'an invalid command id is rejected, and its command is identified by its position: %j',
  async (id) => {
    const bed = testBed();
    await bed.host();
    await bed.start();
    bed.bus.publish(subjects.command(refOf(), 'prompt'), Buffer.from('hi'), { [HEADERS.commandId]: id });
    await bed.time.settle();
    const [rejected] = await bed.eventsOf('command_rejected');
    expect(rejected).toMatchObject({ code: 'invalid_id', field: 'id' });
    expect(rejected?.command_id).toMatch(/^COX_COMMANDS-\d+-2$/);
  },
);

test.each([
  ['cox.a b.session.s1.steer', 'tenant'],
  ['cox.default.session.a b.steer', 'session'],
  ['cox.default.session.s1.*', 'verb'],
  ['cox-cmd.1.a b.s1.steer', 'tenant'],
  ['cox-cmd.1.default.a b.steer', 'session'],
])('a subject that reaches no session is answered with the token that is wrong: %s', (subject, field) => {
  expect(unroutableField(subject)).toBe(field);
});

test('a command without a session is answered with the sender’s verb', async () => {
  const bed = testBed();
  await bed.host();
  bed.bus.publish('cox.default.session.a b.steer', Buffer.from('x'), { [HEADERS.receiptTo]: INBOX });
  await bed.time.settle();
  expect(bed.receipts.at(-1)).toMatchObject({
    code: 'invalid_id',
    field: 'session',
    message: expect.stringMatching(/^cox\.default\.session\.a b\.steer names no session/),
  });
});

test('a flood of commands without a session does not fill the log: each is answered, and few are warned of', async () => {
  const bed = testBed();
  await bed.host();
  const before = bed.receipts.length;
  for (let i = 0; i < 100; i++)
    bed.bus.publish(`cox.default.session.a b${i}.steer`, Buffer.from('x'), { [HEADERS.receiptTo]: INBOX });
  // Another tenant has a rate of its own.
  bed.bus.publish('cox.other.session.a b.steer', Buffer.from('x'));
  await bed.time.settle();
  expect(bed.receipts.length - before).toBe(100);
  const warned = bed.log.filter(({ level, message }) => level === 'warn' && message.includes('invalid subject'));
  expect(warned.filter(({ fields }) => JSON.stringify(fields).includes('cox.default.'))).toHaveLength(8);
  expect(warned.filter(({ fields }) => JSON.stringify(fields).includes('cox.other.'))).toHaveLength(1);
});

test('if header and body have different ids, the body’s id applies', async () => {
  const bed = testBed();
  await bed.host();
  await bed.start();
  const subject = subjects.command(refOf(), 'prompt');
  bed.bus.publish(subject, Buffer.from('{"id":"body","body":"hi"}'), { [HEADERS.commandId]: 'header' });
  await bed.time.settle();
  expect((await bed.eventsOf('prompt_received')).at(-1)?.command_id).toBe('body');
});

test('an actor in the header has the bounds of one in the body, and is ignored if the body names one', async () => {
  const bed = testBed();
  await bed.host();
  await bed.start();
  const subject = subjects.command(refOf(), 'prompt');
  const long = { [HEADERS.actor]: 'x'.repeat(BOUNDS.actorMaxChars + 1) };
  bed.bus.publish(subject, Buffer.from('hi'), long);
  await bed.time.settle();
  expect(await bed.eventsOf('command_rejected')).toMatchObject([{ code: 'invalid_field', field: 'Cox-Actor' }]);
  bed.bus.publish(subject, Buffer.from('{"actor":"ada","body":"hi"}'), long);
  await bed.time.settle();
  expect((await bed.eventsOf('prompt_received')).at(-1)?.actor).toEqual({ name: 'ada', verified: false });
});

test.each(['*', '>', 'a b', '', 'x'.repeat(10_000), 'ü'])(
  'an invalid session id reaches no session: it is answered and acknowledged: %j',
  async (sessionId) => {
    const bed = testBed();
    await bed.host();
    bed.bus.publish(`cox.default.session.${sessionId}.steer`, Buffer.from('hi'), { [HEADERS.receiptTo]: INBOX });
    await bed.time.settle();
    expect(bed.receipts).toMatchObject([{ stage: 'rejected', code: 'invalid_id', field: 'session' }]);
    await bed.time.advance(60_000);
    expect(bed.receipts).toHaveLength(1);
    await bed.start();
    expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
  },
);

test('a body of exactly the maximum size is accepted', async () => {
  const bed = testBed();
  await bed.host();
  await bed.start();
  const text = 'x'.repeat(BOUNDS.commandBodyMaxBytes);
  const id = await bed.send('prompt', text);
  expect(bed.told(id)).toEqual(['accepted']);
  expect((await bed.eventsOf('prompt_received')).at(-1)?.messages[0]?.content[0]).toMatchObject({ text });
});

test('a command whose record would be too large is rejected with a code, and the run continues', async () => {
  const bed = testBed();
  bed.tools = { ask: {} };
  bed.models.answers = [{ calls: [{ type: 'call', call_id: 'c1', tool: 'ask', args: {} }] }, say('done')];
  await bed.host();
  await bed.start({ permissions: { rules: [{ tool: '*', action: 'ask' }] } });
  // Many small members cannot become blobs. They are in the input, in the decision and in the call that it starts.
  const args = Object.fromEntries(Array.from({ length: 18_000 }, (_, i) => [`k${i}`, i]));
  const id = await bed.send('approve', { call_id: 'c1', decision: 'allow', args });
  expect(bed.receipts.find((receipt) => receipt.command_id === id)).toMatchObject({
    stage: 'rejected',
    code: 'body_too_large',
    field: 'body',
  });
  await bed.send('approve', { call_id: 'c1', decision: 'allow' });
  expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
});

test('a start whose record would be too large is rejected with a code, and creates no session', async () => {
  const bed = testBed();
  await bed.host();
  // Within the bound of a body, and over the bound of a record that contains it as input and as event.
  const metadata = Object.fromEntries(Array.from({ length: 23_820 }, (_, i) => [`k${String(i).padStart(5, '0')}`, 1]));
  const id = await bed.send('start', { prompt: 'hi', model: 'fake/model', metadata });
  expect(bed.told(id)).toEqual(['rejected body_too_large']);
  expect(await bed.bytes()).toEqual([]);
});

test('a start whose record is too large for the journal alone is answered, too', async () => {
  const bed = testBed();
  await bed.host();
  bed.journal.always = async (_append, { bytes }) => {
    throw new RecordTooLargeError(bytes.length);
  };
  const id = await bed.send('start', { prompt: 'hi', model: 'fake/model' });
  bed.journal.always = 'none';
  expect(bed.told(id)).toEqual(['rejected body_too_large']);
  await bed.start();
  expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
});

test('a persona with __proto__ in its metadata neither pollutes prototypes nor breaks the replay', async () => {
  const bed = testBed();
  await bed.host();
  const body = '{"prompt":"hi","model":"fake/model","metadata":{"__proto__":{"polluted":true},"constructor":1}}';
  await bed.send('start', body);
  expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
});

describe('a value of the maximum depth leaves the records readable', () => {
  const deep = (depth: number = BOUNDS.jsonDepthMax): JsonObject =>
    JSON.parse(`${'{"a":'.repeat(depth - 1)}{}${'}'.repeat(depth - 1)}`);

  test('inside the body of a command', async () => {
    const bed = testBed();
    bed.tools = { ask: {} };
    bed.models.answers = [ask(call('c1', 'ask')), say('done')];
    await bed.host();
    const model = { name: 'fake/model', provider_options: { fake: deep() } };
    await bed.send('start', { prompt: 'hi', permissions: ASKING, persona: { name: 'p', prompt: 'p', model } });
    await bed.send('approve', { call_id: 'c1', decision: 'allow', args: deep() });
    expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
  });

  test('inside the payload of a hook', async () => {
    const bed = testBed();
    // The second hook gets the arguments that the first one returned.
    bed.hooks.registrations = [hook('PreToolUse', 'first'), hook('PreToolUse', 'second')];
    bed.hooks.handlers = { first: returns({ args: deep(BOUNDS.jsonDepthMax - 1) }), second: returns(undefined) };
    bed.models.answers = [ask(call('c1', 'read', deep())), say('done')];
    await bed.host();
    await bed.start();
    expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
  });
});
