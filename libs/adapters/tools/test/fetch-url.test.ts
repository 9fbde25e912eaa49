/** fetch_url against a real server on this machine. */
import { createServer, type RequestListener } from 'node:http';
import { type AddressInfo, createServer as createRawServer } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { isPublicAddress, publicLookup } from '../src/reachable-address.ts';
import { builtIns, codeOf, textOf } from './session-tools.ts';

async function serving(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const near = { fetchUrl: { privateAddresses: true } };

test('text comes back as it is', async () => {
  const origin = await serving((request, response) => {
    response.setHeader('content-type', 'text/html; charset=utf-8');
    response.end(`<p>${request.method} ${request.url} ${request.headers.cookie ?? 'no cookie'}</p>`);
  });
  const { call } = await builtIns(near);
  const outcome = await call('fetch_url', { url: `${origin}/page?x=1` });
  expect(outcome.status).toBe('ok');
  expect(textOf(outcome)).toBe('<p>GET /page?x=1 no cookie</p>');
  expect(outcome.result.detail).toMatchObject({ http_status: 200, media_type: 'text/html' });
});

test('an image comes back as the file', async () => {
  const origin = await serving((_request, response) => {
    response.setHeader('content-type', 'image/png');
    response.end(Buffer.from([137, 80, 78, 71]));
  });
  const { call } = await builtIns(near);
  const outcome = await call('fetch_url', { url: origin });
  expect(outcome.result.content).toEqual([{ type: 'file', media_type: 'image/png', data: 'iVBORw==' }]);
});

test('a status that is no success is an error with its text', async () => {
  const origin = await serving((_request, response) => {
    response.writeHead(404, { 'content-type': 'text/plain' }).end('not here');
  });
  const { call } = await builtIns(near);
  const outcome = await call('fetch_url', { url: origin });
  expect(outcome.status).toBe('error');
  expect(textOf(outcome)).toBe('not here\n[HTTP status 404]');
});

test('a document without end is read up to the bound and no further', async () => {
  const origin = await serving((_request, response) => {
    response.setHeader('content-type', 'text/plain');
    const more = () => {
      while (!response.destroyed && response.write('x'.repeat(65_536)));
    };
    response.on('drain', more);
    more();
  });
  const { call } = await builtIns({ ...near, fileMaxBytes: 200_000 });
  const outcome = await call('fetch_url', { url: origin });
  expect(outcome.status).toBe('ok');
  expect(textOf(outcome)).toMatch(/x\n\[only the first \d+ characters are shown\]$/);
  expect(Buffer.byteLength(JSON.stringify(outcome.result))).toBeLessThanOrEqual(65_536);
});

test('a server that never answers is given up', async () => {
  const origin = await serving(() => {});
  const { call } = await builtIns({ fetchUrl: { privateAddresses: true, timeoutMs: 200 } });
  const outcome = await call('fetch_url', { url: origin });
  expect([outcome.status, codeOf(outcome)]).toEqual(['error', 'tool_failed']);
  expect(textOf(outcome)).toContain('within 200 ms');
});

test('a server that changes the protocol ends the fetch', async () => {
  const raw = createRawServer((socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n');
    socket.on('error', () => {}).resume();
  });
  await new Promise<void>((resolve) => raw.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void raw.close());
  const { call } = await builtIns(near);
  const outcome = await call('fetch_url', { url: `http://127.0.0.1:${(raw.address() as AddressInfo).port}` });
  expect([outcome.status, codeOf(outcome)]).toEqual(['error', 'tool_failed']);
  expect(textOf(outcome)).toContain('without a response');
});

test('a fetch that is cancelled stops', async () => {
  const abort = new AbortController();
  const origin = await serving(() => abort.abort());
  const { call } = await builtIns(near);
  expect((await call('fetch_url', { url: origin }, abort.signal)).status).toBe('cancelled');
});

describe('redirects', () => {
  test('are followed', async () => {
    const origin = await serving((request, response) => {
      if (request.url === '/') response.writeHead(302, { location: '/there' }).end();
      else response.writeHead(200, { 'content-type': 'text/plain' }).end('arrived');
    });
    const { call } = await builtIns(near);
    const outcome = await call('fetch_url', { url: origin });
    expect(textOf(outcome)).toBe('arrived');
    expect(outcome.result.detail?.url).toBe(`${origin}/there`);
  });

  test.each([
    ['without end', '/', 'redirects more than 5 times'],
    ['to a file', 'file:///etc/passwd', 'file: is not supported'],
    ['to a host that is not allowed', 'http://localhost/', 'localhost is not an allowed host'],
  ])('%s are not', async (_name, location, message) => {
    const origin = await serving((_request, response) => response.writeHead(302, { location }).end());
    const { call } = await builtIns({ fetchUrl: { privateAddresses: true, hosts: ['127.*'] } });
    const outcome = await call('fetch_url', { url: origin });
    expect(outcome.status).toBe('error');
    expect(textOf(outcome)).toContain(message);
  });
});

test.each([
  'file:///etc/passwd',
  'ftp://example.org/x',
  'data:text/plain,x',
  'javascript:1',
  'http://me:secret@example.org/',
  'not a url',
])('%s is refused', async (url) => {
  const { call } = await builtIns(near);
  expect(codeOf(await call('fetch_url', { url }))).toBe('invalid_call_arguments');
});

describe('addresses that are not public', () => {
  test.each([
    '127.0.0.1',
    '[::1]',
    '10.1.2.3',
    '169.254.169.254',
    '192.168.0.1',
    '[::ffff:127.0.0.1]',
    '[::ffff:0:169.254.169.254]',
    '[64:ff9b::10.0.0.1]',
    '[64:ff9b:1::10.0.0.1]',
    '[2001:0:4136:e378:8000:63bf:3fff:fdd2]',
    '[fec0::1]',
    '2130706433',
    '0x7f.1',
  ])('%s is refused', async (host) => {
    const { call } = await builtIns({ fetchUrl: true });
    const outcome = await call('fetch_url', { url: `http://${host}:1/` });
    expect(outcome.status).toBe('error');
    expect(textOf(outcome)).toContain('is not on the public network');
  });

  test('a name that leads to one is refused', async () => {
    const { call } = await builtIns({ fetchUrl: true });
    expect(textOf(await call('fetch_url', { url: 'http://localhost:1/' }))).toContain('is not on the public network');
  });

  test.each(['1.1.1.1', '93.184.216.34', '2606:4700::1111', '2001:4860:4860::8888'])('%s is public', (address) => {
    expect(isPublicAddress(address)).toBe(true);
  });

  test.each(['168.63.129.16', '::ffff:168.63.129.16', '::ffff:a83f:8110', '64:ff9b::a83f:8110'])(
    'the service of Azure’s machines at %s is not public',
    (address) => expect(isPublicAddress(address)).toBe(false),
  );

  test('the lookup answers in both of its forms', async () => {
    const found = await new Promise((resolve) => {
      publicLookup('1.1.1.1', { all: true }, (error, address) => resolve([error, address]));
    });
    expect(found).toEqual([null, [{ address: '1.1.1.1', family: 4 }]]);
  });
});
