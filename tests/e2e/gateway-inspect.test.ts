/** The inspector: somebody else's receiver, on a gateway, over a session at work. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { newToken, writeTokens } from '@coxswain/gateway';
import { type ActorMessage, type InspectionMessage, SessionInspector, type SnapshotMessage } from '@coxswain/session';
import { createWebSocketReceiver, type StatelyInspectionEvent } from '@statelyai/inspect';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { WebSocket } from 'ws';
import { type AnyStateNode, createMachine } from 'xstate';
import { JournalPages } from '../../services/gateway/src/feed/mod.ts';
import { busAndHost } from './kit/fixture.ts';
import { type GatewayUnderTest, startGateway } from './kit/gateway.ts';
import { guidePrograms } from './kit/guide-programs.ts';
import { endOf, journalOf } from './kit/journal.ts';
import { openSocket } from './kit/page-socket.ts';
import { scratchFolder } from './kit/scratch.ts';
import { scripted } from './kit/scripts.ts';
import { until } from './kit/until.ts';
import { waitCommand } from './kit/wait-command.ts';

const fixture = busAndHost();
let gateway: GatewayUnderTest;

beforeAll(async () => {
  gateway = await startGateway(fixture.bus);
});
afterAll(() => gateway?.stop());

const RUN = { rules: [{ tool: 'run_command', action: 'allow' }] };

async function started(turns: Parameters<typeof scripted>[0]): Promise<string> {
  const { body } = await gateway.post('/v1/sessions?wait=accepted', {
    prompt: 'go',
    model: await scripted(turns),
    permissions: RUN,
    root: await scratchFolder('root'),
  });
  return body.session_id as string;
}

async function ended(): Promise<string> {
  const id = await started([{ calls: [{ tool: 'run_command', args: { command: 'true' } }] }, { text: 'done' }]);
  await endOf(fixture.bus, id);
  return id;
}

const inspectPath = (id: string, query = '') => `/v1/sessions/${id}/inspect${query}`;

/** The library's own receiver, which can be given nothing but an address. */
function received(on: GatewayUnderTest, path: string): readonly StatelyInspectionEvent[] {
  const events: StatelyInspectionEvent[] = [];
  const server = `ws://inspector:${on.token}@127.0.0.1:${on.port}${path}`;
  createWebSocketReceiver({ server }).subscribe((event) => void events.push(event));
  return events;
}

const placeOf = (message: InspectionMessage | undefined) => (message as SnapshotMessage | undefined)?.coxswain;
const isLastOf = (n: number) => (message: InspectionMessage) =>
  placeOf(message)?.n === n && placeOf(message)?.last === true;

/** What the journal alone says is to be told. */
async function foldOf(id: string, from = 1): Promise<InspectionMessage[]> {
  const { records } = await journalOf(fixture.bus, id);
  const inspector = new SessionInspector(id, { from });
  return records.flatMap((record) => [...inspector.take(record)]);
}

test('a foreign receiver lists the machine, its states and its events, over a session that is at work', async () => {
  const id = await started([
    { calls: [{ tool: 'run_command', args: { command: waitCommand('inspected') } }] },
    { text: 'done' },
  ]);
  const events = received(gateway, inspectPath(id));
  const running = await until('the call', () =>
    events.find(
      (event) =>
        event.type === '@xstate.snapshot' &&
        (event.snapshot as { value?: { function_execute?: string } }).value?.function_execute === 'running',
    ),
  );
  expect(running).toMatchObject({
    sessionId: id,
    rootId: id,
    event: { type: 'loop_checkpoint', kind: 'pre_tool_dispatch' },
  });

  const [actor] = events;
  if (actor?.type !== '@xstate.actor') throw new Error('no actor came first');
  expect(actor).toMatchObject({ name: 'session', sessionId: id, rootId: id, snapshot: { status: 'active' } });
  // What a viewer does with it: it makes a machine, draws its states and lights the one that is active.
  const machine = createMachine(JSON.parse(String(actor.definition)));
  const states = statesOf(machine.root as AnyStateNode);
  expect(states).toEqual(expect.arrayContaining(['provisioning.resolving', 'function_execute.pre_tool_dispatch']));
  expect(machine.events).toEqual(expect.arrayContaining(['turn_start', 'loop_checkpoint', 'call_ended']));

  await gateway.post(`/v1/sessions/${id}/steer?wait=accepted`, { body: 'look left' });
  await gateway.post(`/v1/sessions/${id}/cancel?wait=accepted`, {});
  const { records } = await endOf(fixture.bus, id);
  const whole = await foldOf(id);
  await until('the end', () => events.length === whole.length);
  // Live or after the fact, it is the same.
  expect(events).toEqual(JSON.parse(JSON.stringify(whole)));
  expect(events.map(({ type }) => type).slice(0, 3)).toEqual(['@xstate.actor', '@xstate.event', '@xstate.snapshot']);
  const sent = events.flatMap((event) => (event.type === '@xstate.event' ? [event.event.type] : []));
  expect(sent).toEqual(records.flatMap((record) => record.events.map(({ type }) => type)));
  for (const event of events) {
    if (event.type !== '@xstate.snapshot') continue;
    const { value } = event.snapshot as unknown as { value: string };
    expect(states).toContain(nameOf(machine.resolveState({ value, context: {} }).value));
  }
});

