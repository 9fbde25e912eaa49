/** The console's files, and their headers. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ConsoleFile, readConsole } from '../src/console/mod.ts';
import { type AppWithoutBus, appWithoutBus } from './app-without-bus.ts';

const HOST = { host: 'gateway.test' };
const SCRIPT = `export const page = '${'long enough to be packed '.repeat(20)}';`;
let folder: string;
let files: readonly ConsoleFile[];
let gateway: AppWithoutBus;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'console-'));
  await mkdir(join(folder, 'assets'));
  await writeFile(join(folder, 'index.html'), '<!doctype html><title>Coxswain</title>');
  await writeFile(join(folder, 'assets/index-abc.js'), SCRIPT);
  await writeFile(join(folder, 'notes.txt'), 'not the page’s');
  files = await readConsole(folder);
  gateway = await appWithoutBus({}, {}, files);
});
afterAll(async () => {
  await gateway?.app.close();
  await rm(folder, { recursive: true });
});

const get = (url: string, headers: Record<string, string> = {}) =>
  gateway.app.inject({ method: 'GET', url, headers: { ...HOST, ...headers } });

test('the page and its assets need no token; other files of the folder are not served', async () => {
  expect(await get('/')).toMatchObject({ statusCode: 200, body: '<!doctype html><title>Coxswain</title>' });
  expect(await get('/assets/index-abc.js')).toMatchObject({ statusCode: 200, body: SCRIPT });
  expect((await get('/notes.txt')).json()).toMatchObject({ code: 'route_not_found' });
  expect((await get('/assets/../notes.txt')).statusCode).toBe(404);
});

test('the Content-Security-Policy of the page allows its own gateway only', async () => {
  const policy = String((await get('/')).headers['content-security-policy']);
  const rules = new Map(policy.split('; ').map((rule) => [rule.split(' ', 1)[0], rule]));
  expect(rules.get('default-src')).toBe("default-src 'none'");
  expect(rules.get('script-src')).toBe("script-src 'self'");
  expect(rules.get('style-src')).toBe("style-src 'self'");
  expect(rules.get('connect-src')).toBe("connect-src 'self'");
  expect(rules.get('frame-ancestors')).toBe("frame-ancestors 'none'");
  expect(rules.get('require-trusted-types-for')).toBe("require-trusted-types-for 'script'");
  expect(policy).not.toMatch(/unsafe|https?:|\*|data:|blob:/);
});

test('browsers cache an asset, whose name contains its hash, and revalidate the page', async () => {
  expect((await get('/assets/index-abc.js')).headers['cache-control']).toBe('public, max-age=31536000, immutable');
  expect((await get('/')).headers['cache-control']).toBe('no-cache');
});

test('a script is compressed if the client accepts gzip', async () => {
  const answer = await get('/assets/index-abc.js', { 'accept-encoding': 'br, gzip' });
  expect(answer.headers).toMatchObject({ 'content-encoding': 'gzip', vary: 'accept-encoding' });
  expect(gunzipSync(answer.rawPayload).toString()).toBe(SCRIPT);
});

describe('a request from another site', () => {
  const visit = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' };
  test('may follow a link to the page', async () => expect((await get('/', visit)).statusCode).toBe(200));
  test.each([
    ['in a frame', { ...visit, 'sec-fetch-dest': 'iframe' }],
    ['by a script', { ...visit, 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'empty' }],
    ['from a form', { ...visit, origin: 'https://evil.test' }],
  ])('%s is rejected', async (_, headers) =>
    expect((await get('/', headers)).json()).toMatchObject({ code: 'origin_not_allowed' }),
  );
  test('may not follow a link to anything else', async () => {
    expect((await get('/assets/index-abc.js', visit)).json()).toMatchObject({ code: 'origin_not_allowed' });
    const { authorization } = gateway;
    expect((await get('/v1/sessions', { ...visit, authorization })).json()).toMatchObject({
      code: 'origin_not_allowed',
    });
  });
  test('is rejected if it names another host', async () => {
    expect((await get('/', { ...visit, host: 'evil.test' })).json()).toMatchObject({ code: 'host_not_allowed' });
  });
});

test('a folder without a built console has no files', async () => {
  expect(await readConsole(join(folder, 'nowhere'))).toEqual([]);
  expect(await readConsole(join(folder, 'assets'))).toEqual([]);
});
