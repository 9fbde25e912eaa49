/** Two tenants on one bus: whatever key of the one is tried on what is the other's, the server refuses. */
import { TENANT_ROLES } from '@coxswain/adapter-nats';
import {
  BLOBS_STREAM,
  JOURNAL_STREAMS,
  journalStreamOf,
  sessionRef,
  subjects,
  tenantSubjects,
  VERBS,
} from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { Child, COX_MAIN, cox } from './kit/child.ts';
import { refusalsOf } from './kit/guarded-bus.ts';
import { guardedBusAndHost } from './kit/guarded-fixture.ts';
import { policyFile } from './kit/hook-service.ts';
import { scripted } from './kit/scripts.ts';
import { until } from './kit/until.ts';

const fixture = guardedBusAndHost(['red', 'blue']);

const theirs = sessionRef('theirs', 'blue');
const PUBLISHED = [
  ...VERBS.map((verb) => subjects.command(theirs, verb)),
  ...['call_outcome', 'feedback', 'timer', 'session_failed'].map((verb) => subjects.command(theirs, verb)),
  ...['get_state', 'anything'].map((what) => subjects.query(theirs, what)),
  subjects.hook('blue', 'policy'),
  subjects.tool('blue', 'stock'),
  'cox.blue.tool.stock.all',
  subjects.announcement('hooks', 'blue', 'policy'),
  subjects.heartbeat('hooks', 'blue', 'policy', 'i'),
  subjects.announcement('tools', 'blue', 'stock'),
  subjects.persona('blue', 'clerk', 'v'),
  subjects.orders(subjects.persona('blue', 'clerk', 'v')),
  subjects.orderTo(subjects.persona('blue', 'clerk', 'v'), 'i'),
  subjects.heartbeat('personas', 'blue', 'clerk', 'i'),
  subjects.announcement('personas', 'blue', 'clerk'),
  subjects.personaPause('blue', 'clerk'),
  subjects.events(theirs),
  subjects.deltas(theirs),
  subjects.approvals('blue', 'theirs'),
  subjects.rememberedRule('blue', { persona: 'p', session: 's', id: 'i' }),
  subjects.journal(theirs),
  subjects.snapshot(theirs),
  subjects.activeSession(theirs),
  subjects.storedCommand(theirs, 'steer'),
  ...JOURNAL_STREAMS.map((stream) => `$JS.API.CONSUMER.CREATE.${stream}.x.${subjects.tenantJournals('blue')}`),
  ...JOURNAL_STREAMS.map((stream) => `$JS.API.CONSUMER.CREATE.${stream}.x.cox-jrn.>`),
  `$JS.API.DIRECT.GET.${journalStreamOf('theirs')}.${subjects.journal(theirs)}`,
  `$JS.API.STREAM.MSG.GET.${journalStreamOf('theirs')}`,
  `$JS.API.STREAM.PURGE.${BLOBS_STREAM}`,
  ...TENANT_ROLES.map((role) => `${tenantSubjects.inboxPrefix('blue', role)}.x`),
];
const HEARD = [
  tenantSubjects.events('blue'),
  tenantSubjects.deltas('blue'),
  tenantSubjects.approvals('blue'),
  tenantSubjects.inboxes('blue'),
  tenantSubjects.allRequests('hooks', 'blue'),
  tenantSubjects.allRequests('tools', 'blue'),
  tenantSubjects.allRequests('personas', 'blue'),
  tenantSubjects.commands('blue'),
  'cox.*.events.*',
  'cox.*.deltas.*',
  '_INBOX.at.>',
  '_INBOX.at.*.operator.>',
];

test.each(TENANT_ROLES)('the key of a %s of one tenant sends and hears nothing of the other', async (role) => {
  const nc = await fixture.bus.as(role, 'red');
  const refused = refusalsOf(nc);
  for (const subject of PUBLISHED) nc.publish(subject, 'x');
  for (const subject of HEARD) nc.subscribe(subject, { callback: () => undefined });
  // The server tells in order what it refuses: this is refused to everybody, and last.
  nc.publish('nobody.may', 'x');
  await until('the last refusal', () => refused.has('publish nobody.may'));
  expect(PUBLISHED.filter((subject) => !refused.has(`publish ${subject}`))).toEqual([]);
  expect(HEARD.filter((subject) => !refused.has(`subscription ${subject}`))).toEqual([]);
});

