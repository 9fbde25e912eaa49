/**
 * What a tenant's key reads of the store: every role of one tenant, every form of a request that reads, every stream, against the
 * data of another tenant. Roles come from the role table and streams from the server: a new one is covered without a change here.
 */
import { createNatsSessionIndex, serveTenantKeys, TENANT_ROLES } from '@coxswain/adapter-nats';
import type { Log } from '@coxswain/ports';
import {
  JOURNAL_STREAMS,
  journalStreamOf,
  type SessionRef,
  STREAMS,
  sessionRef,
  subjects,
  TENANT_KEYS,
  tenantSubjects,
} from '@coxswain/protocol';
import type { Msg, NatsConnection } from '@nats-io/nats-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type GuardedBus, refusalsOf, startGuardedBus } from './kit/guarded-bus.ts';
import { until } from './kit/until.ts';

const RED = 'red';
const BLUE = 'blue';
/** The payload of everything that blue has stored. */
const SECRET = 'the secret of blue';

const QUIET: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

let bus: GuardedBus;
let admin: NatsConnection;
let endAnswering: () => void;
let beating: NodeJS.Timeout;
/** By stream: a subject of each tenant's stored messages, and its newest sequence. */
const stored = new Map<
  string,
  { readonly red: readonly string[]; readonly blue: readonly string[]; readonly last: number }
>();

beforeAll(async () => {
  bus = await startGuardedBus([RED, BLUE]);
  admin = await bus.as('admin');
  endAnswering = serveTenantKeys(await bus.as('host'), QUIET);
  // Heartbeats live for a second.
  const beat = () => {
    for (const tenant of [RED, BLUE]) for (const key of beatsOf(tenant)) admin.publish(key, payloadOf(tenant));
  };
  beating = setInterval(beat, 200);
  beat();
  for (const tenant of [RED, BLUE])
    for (const subject of keptOf(tenant)) await admin.request(subject, payloadOf(tenant));
  for (const stream of await streamNames()) stored.set(stream, await storedIn(stream));
}, 300_000);
afterAll(async () => {
  clearInterval(beating);
  endAnswering?.();
  await bus?.stop();
});

const payloadOf = (tenant: string) => (tenant === BLUE ? SECRET : 'of red');

/** Sessions of a tenant, one for each journal stream. */
function sessionsOf(tenant: string): SessionRef[] {
  const found = new Map<string, SessionRef>();
  for (let i = 0; found.size < JOURNAL_STREAMS.length; i++) {
    const ref = sessionRef(`${tenant}-${i}`, tenant);
    if (!found.has(journalStreamOf(ref.sessionId))) found.set(journalStreamOf(ref.sessionId), ref);
  }
  return [...found.values()];
}

function beatsOf(tenant: string): string[] {
  return [
    subjects.heartbeat('hooks', tenant, 's', 'i'),
    subjects.heartbeat('tools', tenant, 't', 'i'),
    subjects.heartbeat('personas', tenant, 'p', 'i'),
  ];
}

/** Where a tenant has something stored, in every stream. */
function keptOf(tenant: string): string[] {
  const sessions = sessionsOf(tenant);
  const [ref] = sessions as [SessionRef];
  return [
    ...sessions.map(subjects.journal),
    subjects.command(ref, 'steer'),
    subjects.timerSchedule(ref, 't'),
    subjects.snapshot(ref),
    subjects.activeSession(ref),
    subjects.sessionEntry(ref),
    subjects.announcement('hooks', tenant, 's'),
    subjects.announcement('tools', tenant, 't'),
    subjects.announcement('personas', tenant, 'p'),
    subjects.personaPause(tenant, 'p'),
    subjects.rememberedRule(tenant, { persona: 'p', session: 's', id: 'i' }),
    // Files lie together for all tenants: here they are called by theirs.
    `$O.cox_blobs.C.${tenant}`,
    `$O.cox_blobs.M.${tenant}`,
  ];
}

async function asked<T>(subject: string, body: object = {}): Promise<T> {
  return (await admin.request(subject, JSON.stringify(body), { timeout: 5_000 })).json<T>();
}

async function streamNames(): Promise<string[]> {
  return (await asked<{ streams: string[] }>('$JS.API.STREAM.NAMES')).streams;
}

async function storedIn(stream: string) {
  interface Info {
    readonly state: { readonly last_seq: number; readonly subjects?: Record<string, number> };
  }
  const { state } = await asked<Info>(`$JS.API.STREAM.INFO.${stream}`, { subjects_filter: '>' });
  const of = (tenant: string) =>
    Object.keys(state.subjects ?? {}).filter((subject) => subject.split('.').includes(tenant));
  return { red: of(RED), blue: of(BLUE), last: state.last_seq };
}

