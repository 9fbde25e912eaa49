/** The client library against a session host on a real server. */
import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BusClient, type BusSession, CommandRejectedError } from '@coxswain/client';
import { HEADERS } from '@coxswain/protocol';
import { type SessionsService, startSessionsService } from '@coxswain/sessions';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { startBus, type TestBus } from './kit/bus.ts';
import { removeScratch } from './kit/scratch.ts';

vi.setConfig({ testTimeout: 180_000 });

let folder: string;
let bus: TestBus;
let service: SessionsService;
let client: BusClient;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cox-client-'));
  await writeFile(join(folder, 'notes.txt'), 'n');
  await script('quick', 'turns: [{text: quick}, {text: again}]');
  await script('waits', 'turns: [{calls: [{tool: run_command, args: {command: sleep 20}}]}, {text: heard}]');
  await script('asks', 'turns: [{calls: [{tool: write_file, args: {path: a.txt, content: a}}]}, {text: done}]');
  bus = await startBus();
  client = bus.client;
  const nats = { servers: bus.natsUrl };
  service = await startSessionsService({
    nats,
    stateDir: join(folder, 'state'),
    log: 'silent',
    defaultRoot: folder,
    trustsBus: true,
  });
}, 180_000);

afterAll(async () => {
  await service?.stop();
  await bus?.stop();
  await removeScratch();
  await rm(folder, { recursive: true, force: true });
}, 180_000);

async function script(name: string, yaml: string): Promise<void> {
  await writeFile(join(folder, `${name}.yaml`), yaml);
}

async function recordedIds(session: BusSession): Promise<(string | undefined)[]> {
  const ids = [];
  for await (const { record } of session.journal())
    if (record.input.type === 'command') ids.push(record.input.command_id);
  return ids;
}

async function start(name: string, sessionId?: string) {
  const model = `scripted/${join(folder, `${name}.yaml`)}`;
  const permissions = { rules: [{ tool: 'run_command', action: 'allow' as const }] };
  const body = { prompt: 'go', model, root: folder, permissions };
  return client.startSession(body, { sessionId, wait: 'accepted' });
}

test('what a command wrote beyond the bound of a result is kept whole, and read on by reference', async () => {
  const whole = Array.from({ length: 30_000 }, (_, index) => `${index + 1}\n`).join('');
  const ref = createHash('sha256').update(whole).digest('hex');
  const calls = [
    { tool: 'run_command', args: { command: 'seq 1 30000' } },
    { tool: 'read_result', args: { ref, offset: whole.length - 12 } },
    { tool: 'read_result', args: { ref: ref.replaceAll(/./g, '0') } },
  ];
  await script('long', JSON.stringify({ turns: [...calls.map((call) => ({ calls: [call] })), { text: 'read' }] }));
  const session = await start('long');
  expect(await session.result()).toMatchObject({ text: 'read' });
  const results = [];
  for await (const { record } of session.journal()) {
    for (const event of record.events) if (event.type === 'call_ended') results.push(event.result);
  }
  expect(results[0]?.detail?.whole).toEqual({ sha256: ref, bytes: whole.length });
  expect(results[1]?.content[0]).toEqual({ type: 'text', text: '29999\n30000\n' });
  expect(results[2]?.detail).toEqual({ code: 'result_unknown' });
  expect(Buffer.from((await client.blob(ref)) as Uint8Array).toString()).toBe(whole);
});

test('nobody ends a call of a tool that answers where it was asked', async () => {
  const session = await start('waits');
  let callId = '';
  for await (const { events } of session.records()) {
    const started = events.find(({ type }) => type === 'call_started');
    if (started?.type !== 'call_started') continue;
    callId = started.call_id;
    break;
  }
  const taken = { idempotencyKey: `default.${session.id}.3-0`, toolCallId: callId, epoch: 1 };
  const end = { status: 'ok', result: 'forged' } as const;
  await expect(session.endCall(taken, end, { wait: 'accepted' })).rejects.toMatchObject({ code: 'call_not_open' });
  await expect(session.endCall({ ...taken, idempotencyKey: 'default.other.3-0' }, end)).rejects.toBeInstanceOf(
    CommandRejectedError,
  );
  await session.cancel();
});