test('the program of the guide lists the machine, and follows it to its end', async () => {
  const programs = await guidePrograms('inspector.md');
  expect(programs.texts).toHaveLength(1);
  const hold = join(await scratchFolder('hold'), 'go');
  const id = await started([
    { text: 'The first run.' },
    { calls: [{ tool: 'run_command', args: { command: `until [ -e ${hold} ]; do sleep 0.05; done` } }] },
    { text: 'done' },
  ]);
  await endOf(fixture.bus, id);
  await gateway.post(`/v1/sessions/${id}/prompt?wait=accepted`, { body: 'The second run.' });
  await until('the call', async () => ((await gateway.get(`/v1/sessions/${id}`)).body.calls as []).length > 0);
  try {
    const child = await programs.start(1, {
      COX_GATEWAY_URL: gateway.url,
      COX_GATEWAY_TOKEN: gateway.token,
      COX_SESSION: id,
    });
    await child.says('call_started {"function_execute":"running"}');
    await writeFile(hold, '');
    expect(await child.exited, child.stderr).toEqual({ code: 0, signal: null });
    expect(child.stdout).toMatch(/^session provisioning assistant_streaming function_execute /);
    expect(child.stdout.match(/agent_end/g)).toHaveLength(1);
    expect(child.stdout).toMatch(/agent_end "stopped"\n$/);
  } finally {
    await programs.remove();
  }
});

test('after each record the state is the one that the record says', async () => {
  const id = await ended();
  const { records } = await journalOf(fixture.bus, id);
  const { messages, socket } = openSocket<InspectionMessage>(gateway, inspectPath(id));
  await until('all', () => messages.find(isLastOf(records.length)));
  const said = new Map<number, unknown>();
  for (const message of messages)
    if (message.type === '@xstate.snapshot' && message.coxswain.last)
      said.set(message.coxswain.n, message.snapshot.value);
  expect([...said]).toEqual(records.map(({ n, state }) => [n, state]));
  socket.close();
});

test('it begins where it is asked to, and what was is in its first snapshot', async () => {
  const id = await ended();
  const { records } = await journalOf(fixture.bus, id);
  for (const [query, from] of [
    ['?from=3', 3],
    ['?from=newest', records.length],
  ] as const) {
    const { messages, socket } = openSocket<InspectionMessage>(gateway, inspectPath(id, query));
    await until('all', () => messages.find(isLastOf(records.length)));
    expect(messages).toEqual(JSON.parse(JSON.stringify(await foldOf(id, from))));
    expect((messages[0] as ActorMessage).snapshot.value).toEqual(records[from - 2]?.state);
    socket.close();
  }
  const bare = openSocket<InspectionMessage>(gateway, inspectPath(id, '?context=false'));
  await until('all', () => bare.messages.find(isLastOf(records.length)));
  for (const message of bare.messages) if ('snapshot' in message) expect(message.snapshot.context).toEqual({});
  bare.socket.close();
});