/** The newest sequence of a stream; heartbeats come and go. */
async function lastOf(stream: string): Promise<[string, number]> {
  const { state } = await asked<{ state: { last_seq: number } }>(`$JS.API.STREAM.INFO.${stream}`);
  return [stream, stream === `KV_${STREAMS.hosts}` ? 0 : state.last_seq];
}

interface Request {
  readonly subject: string;
  readonly body?: object;
  /** Of a consumer that is created. */
  readonly consumer?: { readonly stream: string; readonly name: string; readonly isPushed: boolean };
}

const journalsOfRed = subjects.tenantJournals(RED);

/** Filters that another tenant's messages match: their subjects, those with a wildcard for the tenant, and everything. */
function filtersOf(stream: string): string[] {
  const blue = stored.get(stream)?.blue ?? [];
  return [...new Set([...blue, ...blue.map((subject) => subject.replaceAll(BLUE, '*')), '>'])];
}

/** Every form of a request that reads a stream. What is pushed goes below `inbox`. */
function readsOf(stream: string, inbox: string): Request[] {
  const { red = [], last = 0 } = stored.get(stream) ?? {};
  const filters = filtersOf(stream);
  const api = (what: string, body: object = {}): Request => ({ subject: `$JS.API.${what}`, body });
  const queries = [
    ...filters.flatMap((filter) => [
      { last_by_subj: filter },
      { seq: 1, next_by_subj: filter },
      { seq: 1, next_by_subj: filter, batch: 100 },
      { multi_last: [filter], batch: 100 },
      { start_time: '2000-01-01T00:00:00Z', next_by_subj: filter, batch: 100 },
    ]),
    ...[...Array(Math.min(last, 12)).keys()].map((behind) => ({ seq: last - behind })),
  ];
  return [
    ...queries.flatMap((query) => [api(`STREAM.MSG.GET.${stream}`, query), api(`DIRECT.GET.${stream}`, query)]),
    ...filters.map((filter) => api(`DIRECT.GET.${stream}.${filter}`)),
    // A body beside a subject that is the tenant's own.
    ...red.slice(0, 1).flatMap((own) => queries.map((query) => api(`DIRECT.GET.${stream}.${own}`, query))),
    ...filters.map((filter) => api(`STREAM.INFO.${stream}`, { subjects_filter: filter })),
    ...filters.flatMap((subject) => [api('STREAM.NAMES', { subject }), api('STREAM.LIST', { subject })]),
    api(`CONSUMER.LIST.${stream}`),
    api(`CONSUMER.NAMES.${stream}`),
    api(`STREAM.SNAPSHOT.${stream}`, { deliver_subject: `${inbox}-pushed.${stream}` }),
    api(`STREAM.CREATE.${stream}_copy`, { name: `${stream}_copy`, mirror: { name: stream } }),
    api(`STREAM.CREATE.${stream}_copy`, { name: `${stream}_copy`, sources: [{ name: stream }] }),
    ...consumersOf(stream, inbox),
  ];
}

/** Every form of a request that creates a consumer: by its subject, by the filters in its body, pulled and pushed. */
function consumersOf(stream: string, inbox: string): Request[] {
  const { red = [] } = stored.get(stream) ?? {};
  const filters = filtersOf(stream);
  const named = [
    ...filters,
    ...red.slice(0, 1),
    ...filters.map((filter) => filter.replaceAll(BLUE, RED)),
    journalsOfRed,
  ];
  const forms: [subject: string, filters: object[]][] = [
    ...['CREATE', 'DURABLE.CREATE'].map((form): [string, object[]] => [
      form,
      [{}, ...filters.flatMap((filter) => [{ filter_subject: filter }, { filter_subjects: [journalsOfRed, filter] }])],
    ]),
    ...[...new Set(named)].map((token): [string, object[]] => [
      token,
      [
        { filter_subject: token },
        {},
        ...filters.flatMap((filter) => [{ filter_subject: filter }, { filter_subjects: [token, filter] }]),
      ],
    ]),
  ];
  let count = 0;
  return forms.flatMap(([form, bodies]) =>
    bodies.flatMap((filter) =>
      [false, true].map((isPushed): Request => {
        const name = `${stream}-${count++}`;
        const pushesTo = isPushed ? { deliver_subject: `${inbox}-pushed.${name}` } : {};
        const durable = form === 'DURABLE.CREATE' ? { durable_name: name } : {};
        const config = { name, ack_policy: 'none', inactive_threshold: 6e10, ...durable, ...filter, ...pushesTo };
        const place =
          form === 'CREATE'
            ? `CREATE.${stream}`
            : form === 'DURABLE.CREATE'
              ? `${form}.${stream}.${name}`
              : `CREATE.${stream}.${name}.${form}`;
        return {
          subject: `$JS.API.CONSUMER.${place}`,
          body: { stream_name: stream, config },
          consumer: { stream, name, isPushed },
        };
      }),
    ),
  );
}

