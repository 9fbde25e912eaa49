import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { fetchRelease } from '../src/find/fetch-release.ts';
import { fetchedServerVersion, pinnedDigests, releaseAsset, serverPlatforms } from '../src/find/official-release.ts';
import { serverCache } from '../src/find/server-cache.ts';
import { fileFromZip } from '../src/find/zip-entry.ts';
import { findServer, reportTo } from '../src/mod.ts';
import { tarGz, zip } from './release-archives.ts';
import { temporaryDir, versionScript, writeExecutable } from './server-binary.ts';

const version = '2.15.1';
const asset = `nats-server-v${version}-linux-amd64.tar.gz`;
const archive = tarGz(`nats-server-v${version}-linux-amd64`, versionScript(version));

async function listening(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A release server that publishes `archive` with its sums; single paths can be answered otherwise. */
async function releaseServer(answers: Record<string, RequestListener> = {}) {
  const requests: string[] = [];
  const sums = `${sha256(Buffer.from('x'))}  another.zip\n${sha256(archive)}  ${asset}\n`;
  const bodies: Record<string, Buffer> = { SHA256SUMS: Buffer.from(sums), [asset]: archive };
  const server = createServer((request, response) => {
    requests.push(request.url ?? '');
    const name = (request.url ?? '').replace(`/v${version}/`, '');
    const answer = answers[name];
    if (answer) return answer(request, response);
    const body = bodies[name];
    if (body) response.setHeader('content-length', body.length).end(body);
    else response.writeHead(404).end('nothing here');
  });
  return { baseUrl: await listening(server), requests };
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}

interface FetchChanges {
  env?: NodeJS.ProcessEnv;
  idleTimeoutMs?: number;
  digests?: Record<string, string>;
}

function fetchInto(dir: string, baseUrl: string, more: FetchChanges = {}) {
  const said: string[] = [];
  const report = reportTo({ write: (text) => said.push(text) });
  const cache = serverCache({ COX_CACHE_DIR: dir }, 'linux', 'x64');
  const { env = {}, idleTimeoutMs, digests = {} } = more;
  return { said, fetched: fetchRelease(cache, { baseUrl, version, idleTimeoutMs, digests }, report, env) };
}

function cachedFolders(dir: string): string[] {
  const folder = join(dir, 'nats-server');
  return existsSync(folder) ? readdirSync(folder) : [];
}

describe.skipIf(process.platform === 'win32')('the official release', () => {
  test('is checked and put into the cache; source and size are said before it arrives', async () => {
    const dir = temporaryDir();
    const { baseUrl } = await releaseServer();
    const { said, fetched } = fetchInto(dir, baseUrl);
    expect(await fetched).toEqual({ path: join(dir, 'nats-server', `${version}-linux-x64`, 'nats-server'), version });
    expect(cachedFolders(dir)).toEqual([`${version}-linux-x64`]);
    const text = said.join('');
    expect(text).toContain(`Fetching nats-server once from ${baseUrl}/v${version}/${asset} (0.0 MB) into`);
    expect(text.indexOf('Fetching')).toBeLessThan(text.indexOf('100 %'));
  });

  test('is found in the cache the next time', async () => {
    const dir = temporaryDir();
    const { baseUrl, requests } = await releaseServer();
    const options = {
      env: { COX_CACHE_DIR: dir, PATH: '' },
      platform: 'linux',
      arch: 'x64',
      release: { baseUrl, version, digests: {} },
      report: reportTo({ write: () => {} }),
    } as const;
    expect(await findServer(options)).toMatchObject({ source: 'release', version });
    expect(await findServer(options)).toMatchObject({ source: 'cache', version });
    expect(requests).toHaveLength(2);
  });

  test('with another checksum is refused, kept nowhere, and no other source is asked', async () => {
    const dir = temporaryDir();
    const forged = tarGz('nats-server', versionScript('2.99.0'));
    const { baseUrl } = await releaseServer({ [asset]: (_, response) => response.end(forged) });
    const { fetched } = fetchInto(dir, baseUrl);
    await expect(fetched).rejects.toMatchObject({
      code: 'fetch_checksum_mismatch',
      expected: sha256(archive),
      actual: sha256(forged),
    });
    expect(cachedFolders(dir)).toEqual([]);
    const found = findServer({
      env: { COX_CACHE_DIR: dir, PATH: '' },
      platform: 'linux',
      arch: 'x64',
      release: { baseUrl, version, digests: {} },
      report: { line: () => {}, progress: () => {} },
    });
    await expect(found).rejects.toMatchObject({ code: 'fetch_checksum_mismatch' });
  });

  test('with the pinned digest is kept; exchanged together with its list it is refused before it is fetched', async () => {
    const { baseUrl, requests } = await releaseServer();
    const kept = fetchInto(temporaryDir(), baseUrl, { digests: { [asset]: sha256(archive) } });
    expect(await kept.fetched).toMatchObject({ version });
    expect(kept.said.join('')).not.toContain('No digest');
    requests.length = 0;

    const dir = temporaryDir();
    const refused = fetchInto(dir, baseUrl, { digests: { [asset]: sha256(Buffer.from('another')) } });
    await expect(refused.fetched).rejects.toMatchObject({ code: 'fetch_checksum_mismatch', actual: sha256(archive) });
    expect(requests).toEqual([`/v${version}/SHA256SUMS`]);
    expect(cachedFolders(dir)).toEqual([]);
  });

  test('without a pinned digest says so', async () => {
    const { baseUrl } = await releaseServer();
    const { said, fetched } = fetchInto(temporaryDir(), baseUrl);
    await fetched;
    expect(said.join('')).toContain(`No digest of ${asset} is pinned`);
  });

  test.each<{ name: string; answers: Record<string, RequestListener>; reason: RegExp }>([
    {
      name: 'that is not there',
      answers: { [asset]: (_, response) => response.writeHead(404).end('nothing') },
      reason: /answered 404/,
    },
    {
      name: 'that is cut short',
      answers: {
        [asset]: (_, response) => {
          response.setHeader('content-length', archive.length).write(archive.subarray(0, 100));
          setTimeout(() => response.destroy(), 20);
        },
      },
      reason: new RegExp(`cut short after 100 of ${archive.length} bytes`),
    },
    {
      name: 'that its checksums do not list, as when a portal answers every page',
      answers: { SHA256SUMS: (_, response) => response.end('<html>Please log in</html>') },
      reason: /has no line for/,
    },
    {
      name: 'that redirects for ever',
      answers: { SHA256SUMS: (request, response) => response.writeHead(302, { location: request.url }).end() },
      reason: /redirects more than 5 times/,
    },
    {
      name: 'that holds no server',
      answers: {
        SHA256SUMS: (_, response) => response.end(`${sha256(tarGz('a', ''))} *${asset}\n`),
        [asset]: (_, response) => response.end(tarGz('a', '')),
      },
      reason: /cannot be used as nats-server/,
    },
  ])('$name fails with the reason and leaves nothing behind', async ({ answers, reason }) => {
    const dir = temporaryDir();
    const { baseUrl } = await releaseServer(answers);
    await expect(fetchInto(dir, baseUrl).fetched).rejects.toThrow(reason);
    expect(cachedFolders(dir)).toEqual([]);
  });

  test('from a host that accepts and then says nothing is given up after a bound', async () => {
    const baseUrl = await listening(createTcpServer(() => {}));
    const { fetched } = fetchInto(temporaryDir(), baseUrl, { idleTimeoutMs: 50 });
    await expect(fetched).rejects.toThrow(/silent for 50 ms/);
  });

  test('is fetched through the proxy that the environment names', async () => {
    const { baseUrl, requests } = await releaseServer();
    const asked: string[] = [];
    const proxy = createServer((request, response) => {
      asked.push(`${request.headers['proxy-authorization']} ${request.url}`);
      const path = new URL(request.url ?? '').pathname;
      void fetch(`${baseUrl}${path}`).then(async (answer) => response.end(Buffer.from(await answer.arrayBuffer())));
    });
    const proxyUrl = (await listening(proxy)).replace('//', '//user:secret@');
    const { fetched } = fetchInto(temporaryDir(), 'http://releases.invalid', { env: { HTTP_PROXY: proxyUrl } });
    expect(await fetched).toMatchObject({ version });
    const authorization = `Basic ${Buffer.from('user:secret').toString('base64')}`;
    expect(asked[0]).toBe(`${authorization} http://releases.invalid/v${version}/SHA256SUMS`);
    expect(requests).toHaveLength(2);
    const exempt = fetchInto(temporaryDir(), 'http://releases.invalid', {
      env: { HTTP_PROXY: proxyUrl, NO_PROXY: 'localhost,.invalid' },
    });
    await expect(exempt.fetched).rejects.toThrow(/releases\.invalid/);
  });

  test('fetched four times at once ends as one server in the cache', async () => {
    const dir = temporaryDir();
    const { baseUrl } = await releaseServer();
    const servers = await Promise.all(Array.from({ length: 4 }, () => fetchInto(dir, baseUrl).fetched));
    expect(new Set(servers.map(({ path }) => path)).size).toBe(1);
    expect(cachedFolders(dir)).toEqual([`${version}-linux-x64`]);
  });

  test('takes the place of a broken one in the cache', async () => {
    const dir = temporaryDir();
    const broken = writeExecutable(join(dir, 'nats-server', `${version}-linux-x64`, 'nats-server'), 'half');
    const { baseUrl } = await releaseServer();
    expect(await fetchInto(dir, baseUrl).fetched).toEqual({ path: broken, version });
    expect(readFileSync(broken, 'utf8')).toBe(versionScript(version));
    expect(cachedFolders(dir)).toEqual([`${version}-linux-x64`]);
  });
});

test('the server comes out of the zip that Windows gets', () => {
  const bytes = zip('nats-server-v2.15.1-windows-amd64', 'a program');
  expect(fileFromZip(bytes, (path) => path.endsWith('/nats-server.exe'), 1_000)?.toString()).toBe('a program');
  expect(fileFromZip(bytes, (path) => path.endsWith('.dll'), 1_000)).toBeUndefined();
  expect(() => fileFromZip(bytes, (path) => path.endsWith('.exe'), 4)).toThrow();
  expect(() => fileFromZip(bytes.subarray(0, 60), () => true, 1_000)).toThrow('no zip directory found');
});

test('on a terminal a download draws one bar, and a sentence after a half-drawn one starts on its own line', () => {
  const written: string[] = [];
  const report = reportTo({ isTTY: true, write: (text) => written.push(text) });
  for (const fraction of [0, 0.5, 0.5001, 1]) report.progress('nats-server', fraction);
  report.progress('another', 0.25);
  report.line('It failed.');
  expect(written.join('')).toMatchInlineSnapshot(`
    "
      [..............................]   0 % nats-server
      [###############...............]  50 % nats-server
      [##############################] 100 % nats-server

      [########......................]  25 % another
    It failed.
    "
  `);
});

test('pinned digests are of the version that is fetched', () => {
  expect(Object.keys(pinnedDigests)).toEqual(
    ['amd64', 'arm64'].map((cpu) => `nats-server-v${fetchedServerVersion}-linux-${cpu}.tar.gz`),
  );
  for (const digest of Object.values(pinnedDigests)) expect(digest).toMatch(/^[0-9a-f]{64}$/);
});

test('archives have the names of the official releases', () => {
  expect(serverPlatforms.map((platform) => releaseAsset('2.15.1', platform))).toEqual([
    'nats-server-v2.15.1-linux-amd64.tar.gz',
    'nats-server-v2.15.1-linux-arm64.tar.gz',
    'nats-server-v2.15.1-darwin-amd64.tar.gz',
    'nats-server-v2.15.1-darwin-arm64.tar.gz',
    'nats-server-v2.15.1-windows-amd64.zip',
    'nats-server-v2.15.1-windows-arm64.zip',
  ]);
  expect(releaseAsset('2.15.1', { platform: 'linux', arch: 'riscv64' })).toBeUndefined();
});
