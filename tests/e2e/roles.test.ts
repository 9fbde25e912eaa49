/** What each role may and may not do on a real server with the configuration of `cox admin auth`: every role, every action. */
import { ROLES, type SystemRole, type TenantRole } from '@coxswain/adapter-nats';
import {
  JOURNAL_STREAMS,
  journalStreamOf,
  QUEUE_GROUPS,
  sessionRef,
  subjects,
  tenantSubjects,
  VERBS,
} from '@coxswain/protocol';
import { headers, type NatsConnection } from '@nats-io/nats-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Child } from './kit/child.ts';
import { type GuardedBus, refusalsOf, startGuardedBus } from './kit/guarded-bus.ts';
import { removeScratch, scratchFolder } from './kit/scratch.ts';
import { scripted } from './kit/scripts.ts';
import { until } from './kit/until.ts';

type Role = SystemRole | TenantRole;

let bus: GuardedBus;
beforeAll(async () => {
  bus = await startGuardedBus(['default', 'other']);
}, 300_000);
afterAll(async () => {
  await bus?.stop();
  await removeScratch();
});

const ref = sessionRef('nobody', 'default');
const theirs = sessionRef('nobody', 'other');
const journals = subjects.tenantJournals('default');
const [firstJournal] = JOURNAL_STREAMS as [string];
const readers: readonly Role[] = ['gateway', 'viewer', 'approver', 'operator'];
const clients: readonly Role[] = [...readers, 'steerer'];

const verbs = (role: Role): readonly string[] => {
  const clientVerbs = VERBS.filter((verb) => verb !== 'delete');
  if (role === 'operator') return clientVerbs;
  if (role === 'gateway') return clientVerbs.filter((verb) => verb !== 'approve');
  if (role === 'approver') return ['approve'];
  // Has a host look at a session that is deleted already, of any tenant.
  if (role === 'retention') return ['delete'];
  return role === 'steerer' ? ['steer', 'remind', 'followup', 'revoke', 'replace'] : [];
};
const roles = Object.keys(ROLES).filter((role) => role !== 'admin') as Role[];
const whoMay = (verb: string) => roles.filter((role) => verbs(role).includes(verb));

/** Who sends a verb to sessions of every tenant. */
const ofAnyTenant = (verb: string): readonly Role[] => (verb === 'delete' ? ['retention'] : []);