describe('records', () => {
  test('end at once where the signal has aborted before they are read', async () => {
    const session = await start('quick');
    await session.result();
    const leaving = new AbortController();
    const reading = session.records({ signal: leaving.signal }).next();
    leaving.abort();
    expect((await reading).done).toBe(true);
  });
});

describe('commands', () => {
  test('sent twice under one id are answered at once with what became of the first', async () => {
    const session = await start('waits');
    await vi.waitFor(async () => expect((await session.state()).calls).toMatchObject([{ status: 'running' }]), 30_000);
    const first = await session.steer('look', { id: 'look', wait: 'accepted' });
    const repeated = { duplicate: true, receipt: { n: first.receipt?.n, message: 'repeated: nothing changed' } };
    expect(await session.steer('look', { id: 'look', wait: 'accepted' })).toMatchObject(repeated);
    // Neither of the two is told by a receipt: the journal says it.
    const delivered = session.steer('look', { id: 'look', wait: 'delivered' });
    const [call] = (await session.state()).calls;
    await session.cancelCall(call?.callId as string, { id: 'stop' });
    const end = { duplicate: true, receipt: { stage: 'delivered', seam: 'post_tool_dispatch', turn: 1 } };
    expect(await delivered).toMatchObject(end);
    await session.result();
    expect(await session.steer('look', { id: 'look', wait: 'delivered' })).toMatchObject(end);
    for (const _time of [1, 2]) {
      await expect(session.approve('c9', { id: 'no', wait: 'accepted' })).rejects.toMatchObject({
        code: 'not_pending',
        field: 'callId',
      });
    }
    const unknown = client.session('unknown-twice');
    for (const _time of [1, 2]) {
      await expect(unknown.steer('x', { id: 'x', wait: 'accepted' })).rejects.toMatchObject({
        code: 'session_not_found',
      });
    }
  });

  test('read the journal from its newest record, and from its start only if the session knows their id', async () => {
    const session = await start('quick');
    await session.result();
    // The session knows an id for longer than the command stream, which has never known this one.
    await bus.command(session.id, 'steer', { body: 'look' }, { [HEADERS.commandId]: 'old' });
    await vi.waitFor(async () => expect(await recordedIds(session)).toContain('old'), 30_000);
    const fromStart: boolean[] = [];
    const created = bus.bare.subscribe('$JS.API.CONSUMER.CREATE.>', {
      callback: (_, message) => {
        const { config } = message.json<{ config: { filter_subjects?: unknown; opt_start_seq?: number } }>();
        if (JSON.stringify(config).includes(`.${session.id}"`)) fromStart.push((config.opt_start_seq ?? 1) === 1);
      },
    });
    await bus.bare.flush();
    const waits = { stage: 'accepted', pendingForNextRun: true };
    expect((await session.steer('look', { id: 'new', wait: 'delivered' })).receipt).toMatchObject(waits);
    expect(fromStart).toEqual([false]);
    expect((await session.steer('look', { id: 'old', wait: 'delivered' })).receipt).toMatchObject(waits);
    expect(fromStart).toEqual([false, false, true]);
    created.unsubscribe();
  });

  test('that are taken back, or make way for a newer one, are waited for no longer; a repetition is told the same', async () => {
    const session = await start('waits');
    await vi.waitFor(async () => expect((await session.state()).calls).toMatchObject([{ status: 'running' }]), 30_000);
    const waiting = (id: string) =>
      vi.waitFor(async () => expect((await session.pending()).map((one) => one.commandId)).toContain(id), 30_000);
    const revoked = { name: 'CommandRevokedError', code: 'revoked' };
    const ended = async (id: string, sent: Promise<unknown>) => {
      await expect(sent).rejects.toMatchObject({ ...revoked, commandId: id });
      // No host hears of this one: only the journal can say what became of the first.
      await expect(session.steer('look', { id, wait: 'delivered' })).rejects.toMatchObject(revoked);
    };

    const taken = session.steer('look', { id: 'taken', wait: 'delivered' });
    taken.catch(() => undefined);
    await waiting('taken');
    await session.revoke('taken', { wait: 'accepted' });
    await ended('taken', taken);

    const older = session.steer('look', { id: 'older', dedupeKey: 'k', wait: 'delivered' });
    older.catch(() => undefined);
    await waiting('older');
    await session.steer('look again', { id: 'newer', dedupeKey: 'k', wait: 'accepted' });
    await ended('older', older);
    expect(await session.receiptOf('older')).toMatchObject({ stage: 'revoked', detail: { collapsedInto: 'newer' } });
    await session.cancel();
    await session.result();
  });

  test('are not waited for beyond the end of the run: they are kept for the next', async () => {
    const ended = await start('quick');
    await ended.result();
    const kept = { receipt: { stage: 'accepted', pendingForNextRun: true } };
    expect(await ended.steer('late', { wait: 'delivered' })).toMatchObject(kept);
    const running = await start('waits');
    await vi.waitFor(async () => expect((await running.state()).calls).toMatchObject([{ status: 'running' }]), 30_000);
    const sent = running.followup('more', { wait: 'delivered' });
    await vi.waitFor(async () => expect((await running.state()).pending).toHaveLength(1), 30_000);
    await running.cancel();
    expect(await sent).toMatchObject(kept);
  });

  test('that do not fit are refused before they are sent, or by the session, with a code', async () => {
    const session = await start('quick');
    await session.result();
    const early = session.steer('   ');
    await expect(early).rejects.toBeInstanceOf(CommandRejectedError);
    await expect(early).rejects.toMatchObject({ code: 'empty_body', field: 'body', commandId: undefined });
    await expect(session.steer('x', { mode: 'nonsense' as 'steer' })).rejects.toMatchObject({ code: 'invalid_mode' });
    await expect(session.steer('x', { id: 'a.b' })).rejects.toMatchObject({ code: 'invalid_id', field: 'id' });
    const late = session.approve('c9', { wait: 'accepted' });
    await expect(late).rejects.toMatchObject({ code: 'not_pending', commandId: expect.any(String) });
    await expect(start('quick', session.id)).rejects.toMatchObject({ code: 'session_exists' });
  });
});

