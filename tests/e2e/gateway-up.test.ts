/** The gateway of `cox up`: on loopback, with a token of its state folder, found by `cox env`. */
import { execFile } from 'node:child_process';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CoxBed, jsonLines } from './cox-process.ts';
import { builtConsole } from './kit/built-console.ts';
import { clientOf } from './kit/gateway.ts';
import { until } from './kit/until.ts';

let bed: CoxBed;
let up: ReturnType<CoxBed['start']>;
let ready: { gateway_url: string; gateway_token: string; gateway_read_token: string };

beforeAll(async () => {
  await builtConsole();
  bed = await CoxBed.make();
  await bed.file('quick.yaml', 'turns: [{text: quick}]');
  up = bed.start(['up', '--json'], { withinMs: 300_000 });
  await up.seen(/"type":"ready"/);
  ready = jsonLines(up.stdout())[0] as typeof ready;
}, 120_000);
afterAll(() => bed?.remove());

test('a session is started over HTTP by what cox env gives', async () => {
  const { stdout } = await bed.run(['env']);
  const shell = await promisify(execFile)('/bin/sh', [
    '-c',
    `${stdout.trim()}; printf '%s %s' "$COX_GATEWAY_URL" "$COX_GATEWAY_TOKEN"`,
  ]);
  expect(shell.stdout).toBe(`${ready.gateway_url} ${ready.gateway_token}`);
  const gateway = clientOf(ready.gateway_url, ready.gateway_token);
  const model = `scripted/${join(bed.folder, 'quick.yaml')}`;
  const started = await gateway.post('/v1/sessions?wait=accepted', { prompt: 'go', model });
  expect(started).toMatchObject({ status: 202 });
  await until(
    'its end',
    async () => (await gateway.get(`/v1/sessions/${started.body.session_id}`)).body.state === 'stopped',
  );
});

test('a shell that has taken in what cox env says is told the same again, and what has become of it where that is another', async () => {
  const first = JSON.parse((await bed.run(['env', '--json'])).stdout) as Record<string, string>;
  const again = await bed.run(['env', '--json'], { env: first });
  expect(JSON.parse(again.stdout)).toEqual(first);
  expect(again.stderr).toBe('');
  const gone = 'nats://of-the-one-before@127.0.0.1:9';
  const old = await bed.run(['env', '--json'], { env: { NATS_URL: gone } });
  expect(JSON.parse(old.stdout)).toEqual({ NATS_URL: gone });
  const { host } = new URL(first.NATS_URL ?? '');
  expect(old.stderr).toContain(`is at nats://${host}: unset NATS_URL, or cox env --state-dir ${bed.stateDir}`);
});

test('cox health names it', async () => {
  const { stdout } = await bed.run(['health', '--json']);
  expect(jsonLines(stdout)).toMatchObject([
    { service: 'up', healthy: true, message: expect.stringMatching(/^cox up is /) },
  ]);
});

test('cox doctor says of it that it answers, also where another bus is asked about', async () => {
  const { stdout } = await bed.run(['doctor', '--json', '--nats', 'nats://127.0.0.1:9']);
  const found = jsonLines(stdout).find((check) => check.name === 'gateway');
  expect(found).toMatchObject({ status: 'ok', message: `the gateway at ${ready.gateway_url} responds` });
});

test('the token is readable by this user only, and another state folder has another', async () => {
  const file = join(bed.stateDir, 'gateway.json');
  expect((await stat(file)).mode & 0o077).toBe(0);
  expect(JSON.parse(await readFile(file, 'utf8'))).toMatchObject({
    token: ready.gateway_token,
    read_token: ready.gateway_read_token,
  });
  expect(await clientOf(ready.gateway_url, 'cox_guess').get('/v1/sessions')).toMatchObject({ status: 401 });
  const other = bed.start(['up', '--json', '--state-dir', 'other']);
  await other.seen(/"type":"ready"/);
  const second = jsonLines(other.stdout())[0] as typeof ready;
  expect(second.gateway_token).not.toBe(ready.gateway_token);
  expect(await clientOf(ready.gateway_url, second.gateway_token).get('/v1/sessions')).toMatchObject({ status: 401 });
  other.child.kill('SIGTERM');
  expect((await other.end).code).toBe(0);
});

test('its console is there; the address that lets one in is not written where it may be kept', async () => {
  const { origin } = new URL(ready.gateway_url);
  const page = await fetch(`${origin}/`);
  expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
  expect(await page.text()).toContain('<div id="app"></div>');
  const other = bed.start(['up', '--state-dir', 'logged']);
  await other.seen(/stop with Ctrl-C/);
  expect(other.stderr()).toMatch(/console: http:\S+\/ \(asks for the token\)/);
  expect(other.stdout() + other.stderr()).not.toMatch(/token=|cox_[\w-]{20}/);
  other.child.kill('SIGTERM');
  expect((await other.end).code).toBe(0);
});

test('without a gateway nothing listens', async () => {
  const none = bed.start(['up', '--json', '--no-gateway', '--state-dir', 'none']);
  await none.seen(/"type":"ready"/);
  expect(jsonLines(none.stdout())[0]).not.toHaveProperty('gateway_url');
  expect((await bed.run(['env', '--state-dir', 'none'])).stdout).not.toContain('COX_GATEWAY');
  none.child.kill('SIGTERM');
  expect((await none.end).code).toBe(0);
  const both = await bed.run(['up', '--no-gateway', '--gateway-port', '7707', '--state-dir', 'none']);
  expect(both.code).toBe(2);
});

test.each([
  [
    '--gateway-port',
    /cox: port_in_use: the gateway cannot listen at 127\.0\.0\.1:(\d+): port \1 is in use \(EADDRINUSE\)\n {2}→ /,
  ],
  [
    '--metrics-port',
    /cox: port_in_use: metrics cannot be served at 127\.0\.0\.1:(\d+): port \1 is in use \(EADDRINUSE\)\n {2}→ /,
  ],
  ['--port', /cox: port_in_use: port (\d+) is taken by another process\S* .*\n {2}→ /],
])('a %s that is taken is told in words, and nothing stays behind', async (flag, words) => {
  const { port } = new URL(ready.gateway_url);
  const end = await bed.run(['up', '--state-dir', 'taken', flag, port]);
  expect(end.code).toBe(1);
  expect(words.exec(end.stderr)?.[1]).toBe(port);
  // A port that a flag names is checked before the session host starts.
  expect(end.stderr).not.toContain('session host is up');
  expect(end.stderr).not.toMatch(/ {4}at /);
  expect((await bed.run(['env', '--state-dir', 'taken'])).stderr).toContain('no instance of cox up runs in');
});

test('a second start on its folder and port names the folder', async () => {
  const { port } = new URL(ready.gateway_url);
  const end = await bed.run(['up', '--gateway-port', port]);
  expect(end.code).toBe(1);
  expect(end.stderr).toContain('state_dir_in_use');
});

test('it ends with the instance, and takes its file along', async () => {
  up.child.kill('SIGTERM');
  expect((await up.end).code).toBe(0);
  await expect(stat(join(bed.stateDir, 'gateway.json'))).rejects.toThrow();
  await expect(fetch(`${ready.gateway_url}/healthz`)).rejects.toThrow();
});
