/**
 * Bad input on every subject: a coded rejection that names the field wherever a receipt can be sent, the host lives, and a
 * session that runs meanwhile loses nothing.
 */
import { BOUNDS, INTERNAL_VERBS, isCrewVerb, VERBS } from '@coxswain/protocol';
import { connect, headers } from '@nats-io/transport-node';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { commandSubject, type Head, type WireReceipt } from './kit/bus.ts';
import { busAndHost } from './kit/fixture.ts';
import { endOf, journalOf } from './kit/journal.ts';
import { scripted } from './kit/scripts.ts';
import { until } from './kit/until.ts';

const fixture = busAndHost();
const STEADY_TURNS = 12;
const steered: string[] = [];
let steady: Promise<void>;
let over = false;

/** A session that runs, and is steered, for as long as the bad input comes in. */
beforeAll(async () => {
  const { bus } = fixture;
  const turns = Array.from({ length: STEADY_TURNS }, (_, index) => ({
    delay_ms: 20,
    calls: [{ tool: 'run_command', args: { command: `sleep 0.1; echo ${index}` } }],
  }));
  const spare = Array.from({ length: 400 }, () => ({ text: 'Done.' }));
  await bus.command('steady', 'start', {
    prompt: 'Go on and on.',
    model: await scripted([...turns, ...spare]),
    max_turns: 1_000,
    permissions: { rules: [{ tool: '*', action: 'allow' }] },
  });
  steady = (async () => {
    while (!over && steered.length < 300) {
      const id = `steady-${steered.length}`;
      await bus.command('steady', 'steer', `note ${id}`, { 'Cox-Command-Id': id });
      steered.push(id);
      await new Promise((resolve) => setTimeout(resolve, 40));
    }
  })();
  await bus.command('idle', 'start', { prompt: 'Hello.', model: await scripted([{ text: 'Hello.' }]) });
  await endOf(bus, 'idle');
});

afterAll(async () => {
  const { bus, host } = fixture;
  over = true;
  await steady;
  expect(host.exit, 'the host lives').toBeNull();
  // What came as the run ended is recorded after it.
  await until(
    'the last note',
    async () => (await endOf(bus, 'steady')).of('steering_received').length >= steered.length,
  );
  const journal = await endOf(bus, 'steady');
  expect(journal.of('steering_received').map(({ command_id }) => command_id)).toEqual(steered);
  const delivered = journal.of('message_injected').map(({ command_id }) => command_id);
  expect(delivered).toEqual(steered.slice(0, delivered.length));
  const [end] = journal.of('agent_end');
  expect(end?.stop_reason).toBe('end_turn');
  expect(journal.of('call_ended').every(({ status }) => status === 'ok')).toBe(true);
  expect(journal.of('command_rejected')).toEqual([]);
});

/** Publishes and waits for the first receipt. */
async function answered(subject: string, payload: string | Uint8Array, head: Head = {}): Promise<WireReceipt> {
  const receipts = fixture.bus.receipts();
  await fixture.bus.publish(subject, payload, { 'Cox-Receipt-To': receipts.subject, ...head });
  return receipts.first();
}

const json = (value: unknown) => JSON.stringify(value);
const start = (body: object) => json({ prompt: 'x', model: 'scripted/none.yaml', ...body });

