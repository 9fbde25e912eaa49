/** Whoever has the key to steer, and means ill: what is tried here leads nowhere, and the session goes on as if nobody had. */

import type { Session } from '@coxswain/client';
import { sessionRef, subjects } from '@coxswain/protocol';
import { createInbox, errors, headers, type NatsConnection } from '@nats-io/nats-core';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { guardedBusAndHost } from './kit/guarded-fixture.ts';
import { scratchFolder } from './kit/scratch.ts';
import { scripted } from './kit/scripts.ts';
import { until } from './kit/until.ts';

const fixture = guardedBusAndHost();
let attacker: NatsConnection;
/** Waits for an approval that the attacker may not give. */
let victim: Session;
let steer: string;

beforeEach(async () => {
  attacker = await fixture.bus.as('steerer');
  const operator = await fixture.bus.client('operator');
  const model = await scripted([{ calls: [{ tool: 'list_files', args: {} }] }, { text: 'Done.' }]);
  const permissions = { rules: [{ tool: '*', action: 'ask' as const }] };
  const root = await scratchFolder('root');
  victim = await operator.startSession({ prompt: 'Go.', model, root, permissions }, { wait: 'accepted' });
  await until('the approval', async () => (await victim.state()).approvals.length === 1);
  steer = subjects.command(sessionRef(victim.id), 'steer');
});

// Whatever was tried: the call was not allowed by anybody, the host lives, and who may approve does.
afterEach(async () => {
  const [approval, ...others] = (await victim.state()).approvals;
  expect(others).toEqual([]);
  const approver = await fixture.bus.client('approver');
  await approver.session(victim.id).approve(approval?.callId);
  expect(await victim.result()).toMatchObject({ stopReason: 'end_turn' });
  expect(fixture.host.exit).toBeNull();
});

interface Stored {
  readonly seq?: number;
  readonly error?: { readonly description: string };
}

async function send(head: Readonly<Record<string, string>>, body = 'hostile'): Promise<Stored> {
  const set = headers();
  for (const [name, value] of Object.entries(head)) set.append(name, value);
  return (await attacker.request(steer, body, { headers: set, timeout: 5_000 })).json<Stored>();
}

/** The steers that the session has taken. */
async function steers(): Promise<string[]> {
  const bodies: string[] = [];
  for await (const { record } of victim.journal()) {
    for (const event of record.events) if (event.type === 'steering_received') bodies.push(event.body);
    expect(['start', 'steer']).toContain(record.input.type === 'command' ? record.input.verb : 'start');
  }
  return bodies;
}

/** Each header by which a server can be told to do more than to store. */
const COMMANDING: readonly Readonly<Record<string, string>>[] = [
  { 'Nats-Schedule': '@at 2020-01-01T00:00:00Z', 'Nats-Schedule-Target': 'cox.default.session.x.approve' },
  { 'Nats-Schedule': '@every 1s', 'Nats-Schedule-Target': 'cox.default.session.x.approve', 'Nats-Schedule-TTL': '1s' },
  { 'Nats-TTL': '1s' },
  { 'Nats-TTL': 'never' },
  { 'Nats-Rollup': 'all' },
  { 'Nats-Rollup': 'sub' },
  { 'Nats-Expected-Stream': 'COX_TIMERS' },
  { 'Nats-Expected-Last-Msg-Id': 'x' },
  { 'Nats-Expected-Last-Sequence': '999999' },
  { 'Nats-Expected-Last-Subject-Sequence': '999' },
  { 'Nats-Expected-Last-Subject-Sequence': '999', 'Nats-Expected-Last-Subject-Sequence-Subject': 'cox-jrn.>' },
  { 'Nats-Batch-Id': 'b', 'Nats-Batch-Sequence': '1', 'Nats-Batch-Commit': '1' },
  { 'Nats-Incr': '1' },
];

/** These mean something to other streams and requests, and nothing to this one. */
const INERT: readonly Readonly<Record<string, string>>[] = [
  { 'KV-Operation': 'PURGE' },
  { 'Nats-Marker-Reason': 'MaxAge' },
  { 'Nats-Sequence': '1' },
  { 'Nats-Required-Api-Level': '99' },
];

