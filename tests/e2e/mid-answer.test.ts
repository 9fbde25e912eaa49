/** A reader that joins in the middle of an answer, on every surface: it is shown the answer so far, and then the rest as it streams. */
import { EventType, HttpAgent } from '@ag-ui/client';
import { methods } from '@agentclientprotocol/sdk';
import { type Client, connect, newSessionId, type Session } from '@coxswain/client';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { editorsOn } from './kit/acp-editors.ts';
import { NO_BROWSER } from './kit/browser.ts';
import { startChatProvider } from './kit/chat-provider.ts';
import { type ConnectedClient, connectOver, TRANSPORTS } from './kit/client-transports.ts';
import { consoleOfFile } from './kit/console-page.ts';
import { isEnd, readEvents } from './kit/event-stream.ts';
import { busAndHost } from './kit/fixture.ts';
import { type GatewayUnderTest, startGateway } from './kit/gateway.ts';
import { BROWSER } from './kit/headless-page.ts';
import { openSocket } from './kit/page-socket.ts';
import { scratchFolder } from './kit/scratch.ts';
import { atTerminal, hasTerminal } from './kit/terminal.ts';
import { until } from './kit/until.ts';

const SO_FAR = 'One, two, ';
const REST = 'three.';
const WHOLE = SO_FAR + REST;

const fixture = busAndHost();
const editors = editorsOn(() => fixture.bus);
let client: Client;
let gateway: GatewayUnderTest;

beforeAll(async () => {
  client = await connect(fixture.bus.login);
  gateway = await startGateway(fixture.bus);
});
afterAll(async () => {
  await gateway?.stop();
  await client?.close();
});

/** A model that stops in the middle of its answer. @returns how to start a session with it, and what lets the model go on. */
async function stopping() {
  let goOn: () => void = () => undefined;
  const held = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  const provider = await startChatProvider(() => ({ text: inTwoParts(held) }));
  onTestFinished(() => {
    goOn();
    return provider.stop();
  });
  return { start: { prompt: 'Count.', model: 'openai-compatible/x', baseUrl: provider.url }, goOn };
}

async function* inTwoParts(held: Promise<void>) {
  yield SO_FAR;
  await held;
  yield REST;
}

/** A session in the middle of its answer, seen by a reader of its own. */
async function midAnswer(): Promise<{ readonly id: string; readonly goOn: () => void }> {
  const { start, goOn } = await stopping();
  const session = await client.startSession(start, { wait: 'accepted' });
  await textUntil(session, SO_FAR);
  return { id: session.id, goOn };
}

async function textUntil(session: Session, text: string): Promise<void> {
  let shown = '';
  for await (const piece of session.textStream()) {
    shown += piece;
    if (shown === text) return;
  }
  throw new Error(`the run ended with ${JSON.stringify(shown)}`);
}

describe.each(TRANSPORTS)('over %s', (transport) => {
  let connected: ConnectedClient;
  beforeAll(async () => {
    connected = await connectOver(transport, fixture.bus);
  });
  afterAll(() => connected?.close());

  /** Reads a session's text, lets the model go on once the reader has the answer so far, and waits for the end of the run. */
  async function readThrough(session: Session, goOn: () => void): Promise<string[]> {
    const pieces: string[] = [];
    for await (const piece of session.textStream()) {
      pieces.push(piece);
      if (pieces.join('') === SO_FAR) goOn();
    }
    return pieces;
  }

  test('a reader that joins in the middle has the answer so far, then the rest, and its stream ends with the run', async () => {
    const { id, goOn } = await midAnswer();
    expect((await readThrough(connected.client.session(id), goOn)).join('')).toBe(WHOLE);
  });

  test('a client that starts a session and then reads it misses nothing of its first answer', async () => {
    const { start, goOn } = await stopping();
    const session = await connected.client.startSession(start, { wait: 'accepted' });
    expect((await readThrough(session, goOn)).join('')).toBe(WHOLE);
  });

  test('a reader may come before its session', async () => {
    const { start, goOn } = await stopping();
    const id = newSessionId();
    const reading = readThrough(connected.client.session(id), goOn);
    await client.startSession(start, { sessionId: id, wait: 'accepted' });
    expect((await reading).join('')).toBe(WHOLE);
  });
});

test('server-sent events', async () => {
  const { id, goOn } = await midAnswer();
  let text = '';
  await readEvents(gateway, `/v1/sessions/${id}/events?from=newest`, undefined, (event) => {
    if (event.event === 'delta') text += (JSON.parse(event.data) as { text: string }).text;
    if (text === SO_FAR) goOn();
    return isEnd(event);
  });
  expect(text).toBe(WHOLE);
});

test('a WebSocket', async () => {
  const { id, goOn } = await midAnswer();
  type Message = { readonly type: string; readonly delta?: { readonly text: string } };
  const page = openSocket<Message>(gateway, `/v1/sessions/${id}/ws`);
  const text = () => page.messages.map(({ delta }) => delta?.text ?? '').join('');
  await until('the answer so far', () => text() === SO_FAR);
  goOn();
  await until('the rest', () => text() === WHOLE);
  page.socket.close();
});

test.skipIf(!hasTerminal)('cox session watch at a terminal', async () => {
  const { id, goOn } = await midAnswer();
  const terminal = atTerminal(['session', 'watch', id], await scratchFolder('watch'), {
    NATS_URL: fixture.bus.natsUrl,
  });
  onTestFinished(() => void terminal.kill());
  let screen = '';
  terminal.stdout.on('data', (chunk: Buffer) => {
    screen += chunk.toString('utf8');
  });
  await until(`the answer so far on ${screen}`, () => screen.includes(SO_FAR.trim()));
  goOn();
  await until('the rest', () => screen.includes(REST));
});

test('an editor that loads the session, over ACP', async () => {
  const { id, goOn } = await midAnswer();
  const editor = await editors.with([]);
  const cwd = await scratchFolder('acp');
  await editor.agent.request(methods.agent.session.load, { sessionId: id, cwd, mcpServers: [] });
  await editor.shows('the answer so far', () => editor.text() === SO_FAR);
  goOn();
  await editor.shows('the rest', () => editor.text() === WHOLE);
});

test('a client of AG-UI', async () => {
  const { id, goOn } = await midAnswer();
  const headers = { authorization: `Bearer ${gateway.token}` };
  const agent = new HttpAgent({ url: `${gateway.url}/v1/agui`, headers, threadId: id });
  let text = '';
  agent.subscribe({
    onEvent({ event }) {
      if (event.type === EventType.TEXT_MESSAGE_CONTENT) text += (event as unknown as { delta: string }).delta;
      if (text === SO_FAR) goOn();
    },
  });
  await agent.runAgent();
  expect(text).toBe(WHOLE);
  expect(agent.messages.at(-1)).toMatchObject({ role: 'assistant', content: WHOLE });
});

if (BROWSER === null) {
  test.skip(`the console (${NO_BROWSER})`, () => undefined);
} else {
  describe('the console', inBrowser);
}

function inBrowser(): void {
  const served = consoleOfFile(fixture);

  test('shows the answer so far, and the rest as it streams', async () => {
    const { id, goOn } = await midAnswer();
    const page = await served.open();
    await page.goto(`${served.gateway.url}/#/sessions/${id}`);
    const answer = page.locator('article.answer');
    await answer.getByText(SO_FAR.trim()).waitFor();
    expect(await answer.getAttribute('aria-busy')).toBe('true');
    goOn();
    await answer.getByText(WHOLE).waitFor();
    await page.context().close();
  });
}