/** Each action: what is published or listened to, and who may. */
const PUBLISHED: readonly (readonly [what: string, subject: string, roles: readonly Role[]])[] = [
  ...VERBS.map((verb) => [verb, subjects.command(ref, verb), whoMay(verb)] as const),
  ...VERBS.map((verb) => [`${verb} of another tenant`, subjects.command(theirs, verb), ofAnyTenant(verb)] as const),
  ['a list of the tenant’s keys', subjects.tenantKeys('default', 'cox_registry', 'tools'), ['operator']],
  ['a list of its hook services', subjects.tenantKeys('default', 'cox_registry', 'hooks'), ['operator', 'hooks']],
  ['a list of another tenant’s keys', subjects.tenantKeys('other', 'cox_registry', 'hooks'), []],
  ['a question to the retention job', subjects.retention, ['host']],
  ['the outcome of a call', subjects.command(ref, 'call_outcome'), ['host', 'tools']],
  ['the report of a job', subjects.command(ref, 'feedback'), ['host', 'hooks']],
  ['a timer', subjects.command(ref, 'timer'), []],
  ['a failure of a session', subjects.command(ref, 'session_failed'), ['host']],
  ['a stored command', subjects.storedCommand(ref, 'approve'), []],
  ['a record', subjects.journal(ref), ['host']],
  ['a snapshot', subjects.snapshot(ref), ['host']],
  ['an entry of the index of sessions', subjects.sessionEntry(ref), ['host', 'retention']],
  ['what a persona remembers', subjects.rememberedRule('default', { persona: 'p', session: 's', id: 'i' }), ['host']],
  ['a notice of an approval', subjects.approvals('default', 's'), ['host']],
  ['a schedule', subjects.timerSchedule(ref, 't'), ['host']],
  ['a timer that is due', subjects.timerDue(ref, 't'), []],
  ['a file', '$O.cox_blobs.C.x', ['host']],
  ['a note of an active session', subjects.activeSession(ref), ['host']],
  ['the beat of a host', subjects.hostBeat('x'), ['host']],
  ['a ring', subjects.hostRing('x'), ['host']],
  ['a release', subjects.hostReleases, ['host']],
  ['the beat of a hook service', subjects.heartbeat('hooks', 'default', 's', 'i'), ['hooks']],
  ['the registration of hooks', subjects.announcement('hooks', 'default', 's'), ['hooks']],
  ['the registration of another tenant’s hooks', subjects.announcement('hooks', 'other', 's'), []],
  ['a question to a hook', subjects.hook('default', 'h'), ['host']],
  ['a request to a tool', subjects.tool('default', 't'), ['host']],
  ['a live record', subjects.events(ref), []],
  ['a delta', subjects.deltas(ref), ['host']],
  ['a query', subjects.query(ref, 'get_state'), clients],
  ['a query of another tenant', subjects.query(theirs, 'get_state'), []],
  ['a message to an operator’s inbox', '_INBOX.at.default.operator.x', ['host']],
  ['a message to a host’s inbox', '_INBOX.host.x', ['host']],
  ['a call back to a host', '_INBOX.host.x.c.y', ['host', 'hooks', 'personas']],
  ['the beat of a tool', subjects.heartbeat('tools', 'default', 't', 'i'), ['tools']],
  ['the announcement of a tool', subjects.announcement('tools', 'default', 't'), ['tools']],
  ['the announcement of another tenant’s tool', subjects.announcement('tools', 'other', 't'), []],
  ['an order to a tool', subjects.orders(subjects.tool('default', 't')), ['host']],
  ['the beat of a persona', subjects.heartbeat('personas', 'default', 'p', 'i'), ['personas']],
  ['the announcement of a persona', subjects.announcement('personas', 'default', 'p'), ['personas']],
  ['the announcement of another tenant’s persona', subjects.announcement('personas', 'other', 'p'), []],
  ['the pause of a persona', subjects.personaPause('default', 'p'), ['operator']],
  ['a step of a persona', subjects.persona('default', 'p', 'v'), ['host']],
  ['an order to a persona', subjects.orders(subjects.persona('default', 'p', 'v')), ['host']],
  ['a question to a hook of a persona', subjects.persona('default', 'p', 'v'), ['host']],
  ['a question to a hook of one instance', subjects.requestTo(subjects.persona('default', 'p', 'v'), 'i'), ['host']],
  ['a purge', `$JS.API.STREAM.PURGE.${firstJournal}`, ['retention']],
  ['a purge of snapshots', '$JS.API.STREAM.PURGE.COX_SNAPSHOTS', ['retention']],
  ['a purge of timers', '$JS.API.STREAM.PURGE.COX_TIMERS', ['retention']],
  ['a purge of commands', '$JS.API.STREAM.PURGE.COX_COMMANDS', []],
  ['a purge of the registry', '$JS.API.STREAM.PURGE.KV_cox_registry', []],
  ['a purge of files', '$JS.API.STREAM.PURGE.OBJ_cox_blobs', ['retention']],
  ['a deletion of a stream', `$JS.API.STREAM.DELETE.${firstJournal}`, []],
  ['a new stream', '$JS.API.STREAM.CREATE.EVIL', []],
  ['the index of sessions again', '$JS.API.STREAM.CREATE.COX_SESSIONS', ['host']],
  ['a changed stream', '$JS.API.STREAM.UPDATE.COX_COMMANDS', []],
  ['a deletion of a record', `$JS.API.STREAM.MSG.DELETE.${firstJournal}`, []],
  ['a consumer of commands', '$JS.API.CONSUMER.CREATE.COX_COMMANDS.x', ['host']],
  ['a pull of commands', '$JS.API.CONSUMER.MSG.NEXT.COX_COMMANDS.p0', ['host']],
  ['an acknowledgement of a command', '$JS.ACK.COX_COMMANDS.p0.1.1.1.1.0', ['host']],
  ['the end of a consumer of commands', '$JS.API.CONSUMER.DELETE.COX_COMMANDS.p0', ['host']],
  ['a read of commands', '$JS.API.STREAM.MSG.GET.COX_COMMANDS', ['host']],
  ['a watch of the registry', '$JS.API.CONSUMER.CREATE.KV_cox_registry.x.$KV.cox_registry.tools.>', ['host']],
  ['a look at a watch of the registry', '$JS.API.CONSUMER.INFO.KV_cox_registry.x', []],
  ['the end of a watch of the registry', '$JS.API.CONSUMER.DELETE.KV_cox_registry.x', []],
  ['a consumer of files', '$JS.API.CONSUMER.CREATE.OBJ_cox_blobs.x.$O.cox_blobs.C.*', []],
  ['a consumer of the tenant’s journals', `$JS.API.CONSUMER.CREATE.${firstJournal}.x.${journals}`, readers],
  [
    'a consumer of another tenant’s',
    `$JS.API.CONSUMER.CREATE.${firstJournal}.x.${subjects.tenantJournals('other')}`,
    [],
  ],
  [
    'a consumer of the tenant’s entries in the index',
    `$JS.API.CONSUMER.CREATE.COX_SESSIONS.x.${subjects.tenantEntries('default')}`,
    readers,
  ],
  [
    'a consumer of another tenant’s entries',
    `$JS.API.CONSUMER.CREATE.COX_SESSIONS.x.${subjects.tenantEntries('other')}`,
    [],
  ],
  ['a consumer of all entries', '$JS.API.CONSUMER.CREATE.COX_SESSIONS.x', []],
  ['a read of any entry', '$JS.API.STREAM.MSG.GET.COX_SESSIONS', ['host']],
  ['a consumer of all journals', `$JS.API.CONSUMER.CREATE.${firstJournal}.x`, []],
  ['a read of any journal', `$JS.API.STREAM.MSG.GET.${firstJournal}`, ['host', 'retention']],
  ['a direct read of any journal', `$JS.API.DIRECT.GET.${firstJournal}`, ['host', 'retention']],
  [
    'the newest record',
    `$JS.API.DIRECT.GET.${journalStreamOf(ref.sessionId)}.${subjects.journal(ref)}`,
    ['host', 'retention', ...readers],
  ],
];