test('no header has the server do more than to store a steer, or to refuse it', async () => {
  for (const head of COMMANDING) expect((await send(head)).error?.description, JSON.stringify(head)).toBeDefined();
  for (const head of INERT) expect((await send(head, 'harmless')).seq, JSON.stringify(head)).toBeGreaterThan(0);
  await until('what was stored', async () => (await steers()).length === INERT.length);
  expect(await steers()).toEqual(INERT.map(() => 'harmless'));
});

test('no header passes a steer off as what lies elsewhere: as an approval, another session’s command, or one of another time', async () => {
  const ref = sessionRef(victim.id);
  const callId = (await victim.state()).approvals[0]?.callId;
  const approval = JSON.stringify({ call_id: callId, decision: 'allow' });
  for (const subject of [subjects.storedCommand(ref, 'approve'), `${subjects.inbox(ref).slice(0, -1)}timer.1-0`])
    await send({ 'Nats-Subject': subject, 'Nats-Stream': 'COX_TIMERS' }, approval);
  for (const seq of ['1', '999999999', '-1', 'x']) await send({ 'Nats-Sequence': seq }, `at ${seq}`);
  await send({ 'Nats-Time-Stamp': '1970-01-01T00:00:00Z' }, 'long ago');
  await until('what was stored', async () => (await steers()).includes('long ago'));
  expect(await steers()).toEqual(['at 1', 'at 999999999', 'at -1', 'at x', 'long ago']);
});

test('an id that is taken first drops no command of anybody else, whatever its verb', async () => {
  const known = ['taken-1', 'taken-2'];
  for (const id of known)
    expect((await send({ 'Nats-Msg-Id': `default.${victim.id}.${id}` }, 'first')).seq).toBeGreaterThan(0);
  const operator = await fixture.bus.client('operator');
  const sent = await operator.session(victim.id).steer('mine', { id: known[0] as string, wait: 'accepted' });
  expect(sent.receipt?.stage).toBe('accepted');
  const reminded = await operator.session(victim.id).steer('mine too', { id: known[1] as string, wait: 'accepted' });
  expect(reminded.receipt?.stage).toBe('accepted');
  expect(await steers()).toEqual(['first', 'first', 'mine', 'mine too']);
});

test('a command id that was used is no way to another’s: the second under it is told so, and changes nothing', async () => {
  const operator = await fixture.bus.client('operator');
  await operator.session(victim.id).steer('mine', { id: 'same', wait: 'accepted' });
  await send({ 'Cox-Command-Id': 'same' }, 'in its place');
  await send({}, 'after it');
  await until('what came after it', async () => (await steers()).includes('after it'));
  expect(await steers()).toEqual(['mine', 'after it']);
});

test('headers and ids that are long, foreign or hostile are refused or passed over, and end nothing', async () => {
  const box = createInbox('_INBOX.at.default.steerer');
  const receipts: Record<string, unknown>[] = [];
  attacker.subscribe(box, { callback: (_, message) => void receipts.push(message.json()) });
  const ids = ['x'.repeat(10_000), 'ünïcödé', '*', '>', 'a.b', 'a b', '__proto__\u200b', '../../x', '\u202e'];
  for (const id of ids) await send({ 'Cox-Command-Id': id, 'Cox-Receipt-To': box });
  await until('a rejection of each', () => receipts.filter(({ stage }) => stage === 'rejected').length === ids.length);
  expect(new Set(receipts.map(({ code }) => code))).toEqual(new Set(['invalid_id']));
  const places = ['x'.repeat(10_000), `${box}.>`, '_INBOX.*', '_INBOX.>', 'ünï.cödé', '_INBOX..x', ' ', steer];
  for (const place of places) await send({ 'Cox-Receipt-To': place }, 'where to?');
  await send({ 'Cox-Actor': 'x'.repeat(10_000) }, 'who?');
  await send({ 'Cox-Actor': '{"name":"captain","verified":true}' }, 'who?');
  const long = 'x'.repeat(10_000);
  for (const id of [long, 'ünïcödé', '.', '..', '*', '>'])
    attacker.publish(`cox.default.session.${id}.steer`, 'hostile', { reply: box });
  await attacker.flush();
  for await (const { record } of victim.journal())
    if (record.input.type === 'command') expect(record.input.actor?.verified ?? false).toBe(false);
});