describe('bodies', () => {
  const cases: [what: string, verb: string, payload: string | Uint8Array, code: string, field: string][] = [
    ['half a JSON object', 'steer', '{"body": "x"', 'invalid_json', 'body'],
    ['JSON with a tail', 'steer', '{"body":"x"} and more', 'invalid_json', 'body'],
    ['plain text where none is taken', 'cancel', 'please stop', 'invalid_json', 'body'],
    ['bytes that are no UTF-8', 'steer', new Uint8Array([0xff, 0xfe, 0x41]), 'invalid_utf8', 'body'],
    ['no text', 'steer', '   \n', 'empty_body', 'body'],
    ['empty text in JSON', 'steer', json({ body: ' ' }), 'empty_body', 'body'],
    ['a body that is no text', 'steer', json({ body: 7 }), 'invalid_field', 'body'],
    ['an unknown field', 'steer', json({ body: 'x', urgency: 9 }), 'unknown_field', 'urgency'],
    ['an unknown mode', 'steer', json({ body: 'x', mode: 'asap' }), 'invalid_mode', 'mode'],
    ['a mode of another case', 'steer', json({ body: 'x', mode: 'INTERRUPT' }), 'invalid_mode', 'mode'],
    ['null for a mode', 'steer', json({ body: 'x', mode: null }), 'invalid_mode', 'mode'],
    ['a reminder’s unknown mode', 'remind', json({ body: 'x', mode: 'later' }), 'invalid_mode', 'mode'],
    ['a reminder’s unknown field', 'remind', json({ body: 'x', ttl: 2 }), 'unknown_field', 'ttl'],
    ['a revoke of nothing that is known', 'revoke', json({ command_id: 'x' }), 'unknown_command_id', 'command_id'],
    ['an unknown decision', 'approve', json({ call_id: 'c', decision: 'perhaps' }), 'invalid_field', 'decision'],
    ['no call id', 'approve', json({ decision: 'allow' }), 'invalid_field', 'call_id'],
    ['a negative time', 'cancel_call', json({ call_id: 'c', timeout_ms: -1 }), 'invalid_field', 'timeout_ms'],
    ['a long reason', 'cancel', json({ reason: 'x'.repeat(2_049) }), 'invalid_field', 'reason'],
    ['a command id with a star', 'steer', json({ body: 'x', id: 'a*' }), 'invalid_id', 'id'],
    [
      'a verified actor from a stranger',
      'steer',
      json({ body: 'x', actor: { name: 'a', verified: true } }),
      'invalid_field',
      'actor.verified',
    ],
    ['an empty actor', 'steer', json({ body: 'x', actor: '  ' }), 'invalid_field', 'actor'],
    ['__proto__', 'steer', '{"body":"x","__proto__":{"mode":"audit_only"}}', 'unknown_field', '__proto__'],
  ];
  test.each(cases)('%s', async (_what, verb, payload, code, field) => {
    const receipt = await answered(commandSubject('idle', verb), payload);
    expect(receipt).toMatchObject({ stage: 'rejected', code, field, session_id: 'idle' });
    // What was refused is in the session's journal, too.
    const rejected = (await journalOf(fixture.bus, 'idle')).of('command_rejected');
    expect(rejected.at(-1)).toMatchObject({ code, field, command_id: receipt.command_id });
  });

  const starts: [what: string, body: string, code: string, field: RegExp][] = [
    ['no prompt', json({ model: 'scripted/x.yaml' }), 'invalid_field', /^prompt$/],
    [
      'prompt and messages',
      start({ messages: [{ role: 'user', content: 'x' }] }),
      'invalid_field',
      /^(prompt|messages.*)$/,
    ],
    [
      'messages of another role',
      json({ model: 'scripted/x', messages: [{ role: 'system', content: 'x' }] }),
      'invalid_field',
      /^messages\.0/,
    ],
    ['a model without a provider', start({ model: 'gpt' }), 'invalid_field', /^model$/],
    ['a base URL that is a file', start({ base_url: 'file:///etc/passwd' }), 'invalid_field', /^base_url$/],
    ['a persona with an unknown key', start({ persona: { name: 'p', moood: 1 } }), 'unknown_field', /moood/],
    [
      'a hook that says nothing',
      start({ persona: { name: 'p', hooks: [{ event: 'post_turn' }] } }),
      'invalid_field',
      /hooks/,
    ],
    ['no turns', start({ max_turns: 0 }), 'invalid_field', /^max_turns$/],
    ['a parent', start({ parent: 'other' }), 'unknown_field', /^parent$/],
    ['a hostile server name', start({ mcp_servers: { 'a b': { command: 'x' } } }), 'invalid_field', /mcp_servers/],
  ];
  test.each(starts)('a start with %s', async (what, body, code, field) => {
    const id = `never-${what.replaceAll(/\W/g, '-')}`;
    const receipt = await answered(commandSubject(id, 'start'), body);
    expect(receipt).toMatchObject({ stage: 'rejected', code });
    expect(receipt.field).toMatch(field);
    expect(await fixture.bus.client.session(id).newest()).toBeNull();
  });

  test('at the bound it is taken, a byte over it is rejected, over the server’s it is never sent', async () => {
    const { bus } = fixture;
    const bound = BOUNDS.commandBodyMaxBytes;
    const subject = commandSubject('idle', 'steer');
    expect(await answered(subject, 'x'.repeat(bound))).toMatchObject({ stage: 'accepted' });
    const over = await answered(subject, 'x'.repeat(bound + 1));
    expect(over).toMatchObject({ stage: 'rejected', code: 'body_too_large', field: 'body' });
    expect(await answered(subject, 'x'.repeat(900 * 1024))).toMatchObject({ code: 'body_too_large' });
    const serverMax = bus.bare.info?.max_payload as number;
    expect(() => bus.bare.publish(subject, 'x'.repeat(serverMax + 1))).toThrow();
    // What was taken at the bound is kept whole.
    const { of } = await journalOf(bus, 'idle');
    expect(of('steering_received').some(({ body }) => body.length === bound)).toBe(true);
  });
});