const LISTENED: readonly (readonly [what: string, subject: string, roles: readonly Role[], queue?: string])[] = [
  ['live records', tenantSubjects.events('default'), clients],
  ['deltas', tenantSubjects.deltas('default'), clients],
  ['notices of approvals', tenantSubjects.approvals('default'), clients],
  ['live records of another tenant', tenantSubjects.events('other'), []],
  ['everything', '>', []],
  ['all inboxes', '_INBOX.>', []],
  ['an operator’s inbox', '_INBOX.at.default.operator.x', ['operator']],
  ['a host’s inbox', '_INBOX.host.x', ['host']],
  ['commands', tenantSubjects.commands('default'), []],
  ['questions to hooks in their group', subjects.hook('default', 'h'), ['hooks'], QUEUE_GROUPS.hooks],
  ['questions to all hooks of an installation', 'cox.*.hook.*', [], QUEUE_GROUPS.hooks],
  ['calls of tools in their group', subjects.tool('default', 't'), ['tools'], QUEUE_GROUPS.tools],
  ['calls of tools beside it', subjects.tool('default', 'beside'), []],
  ['calls of tools in another group', subjects.tool('default', 'other'), [], 'other'],
  ['questions to hooks beside it', subjects.hook('default', 'beside'), []],
  ['orders to tools', subjects.orders(subjects.tool('default', 't')), ['tools']],
  ['orders to one instance', subjects.orderTo(subjects.tool('default', 't'), 'i'), ['tools']],
  ['steps of personas in their group', subjects.persona('default', 'p', 'v'), ['personas'], QUEUE_GROUPS.personas],
  ['steps of personas beside it', subjects.persona('default', 'p', 'beside'), []],
  [
    'hooks of one instance',
    subjects.requestTo(subjects.persona('default', 'p', 'v'), 'i'),
    ['personas'],
    QUEUE_GROUPS.personas,
  ],
  ['hooks of another instance', subjects.requestTo(subjects.persona('default', 'p', 'v'), 'other'), []],
  ['hooks of another tenant’s personas', subjects.persona('other', 'p', 'v'), [], QUEUE_GROUPS.personas],
  ['orders to personas', subjects.orders(subjects.persona('default', 'p', 'v')), ['personas']],
  ['orders to one instance of a persona', subjects.orderTo(subjects.persona('default', 'p', 'v'), 'i'), ['personas']],
  ['queries', subjects.queries, ['host']],
  ['beats of hosts', subjects.hostBeats, ['host']],
  ['rings', subjects.hostRing('x'), ['host']],
  ['lists of keys', subjects.allTenantKeys, ['host']],
  ['questions to the retention job', subjects.retention, ['retention']],
];

