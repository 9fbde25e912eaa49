/** A client of gateways that come and go: connections that break in the middle, gateways that are killed, several behind one address. */
import { connect as connectSocket, createServer, type Server, type Socket } from 'node:net';
import { connect, type HttpClient, hasEnded, newCommandId } from '@coxswain/client';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { busAndHost } from './kit/fixture.ts';
import { type GatewayUnderTest, startGateway } from './kit/gateway.ts';
import { scratchFolder } from './kit/scratch.ts';
import { scripted } from './kit/scripts.ts';
import { until } from './kit/until.ts';

vi.setConfig({ testTimeout: 180_000 });

const fixture = busAndHost();
let gateways: GatewayUnderTest[];
let front: Front;
let client: HttpClient;

/** An address before gateways, whose connections break when a test says so. */
interface Front {
  readonly url: string;
  /** Where new connections go, in turn; nowhere where there is none. */
  targets: number[];
  /** How many connections were made. */
  made: number;
  /** A connection breaks once so many bytes of answers have come through it, wherever that is. */
  answerBytesMax: number;
  breakAll(): void;
  close(): Promise<void>;
}

async function startFront(): Promise<Front> {
  const open = new Set<Socket>();
  const server: Server = createServer((near) => {
    const port = state.targets[state.made++ % Math.max(1, state.targets.length)];
    if (port === undefined) {
      near.destroy();
      return;
    }
    const far = connectSocket(port, '127.0.0.1');
    near.pipe(far);
    let answered = 0;
    far.on('data', (bytes: Buffer) => {
      near.write(bytes.subarray(0, state.answerBytesMax - answered));
      answered += bytes.length;
      if (answered <= state.answerBytesMax) return;
      near.end();
      far.destroy();
    });
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(one);
      one.once('error', () => other.destroy());
      one.once('close', () => {
        open.delete(one);
        other.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  const state: Front = {
    url: `http://127.0.0.1:${port}`,
    targets: [],
    made: 0,
    answerBytesMax: Number.POSITIVE_INFINITY,
    breakAll: () => open.forEach((socket) => void socket.destroy()),
    async close() {
      state.breakAll();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return state;
}

beforeAll(async () => {
  front = await startFront();
  const publicUrls = [front.url];
  const first = await startGateway(fixture.bus, { publicUrls });
  gateways = [first];
  front.targets = [first.port];
  client = await connect({ gateway: front.url, token: first.token });
});
afterAll(async () => {
  await client?.close();
  await front?.close();
  for (const gateway of gateways ?? []) await gateway.stop();
});

const MANY_TURNS = 25;
/** Longer than any record of these sessions: each connection brings one at least. */
const BREAKS_EVERY_BYTES = 32 * 1024;
async function busy() {
  const turns = Array.from({ length: MANY_TURNS }, (_, i) => ({
    text: `turn ${i} ${'and so on '.repeat(200)}`,
    calls: [{ tool: 'run_command', args: { command: 'sleep 0.05' } }],
  }));
  const permissions = { rules: [{ tool: 'run_command', action: 'allow' as const }] };
  const model = await scripted([...turns, { text: 'done' }, { text: 'and more' }]);
  return client.startSession(
    { prompt: 'go', model, permissions, root: await scratchFolder('root') },
    { wait: 'accepted' },
  );
}

test('records come once and in order, however often the connection breaks in the middle', async () => {
  const session = await busy();
  const before = front.made;
  front.answerBytesMax = BREAKS_EVERY_BYTES;
  const numbers: number[] = [];
  let bytes = 0;
  for await (const record of session.records()) {
    numbers.push(record.n);
    bytes += JSON.stringify(record).length;
    if (hasEnded(record.state)) break;
  }
  front.answerBytesMax = Number.POSITIVE_INFINITY;
  expect(numbers).toEqual(Array.from({ length: await session.lastNumber() }, (_, i) => i + 1));
  expect(bytes).toBeGreaterThan(4 * BREAKS_EVERY_BYTES);
  expect(front.made - before).toBeGreaterThanOrEqual(Math.floor(bytes / BREAKS_EVERY_BYTES));
});

test('a gateway that ends and another that comes in its place: whoever follows goes on, whoever sends is heard once', async () => {
  const session = await busy();
  const seen: number[] = [];
  const following = (async () => {
    for await (const { record } of session.records({ deltas: true })) {
      if (record) seen.push(record.n);
      if (record && hasEnded(record.state)) return;
    }
  })();
  await until('some records', () => seen.length > 5);
  // Nobody is there for a while: neither whoever follows nor whoever sends gives up.
  front.targets = [];
  front.breakAll();
  const id = newCommandId();
  const sent = session.followup('and then?', { id, wait: 'accepted' });
  const refused = front.made;
  await until('some attempts', () => front.made > refused + 2);
  const [first] = gateways as [GatewayUnderTest];
  front.targets = [first.port];
  expect(await sent).toMatchObject({ commandId: id, receipt: { stage: 'accepted' } });
  await following;
  expect(seen).toEqual(seen.map((_, i) => i + 1));
  const received: unknown[] = [];
  for await (const { record } of session.journal())
    received.push(...record.events.filter(({ type }) => type === 'followup_received'));
  expect(received).toHaveLength(1);
});

test('a gateway that stops says so, and is come back to', async () => {
  const model = await scripted([{ text: 'one two', chunk_ms: 86_400_000 }]);
  const another = await startFront();
  const behind = await startGateway(fixture.bus, { publicUrls: [another.url] });
  another.targets = [behind.port];
  // Each gateway of these tests has a token of its own start.
  let tokenNow = behind.token;
  const follower = await connect({ gateway: another.url, token: () => tokenNow });
  const session = await client.startSession({ prompt: 'go', model }, { wait: 'accepted' });
  const numbers: number[] = [];
  const following = (async () => {
    for await (const { n, state } of follower.session(session.id).records()) {
      numbers.push(n);
      if (hasEnded(state)) return;
    }
  })();
  await until('a record', () => numbers.length > 0);
  await behind.stop();
  const next = await startGateway(fixture.bus, { publicUrls: [another.url] });
  tokenNow = next.token;
  another.targets = [next.port];
  await session.cancel(undefined, { wait: 'accepted' });
  await following;
  expect(numbers).toEqual(numbers.map((_, i) => i + 1));
  await follower.close();
  await another.close();
  await next.stop();
});

test('whoever nobody answers is told within bounds, with a code', async () => {
  const gone = { gateway: 'http://127.0.0.1:9', token: 'x', connectTimeoutMs: 300 };
  await expect(connect(gone)).rejects.toMatchObject({ name: 'GatewayUnreachableError', code: 'gateway_unreachable' });
  await expect(connect({ servers: 'nats://127.0.0.1:9' })).rejects.toMatchObject({
    code: 'nats_unreachable',
    message: 'no NATS server accepts this client at 127.0.0.1:9: connection refused',
  });
  const stranger = connect({ gateway: front.url, token: 'cox_wrong' });
  await expect(stranger).rejects.toMatchObject({ name: 'ReadRefusedError', code: 'unauthorized' });
  await expect(connect({ gateway: 'ftp://host', token: 'x' })).rejects.toMatchObject({ code: 'invalid_option' });
});