test('each runs its own: sessions of the same id, hooks that guard one alone, and listings without the other', async () => {
  const deny = await policyFile(`
    import { defineHooks } from '@coxswain/client';
    export default defineHooks({ PreToolUse: { handler: () => ({ deny: 'not here' }) } });
  `);
  const service = new Child(COX_MAIN, ['serve', 'hooks', deny, '--name', 'policy', '--json'], {
    env: fixture.bus.env('hooks', 'red'),
  });
  await service.says('"type":"ready"');
  await fixture.host.says(/"service":"policy".*hooks are registered/);
  const statuses: Record<string, string[]> = {};
  for (const tenant of ['red', 'blue']) {
    const client = await fixture.bus.client('operator', tenant);
    const model = await scripted([{ calls: [{ tool: 'list_files', args: {} }] }, { text: `Done for ${tenant}.` }]);
    const permissions = { rules: [{ tool: '*', action: 'allow' as const }] };
    const session = await client.startSession(
      { prompt: 'Go.', model, permissions },
      { sessionId: 'same', wait: 'accepted' },
    );
    expect(await session.result()).toMatchObject({ stopReason: 'end_turn', text: `Done for ${tenant}.` });
    statuses[tenant] = [];
    for await (const { record } of session.journal())
      for (const event of record.events) if (event.type === 'call_ended') statuses[tenant]?.push(event.status);
    expect(await client.sessionIds()).toEqual(['same']);
  }
  expect(statuses).toEqual({ red: ['denied'], blue: ['ok'] });
  const listed = await cox(['session', 'list', '--json'], { env: fixture.bus.env('viewer', 'blue') });
  expect(listed.json).toMatchObject([{ session_id: 'same' }]);
  // Whoever looks after the bus reads what is anybody's, and says whose.
  const admin = fixture.bus.env('admin');
  expect((await cox(['session', 'list', '--json'], { env: admin })).stdout).toBe('');
  for (const tenant of ['red', 'blue']) {
    const read = await cox(['session', 'list', '--json', '--tenant', tenant], { env: admin });
    expect(read.json, read.told).toMatchObject([{ session_id: 'same', stop_reason: 'end_turn' }]);
    const watched = await cox(['session', 'watch', 'same', '--tenant', tenant], { env: admin });
    expect([watched.code, watched.told]).toEqual([0, expect.stringContaining(`Done for ${tenant}.`)]);
    const shown = await cox(['session', 'show', 'same', '--json', '--tenant', tenant], { env: admin });
    expect(shown.json, shown.told).toMatchObject([{ session_id: 'same', stop_reason: 'end_turn' }]);
  }
  const strange = await cox(['session', 'list', '--tenant', 'blue'], { env: fixture.bus.env('viewer', 'red') });
  expect([strange.code, strange.stderr]).toEqual([2, expect.stringContaining('the key is one of the tenant red')]);
  expect(await service.terminate()).toMatchObject({ code: 0 });
});

test('a hook service of one tenant can neither take nor empty what another has announced', async () => {
  const operator = await fixture.bus.client('operator', 'blue');
  const hostile = await fixture.bus.as('hooks', 'red');
  const { headers } = await import('@nats-io/nats-core');
  const blue = await policyFile(`
    import { defineHooks } from '@coxswain/client';
    export default defineHooks({ PreToolUse: { handler: () => ({ deny: 'guarded' }) } });
  `);
  const service = new Child(COX_MAIN, ['serve', 'hooks', blue, '--name', 'guard', '--json'], {
    env: fixture.bus.env('hooks', 'blue'),
  });
  await service.says('"type":"ready"');
  await fixture.host.says(/"service":"guard".*hooks are registered/);
  for (const rollup of ['all', 'sub']) {
    const set = headers();
    set.set('Nats-Rollup', rollup);
    const answer = await hostile.request(subjects.announcement('hooks', 'red', 'hostile'), '{}', {
      headers: set,
      timeout: 5_000,
    });
    expect(answer.json<{ error?: { description: string } }>().error?.description).toMatch(/rollup/);
  }
  const model = await scripted([{ calls: [{ tool: 'list_files', args: {} }] }, { text: 'Done.' }]);
  const permissions = { rules: [{ tool: '*', action: 'allow' as const }] };
  const session = await operator.startSession({ prompt: 'Go.', model, permissions }, { wait: 'accepted' });
  await session.result();
  const ended: string[] = [];
  for await (const { record } of session.journal())
    for (const event of record.events) if (event.type === 'call_ended') ended.push(event.status);
  expect(ended).toEqual(['denied']);
  expect(await service.terminate()).toMatchObject({ code: 0 });
});