/** What the server has refused this connection. */
test.each(roles)('%s may do what its role says, and nothing else', async (role) => {
  const nc = await bus.as(role);
  const refused = refusalsOf(nc);
  for (const [, subject] of PUBLISHED) nc.publish(subject, 'x');
  for (const [, subject, , queue] of LISTENED)
    nc.subscribe(subject, { ...(queue === undefined ? {} : { queue }), callback: () => undefined });
  // The server tells in order what it refuses: this is refused to everybody, and last.
  nc.publish('nobody.may', 'x');
  await until('the last refusal', () => refused.has('publish nobody.may'));
  const allowed = [
    ...PUBLISHED.filter(([, subject]) => !refused.has(`publish ${subject}`)).map(([what]) => `sends ${what}`),
    ...LISTENED.filter(([, subject]) => !refused.has(`subscription ${subject}`)).map(([what]) => `hears ${what}`),
  ];
  const expected = [
    ...PUBLISHED.filter(([, , may]) => may.includes(role)).map(([what]) => `sends ${what}`),
    ...LISTENED.filter(([, , may]) => may.includes(role)).map(([what]) => `hears ${what}`),
  ];
  expect(allowed).toEqual(expected);
});

test('admin may do everything in the account of the streams, and nothing outside it', async () => {
  const nc = await bus.as('admin');
  const refused = refusalsOf(nc);
  // Most of these the store refuses for what they hold; that they reach it is what counts.
  for (const [, subject] of PUBLISHED) nc.publish(subject, 'x');
  const listening = LISTENED.map(([, subject]) => nc.subscribe(subject, { callback: () => undefined }));
  await nc.flush();
  for (const subscription of listening) subscription.unsubscribe();
  const asks = async (what: string, body = '') =>
    (await nc.request(`$JS.API.${what}`, body, { timeout: 5_000 })).json<{ success?: boolean; error?: unknown }>();
  expect((await asks('STREAM.CREATE.EXTRA', '{"name":"EXTRA","subjects":["extra"]}')).error).toBeUndefined();
  expect(await asks('STREAM.PURGE.EXTRA')).toMatchObject({ success: true });
  expect(await asks('STREAM.DELETE.EXTRA')).toMatchObject({ success: true });
  expect([...refused]).toEqual([]);
  // The server itself is another account's.
  for (const beside of ['$SYS.REQ.SERVER.PING.VARZ', '$SYS.REQ.CLAIMS.LIST', '$SYS.REQ.SERVER.X.RELOAD'])
    await expect(nc.request(beside, '', { timeout: 5_000 })).rejects.toThrow(/no responders/i);
});

test('a connection without a key is rejected', async () => {
  await expect(
    bus
      .client('viewer')
      .then(() => import('@coxswain/client'))
      .then(({ connect }) => connect({ servers: bus.url })),
  ).rejects.toThrow();
});

