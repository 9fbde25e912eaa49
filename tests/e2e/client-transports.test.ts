/**
 * One client, two ways: whatever stands here holds over the bus and over HTTP, word by word. A program does not notice which it
 * was given.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Client,
  type CommandRejectedError,
  type ListedSession,
  newCommandId,
  newSessionId,
  type Session,
  topState,
} from '@coxswain/client';
import { closingLine } from '@coxswain/protocol';
import { sha256Hex } from '@coxswain/session';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { type ConnectedClient, connectOver, TRANSPORTS } from './kit/client-transports.ts';
import { busAndHost } from './kit/fixture.ts';
import { scratchFolder } from './kit/scratch.ts';
import { type ScriptTurn, scripted } from './kit/scripts.ts';
import { until } from './kit/until.ts';

vi.setConfig({ testTimeout: 180_000 });

const fixture = busAndHost();

describe.each(TRANSPORTS)('over %s', (transport) => {
  let connected: ConnectedClient;
  let client: Client;

  beforeAll(async () => {
    connected = await connectOver(transport, fixture.bus);
    client = connected.client;
  });
  afterAll(() => connected?.close());

  async function start(turns: readonly ScriptTurn[], sessionId?: string): Promise<Session> {
    const permissions = { rules: [{ tool: 'run_command', action: 'allow' as const }] };
    const body = { prompt: 'go', model: await scripted(turns), root: await scratchFolder('root'), permissions };
    return client.startSession(body, { sessionId, wait: 'accepted' });
  }

  const QUICK: readonly ScriptTurn[] = [{ text: 'quick' }, { text: 'again' }];
  const STREAMS: readonly ScriptTurn[] = [{ text: 'one two three four five six seven', chunk_ms: 20 }];
  const MUTE: readonly ScriptTurn[] = [{ text: 'one two', chunk_ms: 86_400_000 }];
  const WAITS: readonly ScriptTurn[] = [
    { calls: [{ tool: 'run_command', args: { command: 'sleep 20' } }] },
    { text: 'heard' },
  ];
  const ASKS: readonly ScriptTurn[] = [
    { calls: [{ tool: 'write_file', args: { path: 'a.txt', content: 'a' } }] },
    { text: 'done' },
  ];

  const asking = (session: Session) => until('an approval', async () => (await session.state()).approvals[0]);
  const calling = (session: Session) =>
    until('a call that runs', async () => (await session.state()).calls.find(({ status }) => status === 'running'));

  describe('a run', () => {
    test('is started, and its result is waited for; a prompt starts the next', async () => {
      const session = await start(QUICK);
      expect(await session.result()).toMatchObject({ run: 1, stopReason: 'end_turn', text: 'quick' });
      const { receipt } = await session.prompt('more', { wait: 'accepted' });
      expect(await session.result({ after: receipt?.n as number })).toMatchObject({ run: 2, text: 'again' });
    });

    test('under an id of the caller’s, started twice, is one', async () => {
      const body = { prompt: 'go', model: await scripted(QUICK) };
      const [id, sessionId] = [newCommandId(), newSessionId()];
      const first = await client.startSession(body, { id, sessionId, wait: 'accepted' });
      expect(first.sent).toMatchObject({ commandId: id, duplicate: false, receipt: { stage: 'accepted', n: 1 } });
      await first.result();
      const again = await client.startSession(body, { id, sessionId, wait: 'accepted' });
      expect(again.sent).toMatchObject({ duplicate: true, receipt: { stage: 'accepted', n: 1 } });
      const records = [];
      for await (const { record } of again.journal()) records.push(record);
      expect(records.flatMap(({ events }) => events).filter(({ type }) => type === 'agent_start')).toHaveLength(1);
    });

    test('under a message id, started twice, is one; with another body it is rejected', async () => {
      const body = { prompt: 'go', model: await scripted(QUICK), messageId: newSessionId() };
      const first = await client.startSession(body, { wait: 'accepted' });
      expect(first.sent.duplicate).toBe(false);
      expect(await first.result()).toMatchObject({ run: 1, text: 'quick' });
      const again = await client.startSession(body, { wait: 'accepted' });
      const { commandId, receipt } = first.sent;
      expect(again.id).toBe(first.id);
      expect(again.sent).toMatchObject({
        ...{ duplicate: true, receipt: { stage: 'accepted', n: receipt?.n, detail: { commandId } } },
      });
      expect(await again.result()).toMatchObject({ run: 1, text: 'quick' });
      const other = client.startSession({ ...body, prompt: 'stop' }, { wait: 'accepted' });
      const reused = { code: 'message_id_reused', field: 'messageId' };
      await expect(other).rejects.toMatchObject(reused);
      // Without a receipt, the handle finds out what became of its start.
      expect(await (await client.startSession(body)).result()).toMatchObject({ run: 1, text: 'quick' });
      await expect((await client.startSession({ ...body, prompt: 'stop' })).result()).rejects.toMatchObject(reused);
    });

    test('is steered while it lasts by the same word that begins the next', async () => {
      const session = await start([...WAITS, { text: 'again' }]);
      const { callId } = await calling(session);
      const steer = await session.say('and this', { wait: 'accepted' });
      expect(steer.receipt).toMatchObject({ stage: 'accepted', became: 'steer' });
      await session.cancelCall(callId);
      expect(await session.result()).toMatchObject({ run: 1, text: 'heard' });
      expect(await session.receiptOf(steer.commandId)).toMatchObject({ stage: 'delivered' });
      const prompt = await session.say('and more', { wait: 'accepted' });
      expect(prompt.receipt).toMatchObject({ stage: 'accepted', became: 'prompt' });
      expect(await session.result({ after: prompt.receipt?.n as number })).toMatchObject({ run: 2, text: 'again' });
    });

    test('is cancelled, and says so', async () => {
      const session = await start(WAITS);
      await calling(session);
      expect((await session.cancel('enough', { wait: 'accepted' })).receipt).toMatchObject({ stage: 'accepted' });
      expect(await session.result()).toMatchObject({ stopReason: 'cancelled' });
    });
  });

  test('a call is approved with other arguments, and a second decision is refused', async () => {
    const session = await start(ASKS);
    const { callId } = await asking(session);
    for await (const pending of client.pendingApprovals())
      expect([pending.session.id, pending.callId]).toEqual([session.id, callId]);
    const args = { path: 'b.txt', content: 'b' };
    for await (const approval of session.approvals()) {
      expect(approval).toMatchObject({ callId, tool: 'write_file', args: { path: 'a.txt', content: 'a' } });
      expect((await approval.allow({ args })).receipt).toMatchObject({ stage: 'accepted' });
    }
    await session.result();
    await expect(session.approve()).rejects.toMatchObject({ code: 'not_pending' });
    const late = session.deny(callId, { wait: 'accepted' });
    await expect(late).rejects.toMatchObject({ name: 'CommandRejectedError', code: 'not_pending' });
    const written: unknown[] = [];
    for await (const { record } of session.journal())
      for (const event of record.events) if (event.type === 'call_started') written.push(event.args);
    expect(written).toEqual([args]);
  });

  describe('events', () => {
    test('come from the beginning and then live: every one once, in order, also of a session that is not there yet', async () => {
      const session = client.session(newSessionId());
      const numbers: number[] = [];
      const following = (async () => {
        for await (const record of session.records()) {
          numbers.push(record.n);
          if (record.events.some(({ type }) => type === 'agent_end')) return;
        }
      })();
      await start(STREAMS, session.id);
      await following;
      expect(numbers).toEqual(numbers.map((_, index) => index + 1));
      const later: number[] = [];
      for await (const { n } of session.records({ from: 2 })) {
        later.push(n);
        if (n === numbers.length) break;
      }
      expect(later).toEqual(numbers.slice(1));
      for await (const { record } of session.records({ deltas: true, from: 'newest' })) {
        if (!record) continue;
        expect(record.n).toBe(numbers.length);
        break;
      }
    });

    test('start at the next record; a later one is refused, and not waited for', async () => {
      const session = await start(QUICK);
      await session.result();
      const newest = await session.lastNumber();
      const read = async (from: number, deltas: boolean) => {
        const items = deltas ? session.records({ from, deltas }) : session.records({ from });
        for await (const item of items) if ('n' in item || item.record) return 'n' in item ? item.n : item.record?.n;
        return null;
      };
      const refused = { name: 'ReadRefusedError', code: 'record_not_there', field: 'from' };
      const failures = [read(newest + 2, false), read(newest + 2, true)].map((reading) =>
        expect(reading).rejects.toMatchObject({
          ...refused,
          message: expect.stringContaining(`newest record is ${newest};`),
        }),
      );
      await Promise.all(failures);
      const next = Promise.all([read(newest + 1, false), read(newest + 1, true)]);
      await session.prompt('more', { wait: 'accepted' });
      expect(await next).toEqual([newest + 1, newest + 1]);
    });

    test('as a stream of text give an answer once, and end with the run', async () => {
      const session = await start(STREAMS);
      let shown = '';
      for await (const text of session.textStream()) shown += text;
      expect(shown).toBe('one two three four five six seven');
    });

    test('are left at once, however long nothing more comes', async () => {
      const session = await start(MUTE);
      for await (const { record } of session.records({ deltas: true }))
        if (record && topState(record.state) === 'assistant_streaming') break;
      for await (const _record of session.records()) break;
      const leaving = new AbortController();
      const reading = (async () => {
        for await (const { n } of session.records({ signal: leaving.signal })) if (n >= 1) leaving.abort();
      })();
      await reading;
      await session.cancel();
    });

    test('end with the client', async () => {
      const another = await connectOver(transport, fixture.bus);
      const session = await start(MUTE);
      const following = (async () => {
        const seen: number[] = [];
        for await (const { n } of another.client.session(session.id).records()) {
          seen.push(n);
          if (n === 1) void another.client.close();
        }
        return seen;
      })();
      expect((await following)[0]).toBe(1);
      expect(await another.client.closed()).toBeNull();
      await another.close();
      await session.cancel();
    });
  });

  describe('controls', () => {
    test('a steer is followed to its delivery, past a call that is cancelled', async () => {
      const session = await start(WAITS);
      const { callId } = await calling(session);
      const delivered = session.steer('look', { wait: 'delivered', acceptedWithinMs: 30_000, timeoutMs: 50_000 });
      await until('the steer to wait', async () => (await session.pending()).length === 1);
      const call = { callId, tool: 'run_command', reason: 'enough' };
      const cancelled = await session.cancelCall(callId, { reason: 'enough', id: 'enough' });
      expect(cancelled).toMatchObject({ outcome: 'cancelled', ...call, sent: { receipt: { stage: 'accepted' } } });
      // The journal answers a repetition, too.
      expect(await session.cancelCall(callId, { reason: 'enough', id: 'enough' })).toMatchObject(call);
      expect(await session.cancelCall('c9')).toMatchObject({ outcome: 'not_found', tool: null, reason: null });
      expect((await delivered).receipt).toMatchObject({ stage: 'delivered', seam: 'post_tool_dispatch', turn: 1 });
      expect(await session.receiptOf((await delivered).commandId)).toMatchObject({ stage: 'delivered' });
      expect(await session.result()).toMatchObject({ text: 'heard' });
    });

    test('what waits is replaced, and revoked; whoever waits for its delivery is told', async () => {
      const session = await start(WAITS);
      await calling(session);
      const id = newCommandId();
      const told = expect(session.followup('later', { id, wait: 'delivered' })).rejects.toMatchObject({
        name: 'CommandRevokedError',
        code: 'revoked',
        commandId: id,
      });
      await until('the follow-up to wait', async () => (await session.pending()).length === 1);
      await session.replace(id, 'sooner', { wait: 'accepted' });
      expect(await session.pending()).toMatchObject([{ commandId: id, body: 'sooner' }]);
      await session.revoke(id, { wait: 'accepted' });
      await told;
      expect(await session.pending()).toEqual([]);
      await expect(session.revoke(id, { wait: 'accepted' })).rejects.toMatchObject({ code: 'already_revoked' });
      await session.cancel(undefined, { wait: 'accepted' });
    });

    test('a reminder brings all that it says of itself', async () => {
      const session = await start(WAITS);
      await calling(session);
      const options = {
        tags: ['style'],
        ttlTurns: 2,
        preserveOnCompact: true,
        dedupeKey: 'k',
        wait: 'accepted',
      } as const;
      await session.remind('be brief', options);
      expect((await session.newest())?.events).toContainEqual(
        expect.objectContaining({ type: 'reminder_injected', body: 'be brief', tags: ['style'], ttl_turns: 2 }),
      );
      await session.cancel(undefined, { wait: 'accepted' });
    });

    test('a session is suspended until a signal comes, or until it is resumed', async () => {
      const session = await start([WAITS[0] as ScriptTurn, WAITS[0] as ScriptTurn, { text: 'awake' }]);
      for (const wake of [() => session.signal('ready', { by: 'test' }), () => session.resume()]) {
        const { callId } = await calling(session);
        await session.suspend({ reason: 'lunch', signal: 'ready' }, { wait: 'accepted' });
        await session.cancelCall(callId);
        await until('it to sleep', async () => (await session.state()).suspended);
        await wake();
      }
      expect(await session.result()).toMatchObject({ text: 'awake' });
    });
  });

  describe('sessions', () => {
    test('are forked at a record, and both stand beside each other', async () => {
      const session = await start(QUICK);
      await session.result();
      const fork = await session.fork({ wait: 'accepted' });
      const { forkedAt: n } = fork;
      expect(n).toBe(await session.lastNumber());
      expect(fork.sent.receipt).toMatchObject({ stage: 'accepted' });
      await fork.prompt('more', { wait: 'accepted' });
      expect(await fork.result({ after: n + 1 })).toMatchObject({ text: 'again' });
      await expect(client.session('nobody').fork()).rejects.toMatchObject({ code: 'session_not_found' });
    });

    test('stand in a tree, a list, and pages of it', async () => {
      const session = await start(QUICK);
      await session.result();
      const other = await start(QUICK);
      await other.result();
      expect(await session.tree()).toMatchObject({
        parent: null,
        top: { sessionId: session.id, state: 'stopped', stopReason: 'end_turn', children: [] },
      });
      const all: ListedSession[] = [];
      for await (const one of client.sessions()) all.push(one);
      const theirs = all.map(({ sessionId }) => sessionId).filter((id) => id === session.id || id === other.id);
      expect(theirs).toEqual([other.id, session.id]);
      const newest: string[] = [];
      for await (const { sessionId } of client.sessions({ state: 'stopped', limit: 1 })) newest.push(sessionId);
      expect(newest).toHaveLength(1);
      const stopped = all.filter(({ state }) => state === 'stopped').map(({ sessionId }) => sessionId);
      const paged: string[] = [];
      let cursor: string | undefined;
      do {
        const page = await client.wire.listSessions({ state: 'stopped', limit: 2, cursor });
        paged.push(...page.sessions.map(({ session_id }) => session_id));
        cursor = page.next_cursor ?? undefined;
      } while (cursor !== undefined);
      // Also if sessions of earlier tests leave memory meanwhile.
      expect(paged).toEqual(expect.arrayContaining(stopped));
      const [detailed] = (await client.wire.listSessions({ details: true, limit: 1 })).sessions;
      expect(detailed?.details).toMatchObject({ turn: 1, approvals: 0 });
      const forged = client.wire.listSessions({ cursor: 'forged' });
      await expect(forged).rejects.toMatchObject({ name: 'ReadRefusedError', code: 'invalid_field', field: 'cursor' });
    });

    test('are exported, line by line as they are stored', async () => {
      const session = await start(QUICK);
      await session.result();
      const stored: string[] = [];
      for await (const { bytes } of fixture.bus.client.session(session.id).journal())
        stored.push(Buffer.from(bytes).toString());
      const lines: string[] = [];
      for await (const line of session.export()) lines.push(Buffer.from(line).toString());
      const hash = sha256Hex(stored.at(-1) as string);
      expect(lines).toEqual([...stored, closingLine({ hash, records: stored.length })]);
    });

    test('are deleted, and every way to them says so', async () => {
      const session = await start(QUICK);
      await session.result();
      await session.delete('done with', { wait: 'accepted' });
      const deleted = { code: 'session_deleted', tombstone: { reason: 'done with' } };
      await expect(session.newest()).rejects.toMatchObject(deleted);
      const read = async () => {
        // Until it is swept, its records may come before the word that it is deleted.
        for await (const _record of session.records());
      };
      await expect(read()).rejects.toMatchObject(deleted);
      await expect(session.journal().next()).rejects.toMatchObject(deleted);
      const { sessions } = await client.wire.listSessions({ limit: 500 });
      expect(sessions.map(({ session_id }) => session_id)).not.toContain(session.id);
      for await (const listed of client.sessions({ state: 'deleted', limit: 1 }))
        expect(listed).toMatchObject({ sessionId: session.id, state: 'deleted', deleted: { reason: 'done with' } });
    });
  });

  describe('what is wrong', () => {
    test('is told by the same codes and fields', async () => {
      const session = await start(WAITS);
      await calling(session);
      const accepted = { wait: 'accepted' } as const;
      const refusals: Record<string, () => Promise<unknown>> = {
        'invalid_mode mode': () => session.wire.send('steer', { body: 'x', mode: 'sideways' } as never),
        'unknown_field boddy': () => session.wire.send('steer', { boddy: 'x' } as never),
        'empty_body body': () => session.steer('', accepted),
        'invalid_id id': () => session.steer('x', { id: 'a b' }),
        'session_busy undefined': () => session.wire.send('start', { prompt: 'x' }, accepted),
        'not_suspended undefined': () => session.resume(accepted),
        'unknown_command_id commandId': () => session.revoke('never-sent', accepted),
        'call_unknown callId': () => session.approve('never-made', accepted),
      };
      const told: string[] = [];
      for (const refused of Object.values(refusals)) {
        const error: unknown = await refused().catch((reason: unknown) => reason);
        const { name, code, field } = error as CommandRejectedError;
        told.push(name === 'CommandRejectedError' ? `${code} ${field}` : String(name));
      }
      expect(told).toEqual(Object.keys(refusals));
      await session.cancel(undefined, accepted);
    });

    test('also of a session of which nothing is known', async () => {
      const session = client.session('unknown');
      const unknown = { name: 'SessionNotFoundError', code: 'session_not_found', sessionId: 'unknown' };
      await expect(session.state()).rejects.toMatchObject(unknown);
      await expect(session.result()).rejects.toMatchObject(unknown);
      await expect(session.result({ after: 3 })).rejects.toMatchObject(unknown);
      await expect(session.steer('x', { wait: 'accepted' })).rejects.toMatchObject(unknown);
      expect(await session.newest()).toBeNull();
      expect(await session.lastNumber()).toBe(0);
      expect(await session.receiptOf('x')).toBeNull();
      await expect(session.journal().next()).rejects.toMatchObject(unknown);
      await expect(session.export().next()).rejects.toMatchObject(unknown);
      expect(() => client.session('a.b')).toThrow(expect.objectContaining({ code: 'invalid_id' }));
    });

    // In the first milliseconds requests are in flight whose answers a closed connection never gets.
    test.each([0, 1, 3, 10, 30])(
      'loops end and calls are rejected when their client closes %i ms after they began',
      async (afterMs) => {
        const running = await start(MUTE);
        const closing = await connected.another();
        const session = closing.session(newSessionId());
        const ends = [session.records(), session.records({ deltas: true })].map(async (items) => {
          for await (const _item of items);
        });
        const pending = closing.session(running.id).result();
        pending.catch(() => undefined);
        if (afterMs > 0) await sleep(afterMs);
        await closing.close();
        await Promise.all(ends);
        await expect(pending).rejects.toMatchObject({ name: 'ClientClosedError', code: 'client_closed' });
        for (const call of [session.state(), session.steer('x'), closing.sessions().next()])
          await expect(call).rejects.toMatchObject({ code: 'client_closed' });
        // A loop that starts later would look like a journal that has ended.
        for (const items of [session.records(), session.records({ deltas: true })])
          await expect(items.next()).rejects.toMatchObject({ code: 'client_closed' });
        await running.cancel();
      },
    );

    test('a receipt that does not come in time is one, and the command stands', async () => {
      const session = await start(WAITS);
      await calling(session);
      const id = newCommandId();
      const sent = session.steer('later', { wait: 'delivered', timeoutMs: 300, id });
      await expect(sent).rejects.toMatchObject({
        name: 'ReceiptTimeoutError',
        code: 'receipt_timeout',
        awaited: 'delivered',
        commandId: id,
        sessionId: session.id,
        sent: transport === 'HTTP' ? null : { commandId: id, seq: expect.any(Number), duplicate: false },
        message: expect.stringContaining(`send the same command to the session ${session.id} with the id ${id}`),
      });
      // The time-out may pass before the host has accepted the message.
      await vi.waitFor(async () => expect(await session.pending()).toMatchObject([{ body: 'later' }]), 30_000);
      await session.cancel(undefined, { wait: 'accepted' });
    });
  });

  test('whose sessions these are, and how far away they live', async () => {
    expect(client.tenant).toBe('default');
    expect(await client.roundTripMs()).toBeGreaterThanOrEqual(0);
  });
});