test('who asks for what is yet to come sees the machine, and then what comes', async () => {
  const id = await ended();
  const { length } = (await journalOf(fixture.bus, id)).records;
  const { messages, socket } = openSocket<InspectionMessage>(gateway, inspectPath(id, `?from=${length + 1}`));
  await until('the machine', () => messages[0]);
  expect(messages).toMatchObject([{ type: '@xstate.actor', snapshot: { value: 'stopped' }, coxswain: { n: length } }]);
  await gateway.post(`/v1/sessions/${id}/prompt?wait=accepted`, { body: 'again' });
  await until('the next record', () => messages.find(isLastOf(length + 1)));
  expect(messages[1]).toMatchObject({ type: '@xstate.event', event: { type: 'prompt_received' } });
  socket.close();
});

test('who asks for a record behind the next one is told that there is none, and not left to wait', async () => {
  const id = await ended();
  const { length } = (await journalOf(fixture.bus, id)).records;
  const { messages, closed } = openSocket<InspectionMessage>(gateway, inspectPath(id, `?from=${length + 2}`));
  expect(await until('the end', () => closed())).toEqual({ code: 4000, reason: 'record_not_there' });
  expect(messages).toEqual([]);
});

test('who inspects a long session after another does not have it read from its beginning', async () => {
  const calls = Array.from({ length: 20 }, () => ({ tool: 'list_files', args: { path: '.' } }));
  const id = await started([...Array.from({ length: 20 }, () => ({ calls })), { text: 'done' }]);
  const { records } = await endOf(fixture.bus, id);
  const read = vi.spyOn(JournalPages.prototype, 'hold');
  const told = async (from: string) => {
    read.mockClear();
    const { messages, socket } = openSocket<InspectionMessage>(gateway, inspectPath(id, `?from=${from}`));
    await until('all', () => messages.find(isLastOf(records.length)));
    socket.close();
    return { messages, pages: read.mock.calls.map(([request]) => request.from) };
  };
  try {
    const first = await told('newest');
    expect(first.pages[0]).toBe(1);
    expect(first.pages.length, 'more than one page').toBeGreaterThan(1);
    const second = await told('newest');
    expect(second.messages).toEqual(first.messages);
    expect(second.pages).toHaveLength(1);
    expect(second.pages[0]).toBe(first.pages.at(-1));
    // What lies before is told all the same.
    expect((await told('2')).messages).toEqual(JSON.parse(JSON.stringify(await foldOf(id, 2))));
  } finally {
    read.mockRestore();
  }
}, 120_000);

test('what an inspector sends changes nothing', async () => {
  const id = await ended();
  const { messages, socket, closed } = openSocket<InspectionMessage>(gateway, inspectPath(id));
  await until('the machine', () => messages[0]);
  const { length } = (await journalOf(fixture.bus, id)).records;
  socket.send(JSON.stringify({ type: 'command', verb: 'prompt', body: { body: 'more' } }));
  socket.send('@statelyai.connected');
  const other = openSocket<InspectionMessage>(gateway, inspectPath(id));
  await until('all', () => other.messages.find(isLastOf(length)));
  expect(closed()).toBeNull();
  expect((await journalOf(fixture.bus, id)).records).toHaveLength(length);
  socket.close();
  other.socket.close();
});

test('no token, a wrong one, one that may not read, another tenant’s, another site: refused before there is a connection', async () => {
  const id = await ended();
  const tokensFile = join(await scratchFolder('tokens'), 'tokens.json');
  const made = (name: string, tenant: string, scopes: readonly ('read' | 'steer')[]) =>
    newToken({ name, tenant, scopes: [...scopes], created_at: new Date().toISOString() });
  const reader = made('reader', 'default', ['read']);
  const steerer = made('steerer', 'default', ['steer']);
  const stranger = made('stranger', 'elsewhere', ['read']);
  await writeTokens(tokensFile, [reader.stored, steerer.stored, stranger.stored]);
  const own = await startGateway(fixture.bus, { tokensFile });
  try {
    const path = inspectPath(id);
    const ok = openSocket<InspectionMessage>(own, path, { token: reader.token });
    await until('the machine', () => ok.messages[0]);
    ok.socket.close();
    for (const [page, status] of [
      [openSocket<InspectionMessage>(own, path, { token: '' }), 401],
      [openSocket<InspectionMessage>(own, path, { token: 'cox_wrong' }), 401],
      [openSocket<InspectionMessage>(own, path, { token: steerer.token }), 403],
      [openSocket<InspectionMessage>(own, path, { token: stranger.token }), 404],
      [openSocket<InspectionMessage>(own, path, { token: reader.token, origin: 'https://evil.example' }), 403],
      [openSocket<InspectionMessage>(own, inspectPath('nobody'), { token: reader.token }), 404],
      [openSocket<InspectionMessage>(own, inspectPath(id, '?from=0'), { token: reader.token }), 400],
      [openSocket<InspectionMessage>(own, inspectPath(id, '?form=1'), { token: reader.token }), 400],
    ] as const)
      expect(await until('the refusal', () => page.refused())).toBe(status);
    // The name of an address cannot be forged by a page, and a page cannot be by another name.
    const rebound = new WebSocket(`ws://127.0.0.1:${own.port}${path}`, {
      headers: { host: 'evil.example', authorization: `Bearer ${reader.token}` },
    });
    const answer = await new Promise<number | undefined>((resolve) => {
      rebound.on('error', () => undefined);
      rebound.on('unexpected-response', (_request, { statusCode }) => resolve(statusCode));
    });
    expect(answer).toBe(403);
    rebound.terminate();
  } finally {
    await own.stop();
  }
  expect(await gateway.get(inspectPath(id))).toMatchObject({ status: 426, body: { code: 'upgrade_required' } });
});