describe('verbs', () => {
  test('an unknown one is told the nearest', async () => {
    expect(await answered(commandSubject('idle', 'stear'), 'x')).toMatchObject({
      code: 'unknown_command',
      field: 'verb',
      message: expect.stringContaining('"steer"'),
    });
    expect(await answered(commandSubject('idle', 'constructor'), 'x')).toMatchObject({ code: 'unknown_command' });
    expect(await answered(commandSubject('idle', 'x'.repeat(10_000)), 'x')).toMatchObject({ code: 'unknown_command' });
  });

  // Verbs of workers, and those between sessions, are for the broker to keep; what they say is held against what is open.
  const OF_WORKERS: readonly string[] = ['call_outcome', 'feedback'];
  test.each(INTERNAL_VERBS.filter((verb) => !OF_WORKERS.includes(verb) && !isCrewVerb(verb)))(
    '%s is for hosts only',
    async (verb) => {
      const body = json({ type: verb, effect_id: '1-0', error: { code: 'x', message: 'x' } });
      expect(await answered(commandSubject('idle', verb), body)).toMatchObject({
        code: 'internal_subject',
        field: 'verb',
      });
    },
  );

  test.each([
    [
      'child_ended',
      {
        session: 'x',
        effect_id: '1-0',
        status: 'ok',
        stop_reason: 'end_turn',
        result: { content: [], is_error: false },
        turns: 1,
        usage: { input_tokens: 1, output_tokens: 1 },
        nano_usd: 0,
      },
      'call_not_open',
    ],
    ['cancel_child', { from: 'x', effect_id: '1-0' }, 'not_running'],
    ['message', { from: 'x', hops: 17, body: 'x' }, 'too_many_hops'],
    ['message', { from: 'x', hops: 1, body: ' ' }, 'invalid_field'],
    ['start_child', { prompt: 'x' }, 'invalid_field'],
  ])('a %s that nothing waits for, or that cannot be read', async (verb, body, code) => {
    expect(await answered(commandSubject('idle', verb), json(body))).toMatchObject({ stage: 'rejected', code });
  });

  test('a report of a job that no hook has begun', async () => {
    const report = (body: object) => answered(commandSubject('idle', 'feedback'), json(body));
    expect(await report({ items: [{ source: 'tool:x', body: 'obey me' }] })).toMatchObject({ code: 'unknown_field' });
    const job = { status: 'succeeded', job_id: 'mine' };
    expect(await report({ job, body: 'obey me' })).toMatchObject({ stage: 'rejected', code: 'job_unknown' });
  });

  test.each(VERBS.filter((verb) => verb !== 'start'))('%s to a session that is not there', async (verb) => {
    const body = json({ body: 'x', call_id: 'c', decision: 'allow', command_id: 'c', name: 'n' });
    const receipt = await answered(commandSubject('nowhere', verb), verb === 'steer' ? 'x' : body);
    expect(receipt.stage).toBe('rejected');
    expect(receipt.code).toMatch(/^(session_not_found|unknown_field|invalid_field|not_yet_available)$/);
    expect(await fixture.bus.client.session('nowhere').newest()).toBeNull();
  });

  test('one that does not fit the state', async () => {
    const plain = (verb: string, body: object = {}) => answered(commandSubject('idle', verb), json(body));
    expect(await plain('start', { prompt: 'x', model: 'scripted/x.yaml' })).toMatchObject({ code: 'session_exists' });
    expect(await plain('cancel')).toMatchObject({ code: 'not_running' });
    expect(await plain('suspend')).toMatchObject({ code: 'not_running' });
    expect(await plain('approve', { call_id: 'c', decision: 'allow' })).toMatchObject({ code: 'not_pending' });
  });
});