test('fields that lie apart are read by every key of their tenant that reads sessions, and listed by none', async () => {
  const operator = await fixture.bus.client('operator', 'red');
  const model = await scripted([{ text: 'y'.repeat(300_000) }]);
  const prompt = 'x'.repeat(100_000);
  const session = await operator.startSession({ prompt, model }, { sessionId: 'large', wait: 'accepted' });
  expect((await session.result()).text).toHaveLength(300_000);
  for (const role of ['operator', 'viewer', 'approver', 'gateway'] as const) {
    const env = fixture.bus.env(role, 'red');
    const exported = await cox(['session', 'export', 'large'], { env });
    expect([exported.code, exported.stdout.includes('y'.repeat(300_000))], exported.told).toEqual([0, true]);
    const nc = await fixture.bus.as(role, 'red');
    const refused = refusalsOf(nc);
    nc.publish(`$JS.API.STREAM.MSG.GET.${BLOBS_STREAM}`, '{"seq":1}');
    await until('the refusal', () => refused.has(`publish $JS.API.STREAM.MSG.GET.${BLOBS_STREAM}`));
  }
  const replayed = await cox(['session', 'replay', 'large'], { env: fixture.bus.env('operator', 'red') });
  expect(replayed.code, replayed.told).toBe(0);
  // Nobody but a host may hand out what a hash names, and one that names nothing brings nothing.
  expect(await operator.blob('0'.repeat(64))).toBeNull();
});

test('no receipt goes to an inbox of another tenant, nor of a host', async () => {
  const operator = await fixture.bus.client('operator', 'red');
  const model = await scripted([{ text: 'Done.' }]);
  const session = await operator.startSession({ prompt: 'Go.', model }, { sessionId: 'told', wait: 'accepted' });
  await session.result();
  const heard: string[] = [];
  const blue = await fixture.bus.as('operator', 'blue');
  const theirBox = `${tenantSubjects.inboxPrefix('blue', 'operator')}.victim`;
  blue.subscribe(theirBox, { callback: (_, message) => void heard.push(message.string()) });
  await blue.flush();
  const hostile = await fixture.bus.as('steerer', 'red');
  const { createInbox, headers } = await import('@nats-io/nats-core');
  const steer = subjects.command(sessionRef('told', 'red'), 'steer');
  const ids = ['to-blue', 'to-host', 'to-itself'];
  const own = createInbox(tenantSubjects.inboxPrefix('red', 'steerer'));
  for (const [at, place] of [theirBox, '_INBOX.host.abc', own].entries()) {
    const head = headers();
    head.set('Cox-Receipt-To', place);
    head.set('Cox-Command-Id', ids[at] as string);
    await hostile.request(steer, 'hello', { headers: head, timeout: 5_000 });
  }
  const rejected = new Map<string, string>();
  const answered = new Set<string>();
  for await (const record of session.records()) {
    for (const event of record.events) {
      if (event.type === 'command_rejected') rejected.set(event.command_id, event.code);
      if ('command_id' in event) answered.add(event.command_id as string);
    }
    if (answered.has('to-itself')) break;
  }
  expect([...rejected].filter(([, code]) => code === 'receipt_subject_refused').map(([id]) => id)).toEqual([
    'to-blue',
    'to-host',
  ]);
  await blue.flush();
  expect(heard).toEqual([]);
});