describe('whoever may only steer', { timeout: 120_000 }, () => {
  test('reaches nothing else: no schedule, no header, no reply, no receipt, no id leads further', async () => {
    const host: Child = await bus.startHost();
    try {
      const operator = await bus.client('operator');
      const model = await scripted([{ calls: [{ tool: 'list_files', args: {} }] }, { text: 'Done.' }]);
      const permissions = { rules: [{ tool: '*', action: 'ask' as const }] };
      const root = await scratchFolder('root');
      const session = await operator.startSession({ prompt: 'Go.', model, root, permissions }, { wait: 'accepted' });
      await until('the approval', async () => (await session.state()).approvals.length === 1);
      const victim = sessionRef(session.id, 'default');
      const steer = subjects.command(victim, 'steer');
      const admin = await bus.as('admin');
      const before = await stored(admin);

      const attacker = await bus.as('steerer');
      const send = (head: Record<string, string>, reply?: string, body = 'hostile') => {
        const set = headers();
        for (const [name, value] of Object.entries(head)) set.set(name, value);
        attacker.publish(steer, body, { headers: set, ...(reply === undefined ? {} : { reply }) });
      };
      const elsewhere = [
        subjects.command(victim, 'approve'),
        subjects.command(victim, 'cancel'),
        subjects.storedCommand(victim, 'approve'),
        subjects.journal(victim),
        subjects.snapshot(victim),
        subjects.activeSession(victim),
        subjects.hostBeat('evil'),
        subjects.announcement('hooks', 'default', 'evil'),
        subjects.hostReleases,
        `$JS.API.STREAM.PURGE.${journalStreamOf(session.id)}`,
        `$JS.API.STREAM.DELETE.${journalStreamOf(session.id)}`,
        `$JS.API.CONSUMER.DELETE.COX_COMMANDS.p0`,
      ];
      // What the store refuses, it refuses whole.
      send({ 'Nats-Schedule': '@at 2020-01-01T00:00:00Z', 'Nats-Schedule-Target': elsewhere[0] as string });
      send({ 'Nats-TTL': '1s' });
      send({ 'Nats-Rollup': 'all' });
      send({ 'Nats-Expected-Last-Subject-Sequence': '999' });
      send({ 'Nats-Expected-Last-Sequence': '1' });
      // What it takes goes nowhere but to the session, and its answers to nobody else.
      for (const subject of elsewhere) send({}, subject, `answers to ${subject}`);
      for (const subject of elsewhere) send({ 'Cox-Receipt-To': subject }, undefined, `receipts to ${subject}`);
      for (const subject of elsewhere) send({ 'Cox-Receipt-To': subject }, subject, `both to ${subject}`);
      for (const subject of elsewhere) attacker.publish(subject, '{"call_id":"x","decision":"allow"}');
      for (const id of ['*', '>', 'a.b', '', '../x', `${session.id}.approve`])
        attacker.publish(`cox.default.session.${id}.steer`, 'hostile');
      await attacker.flush();

      const { sent } = { sent: await session.steer('the last', { wait: 'accepted' }) };
      expect(sent.duplicate).toBe(false);
      const after = await stored(admin);
      // Of all that is stored only the session's own journal and snapshot have changed, and this is its host's.
      const changed = Object.keys(after).filter((subject) => after[subject] !== before[subject]);
      const own = [subjects.journal(victim), subjects.snapshot(victim)];
      expect(changed.filter((subject) => !own.includes(subject))).toEqual([]);
      const snapshot = await admin.request(`$JS.API.DIRECT.GET.COX_SNAPSHOTS.${subjects.snapshot(victim)}`);
      expect(snapshot.json()).toMatchObject({ writer: expect.any(String), state: expect.any(Object) });
      await operator.session(session.id).approve((await session.state()).approvals[0]?.callId);
      await session.result();
      const verbsSeen = new Set<string>();
      const bodies: string[] = [];
      for await (const { record } of session.journal()) {
        if (record.input.type !== 'command') continue;
        verbsSeen.add(record.input.verb);
        if (record.input.verb === 'steer') bodies.push(JSON.stringify(record.input));
      }
      expect([...verbsSeen].sort()).toEqual(['approve', 'start', 'steer']);
      expect(bodies).toHaveLength(3 * elsewhere.length + 1);
    } finally {
      await host.kill();
    }
  });

  test('suppresses nobody’s command by taking its id first', async () => {
    const host: Child = await bus.startHost();
    try {
      const operator = await bus.client('operator');
      const model = await scripted([{ text: 'Done.' }]);
      const attacker = await bus.as('steerer');
      const set = headers();
      set.set('Nats-Msg-Id', subjects.commandMessageId(sessionRef('guessed', 'default'), 'known'));
      await attacker.request(subjects.command(sessionRef('anything', 'default'), 'steer'), 'first', {
        headers: set,
        timeout: 5_000,
      });
      const session = await operator.startSession(
        { prompt: 'Go.', model },
        { sessionId: 'guessed', id: 'known', wait: 'accepted' },
      );
      expect(session.sent.receipt?.stage).toBe('accepted');
      expect(await session.result()).toMatchObject({ stopReason: 'end_turn' });
    } finally {
      await host.kill();
    }
  });
});

/** How many messages there are of each subject that lasts: commands come and go, and beats. */
async function stored(admin: NatsConnection): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const stream of [
    ...JOURNAL_STREAMS,
    'COX_SNAPSHOTS',
    'COX_TIMERS',
    'KV_cox_registry',
    'KV_cox_active',
    'OBJ_cox_blobs',
  ]) {
    const answer = await admin.request(`$JS.API.STREAM.INFO.${stream}`, '{"subjects_filter":">"}', { timeout: 5_000 });
    Object.assign(counts, (answer.json() as { state: { subjects?: Record<string, number> } }).state.subjects);
  }
  return counts;
}