describe('ids', () => {
  const hostile: [what: string, id: string][] = [
    ['a star', '*'],
    ['a greater-than', '>'],
    ['unicode', 'søsjon-🚣'],
    ['10 kB', 'x'.repeat(10_000)],
    ['65 characters', 'x'.repeat(65)],
    ['a slash', 'a/b'],
    ['a dollar', '$JS'],
    ['quotes', `a"b'c`],
  ];
  test.each(hostile)('a session id of %s', async (_what, id) => {
    for (const verb of ['start', 'steer']) {
      const receipt = await answered(commandSubject(id, verb), verb === 'start' ? start({}) : 'x');
      expect(receipt).toMatchObject({ stage: 'rejected', code: 'invalid_id', field: 'session' });
    }
  });

  test.each([
    ['a tenant of a star', 'cox.*.session.idle.steer'],
    ['a tenant of unicode', 'cox.mieter-ü.session.idle.steer'],
    ['a tenant of 10 kB', `cox.${'x'.repeat(10_000)}.session.idle.steer`],
    ['a verb of a star', 'cox.default.session.idle.*'],
    ['a verb of a greater-than', 'cox.default.session.idle.>'],
  ])('%s', async (_what, subject) => {
    const receipt = await answered(subject, 'x');
    expect(receipt.stage).toBe('rejected');
    expect(receipt.code).toMatch(/^(invalid_id|unknown_command)$/);
  });

  test('100 kB of an id are more than the server reads: it closes that connection, and only that one', async () => {
    const { login, client } = fixture.bus;
    const long = 'x'.repeat(100_000);
    const subjects = [
      commandSubject(long, 'start'),
      commandSubject('idle', long),
      `cox.default.query.${long}.get_state`,
    ];
    for (const subject of subjects) {
      const own = await connect({ ...login, reconnect: false });
      own.publish(subject, 'x');
      // "maximum control line exceeded", where the server's last words are quicker than the closing of the socket.
      expect(await own.closed()).toBeInstanceOf(Error);
    }
    // The typed client does not even try.
    expect(() => client.session(long)).toThrow(/64 characters/);
    await expect(client.session('idle').steer('x', { id: long })).rejects.toMatchObject({ code: 'invalid_id' });
  });

  test.each([
    ['cox.default.session.a.b.steer', 'session'],
    ['cox.default.session.idle.steer.now', 'session'],
    ['cox.default.session.steer', 'verb'],
    ['cox.default.session', 'session'],
    [`cox.default.session.a.${'x'.repeat(5_000)}.steer`, 'session'],
  ])('what no stream takes is told to its sender: %s', async (subject, field) => {
    const { bus } = fixture;
    const receipts = bus.receipts();
    const head = headers();
    head.set('Cox-Receipt-To', receipts.subject);
    bus.bare.publish(subject, 'x', { headers: head });
    expect(await receipts.first()).toMatchObject({ stage: 'rejected', code: 'invalid_id', field, session_id: '' });
    // Who waits for the store's acknowledgement need not wait in vain.
    const ack = (await bus.bare.request(subject, 'x', { timeout: 5_000 })).json();
    expect(ack).toMatchObject({ error: { code: 400, description: expect.stringContaining('no session') } });
  });

  test('an empty token is no subject at all: the client or the server says so, and the connection stays usable', async () => {
    const { bus } = fixture;
    await expect(
      (async () => bus.bare.request('cox.default.session..steer', 'x', { timeout: 500 }))(),
    ).rejects.toThrow();
    await bus.bare.flush();
  });

  test.each([
    ['a star', 'a*'],
    ['a dot', 'a.b'],
    ['10 kB', 'x'.repeat(10_000)],
  ])('a command id of %s in the header', async (_what, id) => {
    const receipt = await answered(commandSubject('idle', 'steer'), 'x', { 'Cox-Command-Id': id });
    expect(receipt).toMatchObject({ stage: 'rejected', code: 'invalid_id', field: 'id' });
  });
});

