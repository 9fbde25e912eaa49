/**
 * Two gateways behind one address, killed in turn, and clients that know nothing of it: an event source that we did not write,
 * which comes back by itself, and somebody who sends again what was not answered.
 */
import { EventSource } from 'eventsource';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { busAndHost } from './kit/fixture.ts';
import { clientOf } from './kit/gateway.ts';
import { type GatewayProcess, type MadeTokens, makeTokens, serveGateway } from './kit/gateway-process.ts';
import { type OneAddress, oneAddress } from './kit/one-address.ts';
import { scratchFolder } from './kit/scratch.ts';
import { type ScriptTurn, scripted } from './kit/scripts.ts';
import { until } from './kit/until.ts';

const EVENT_SOURCES = 8;
const COMMANDS = 40;

const fixture = busAndHost();
let tokens: MadeTokens;
let address: OneAddress;
const gateways: GatewayProcess[] = [];

beforeAll(async () => {
  tokens = await makeTokens(['alice'], 'admin');
  address = await oneAddress();
  for (let i = 0; i < 2; i++) gateways.push(await serve(0));
  address.behind.push(...gateways.map(({ port }) => port));
}, 120_000);
afterAll(async () => {
  await Promise.all(gateways.map(({ child }) => child.kill()));
  await address?.stop();
});

const url = () => `http://127.0.0.1:${address.port}`;
const alice = () => clientOf(url(), tokens.of.alice as string);
const serve = (port: number) =>
  serveGateway(fixture.bus, port, ['--tokens', tokens.file, '--public-url', `http://127.0.0.1:${address.port}`]);

async function started(turns: readonly ScriptTurn[]): Promise<string> {
  const { status, body } = await alice().post('/v1/sessions?wait=accepted', {
    prompt: 'go',
    model: await scripted(turns),
    max_turns: 500,
    permissions: { rules: [{ tool: 'run_command', action: 'allow' }] },
    root: await scratchFolder('root'),
  });
  expect(status, JSON.stringify(body)).toBe(202);
  return body.session_id as string;
}

interface Seen {
  readonly source: EventSource;
  readonly numbers: number[];
  opened: number;
  ended: boolean;
}

/** Follows a session by somebody else's event source: it comes back by itself, and says what it has seen. */
function follow(id: string): Seen {
  const source = new EventSource(`${url()}/v1/sessions/${id}/events`, {
    fetch: (input, init) =>
      fetch(input, { ...init, headers: { ...init.headers, authorization: `Bearer ${tokens.of.alice}` } }),
  });
  const seen: Seen = { source, numbers: [], opened: 0, ended: false };
  source.addEventListener('open', () => seen.opened++);
  source.addEventListener('record', ({ data, lastEventId }) => {
    const { n, state } = JSON.parse(data) as { n: number; state: unknown };
    expect(String(n)).toBe(lastEventId);
    seen.numbers.push(n);
    // The session ends once: it has one run.
    if (state === 'stopped') seen.ended = true;
  });
  return seen;
}

/** Sends a command under a key until it is answered, as anybody does whose connection is lost. */
async function sendUntilAnswered(id: string, body: string): Promise<void> {
  await until(`an answer to ${body}`, async () => {
    try {
      const answer = await alice().post(
        `/v1/sessions/${id}/followup?wait=accepted`,
        { body },
        { 'idempotency-key': body },
      );
      return answer.status === 202;
    } catch {
      // The gateway was killed while it was asked.
      return false;
    }
  });
}

test('both are killed -9 in turn and started again: each record is seen once, each command is taken once', async () => {
  // It is cancelled when all is sent: it works until then, however long that takes.
  const id = await started([
    ...Array.from({ length: 450 }, () => ({ calls: [{ tool: 'run_command', args: { command: 'sleep 0.2' } }] })),
    { text: 'done' },
  ]);
  const all = Array.from({ length: EVENT_SOURCES }, () => follow(id));
  try {
    const killing = (async () => {
      for (const turn of [0, 1, 0, 1]) {
        const from = Math.min(...all.map(({ numbers }) => numbers.length));
        await until('everybody to see something', () => all.every(({ numbers }) => numbers.length > from + 3));
        const { child, port } = gateways[turn] as GatewayProcess;
        await child.kill();
        // Whoever was on it comes back to the other before it is there again.
        gateways[turn] = await serve(port);
      }
    })();
    const sent = (async () => {
      for (let i = 0; i < COMMANDS; i++) await sendUntilAnswered(id, `command-${i}`);
    })();
    await Promise.all([killing, sent]);
    expect(await alice().post(`/v1/sessions/${id}/cancel?wait=accepted`)).toMatchObject({ status: 202 });
    await until('everybody to see the end', () => all.every(({ ended }) => ended));
    const { body } = await alice().get(`/v1/sessions/${id}/events?limit=1000`);
    const records = body.records as { n: number; events: { type: string; body?: string }[] }[];
    expect(body.more).toBe(false);
    for (const { numbers } of all) expect(numbers).toEqual(records.map(({ n }) => n));
    // Some of them have had to come back.
    expect(all.reduce((sum, { opened }) => sum + opened, 0)).toBeGreaterThan(EVENT_SOURCES);
    const taken = records
      .flatMap(({ events }) => events)
      .flatMap((event) => (event.type === 'followup_received' ? [event.body] : []));
    expect(taken).toEqual(Array.from({ length: COMMANDS }, (_, i) => `command-${i}`));
  } finally {
    for (const { source } of all) source.close();
  }
}, 240_000);

test('one that is told to stop hands its watchers over without a word lost', async () => {
  const id = await started([
    ...Array.from({ length: 20 }, () => ({ calls: [{ tool: 'run_command', args: { command: 'sleep 0.2' } }] })),
    { text: 'done' },
  ]);
  const all = Array.from({ length: EVENT_SOURCES }, () => follow(id));
  try {
    await until('everybody to see something', () => all.every(({ numbers }) => numbers.length > 2));
    const { child, port } = gateways[0] as GatewayProcess;
    expect(await child.terminate()).toEqual({ code: 0, signal: null });
    gateways[0] = await serve(port);
    await until('everybody to see the end', () => all.every(({ ended }) => ended));
    for (const { numbers } of all) expect(numbers).toEqual(numbers.map((_, i) => i + 1));
  } finally {
    for (const { source } of all) source.close();
  }
}, 120_000);