test('lists tell sessions and approvals', async () => {
  const session = await start('asks');
  await vi.waitFor(async () => expect(await client.wire.approvals()).toHaveLength(1), 30_000);
  for await (const approval of client.pendingApprovals()) {
    expect(approval.session.id).toBe(session.id);
    expect(approval).toMatchObject({ tool: 'write_file', args: { path: 'a.txt', content: 'a' } });
    await approval.deny({ reason: 'no' });
  }
  await session.result();
  expect(await client.wire.approvals()).toEqual([]);
  const listed = (await client.wire.listSessions({})).sessions.find(({ session_id }) => session_id === session.id);
  expect(listed).toMatchObject({ state: 'stopped', stop_reason: 'end_turn' });
  expect(await client.sessionIds()).toContain(session.id);
});

test('a session is followed from its newest record on, without what came before', async () => {
  const session = await start('quick');
  await session.result();
  const newest = await session.lastNumber();
  expect(newest).toBeGreaterThan(1);
  const leaving = new AbortController();
  const seen: number[] = [];
  const sent = session.wire.send('prompt', { body: 'more' }, { wait: 'accepted' });
  for await (const { record } of session.records({ deltas: true, from: 'newest', signal: leaving.signal })) {
    if (record) seen.push(record.n);
    if (record && record.n > newest && record.state === 'stopped') leaving.abort();
  }
  await sent;
  expect(seen[0]).toBeGreaterThanOrEqual(newest);
  expect(seen).toEqual(seen.map((_, i) => (seen[0] as number) + i));
  expect(await client.session('nobody').lastNumber()).toBe(0);
});

test('one connection is for sessions of any tenant that the bus lets it', async () => {
  const session = await start('quick');
  const other = client.forTenant('other');
  expect(other.tenant).toBe('other');
  expect(await other.session(session.id).lastNumber()).toBe(0);
  expect(() => client.forTenant('no.such')).toThrow('tenant');
});