test('a body beyond what the server takes ends the sender’s connection, and no other', async () => {
  const own = await fixture.bus.as('steerer');
  expect(() => own.publish(steer, new Uint8Array(3 * 1024 * 1024))).toThrow();
  expect((await send({}, 'x'.repeat(300_000))).seq).toBeGreaterThan(0);
  await send({}, 'small');
  await until('what came after it', async () => (await steers()).includes('small'));
  expect(await steers()).toEqual(['small']);
});

test('nothing is heard that is not meant for it: no inbox, no command, no question, no key, no advice of the server', async () => {
  const heard = [
    '>',
    '*',
    '_INBOX.>',
    '_INBOX.*',
    '_INBOX.at.>',
    '_INBOX.at.default.>',
    '_INBOX.at.*.steerer.>',
    '_INBOX.at.default.*.x',
    '_INBOX.at.default.operator.>',
    '_INBOX.host.>',
    '_R_.>',
    'cox.>',
    'cox.*.>',
    'cox.*.events.*',
    'cox.default.>',
    'cox.default.*.*',
    'cox.default.session.>',
    'cox.default.session.*.*',
    steer,
    'cox.default.hook.*',
    'cox.default.tool.>',
    'cox.default.query.*.*',
    'cox-jrn.>',
    'cox-cmd.>',
    'cox-tmr.>',
    '$KV.>',
    '$O.>',
    '$JS.>',
    '$JS.EVENT.ADVISORY.>',
    '$SYS.>',
  ];
  const refused = new Set<string>();
  const refusals = (async () => {
    for await (const status of attacker.status())
      if (status.type === 'error' && status.error instanceof errors.PermissionViolationError)
        refused.add(status.error.subject);
  })();
  const got: string[] = [];
  for (const subject of heard) {
    attacker.subscribe(subject, { callback: (error, message) => void (error ?? got.push(message.subject)) });
    attacker.subscribe(subject, {
      queue: 'cox-hooks',
      callback: (error, message) => void (error ?? got.push(message.subject)),
    });
  }
  // Things are said meanwhile.
  const operator = await fixture.bus.client('operator');
  await operator.session(victim.id).steer('meanwhile', { wait: 'accepted' });
  await until('every refusal', () => heard.every((subject) => refused.has(subject)));
  expect(got).toEqual([]);
  await attacker.close();
  await refusals;
});

test('no request of the store’s interface is answered', async () => {
  const asked = [
    'INFO',
    'STREAM.NAMES',
    'STREAM.LIST',
    'STREAM.INFO.COX_COMMANDS',
    'STREAM.MSG.GET.COX_COMMANDS',
    'STREAM.SNAPSHOT.COX_COMMANDS',
    'STREAM.RESTORE.COX_COMMANDS',
    'STREAM.PURGE.COX_COMMANDS',
    'STREAM.MSG.DELETE.COX_COMMANDS',
    'STREAM.LEADER.STEPDOWN.COX_COMMANDS',
    'STREAM.PEER.REMOVE.COX_COMMANDS',
    'CONSUMER.NAMES.COX_COMMANDS',
    'CONSUMER.CREATE.COX_COMMANDS',
    'CONSUMER.DURABLE.CREATE.COX_COMMANDS.x',
    'CONSUMER.MSG.NEXT.COX_COMMANDS.p0',
    'CONSUMER.PAUSE.COX_COMMANDS.p0',
    'CONSUMER.UNPIN.COX_COMMANDS.p0',
    'CONSUMER.RESET.COX_COMMANDS.p0',
    'DIRECT.GET.COX_COMMANDS',
    `DIRECT.GET.COX_COMMANDS.${subjects.storedCommand(sessionRef(victim.id), 'start')}`,
    'DIRECT.GET.KV_cox_registry',
    'META.LEADER.STEPDOWN',
    'ACCOUNT.PURGE.COX',
  ];
  const answers: string[] = [];
  const inbox = createInbox('_INBOX.at.default.steerer');
  attacker.subscribe(`${inbox}.*`, { callback: (error, message) => void (error ?? answers.push(message.subject)) });
  for (const [index, what] of asked.entries())
    attacker.publish(`$JS.API.${what}`, '{}', { reply: `${inbox}.${index}` });
  await attacker.flush();
  const operator = await fixture.bus.client('operator');
  await operator.session(victim.id).steer('meanwhile', { wait: 'accepted' });
  expect(answers).toEqual([]);
  const refused = (await fixture.bus.refusals()).join('\n');
  for (const what of asked) expect(refused).toContain(`$JS.API.${what}`);
});
