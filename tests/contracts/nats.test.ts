import { createHash, randomBytes } from 'node:crypto';
import { createSystemClock, StoreClock } from '@coxswain/adapter-memory';
import {
  connectNats,
  createNatsActiveSessions,
  createNatsBlobs,
  createNatsHostChannel,
  createNatsInbox,
  createNatsJournal,
  createNatsPublisher,
  createNatsPurge,
  createNatsRememberedRules,
  createNatsSender,
  createNatsSnapshots,
  createNatsTenantUsage,
  createNatsTimers,
  ensureBuckets,
  ensureStreams,
  listSessions,
  pausePersona,
  resumePersona,
  serveQueries,
  streamFill,
  timersTimeMs,
} from '@coxswain/adapter-nats';
import { storeMessage, streamInfo } from '@coxswain/bus';
import type { CommandNotification, CommandSender, Log } from '@coxswain/ports';
import {
  AnswerSoFar,
  BLOBS_STREAM,
  BOUNDS,
  COMPRESSED_BLOCKS,
  JOURNAL_STREAMS,
  journalStreamOf,
  PARTITIONS,
  partitionOf,
  REWRITE_REPLICAS,
  Receipt,
  STREAMS,
  sessionRef,
  subjects,
  type TenantId,
} from '@coxswain/protocol';
import { errors, headers, type NatsConnection, type PublishOptions } from '@nats-io/nats-core';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { onDeltas } from '../../libs/client/src/live-deltas.ts';
import { activeSessionsContract } from './active-sessions-contract.ts';
import { blobsContract } from './blobs-contract.ts';
import { withFault } from './contract-bus.ts';
import { deletionContract } from './deletion-contract.ts';
import { eventually } from './eventually.ts';
import { bytes, freshSession, text } from './fresh-session.ts';
import { hostChannelContract } from './host-channel-contract.ts';
import { inboxContract } from './inbox-contract.ts';
import { journalContract } from './journal-contract.ts';
import { deltaOf, publisherContract } from './publisher-contract.ts';
import { rememberedRulesContract } from './remembered-rules-contract.ts';
import { snapshotsContract } from './snapshots-contract.ts';
import { stopProcess } from './stop-process.ts';
import { serverStartBoundMs, startTestServer, type TestServer } from './test-server.ts';
import { collect, timersContract } from './timers-contract.ts';

const logged: Array<{ fields: object; message: string }> = [];
const note = (fields: object, message: string) => void logged.push({ fields, message });
const log: Log = { debug: note, info: note, warn: note, error: note };

let server: TestServer;
let nc: NatsConnection;
let otherNc: NatsConnection;
let sender: CommandSender;
let hostChannels = 0;

const connect = () => connectNats({ servers: server.url, token: server.token, name: 'contract' });
const createInbox = () => createNatsInbox(nc, log);

async function publish(subject: string, payload: Uint8Array, given: Readonly<Record<string, string>> = {}) {
  const head = headers();
  for (const [key, value] of Object.entries(given)) head.set(key, value);
  await nc.request(subject, payload, { headers: head, timeout: 5_000 });
}

beforeAll(async () => {
  server = await startTestServer();
  nc = await connect();
  otherNc = await connect();
  await ensureStreams(nc);
  sender = await createNatsSender(otherNc);
}, serverStartBoundMs);

afterAll(async () => {
  await nc?.close();
  await otherNc?.close();
  await server?.stop();
});