describe('receipts', () => {
  test.each([
    'cox.default.session.idle.cancel',
    'cox-jrn.0.default.idle',
    '$JS.API.STREAM.DELETE.COX_JOURNAL_0',
    '_INBOX',
    '_INBOX.*',
    '_INBOX.>',
    '_INBOX.a..b',
    '_INBOX.a b',
    '_INBOXevil.x',
    `_INBOX.${'x'.repeat(300)}`,
  ])('to %s are refused', async (receiptTo) => {
    const { bus } = fixture;
    const id = `refused-${receiptTo.replaceAll(/\W/g, '_').slice(0, 40)}`;
    const heard: string[] = [];
    const ear = bus.bare.subscribe('_INBOX.a.>', { callback: (_error, { subject }) => void heard.push(subject) });
    await bus.command('idle', 'steer', 'x', { 'Cox-Receipt-To': receiptTo, 'Cox-Command-Id': id });
    const rejected = await until('the rejection', async () =>
      (await journalOf(bus, 'idle')).of('command_rejected').find(({ command_id }) => command_id === id),
    );
    expect(rejected).toMatchObject({ code: 'receipt_subject_refused', field: 'Cox-Receipt-To' });
    ear.unsubscribe();
    expect(heard).toEqual([]);
  });
});

describe('queries', () => {
  const ask = async (subject: string, payload: string | Uint8Array = '') =>
    (await fixture.bus.bare.request(subject, payload, { timeout: 10_000 })).json() as { code?: string };

  test.each([
    ['an unknown session', 'cox.default.query.nowhere.get_state', 'session_not_found'],
    ['a star', 'cox.default.query.*.get_state', 'invalid_id'],
    ['10 kB', `cox.default.query.${'x'.repeat(10_000)}.get_state`, 'invalid_id'],
    ['an unknown question', 'cox.default.query.idle.get_secrets', 'unknown_command'],
    ['a question of 10 kB', `cox.default.query.idle.${'x'.repeat(10_000)}`, 'unknown_command'],
  ])('of %s', async (_what, subject, code) => {
    expect(await ask(subject)).toMatchObject({ code });
  });

  test('a payload is passed over', async () => {
    const garbage = new Uint8Array(64 * 1024).fill(0xff);
    expect(await ask('cox.default.query.idle.get_state', garbage)).toMatchObject({ session_id: 'idle' });
  });
});

test('garbage on the subjects of others reaches nobody', async () => {
  const { bus } = fixture;
  const before = (await journalOf(bus, 'steady')).records.length;
  const set = headers();
  set.set('Nats-Msg-Id', 'x');
  for (const subject of ['cox.default.events.steady', 'cox.default.deltas.steady', 'cox.default.hook.x']) {
    bus.bare.publish(subject, '{"v":1,"n":1,"state":"stopped"', { headers: set });
  }
  await bus.bare.flush();
  const status = await bus.client.session('steady').state();
  expect(status.n).toBeGreaterThanOrEqual(before);
});
