import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import {
  gatewayOf,
  isOwnServer,
  keepAccess,
  keptAccessFile,
  readKeptAccess,
  startOnPort,
} from '../src/instance/mod.ts';

const NATS = { token: 'of-this-test-alone', port: 41_222 };
const GATEWAY = { token: 'cox_full-of-this-test', read_token: 'cox_read-of-this-test', port: 41_223 };

async function stateFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'cox-access-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  return folder;
}

const silent = (problem: string) => expect.unreachable(problem);

test('the first start finds no access; later starts find each stored part', async () => {
  const folder = await stateFolder();
  expect(await readKeptAccess(folder, silent)).toEqual({});
  expect(await readKeptAccess(join(folder, 'missing'), silent)).toEqual({});
  const first = await keepAccess(folder, {}, { nats: NATS });
  await keepAccess(folder, first, { gateway: GATEWAY });
  expect(await readKeptAccess(folder, silent)).toEqual({ nats: NATS, gateway: GATEWAY });
});

test('the access of a gateway on the bus of the user is for that bus only', () => {
  const kept = { gateway: GATEWAY, bus_gateway: { ...GATEWAY, token: 'cox_of-that-bus-alone', bus: 'nats://a:4222' } };
  expect(gatewayOf(kept, null)).toBe(GATEWAY);
  expect(gatewayOf(kept, 'nats://a:4222')?.token).toBe('cox_of-that-bus-alone');
  expect(gatewayOf(kept, 'nats://b:4222')).toBeUndefined();
});

test.each([
  [`nats://${NATS.token}@127.0.0.1:${NATS.port}`, true],
  [`nats://${NATS.token}@127.0.0.1:4222`, false],
  [`nats://other@127.0.0.1:${NATS.port}`, false],
  [`nats://${NATS.token}@127.0.0.1:${NATS.port},nats://${NATS.token}@b:4222`, false],
])('%s is recognised as the server of the state folder: %s', (address, isOwn) => {
  expect(isOwnServer({ nats: NATS }, address)).toBe(isOwn);
  expect(isOwnServer({}, address)).toBe(false);
});

test.skipIf(process.platform === 'win32')(
  'the file is for this user only; a file that others can read is not used',
  async () => {
    const folder = await stateFolder();
    await keepAccess(folder, {}, { nats: NATS });
    const path = keptAccessFile(folder);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    await rm(path);
    await writeFile(path, JSON.stringify({ nats: NATS }), { mode: 0o644 });
    const said: string[] = [];
    expect(await readKeptAccess(folder, (problem) => said.push(problem))).toEqual({});
    expect(said).toEqual([`${path} can be read by other users; this start uses new tokens and ports\n`]);
  },
);

test.each([
  ['no JSON', '{', 'is not JSON'],
  ['an unknown field', JSON.stringify({ nats: NATS, more: 1 }), 'more'],
  ['a port out of range', JSON.stringify({ nats: { ...NATS, port: 0 } }), 'nats.port'],
  ['an invalid token', JSON.stringify({ nats: { ...NATS, token: 'short' } }), 'nats.token'],
])('a damaged file with %s is reported and not used', async (_what, text, named) => {
  const folder = await stateFolder();
  await writeFile(keptAccessFile(folder), text, { mode: 0o600 });
  const said: string[] = [];
  expect(await readKeptAccess(folder, (problem) => said.push(problem))).toEqual({});
  expect(said.join()).toContain(named);
  expect(await readFile(keptAccessFile(folder), 'utf8')).toBe(text);
});

/** A start that finds these ports taken, and the ports that were tried and reported. */
function starting(wanted: { given?: number; last?: number }, taken: (port: number) => boolean) {
  const tried: number[] = [];
  const reported: number[] = [];
  const { given, last } = wanted;
  const started = startOnPort({ given, last, onTaken: (port) => reported.push(port) }, async (port) => {
    tried.push(port);
    if (taken(port)) throw Object.assign(new Error('taken'), { code: 'port_in_use' });
    return port;
  });
  return { started, tried, reported };
}

test('a given port is the only one that is tried', async () => {
  expect(await starting({ given: 4_222, last: 21_000 }, () => false).started).toBe(4_222);
  const { started, tried, reported } = starting({ given: 4_222, last: 21_000 }, () => true);
  await expect(started).rejects.toMatchObject({ code: 'port_in_use' });
  expect([tried, reported]).toEqual([[4_222], []]);
});

test('without a given port, the port of the last start is used; if it is taken, this is reported and a new one is used', async () => {
  expect(await starting({ last: 21_000 }, () => false).started).toBe(21_000);
  const { started, reported } = starting({ last: 32_800 }, (port) => port === 32_800);
  const port = await started;
  expect(port).toBeGreaterThanOrEqual(20_000);
  expect(port).toBeLessThan(32_768);
  expect(reported).toEqual([32_800]);
});

test('a few new ports are tried, then any free port; other failures end the start', async () => {
  const all = starting({}, (port) => port !== 0);
  expect(await all.started).toBe(0);
  expect([all.tried.length, all.reported]).toEqual([5, []]);
  const broken = startOnPort({ given: undefined, last: undefined, onTaken: () => undefined }, () =>
    Promise.reject(new Error('broken')),
  );
  await expect(broken).rejects.toThrow('broken');
});