describe('NATS', { timeout: 60_000 }, () => {
  journalContract('NATS', () => ({ journal: createNatsJournal(nc), other: createNatsJournal(otherNc) }));
  inboxContract('NATS', () => ({ createInbox, sender, publish }));
  rememberedRulesContract('NATS', () => createNatsRememberedRules(nc));
  snapshotsContract('NATS', () => createNatsSnapshots(nc));
  blobsContract('NATS', () => createNatsBlobs(nc));
  hostChannelContract('NATS', () => createNatsHostChannel(hostChannels++ % 2 ? nc : otherNc, log));
  activeSessionsContract('NATS', () => createNatsActiveSessions(nc));
  timersContract('NATS', () => ({ timers: createNatsTimers(nc), createInbox }));
  test.each([600_000, -600_000])('timers of a host whose clock is off by %i ms fire on time', async (skewMs) => {
    const own = createSystemClock();
    const clock = new StoreClock({ ...own, nowMs: () => own.nowMs() + skewMs }, () => timersTimeMs(nc), log);
    await clock.start();
    onTestFinished(() => clock.close());
    const ref = freshSession();
    const arrived = await collect({ createInbox }, ref);
    const dueAtMs = clock.nowMs() + 400;
    // The server stands on this machine, so its clock is known here without a measurement.
    expect(Math.abs(clock.nowMs() - own.nowMs())).toBeLessThan(1_000);
    await createNatsTimers(nc).schedule(ref, '1-0', dueAtMs, bytes('{}'));
    await eventually('it has arrived', () => arrived.length === 1);
    // Not earlier, by the store's clock; half of an answer's time is what the measurement cannot know.
    expect(arrived[0]?.storedAtMs).toBeGreaterThan(dueAtMs - 200);
  });
  deletionContract('NATS', () => ({
    journal: createNatsJournal(nc),
    other: createNatsJournal(otherNc),
    snapshots: createNatsSnapshots(nc),
    blobs: createNatsBlobs(otherNc),
    timers: createNatsTimers(nc),
    active: createNatsActiveSessions(nc),
    purge: createNatsPurge(nc),
    clock: createSystemClock(),
  }));
  test('summaries of a connection that closes meanwhile are rejected, and no timer fails later', async () => {
    const ref = freshSession();
    await createNatsSnapshots(nc).put(ref, bytes('{}'), { state: 'stopped', approvals: 0, oldestApprovalMs: null });
    const closing = withFault(nc, (method, [subject]) =>
      method === 'subscribe' && !String(subject).endsWith('*')
        ? () => {
            throw new errors.ClosedConnectionError();
          }
        : undefined,
    );
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const read = createNatsSnapshots(closing).summaries(partitionOf(ref.sessionId));
    await expect(read).rejects.toThrow('closed');
    expect(() => vi.advanceTimersByTime(60_000)).not.toThrow();
  });
  test('a sweep fails if a replica leaves out a record', async () => {
    const ref = freshSession();
    const journal = createNatsJournal(nc);
    const first = await journal.append(ref, bytes('{}'), 0);
    if (first.status !== 'stored') throw new Error(`the append was ${first.status}`);
    await journal.append(ref, bytes('{}'), first.fence);
    const after = (payload: unknown) =>
      bytes(text(payload as Uint8Array).replace(/"seq":(\d+)/, (_, seq) => `"seq":${Math.max(seq, first.fence + 1)}`));
    const stream = journalStreamOf(ref.sessionId);
    const skipping = withFault(nc, (method, [subject, payload, options]) =>
      method === 'publish' && subject === `$JS.API.DIRECT.GET.${stream}`
        ? () => nc.publish(subject, after(payload), options as PublishOptions)
        : undefined,
    );
    const count = async (connection: NatsConnection) => {
      let records = 0;
      for await (const _ of createNatsPurge(connection).records()) records++;
      return records;
    };
    await expect(count(skipping)).rejects.toMatchObject({ name: 'RecordNotServedError', stream });
    expect(await count(nc)).toBeGreaterThan(1);
  });
  publisherContract('NATS', () => ({
    publisher: createNatsPublisher(nc, log),
    async watchDeltas(ref, handler) {
      const stop = onDeltas(otherNc, ref, handler);
      await otherNc.flush();
      return stop;
    },
    async watchReceipts(subject, handler) {
      const subscription = otherNc.subscribe(subject, {
        callback: (_, message) => handler(Receipt.parse(message.json())),
      });
      await otherNc.flush();
      return () => subscription.unsubscribe();
    },
  }));

  // tests/bench/turn-costs.test.ts counts the calls of these ports in each turn.
  test('an append and a small snapshot are one message to the server and one back', async () => {
    const own = await connect();
    onTestFinished(() => own.close());
    const [journal, snapshots] = [createNatsJournal(own), createNatsSnapshots(own)];
    const ref = freshSession();
    const before = { ...own.stats() };
    for (let fence = 0, n = 0; n < 5; n++) {
      const stored = await journal.append(ref, bytes('{}'), fence);
      fence = stored.status === 'stored' ? stored.fence : fence;
    }
    for (let n = 0; n < 3; n++) await snapshots.put(ref, bytes('{}'));
    const after = own.stats();
    expect([after.outMsgs - before.outMsgs, after.inMsgs - before.inMsgs]).toEqual([8, 8]);
  });

  test('what tenants have stored is measured, each by itself; a deleted session does not count', async () => {
    const usage = createNatsTenantUsage(otherNc, log, 50);
    onTestFinished(() => usage.close());
    const journal = createNatsJournal(nc);
    const [red, blue] = ['usage-red', 'usage-blue'].map((tenant) => tenant as TenantId);
    const store = async (tenant: string, session: string, records: number) => {
      for (let fence = 0, n = 0; n < records; n++) {
        const stored = await journal.append(sessionRef(session, tenant), bytes('x'.repeat(1_000)), fence);
        fence = stored.status === 'stored' ? stored.fence : fence;
      }
    };
    await store('usage-red', 'a', 3);
    await store('usage-red', 'b', 2);
    await store('usage-red', 'tombstone', 1);
    await store('usage-blue', 'a', 2);
    expect(usage.of(red as TenantId)).toBeNull();
    await eventually('both are measured', () => Boolean(usage.of(red as TenantId) && usage.of(blue as TenantId)));
    expect([usage.of(red as TenantId)?.sessions, usage.of(blue as TenantId)?.sessions]).toEqual([2, 1]);
    expect(usage.of(red as TenantId)?.storedBytes).toBeGreaterThan(0);
  });

  test('large fields are read without a consumer for each: a server bounds how many there may be', async () => {
    const blobs = createNatsBlobs(nc);
    const data = randomBytes(300_000);
    const sha256 = createHash('sha256').update(data).digest('hex');
    await blobs.put(sha256, data);
    for (let read = 0; read < 5; read++) expect((await blobs.get(sha256))?.length).toBe(300_000);
    expect(await consumersOf(BLOBS_STREAM)).toBe(0);
  });

  test('the age of a blob is that of the clock of the store: a machine that is a day behind renews it, too', async () => {
    const clock = { nowMs: () => Date.now() };
    const blobs = createNatsBlobs(nc, clock);
    const data = randomBytes(1_000);
    const sha256 = createHash('sha256').update(data).digest('hex');
    const writes = async () => (await streamInfo(nc, BLOBS_STREAM)).state.last_seq;
    await blobs.put(sha256, data);
    const before = await writes();
    await blobs.put(sha256, data);
    expect(await writes()).toBe(before);
    clock.nowMs = () => Date.now() + BOUNDS.unusedBlobKeptMs;
    await blobs.put(sha256, data);
    expect(await writes()).toBe(before + 1);
  });

  describe('streams', () => {
    test('may be ensured again and again', async () => {
      await Promise.all([ensureStreams(nc), ensureStreams(otherNc)]);
    });

    test('that somebody changed are refused, by the member', async () => {
      const config = await configOf(JOURNAL_STREAMS[0] as string);
      onTestFinished(() => update(config));
      const { republish, ...without } = config;
      expect(republish).toBeDefined();
      await update(without);
      await expect(ensureStreams(nc)).rejects.toMatchObject({
        code: 'stream_config_mismatch',
        member: `${JOURNAL_STREAMS[0]}.republish`,
        message: expect.stringContaining(nc.info?.version ?? 'no version'),
      });
    });

    test('that take what only hosts may do are refused', async () => {
      const config = await configOf(STREAMS.commands);
      onTestFinished(() => update(config));
      await update({ ...config, allow_rollup_hdrs: true });
      await expect(ensureStreams(nc)).rejects.toMatchObject({ member: 'COX_COMMANDS.allow_rollup_hdrs' });
    });

    test('that take rollups from services, as they once did, take none any more', async () => {
      const registry = `KV_${STREAMS.registry}`;
      await update({ ...(await configOf(registry)), allow_rollup_hdrs: true });
      await ensureStreams(nc);
      expect((await configOf(registry)).allow_rollup_hdrs).toBe(false);
    });

    test('that have no limit get one from the admin, and not from a host; a limit that was set stays', async () => {
      const config = await configOf(STREAMS.commands);
      onTestFinished(() => update(config));
      const { max_bytes: _, discard_new_per_subject: __, ...unlimited } = config;
      await update({ ...unlimited, discard: 'old', max_msgs_per_subject: -1 });
      await ensureStreams(nc);
      expect(await configOf(STREAMS.commands)).toMatchObject({ max_bytes: -1, discard: 'old' });
      await ensureStreams(nc, { maxBytes: {} });
      const limited = {
        max_bytes: 256 * 2 ** 20,
        max_msgs_per_subject: 4_096,
        discard: 'new',
        discard_new_per_subject: true,
      };
      expect(await configOf(STREAMS.commands)).toMatchObject(limited);
      await ensureStreams(nc, { maxBytes: { commands: 2 ** 20, journals: 2 ** 30, files: 0 } });
      await ensureStreams(nc, { maxBytes: {} });
      expect(await configOf(STREAMS.commands)).toMatchObject({ ...limited, max_bytes: 2 ** 20 });
      expect(await configOf(JOURNAL_STREAMS[0] as string)).toMatchObject({ max_bytes: 2 ** 26, discard: 'new' });
      expect((await streamFill(nc)).get(STREAMS.commands)).toBeLessThan(1);
      await ensureStreams(nc, { maxBytes: { journals: 0 } });
      expect(await configOf(JOURNAL_STREAMS[0] as string)).toMatchObject({ max_bytes: -1 });
    });

    test('the registry of an earlier version has no limit: it gets one from the admin, and hosts keep what is set', async () => {
      const registry = `KV_${STREAMS.registry}`;
      const config = await configOf(registry);
      onTestFinished(() => update(config));
      const limits = { max_bytes: 256 * 2 ** 20, max_msg_size: 800 * 2 ** 10 };
      expect(config).toMatchObject(limits);
      await update({ ...config, max_bytes: -1, max_msg_size: -1 });
      await ensureStreams(nc);
      await ensureBuckets(nc, [STREAMS.registry]);
      expect(await configOf(registry)).toMatchObject({ max_bytes: -1, max_msg_size: -1 });
      await ensureStreams(nc, { maxBytes: {} });
      expect(await configOf(registry)).toMatchObject(limits);
      await ensureStreams(nc, { maxBytes: { registry: 2 ** 20 } });
      await ensureBuckets(nc, [STREAMS.registry]);
      expect(await configOf(registry)).toMatchObject({ ...limits, max_bytes: 2 ** 20, discard: 'new' });
    });

    test('a full registry refuses new keys and keeps what it has, and its share is reported', async () => {
      const config = await configOf(`KV_${STREAMS.registry}`);
      onTestFinished(() => update(config));
      const tenant = 'default' as TenantId;
      await pausePersona(nc, tenant, 'ada');
      await ensureStreams(nc, { maxBytes: { registry: 2 ** 10 } });
      const long = 'x'.repeat(1_000);
      await expect(pausePersona(nc, tenant, 'ben', long)).rejects.toThrow('maximum bytes exceeded');
      expect((await streamFill(nc)).get(`KV_${STREAMS.registry}`)).toBeGreaterThan(0);
      expect(await resumePersona(nc, tenant, 'ada')).toBe(true);
      const tooLarge = bytes('x'.repeat(801 * 2 ** 10));
      await update(config);
      await expect(
        storeMessage(nc, 'announcing', subjects.announcement('tools', tenant, 'deploy'), tooLarge),
      ).rejects.toThrow('message size exceeds maximum allowed');
    });

    test('that compress their blocks, as they once did, are left to the operator, who switches it off', async () => {
      const listed = await nc.request('$JS.API.STREAM.LIST', '', { timeout: 5_000 });
      const { streams } = listed.json<{ streams: { config: { name: string; compression: string } }[] }>();
      expect(streams.length).toBeGreaterThan(JOURNAL_STREAMS.length);
      expect(streams.filter(({ config: { compression } }) => compression !== 'none')).toEqual([]);
      const config = await configOf(STREAMS.snapshots);
      await update({ ...config, compression: 's2' });
      // A stream with one replica is not at risk.
      expect(await ensureStreams(nc)).toEqual({ uncompressed: [], atRisk: [] });
      expect((await configOf(STREAMS.snapshots)).compression).toBe('s2');
      expect(await ensureStreams(nc, { uncompress: true })).toEqual({ uncompressed: [STREAMS.snapshots], atRisk: [] });
      expect(await configOf(STREAMS.snapshots)).toMatchObject({
        compression: 'none',
        metadata: { [COMPRESSED_BLOCKS]: 'true' },
      });
    });

    test('that a rewrite was to restore to their replicas are not, once another number is asked for', async () => {
      const config = await configOf(STREAMS.snapshots);
      onTestFinished(() => update(config));
      const marked = async () => (await configOf(STREAMS.snapshots)).metadata as Record<string, string>;
      await update({ ...config, metadata: { [REWRITE_REPLICAS]: '3', other: 'kept' } });
      await ensureStreams(nc);
      expect(await marked()).toMatchObject({ [REWRITE_REPLICAS]: '3' });
      await ensureStreams(nc, { replicas: 1 });
      expect(await marked()).not.toHaveProperty(REWRITE_REPLICAS);
      expect(await marked()).toMatchObject({ other: 'kept' });
    });

    test('are made where a cluster that elects lost the request', async () => {
      const bucket = `KV_${STREAMS.registry}`;
      await nc.request(`$JS.API.STREAM.DELETE.${bucket}`, '', { timeout: 5_000 });
      let lost = 0;
      const losing = withFault(nc, (method, [subject]) => {
        if (method !== 'publish' || subject !== `$JS.API.STREAM.CREATE.${bucket}` || lost > 0) return undefined;
        return () => {
          lost += 1;
        };
      });
      await ensureStreams(losing);
      expect(lost).toBe(1);
      expect(await configOf(bucket)).toMatchObject({ name: bucket });
    });

    test('are not made on a server that would ignore half of their configuration', async () => {
      const old = Object.create(nc, { info: { value: { ...nc.info, version: '2.11.9' } } }) as NatsConnection;
      await expect(ensureStreams(old)).rejects.toMatchObject({ code: 'nats_server_too_old' });
    });
  });

  describe('the command stream', () => {
    test('outlives a subject that is longer than the server takes', async () => {
      const inbox = await createInbox();
      const strays: string[] = [];
      await inbox.open({ notify: () => undefined, unroutable: (stray) => void strays.push(stray.subject) });
      onTestFinished(() => inbox.close());
      const hostile = await connect();
      onTestFinished(() => hostile.close());
      hostile.publish(`cox.default.session.${'x'.repeat(100_000)}.steer`, bytes('x'));
      const ref = freshSession();
      const { seq } = await sender.send(ref, 'steer', bytes('after it'));
      expect((await inbox.read(ref, 0, seq)).map(({ payload }) => text(payload))).toEqual(['after it']);
      expect(strays.filter((subject) => subject.length > 65_536)).toEqual([]);
    });

    test('at its limit refuses what is new and keeps what it has; a timer that comes due waits for room', async () => {
      const config = await configOf(STREAMS.commands);
      onTestFinished(() => update(config));
      const ref = freshSession();
      const inbox = await createInbox();
      await sender.send(ref, 'steer', bytes('kept'));
      const stored = async () => (await inbox.read(ref, 0, null)).map(({ verb }) => verb);
      await update({ ...config, max_msgs_per_subject: 1 });
      await expect(sender.send(ref, 'steer', bytes('x'))).rejects.toThrow('maximum messages per subject exceeded');
      const info = await nc.request(`$JS.API.STREAM.INFO.${STREAMS.commands}`, '', { timeout: 5_000 });
      const { bytes: max_bytes } = info.json<{ state: { bytes: number } }>().state;
      await update({ ...config, max_bytes });
      await expect(sender.send(ref, 'remind', bytes('x'))).rejects.toThrow('maximum bytes exceeded');
      await createNatsTimers(nc).schedule(ref, '1-0', Date.now(), bytes('{}'));
      await eventually('the timer has fired', async () => (await messagesOn(STREAMS.timers, subjects.timersDue)) > 0);
      expect(await stored()).toEqual(['steer']);
      await update(config);
      await eventually('the timer has arrived', async () => (await stored()).length === 2);
      expect(await stored()).toEqual(['steer', 'timer']);
    });

    test('takes no schedule, no time to live and no rollup from those who may publish a steer', async () => {
      const ref = freshSession();
      const inbox = await createInbox();
      const kept = await sender.send(ref, 'steer', bytes('kept'));
      const subject = subjects.command(ref, 'steer');
      const attempts: Array<Record<string, string>> = [
        { 'Nats-Schedule': '@at 2020-01-01T00:00:00Z', 'Nats-Schedule-Target': subjects.command(ref, 'approve') },
        { 'Nats-TTL': '1s' },
        { 'Nats-Rollup': 'all' },
      ];
      for (const attempt of attempts) await publish(subject, bytes('hostile'), attempt);
      const stored = await inbox.read(ref, 0, kept.seq + attempts.length);
      expect(stored.map(({ verb, payload }) => [verb, text(payload)])).toEqual([['steer', 'kept']]);
    });

    test('keeps a partition at the host that has it, also when nothing comes for longer than a pin lasts', async () => {
      const ref = freshSession();
      const [first, standby] = [await collect({ createInbox }, ref), await collect({ createInbox }, ref)];
      await sender.send(ref, 'steer', bytes('1'));
      await eventually('it has arrived', () => first.length + standby.length === 1);
      const holder = first.length === 1 ? first : standby;
      await new Promise((resolve) => setTimeout(resolve, 2_500));
      await sender.send(ref, 'steer', bytes('2'));
      await eventually('the second has arrived', () => first.length + standby.length === 2);
      expect(holder).toHaveLength(2);
    });

    test('starts new partitions while a consumer does not answer that a partition is released', async () => {
      const [ref, other] = [freshSession(), freshSession()];
      const [released, taken] = [ref, other].map(({ sessionId }) => partitionOf(sessionId)) as [number, number];
      const warnings: string[] = [];
      let unpins = 0;
      const deaf = withFault(nc, (method, [subject]) => {
        if (method !== 'publish' || !String(subject).startsWith('$JS.API.CONSUMER.UNPIN.')) return undefined;
        return () => void unpins++;
      });
      const inbox = await createNatsInbox(deaf, { ...log, warn: (_fields, message) => void warnings.push(message) });
      onTestFinished(() => inbox.close());
      const arrived: string[] = [];
      const handlers = {
        notify: ({ ref: of, ack }: CommandNotification) => {
          arrived.push(of.sessionId);
          ack();
        },
        unroutable: () => undefined,
      };
      await inbox.open(handlers, [released]);
      await sender.send(ref, 'steer', bytes('1'));
      await eventually('it holds the first partition', () => arrived.includes(ref.sessionId));
      await inbox.open(handlers, released === taken ? [(taken + 1) % PARTITIONS] : [taken]);
      expect(unpins).toBe(1);
      // The request has not ended yet.
      expect(warnings).toEqual([]);
    });

    test('rejects no delivery that it has lost with its pin', async () => {
      const ref = freshSession();
      const partitions = [partitionOf(ref.sessionId)];
      let isCut = false;
      let pulls: string[] = [];
      const rejected: unknown[] = [];
      const faulty = withFault(nc, (method, [subject, payload]) => {
        if (method !== 'publish') return undefined;
        if (payload === '-NAK') rejected.push(subject);
        if (!String(subject).startsWith('$JS.API.CONSUMER.MSG.NEXT.')) return undefined;
        pulls.push(String(payload));
        return isCut ? () => undefined : undefined;
      });
      const [first, second] = [await createNatsInbox(faulty, log), await createNatsInbox(otherNc, log)];
      const got = { first: 0, second: 0 };
      await first.open({ notify: () => void got.first++, unroutable: () => undefined }, partitions);
      await sender.send(ref, 'steer', bytes('1'));
      await eventually('the first host has it', () => got.first > 0);
      isCut = true;
      const take = ({ ack }: CommandNotification) => {
        got.second++;
        ack();
      };
      await second.open({ notify: take, unroutable: () => undefined }, partitions);
      onTestFinished(() => second.close());
      await eventually('the second host has taken it', () => got.second > 0);
      [isCut, pulls] = [false, []];
      await sender.send(ref, 'steer', bytes('2'));
      const hasLostPin = () => pulls.some((pull) => !pull.includes('"id"'));
      await eventually('the first host pulls without its pin', hasLostPin);
      await first.close();
      expect(rejected).toEqual([]);
    });

    test('has its consumers again when somebody has deleted them', async () => {
      const ref = freshSession();
      const arrived = await collect({ createInbox }, ref);
      for (const p of [...Array.from({ length: 64 }, (_, i) => `p${i}`), 'strays']) {
        await nc.request(`$JS.API.CONSUMER.DELETE.${STREAMS.commands}.${p}`, '', { timeout: 5_000 });
      }
      await sender.send(ref, 'steer', bytes('x'));
      await eventually('it has arrived', () => arrived.length === 1);
    });
  });

  test('lists sessions', async () => {
    const tenant = `list-${freshSession().sessionId}`.slice(0, 30);
    const refs = Array.from({ length: 5 }, () => freshSession(tenant));
    for (const ref of refs) await writer(createNatsJournal(nc), ref)(1);
    const listed: string[] = [];
    for await (const ref of listSessions(otherNc, tenant)) listed.push(ref.sessionId);
    expect(listed.sort()).toEqual(refs.map(({ sessionId }) => sessionId as string).sort());
  });

  describe('a query for a running answer', () => {
    const place = { effect_id: '1-0', epoch: 1, attempt: 1, text: 1, reasoning: 0 };

    test.each([
      ['nothing is said', '', { pieces: [{ offset: 0, text: 'xx' }], more: false }],
      ['a place is named', JSON.stringify(place), { pieces: [{ offset: 1, text: 'x' }], more: false }],
      ['the body is no JSON', '{', { code: 'invalid_json' }],
      ['the place is not whole', '{"epoch":1}', { code: 'invalid_field', field: 'effect_id' }],
      ['the place has too much', JSON.stringify({ ...place, txet: 1 }), { code: 'unknown_field' }],
    ])('is answered by the host that runs the session where %s', async (_where, body, expected) => {
      const ref = freshSession();
      const answer = new AnswerSoFar();
      for (const index of [0, 1]) answer.take(deltaOf(ref, index));
      const hosts = [null, answer].map((running) =>
        serveQueries(otherNc, log, {
          state: async () => null,
          answer: (_ref, from) => running?.after(from) ?? null,
        }),
      );
      onTestFinished(() => {
        for (const stop of hosts) stop();
      });
      await otherNc.flush();
      const reply = await nc.request(subjects.query(ref, 'get_answer'), body, { timeout: 10_000 });
      expect(reply.json()).toMatchObject(expected);
    });
  });

  describe('a message to watchers', () => {
    test('that is not a delta is ignored', async () => {
      const ref = freshSession();
      const heard: number[] = [];
      onTestFinished(onDeltas(otherNc, ref, (delta) => void heard.push(delta.index)));
      await otherNc.flush();
      nc.publish(subjects.deltas(ref), 'garbage');
      nc.publish(subjects.deltas(ref), '{"type":"message_update"}');
      createNatsPublisher(nc, log).delta(ref, deltaOf(ref, 7));
      await eventually('a delta is received', () => heard.length > 0);
      expect(heard).toEqual([7]);
    });

    test('goes to inboxes only, so that a receipt cannot become a command', async () => {
      const ref = freshSession();
      const inbox = await createInbox();
      const publisher = createNatsPublisher(nc, log);
      const receipt: Receipt = { type: 'receipt', session_id: ref.sessionId, command_id: 'c', stage: 'accepted' };
      publisher.receipt(subjects.command(ref, 'approve'), receipt);
      const { seq } = await sender.send(ref, 'steer', bytes('x'));
      await nc.flush();
      expect((await inbox.read(ref, 0, seq)).map(({ verb }) => verb)).toEqual(['steer']);
    });

    test('is logged when the connection is closed', async () => {
      const closed = await connect();
      await closed.close();
      const ref = freshSession();
      createNatsPublisher(closed, log).delta(ref, deltaOf(ref, 0));
      expect(logged.some(({ fields }) => (fields as { subject?: string }).subject === subjects.deltas(ref))).toBe(true);
    });
  });

  // These stop the server that all share, so they stand last.
  describe('when the server goes away', () => {
    test('an append without an answer is ambiguous, and the identical bytes settle it to one record', async () => {
      const ref = freshSession();
      const journal = createNatsJournal(nc);
      await stopProcess(server.pid());
      const pending = journal.append(ref, bytes('a'), 0).finally(() => process.kill(server.pid(), 'SIGCONT'));
      expect(await pending).toMatchObject({ status: 'ambiguous' });
      const again = await journal.append(ref, bytes('a'), 0);
      expect(again).toEqual({ status: 'refused' });
      const settled = await journal.firstAfter(ref, 0);
      expect(text(settled?.bytes ?? bytes(''))).toBe('a');
      expect((await journal.last(ref))?.fence).toBe(settled?.fence);
    });

    test('a timer outlives its client and the server', async () => {
      const ref = freshSession();
      const client = await connect();
      await createNatsTimers(client).schedule(ref, '1-0', Date.now() + 3_000, bytes('still'));
      await client.close();
      await server.restart();
      const later = await connect();
      onTestFinished(() => later.close());
      const arrived = await collect({ createInbox: () => createNatsInbox(later, log) }, ref);
      await eventually('it has arrived', () => arrived.length === 1);
      expect(text(arrived[0]?.payload ?? bytes(''))).toBe('still');
    });

    test('an open inbox continues when the server is back', async () => {
      const ref = freshSession();
      const arrived = await collect({ createInbox }, ref);
      await server.restart();
      await eventually('a command is taken', async () => {
        const sent = await sender.send(ref, 'steer', bytes('x'), { commandId: 'once' }).catch(() => null);
        return sent !== null;
      });
      await eventually('it has arrived', () => arrived.length === 1);
    });

    test('a closed connection rejects appends', async () => {
      const closing = await connect();
      const journal = createNatsJournal(closing);
      const ref = freshSession();
      await journal.last(ref);
      await closing.close();
      await expect(journal.append(ref, bytes('a'), 0)).rejects.toMatchObject({ code: 'nats_unreachable' });
    });
  });
});

