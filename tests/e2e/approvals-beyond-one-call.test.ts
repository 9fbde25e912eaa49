/** What approvals do beyond the one call, on a real server: remembered, expired, told of outside, and never an agent's own. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { WireReceipt } from './kit/bus.ts';
import { startBus, type TestBus } from './kit/bus.ts';
import type { Child } from './kit/child.ts';
import { endOf, eventOf, expectAllSound, journalOf } from './kit/journal.ts';
import { removeScratch, scratchFolder } from './kit/scratch.ts';
import { type ScriptTurn, scripted } from './kit/scripts.ts';
import { startHost } from './kit/sessions-host.ts';
import { until } from './kit/until.ts';
import { receiveWebhooks, type WebhookReceiver } from './kit/webhook-receiver.ts';

let bus: TestBus;
let host: Child;
let receiver: WebhookReceiver;
const asHost = () =>
  startHost(bus, {
    COX_APPROVAL_WEBHOOK: receiver.url,
    COX_APPROVAL_WEBHOOK_SECRET: receiver.secret,
    COX_APPROVAL_SUBJECT: 'on',
  });
beforeAll(async () => {
  bus = await startBus();
  // The first notice of the file is refused twice, and once sent elsewhere.
  receiver = await receiveWebhooks(500, 302, 204);
  host = await asHost();
});
afterAll(async () => {
  try {
    if (bus && host) await expectAllSound(bus);
  } finally {
    await host?.kill();
    await receiver?.stop();
    await bus?.stop();
    await removeScratch();
  }
});

const run = (command: string): ScriptTurn => ({
  text: 'One thing.',
  calls: [{ tool: 'run_command', args: { command } }],
});

async function started(id: string, turns: readonly ScriptTurn[], more: object = {}): Promise<string> {
  const root = await scratchFolder('approve');
  const model = await scripted([...turns, { text: 'Done.' }]);
  await bus.command(id, 'start', { prompt: 'Do it.', model, root, ...more });
  return root;
}

const parked = (id: string, callId: string) =>
  eventOf(bus, id, 'approval_requested', ({ call_id }) => call_id === callId);

let serial = 0;
async function send(id: string, verb: string, body: object, commandId = `c${++serial}`): Promise<WireReceipt> {
  const receipts = bus.receipts();
  await bus.command(id, verb, body, { 'Cox-Receipt-To': receipts.subject, 'Cox-Command-Id': commandId });
  return receipts.first();
}

const linesOf = async (root: string) =>
  (await readFile(join(root, 'ran'), 'utf8').catch(() => '')).split('\n').filter(Boolean);

test('a webhook is signed, tried again under one id, and what became of it is on the journal; the bus is told, too', async () => {
  const told: string[] = [];
  bus.bare.subscribe('cox.default.approvals.*', { callback: (_, message) => void told.push(message.string()) });
  await bus.bare.flush();
  await started('noticed', [run('echo one >> ran; export API_TOKEN=x')]);
  await parked('noticed', 'c1_1');
  const notified = await eventOf(bus, 'noticed', 'approval_notified');
  expect(notified).toMatchObject({ call_id: 'c1_1', status: 'delivered', attempts: 3 });
  const own = receiver.deliveries.filter(({ body }) => body.data.session_id === 'noticed');
  expect(own).toHaveLength(3);
  expect(new Set(own.map(({ id }) => id)).size).toBe(1);
  expect(own.every(({ isSigned }) => isSigned)).toBe(true);
  expect(own[0]?.body).toMatchObject({
    type: 'approval.requested',
    data: { tenant: 'default', call_id: 'c1_1', tool: 'run_command', requested_by: 'rule:built_in:run_command' },
  });
  expect(told.map((text) => JSON.parse(text).data.session_id)).toEqual(['noticed']);
  await send('noticed', 'approve', { call_id: 'c1_1', decision: 'deny' });
  await endOf(bus, 'noticed');
});

test('two approvers at once: one decides, the other is told who did', async () => {
  const root = await started('two', [run('echo once >> ran')]);
  await parked('two', 'c1_1');
  const both = await Promise.all(
    ['ann', 'ben'].map((actor) => send('two', 'approve', { call_id: 'c1_1', decision: 'allow', actor })),
  );
  const refused = both.find(({ stage }) => stage === 'rejected');
  const winner = both[0]?.stage === 'accepted' ? 'ann' : 'ben';
  expect(both.map(({ stage }) => stage).sort()).toEqual(['accepted', 'rejected']);
  expect(refused).toMatchObject({ code: 'already_decided', detail: { by: winner, decision: 'allow' } });
  const journal = await endOf(bus, 'two');
  expect(journal.of('approval_decided')).toMatchObject([{ actor: { name: winner, verified: false } }]);
  expect(await linesOf(root)).toEqual(['once']);
});

test('remember session: the same command runs unasked, another asks; revoked, it asks again', async () => {
  const root = await started('session-rule', [
    run('echo a'),
    run('echo a b'),
    run('echo a; echo b >> ran'),
    run('echo a'),
  ]);
  await parked('session-rule', 'c1_1');
  const receipt = await send(
    'session-rule',
    'approve',
    { call_id: 'c1_1', decision: 'allow', remember: 'session' },
    'the-rule',
  );
  expect(receipt).toMatchObject({
    stage: 'accepted',
    detail: { says: 'allow run_command "echo a", also with more words', remembered: { id: 'the-rule' } },
  });
  // The second runs by the rule; the third is another command.
  await parked('session-rule', 'c3_1');
  expect((await journalOf(bus, 'session-rule')).of('approval_requested').map(({ call_id }) => call_id)).toEqual([
    'c1_1',
    'c3_1',
  ]);
  expect(await send('session-rule', 'revoke', { command_id: 'the-rule' })).toMatchObject({ stage: 'accepted' });
  expect(await send('session-rule', 'revoke', { command_id: 'the-rule' })).toMatchObject({ code: 'already_revoked' });
  await send('session-rule', 'approve', { call_id: 'c3_1', decision: 'deny' });
  await parked('session-rule', 'c4_1');
  await send('session-rule', 'approve', { call_id: 'c4_1', decision: 'deny' });
  await endOf(bus, 'session-rule');
  expect(await linesOf(root)).toEqual([]);
});

test('remember persona: later sessions of the same root go by it, also on another host, until it is revoked', async () => {
  const persona = { name: 'rememberer', prompt: 'You run things.' };
  const root = await started('persona-1', [run('echo p')], { persona });
  await parked('persona-1', 'c1_1');
  await send('persona-1', 'approve', { call_id: 'c1_1', decision: 'allow', remember: 'persona', actor: 'ann' }, 'kept');
  await endOf(bus, 'persona-1');
  await host.kill();
  host = await asHost();

  // Put there by the one host, read by the other.
  const second = await until('a session that goes by the rule', async () => {
    const id = `persona-2-${++serial}`;
    await started(id, [run('echo p')], { persona, root });
    await until('a result or a question', async () => {
      const journal = await journalOf(bus, id).catch(() => null);
      return (journal && journal.of('approval_requested').length + journal.of('call_started').length > 0) || null;
    });
    const journal = await journalOf(bus, id);
    if (journal.of('call_started').length > 0) return endOf(bus, id);
    await send(id, 'cancel', {});
    return null;
  });
  expect(second.of('approval_requested')).toEqual([]);
  expect(second.of('permissions_changed')).toMatchObject([
    { rules: [{ id: 'kept', session: 'persona-1', actor: { name: 'ann' } }] },
  ]);

  // The same command is another one in another root.
  await started('persona-elsewhere', [run('echo p')], { persona });
  await parked('persona-elsewhere', 'c1_1');
  await send('persona-elsewhere', 'cancel', {});

  await send('persona-1', 'revoke', { command_id: 'kept' });
  await until('the rule to be gone for new sessions', async () => {
    const id = `persona-3-${++serial}`;
    await started(id, [run('echo p')], { persona, root });
    const event = await Promise.race([
      parked(id, 'c1_1').then(() => 'asked'),
      eventOf(bus, id, 'call_started').then(() => 'ran'),
    ]);
    await send(id, 'cancel', {});
    return event === 'asked' || null;
  });
});

test('an approval expires while no host is there, and says so when one is', async () => {
  const root = await started('expires', [run('echo late >> ran')], { permissions: { expire_after_ms: 1_500 } });
  await parked('expires', 'c1_1');
  await host.kill();
  host = await asHost();
  const journal = await endOf(bus, 'expires');
  expect(journal.of('approval_decided')).toMatchObject([{ call_id: 'c1_1', decision: 'expired' }]);
  expect(journal.of('call_ended')).toMatchObject([{ status: 'denied', denial: { by: 'expiry' } }]);
  expect(await linesOf(root)).toEqual([]);
  expect(await send('expires', 'approve', { call_id: 'c1_1', decision: 'allow' })).toMatchObject({
    stage: 'rejected',
    code: 'not_pending',
  });
});

test('a command sees none of what could approve: neither the bus, nor a key, nor the secret of the webhook', async () => {
  const root = await started('environment', [run('env > seen')]);
  await parked('environment', 'c1_1');
  await send('environment', 'approve', { call_id: 'c1_1', decision: 'allow' });
  await endOf(bus, 'environment');
  const seen = await readFile(join(root, 'seen'), 'utf8');
  expect(seen).toContain('PATH=');
  expect(seen).not.toMatch(/^(NATS|COX)_/m);
  expect(seen).not.toContain(receiver.secret);
  expect(seen).not.toContain(bus.natsUrl);
});
