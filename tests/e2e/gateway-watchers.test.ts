/**
 * What watchers may do to a gateway: watchers that lose their connections see every record once and in order, those that
 * never read are cut off, and the process holds no more memory than before.
 */
import { connect as connectSocket } from 'node:net';
import { join } from 'node:path';
import { newToken, writeTokens } from '@coxswain/gateway';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Child, GATEWAY_MAIN } from './kit/child.ts';
import { isEnd, readEvents, readInPieces } from './kit/event-stream.ts';
import { busAndHost } from './kit/fixture.ts';
import { clientOf } from './kit/gateway.ts';
import { scratchFolder } from './kit/scratch.ts';
import { manyTurns, type ScriptTurn, scripted } from './kit/scripts.ts';
import { until } from './kit/until.ts';

/** The full size reads and writes half a gigabyte. */
const IS_FULL_SIZE = process.env.COX_NIGHTLY === '1';
const WATCHERS = IS_FULL_SIZE ? 200 : 20;
const DISCONNECTS = IS_FULL_SIZE ? 20 : 5;
const NEVER_READING = IS_FULL_SIZE ? 40 : 4;
const CUT_OFF_WITHIN_MS = 240_000;
/** Requests of one token have a rate: people have one each. */
const PEOPLE = 25;
const MIB = 1024 * 1024;

const fixture = busAndHost();
const tokens: string[] = [];
let gateway: Child;
let port: number;

beforeAll(async () => {
  const tokensFile = join(await scratchFolder('tokens'), 'tokens.json');
  const made = Array.from({ length: PEOPLE }, (_, i) =>
    newToken({
      name: `watcher-${i}`,
      tenant: 'default',
      scopes: ['admin'],
      created_at: new Date().toISOString(),
    }),
  );
  tokens.push(...made.map(({ token }) => token));
  await writeTokens(
    tokensFile,
    made.map(({ stored }) => stored),
  );
  const { natsUrl, stateDir } = fixture.bus;
  const options = {
    nats: { servers: natsUrl },
    stateDir,
    tokensFile,
    times: { stallMs: 2_000 },
    feedBounds: { lingersMs: 100 },
  };
  gateway = new Child(GATEWAY_MAIN, [], {
    env: { GATEWAY_OPTIONS: JSON.stringify(options) },
  });
  await gateway.says('"type":"ready"');
  port = gateway.json[0]?.port as number;
}, 120_000);
afterAll(async () => {
  gateway?.process.stdin?.end();
  await gateway?.exited;
});

const as = (person: number) => clientOf(`http://127.0.0.1:${port}`, tokens[person % PEOPLE] as string);

/** What the gateway holds when it has thrown away what it can. */
async function held(): Promise<number> {
  const answers = () => gateway.json.filter(({ type }) => type === 'held');
  const known = answers().length;
  gateway.process.stdin?.write('held?\n');
  await until('an answer of the gateway', () => answers().length > known);
  return answers().at(-1)?.bytes as number;
}

async function started(turns: readonly ScriptTurn[]): Promise<string> {
  const { status, body } = await as(0).post('/v1/sessions?wait=accepted', {
    prompt: 'go',
    model: await scripted(turns),
    max_turns: 500,
    permissions: { rules: [{ tool: 'run_command', action: 'allow' }] },
    root: await scratchFolder('root'),
  });
  expect(status, JSON.stringify(body)).toBe(202);
  return body.session_id as string;
}

async function numbersOf(id: string): Promise<number[]> {
  const { body } = await as(0).get(`/v1/sessions/${id}/events?limit=1000`);
  return (body.records as { n: number }[]).map(({ n }) => n);
}

/** Everybody follows one session to its end. @returns what each has seen. */
async function watchTogether(turns: number, watchers: number, disconnects: number) {
  const id = await started(manyTurns(turns));
  const path = `/v1/sessions/${id}/events`;
  const all = await Promise.all(
    Array.from({ length: watchers }, (_, person) => readInPieces(() => as(person), path, disconnects)),
  );
  return { all, expected: await numbersOf(id) };
}

async function metricOf(name: string): Promise<number> {
  const metrics = await (await as(0).raw('/metrics')).text();
  return Number(new RegExp(`^coxswain_gateway_${name}\\{kind="sse"\\} (\\d+)$`, 'm').exec(metrics)?.[1] ?? 0);
}
const watching = () => metricOf('watchers');

test(`${WATCHERS} watchers, each disconnected ${DISCONNECTS} times: every record once and in order, and nothing is kept of them`, async () => {
  // What is compiled and kept for good at the first use is no leak.
  await watchTogether(10, WATCHERS, 2);
  await until('all to have left', async () => (await watching()) === 0);
  const before = await held();
  const { all, expected } = await watchTogether(60, WATCHERS, DISCONNECTS);
  expect(expected.length).toBeGreaterThan(120);
  for (const numbers of all) expect(numbers).toEqual(expected);
  await until('all to have left', async () => (await watching()) === 0);
  // At full size, a kilobyte kept of each of four thousand connections exceeds this.
  await until('the gateway to hold what it held before', async () => (await held()) < before + 4 * MIB);
}, 240_000);

test(`${NEVER_READING} that never read are cut off, and nothing gathers for them meanwhile`, async () => {
  const long = { text: 'x'.repeat(200_000), calls: [{ tool: 'list_files', args: { path: '.' } }] };
  const id = await started([...Array.from({ length: 70 }, () => long), { text: 'done' }]);
  const path = `/v1/sessions/${id}/events?deltas=false`;
  await readEvents(as(0), path, undefined, isEnd);
  await until('nobody to watch', async () => (await watching()) === 0);
  const before = await held();
  const sockets = Array.from({ length: NEVER_READING }, (_, person) => {
    const socket = connectSocket({ port, host: '127.0.0.1' });
    socket.on('error', () => undefined);
    socket.pause();
    const { token } = as(person);
    socket.write(
      `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\nauthorization: Bearer ${token}\r\naccept: text/event-stream\r\n\r\n`,
    );
    return socket;
  });
  try {
    // The last answer before the first is cut off: pages are no longer read then, which takes memory for a moment.
    let whileTheyWait = Number.POSITIVE_INFINITY;
    const areCutOff = async () => {
      const now = await held();
      const cutOff = await metricOf('watchers_cut_off_total');
      if (cutOff === 0) whileTheyWait = now;
      return cutOff === NEVER_READING;
    };
    await until('the end of those who do not read', areCutOff, CUT_OFF_WITHIN_MS);
    await until('the gateway to hold what it held before', async () => (await held()) < before + 4 * MIB);
    // One record per watcher, and the feed. All records are 14 MiB per watcher, less the kernel's buffers.
    expect((whileTheyWait - (await held())) / MIB).toBeLessThan(4 * NEVER_READING);
  } finally {
    for (const socket of sockets) socket.destroy();
  }
}, 480_000);
