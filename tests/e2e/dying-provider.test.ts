/** Sessions whose provider, over HTTP, streams text and then dies, or is told to stop: nothing hangs, and what was said is kept. */
import { createIds, createMemoryBus, createSystemClock } from '@coxswain/adapter-memory';
import { createModels } from '@coxswain/adapter-models';
import type { Log } from '@coxswain/ports';
import { decodeRecord, type SessionEvent, sessionRef, subjects } from '@coxswain/protocol';
import { createSessionHost, replayJournal } from '@coxswain/session';
import { afterEach, describe, expect, test } from 'vitest';
import { PROTOCOLS } from '../../libs/adapters/models/test/protocols.ts';
import { beginStream, type RawServer, rawServer } from '../../libs/adapters/models/test/raw-server.ts';

const REF = sessionRef('s1');
const QUIET: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const ending: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const end of ending.splice(0).reverse()) await end();
});

/** A host on a bus in memory, with real time and the real providers. */
async function session() {
  const clock = createSystemClock();
  const bus = createMemoryBus(clock);
  const host = createSessionHost({
    ...bus.hostPorts(),
    clock,
    ids: createIds(),
    hooks: { table: () => [], ask: async () => ({ status: 'returned', raw: undefined }) },
    log: QUIET,
    models: createModels({ env: {}, clock }),
    personas: { find: async () => null, names: async () => [] },
    tools: { open: async () => ({ tools: [], call: noTool, probe: noProbe, close: async () => [] }) },
    defaultRoot: '/srv',
  });
  ending.push(async () => {
    host.abandon();
    bus.close();
  });
  const events: SessionEvent[] = [];
  const waiting = new Set<() => void>();
  bus.subscribeEvents(REF, ({ bytes }) => {
    events.push(...decodeRecord(bytes).events);
    for (const look of waiting) look();
  });
  await host.start();
  return {
    events,
    send: (verb: string, body: object) => bus.publish(subjects.command(REF, verb), Buffer.from(JSON.stringify(body))),
    /** Resolves when so many events of a type have come. */
    seen: (type: SessionEvent['type'], count = 1) =>
      new Promise<void>((resolve) => {
        const look = () => {
          if (events.filter((event) => event.type === type).length < count) return;
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        look();
      }),
    firstDelta: new Promise<void>((resolve) => {
      bus.subscribeDeltas(REF, () => resolve());
    }),
    replay: async () => {
      const records: Uint8Array[] = [];
      for await (const { bytes } of bus.journal.read(REF)) records.push(bytes);
      return replayJournal(records, bus.blobs);
    },
  };
}

const noTool = () => Promise.reject(new Error('there is no tool'));
const noProbe = async () => ({ state: 'unknown' }) as const;
const linesOf = (events: readonly SessionEvent[]) =>
  events.flatMap((event) => {
    if (event.type === 'message_complete')
      return [
        `answer${event.message.partial ? ' partial' : ''} ${JSON.stringify(event.message.content.map((part) => part.type === 'text' && part.text))}`,
      ];
    if (event.type === 'agent_end') return [`end ${event.stop_reason}${event.error ? ` ${event.error.code}` : ''}`];
    return event.type === 'turn_end' ? ['turn_end'] : [];
  });

async function provider(handle: Parameters<typeof rawServer>[0]): Promise<RawServer> {
  const server = await rawServer(handle);
  ending.push(() => server.close());
  return server;
}

describe.each(PROTOCOLS)('$title', ({ name, hello, end }) => {
  test.each([
    ['its connection is cut', 'cut'],
    ['its stream ends without a final frame', ''],
    ['it sends garbage', 'data: {"half\n\n'],
  ])('that streams text and then dies: %s', async (_how, rest) => {
    const server = await provider((response, n) => {
      beginStream(response);
      if (n > 1) response.end(hello + end);
      else if (rest === 'cut') response.write(hello, () => response.destroy());
      else response.end(hello + rest);
    });
    const { send, seen, events, replay } = await session();
    send('start', { prompt: 'go', model: name, base_url: server.url });
    await seen('agent_end');
    const [answer] = linesOf(events);
    // A cut connection may lose what was on its way; what had come is kept, in either case once.
    if (rest !== 'cut') expect(answer).toBe('answer partial ["Hello"]');
    expect(linesOf(events).slice(-2)).toEqual(['turn_end', 'end error model_stream_broken']);
    expect(events.filter(({ type }) => type === 'message_complete').length).toBeLessThanOrEqual(1);
    send('prompt', { body: 'again' });
    await seen('agent_end', 2);
    expect(linesOf(events).slice(-3)).toEqual(['answer ["Hello"]', 'turn_end', 'end end_turn']);
    expect(await replay()).toMatchObject({ sessionId: 's1' });
  });

  test('that streams when an interrupt comes that does not wait: its request is ended, its words are kept', async () => {
    let hungUp: () => void = () => {};
    const closed = new Promise<void>((resolve) => {
      hungUp = resolve;
    });
    const server = await provider((response, n) => {
      beginStream(response);
      if (n > 1) {
        response.end(hello + end);
        return;
      }
      response.on('close', hungUp);
      response.write(hello);
    });
    const { send, seen, events, firstDelta } = await session();
    send('start', { prompt: 'go', model: name, base_url: server.url });
    await firstDelta;
    send('steer', { body: 'the other way', preempt: true });
    await Promise.all([closed, seen('agent_end')]);
    const [first, ...rest] = linesOf(events);
    expect(first).toMatch(/^answer partial \["Hel(lo)?"\]$/);
    expect(rest).toEqual(['turn_end', 'answer ["Hello"]', 'turn_end', 'end end_turn']);
    expect(JSON.stringify(server.bodies[1])).toContain('the other way');
  });
});