/** What a session host is asked: of the tenant's own keys, of another's, of all. */
const HOST_READS: readonly Request[] = [RED, BLUE, '*', '>'].flatMap((tenant) => [
  ...Object.entries(TENANT_KEYS).flatMap(([bucket, kinds]) =>
    [...kinds, '*', BLUE].map((kind) => ({ subject: `cox.${tenant}.keys.${bucket}.${kind}` })),
  ),
  { subject: `cox.${tenant}.keys.*.*` },
  { subject: `cox.${tenant}.keys.>` },
]);

/** What another tenant's clients, workers and hosts hear. */
function heardOf(tenant: string): string[] {
  const { events, deltas, approvals, commands, queries, keys, allRequests, inboxes, largeFields } = tenantSubjects;
  return [
    ...[events, deltas, approvals, commands, queries, keys, inboxes, largeFields].map((of) => of(tenant)),
    ...(['tools', 'personas', 'hooks'] as const).map((kind) => allRequests(kind, tenant)),
  ];
}

/**
 * Reads that show something of another tenant, and are accepted: the subjects of a journal stream, and of the index of sessions,
 * contain the ids of all sessions, and only the body of the request narrows them. docs/guides/security.md says so.
 */
const ACCEPTED: ReadonlySet<string> = new Set(
  [...JOURNAL_STREAMS, STREAMS.sessions].map((stream) => `$JS.API.STREAM.INFO.${stream}`),
);

test('every stream holds messages of both tenants', () => {
  const without = [...stored].filter(([, { red, blue }]) => red.length === 0 || blue.length === 0);
  expect(without.map(([stream]) => stream)).toEqual([]);
});

test.each(TENANT_ROLES)('%s of one tenant reads nothing of another', async (role) => {
  const nc = await bus.as(role, RED);
  const inbox = `_INBOX.at.${RED}.${role}.reads`;
  const requests = [...[...stored.keys()].flatMap((stream) => readsOf(stream, inbox)), ...HOST_READS];
  const permitted = await permittedOf(nc, requests);
  const shown = await answersTo(nc, inbox, permitted);
  expect(shown.filter(({ subject, answer }) => isOfBlue(answer) && !ACCEPTED.has(subject))).toEqual([]);
});

test.each(TENANT_ROLES)('%s of one tenant hears nothing of another', async (role) => {
  const nc = await bus.as(role, RED);
  const heard = [
    ...new Set([...stored.keys()].flatMap(filtersOf)),
    ...heardOf(BLUE),
    '$KV.>',
    '$O.>',
    '$JS.>',
    'cox.>',
  ];
  const refused = refusalsOf(nc);
  for (const subject of heard) nc.subscribe(subject, { callback: () => undefined });
  nc.publish('nobody.may', '');
  await until('the last refusal', () => refused.has('publish nobody.may'));
  expect(heard.filter((subject) => !refused.has(`subscription ${subject}`))).toEqual([]);
});

test.each(TENANT_ROLES)(
  'consumers of %s of one tenant deliver its records only to a subscription to exactly the named subject',
  async (role) => {
    const nc = await bus.as(role, RED);
    const [own] = sessionsOf(RED) as [SessionRef];
    const [theirs] = sessionsOf(BLUE) as [SessionRef];
    const stream = journalStreamOf(own.sessionId);
    const heard: Msg[] = [];
    const listener = await bus.as('viewer', BLUE);
    listener.subscribe(subjects.events(theirs), { callback: (_, message) => void heard.push(message) });
    await listener.flush();
    const targets = [
      ...keptOf(BLUE),
      ...beatsOf(BLUE),
      subjects.storedCommand(theirs, 'approve'),
      subjects.query(theirs, 'get_state'),
      subjects.tool(BLUE, 't'),
      subjects.hook(BLUE, 'h'),
      subjects.persona(BLUE, 'p', 'v'),
      subjects.retention,
      '_INBOX.host.x',
      `_INBOX.at.${BLUE}.viewer.x`,
      `$JS.API.STREAM.PURGE.${stream}`,
      '$JS.API.STREAM.CREATE.EVIL',
      '$JS.ACK.COX_COMMANDS.p0.1.1.1.1.0',
    ];
    const consumer = (name: string, deliver: string) => ({
      subject: `$JS.API.CONSUMER.CREATE.${stream}.${name}.${journalsOfRed}`,
      body: JSON.stringify({
        stream_name: stream,
        config: {
          name,
          ack_policy: 'none',
          filter_subject: journalsOfRed,
          deliver_subject: deliver,
          inactive_threshold: 6e10,
        },
      }),
    });
    const last = async () => Object.fromEntries(await Promise.all([...stored.keys()].map(lastOf)));
    const before = await last();
    const first = consumer(`${role}-heard`, subjects.events(theirs));
    if ((await permittedOf(nc, [{ subject: first.subject }])).length === 0) return;
    const bound: string[] = [];
    for (const [at, target] of targets.entries()) {
      const { subject, body } = consumer(`${role}-${at}`, target);
      const created = (await nc.request(subject, body, { timeout: 5_000 })).json<{ push_bound?: boolean }>();
      // A stream and a subscription with a wildcard do not count, and services of other accounts do not either.
      if (created.push_bound) bound.push(target);
    }
    expect(bound).toEqual([]);
    await nc.request(first.subject, first.body, { timeout: 5_000 });
    await until('the record', () => heard.length > 0);
    // It is recognizable: it keeps its subject.
    expect(new Set(heard.map(({ subject }) => subject))).toEqual(new Set([subjects.journal(own)]));
    expect(await last()).toEqual(before);
  },
);