async function configOf(stream: string): Promise<Record<string, unknown>> {
  const answer = await nc.request(`$JS.API.STREAM.INFO.${stream}`, '', { timeout: 5_000 });
  return answer.json<{ config: Record<string, unknown> }>().config;
}

/** Messages of a stream on the subjects that a filter stands for. */
async function messagesOn(stream: string, filter: string): Promise<number> {
  const query = JSON.stringify({ subjects_filter: filter });
  const answer = await nc.request(`$JS.API.STREAM.INFO.${stream}`, query, { timeout: 5_000 });
  const { subjects: counts = {} } = answer.json<{ state: { subjects?: Record<string, number> } }>().state;
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

async function consumersOf(stream: string): Promise<number> {
  const answer = await nc.request(`$JS.API.STREAM.INFO.${stream}`, '', { timeout: 5_000 });
  return answer.json<{ state: { consumer_count: number } }>().state.consumer_count;
}

async function update(config: Record<string, unknown>): Promise<void> {
  const answer = await nc.request(`$JS.API.STREAM.UPDATE.${String(config.name)}`, JSON.stringify(config), {
    timeout: 5_000,
  });
  const { error } = answer.json<{ error?: { description: string } }>();
  if (error) throw new Error(error.description);
}

function writer(journal: ReturnType<typeof createNatsJournal>, ref: ReturnType<typeof freshSession>) {
  let fence = 0;
  return async (n: number) => {
    const result = await journal.append(ref, bytes(JSON.stringify({ n })), fence);
    if (result.status !== 'stored') throw new Error(`an append was ${result.status}`);
    fence = result.fence;
  };
}
