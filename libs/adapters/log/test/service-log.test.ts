import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createServiceLog } from '../src/service-log.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cox-log-'));
});
afterEach(() => rm(folder, { recursive: true }));

const lines = async () => (await readFile(join(folder, 'sessions.log'), 'utf8')).trim().split('\n');

test('a secret stands in no line, in whatever field, message or error it came', async () => {
  const env = { OPENAI_API_KEY: 'sk-"quoted"-secret', EDITOR: 'a-plain-value' };
  const log = createServiceLog('sessions', 'file', folder, env, ['the-nats-token', undefined]);
  log.info({ url: 'nats://the-nats-token@host' }, 'connected with the-nats-token');
  log.warn({ error: new Error('401 for sk-"quoted"-secret') }, 'refused');
  log.error({ nested: { token: 'short' }, editor: 'a-plain-value' }, 'x');
  const text = (await lines()).join('\n');
  expect(text).not.toContain('the-nats-token');
  expect(text).not.toContain('sk-');
  expect(text).not.toContain('"short"');
  expect(text).toContain('a-plain-value');
  expect((await lines()).map((line) => JSON.parse(line).level)).toEqual([30, 40, 50]);
});

test('of a secret that contains another one nothing remains', () => {
  const written: string[] = [];
  const sink = { write: (line: string) => void written.push(line) };
  const env = { PROXY_URL: 'http://proxy:captain-hook@proxy', API_KEY: 'captain-hook-of-the-sea' };
  const log = createServiceLog('sessions', sink, folder, env, ['captain-hook', 'captain-hook-of-the-bus']);
  log.info({ key: env.API_KEY }, 'connected with captain-hook-of-the-bus');
  expect(JSON.parse(written[0] as string)).toMatchObject({ key: '[redacted]', msg: 'connected with [redacted]' });
});

test('the level is COX_LOG_LEVEL', async () => {
  const log = createServiceLog('sessions', 'file', folder, { COX_LOG_LEVEL: 'error' }, []);
  log.warn({}, 'quiet');
  log.error({}, 'loud');
  expect(await lines()).toHaveLength(1);
});

test('a level that there is not is said to be none, and is info', async () => {
  const log = createServiceLog('sessions', 'file', folder, { COX_LOG_LEVEL: 'verbose' }, []);
  log.debug({}, 'quiet');
  log.info({}, 'loud');
  const [first, second, ...more] = (await lines()).map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(first).toMatchObject({ level: 40, given: 'verbose' });
  expect(first?.msg).toContain('COX_LOG_LEVEL is none of trace, debug, info, warn, error, fatal');
  expect([second?.msg, more]).toEqual(['loud', []]);
  createServiceLog('sessions', 'file', folder, { COX_LOG_LEVEL: '' }, []).info({}, 'unset');
  expect(await lines()).toHaveLength(3);
});

test('the lines of services that share a sink name their service', () => {
  const written: string[] = [];
  const sink = { write: (line: string) => void written.push(line) };
  for (const name of ['sessions', 'gateway'])
    createServiceLog(name, sink, folder, {}, ['the-nats-token']).info({}, 'the-nats-token');
  expect(written.map((line) => JSON.parse(line))).toMatchObject([
    { name: 'sessions', msg: '[redacted]' },
    { name: 'gateway', msg: '[redacted]' },
  ]);
});

test.skipIf(process.platform !== 'linux')('a folder that cannot be made ends with why, also below /proc', () => {
  expect(() => createServiceLog('sessions', 'file', '/proc/nowhere/state', {}, [])).toThrow(/ENOENT.*\/proc\/nowhere/);
});

test('folders that are not there are made', async () => {
  const deep = join(folder, 'a/b/c');
  createServiceLog('sessions', 'file', deep, {}, []).info({}, 'x');
  expect(await readFile(join(deep, 'sessions.log'), 'utf8')).toContain('"x"');
});