test('lists each of its own sessions, also those that a host works on', async () => {
  const index = createNatsSessionIndex(await bus.as('host'));
  const refs = sessionsOf(RED);
  for (const ref of refs) await index.mark(ref);
  const listed: string[] = [];
  for await (const { sessionId } of (await bus.client('viewer', RED)).sessions()) listed.push(sessionId);
  expect(listed.sort()).toEqual(refs.map(({ sessionId }) => sessionId).sort());
});

const isOfBlue = (text: string) => text.includes(BLUE) || text.includes(Buffer.from(SECRET).toString('base64'));

/** The requests that the server lets this connection make. */
async function permittedOf(nc: NatsConnection, requests: readonly Request[]): Promise<Request[]> {
  const refused = refusalsOf(nc);
  // Without a reply subject the store answers nothing.
  for (const subject of new Set(requests.map((request) => request.subject))) nc.publish(subject, '');
  nc.publish('nobody.may', '');
  await until('the last refusal', () => refused.has('publish nobody.may'));
  return requests.filter(({ subject }) => !refused.has(`publish ${subject}`));
}

/** What comes back: answers, and what the created consumers deliver. */
async function answersTo(
  nc: NatsConnection,
  inbox: string,
  requests: readonly Request[],
): Promise<{ readonly subject: string; readonly answer: string }[]> {
  const came = new Map<string, Msg[]>();
  const callback = (_: Error | null, message: Msg) =>
    void came.set(message.subject, [...(came.get(message.subject) ?? []), message]);
  nc.subscribe(`${inbox}.>`, { callback });
  // The server pushes only where a subscription names the subject without a wildcard.
  for (const { consumer } of requests)
    if (consumer?.isPushed) nc.subscribe(`${inbox}-pushed.${consumer.name}`, { callback });
  const shown: { subject: string; answer: string }[] = [];
  const note = (subject: string, messages: readonly Msg[]) => {
    for (const message of messages) shown.push({ subject, answer: textOf(message) });
  };
  for (const [at, { subject, body }] of requests.entries())
    nc.publish(subject, body === undefined ? '' : JSON.stringify(body), { reply: `${inbox}.${at}` });
  let delivered = 0;
  for (const [at, { subject, consumer }] of requests.entries()) {
    const place = `${inbox}.${at}`;
    await until(`an answer on ${subject}`, () => came.has(place));
    if (!consumer) continue;
    const [created] = came.get(place) as [Msg];
    const { error, num_pending = 0 } = JSON.parse(created.string()) as { error?: object; num_pending?: number };
    if (error) continue;
    delivered += num_pending;
    const pull = `$JS.API.CONSUMER.MSG.NEXT.${consumer.stream}.${consumer.name}`;
    if (!consumer.isPushed) nc.publish(pull, '{"batch":100,"no_wait":true}', { reply: `${inbox}.pulled` });
  }
  // What consumers deliver keeps the subject on which it is stored.
  const isDelivered = (place: string) => !place.startsWith(inbox);
  await until('what the consumers deliver', () => {
    const messages = [...came].flatMap(([place, some]) => (isDelivered(place) ? some : []));
    return messages.length >= delivered;
  });
  for (const [place, messages] of came) {
    const at = Number(place.slice(inbox.length + 1));
    note(requests[at]?.subject ?? place, messages);
  }
  return shown;
}

function textOf(message: Msg): string {
  const head = [...(message.headers?.keys() ?? [])].map((key) => `${key}: ${message.headers?.values(key).join()}`);
  return [message.subject, ...head, message.string()].join('\n');
}