test('a gateway that stops says so by the close alone', async () => {
  const own = await startGateway(fixture.bus);
  const { messages, closed } = openSocket<InspectionMessage>(own, inspectPath(await ended()));
  await until('the machine', () => messages[0]);
  await own.stop();
  expect(await until('the end', () => closed())).toEqual({ code: 1001, reason: 'gateway_stopping' });
  for (const { type } of messages) expect(type).toMatch(/^@xstate\./);
});

test('a token that is taken back ends it', async () => {
  const tokensFile = join(await scratchFolder('tokens'), 'tokens.json');
  const fields = { name: 'guest', tenant: 'default', created_at: new Date().toISOString() };
  const { token, stored } = newToken({ ...fields, scopes: ['read'] });
  const keeper = newToken({ ...fields, name: 'keeper', scopes: ['read'] });
  await writeTokens(tokensFile, [stored, keeper.stored]);
  const own = await startGateway(fixture.bus, { tokensFile, times: { recheckMs: 500 } });
  try {
    const { messages, closed } = openSocket<InspectionMessage>(own, inspectPath(await ended()), { token });
    await until('the machine', () => messages[0]);
    await writeTokens(tokensFile, [keeper.stored]);
    expect(await until('the end', () => closed())).toEqual({ code: 4000, reason: 'unauthorized' });
  } finally {
    await own.stop();
  }
});

test('who never reads is cut off, and not buffered', async () => {
  const own = await startGateway(fixture.bus, { times: { stallMs: 1_000 } });
  try {
    const id = await started([
      // Many events, each with a snapshot of a context that has much in it.
      ...Array.from({ length: 40 }, () => ({
        calls: Array.from({ length: 40 }, () => ({ tool: 'list_files', args: { path: '.' } })),
      })),
      { text: 'done' },
    ]);
    await endOf(fixture.bus, id);
    const bytes = (await foldOf(id)).reduce((sum, message) => sum + JSON.stringify(message).length, 0);
    expect(bytes, 'more than connections keep on their way').toBeGreaterThan(20 * 1024 * 1024);
    const { socket, messages, closed } = openSocket<InspectionMessage>(own, inspectPath(id));
    await until('the machine', () => messages[0]);
    socket.pause();
    await until('the end of who does not read', async () => {
      const metrics = await (await own.raw('/metrics')).text();
      return /watchers_cut_off_total\{kind="inspector"\} 1/.test(metrics);
    });
    socket.resume();
    await until('the end of the connection', () => closed());
    await until('the place that it leaves', async () =>
      /coxswain_gateway_watchers\{kind="inspector"\} 0/.test(await (await own.raw('/metrics')).text()),
    );
  } finally {
    await own.stop();
  }
});

function statesOf(node: AnyStateNode): string[] {
  return Object.values(node.states as Record<string, AnyStateNode>).flatMap((child) => [
    child.path.join('.'),
    ...statesOf(child),
  ]);
}

function nameOf(value: unknown): string {
  return typeof value === 'string' ? value : (Object.entries(value as object)[0] ?? []).join('.');
}
