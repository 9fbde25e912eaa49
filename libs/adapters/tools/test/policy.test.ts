/** What a policy keeps from the built-in tools: files of the host, other roots, commands, and the private network. */
import { once } from 'node:events';
import { constants } from 'node:fs';
import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createRawServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { type HostRules, type JsonObject, OPEN_RULES, SYSTEM_PATHS, sessionRef } from '@coxswain/protocol';
import { expect, onTestFinished, test } from 'vitest';
import { createBuiltInTools, createPublicFetch } from '../src/mod.ts';
import { OpenFolder, SYSTEM_ANCHORING } from '../src/open-folder.ts';
import { codeOf, freshGround, openTools, textOf } from './session-tools.ts';

const open = (root: string, rules: Partial<HostRules> = {}) => {
  const spec = { ref: sessionRef('s1'), root, mcpServers: {}, rules: { ...OPEN_RULES, ...rules } };
  return createBuiltInTools().open(spec, new AbortController().signal);
};

test('files of the host are refused below a root that contains them, and its other files are not', async () => {
  const { root } = await freshGround();
  await mkdir(join(root, 'state', 'demo'), { recursive: true });
  await writeFile(join(root, 'state', 'nats.json'), 'token-of-the-bus');
  await writeFile(join(root, 'host.nk'), 'seed-of-the-host');
  await writeFile(join(root, 'free.txt'), 'free');
  await writeFile(join(root, 'state', 'demo', 'story.txt'), 'story');
  await symlink(join(root, 'state'), join(root, 'alias'));
  const refused = [
    ...SYSTEM_PATHS,
    { path: join(root, 'state'), except: [join(root, 'state', 'demo')] },
    { path: join(root, 'host.nk') },
  ];
  const source = createBuiltInTools();
  const held = {
    open: (spec: Parameters<typeof source.open>[0], signal: AbortSignal) =>
      source.open({ ...spec, rules: { ...OPEN_RULES, refused } }, signal),
  };
  const tools = await openTools(held, root);
  for (const path of ['host.nk', 'state/nats.json', 'alias/nats.json']) {
    expect(codeOf(await tools.call('read_file', { path })), path).toBe('outside_root');
    expect(codeOf(await tools.call('write_file', { path, content: 'x' })), path).toBe('outside_root');
    expect(codeOf(await tools.call('append_file', { path, content: 'x' })), path).toBe('outside_root');
    const edit = { path, old_text: 'of', new_text: 'x' };
    expect((await tools.call('edit_file', edit)).status, path).toBe('error');
  }
  expect(codeOf(await tools.call('list_files', { path: 'state' }))).toBe('outside_root');
  const found = await tools.call('search_files', { pattern: 'token|seed|free|story' });
  expect(textOf(found)).toContain('free.txt');
  expect(textOf(found)).not.toMatch(/token-of|seed-of/);
  expect(textOf(await tools.call('read_file', { path: 'state/demo/story.txt' }))).toContain('story');
  expect(await readFile(join(root, 'host.nk'), 'utf8')).toBe('seed-of-the-host');
});

test('files of the host are neither created nor emptied nor found', async () => {
  const { root } = await freshGround();
  await writeFile(join(root, 'host.nk'), 'seed-of-the-host');
  const refused = ['host.nk', 'policy.yaml', 'trusted'].map((name) => ({ path: join(root, name) }));
  const toolset = await open(root, { refused });
  if ('code' in toolset) throw new Error(toolset.message);
  const call = (tool: string, args: JsonObject) => {
    const identity = { ref: sessionRef('s1'), idempotencyKey: 'k', callId: 'c', epoch: 1 };
    return toolset.call({ ...identity, tool, args, onProgress() {}, onFeedback() {} }, new AbortController().signal);
  };
  for (const path of ['policy.yaml', 'trusted/answer.json', 'trusted/a/b']) {
    expect(codeOf(await call('append_file', { path, content: 'x' })), path).toBe('outside_root');
    expect(codeOf(await call('write_file', { path, content: 'x' })), path).toBe('outside_root');
  }
  for (const path of ['host.nk', 'policy.yaml'])
    expect(codeOf(await call('notify_file_edited', { path })), path).toBe('outside_root');
  const confines = { root, isRefused: (real: string) => refused.some(({ path }) => path === real) };
  const folder = await OpenFolder.open(confines, root, SYSTEM_ANCHORING);
  onTestFinished(() => folder.close());
  await expect(folder.openFile('host.nk', constants.O_WRONLY | constants.O_TRUNC)).rejects.toThrow(
    'belongs to the host',
  );
  expect(await readdir(root)).toEqual(['host.nk']);
  expect(await readFile(join(root, 'host.nk'), 'utf8')).toBe('seed-of-the-host');
});

test.runIf(process.platform === 'linux')('a root at the top of the system reads nothing of the kernel’s', async () => {
  const tools = await openTools(createBuiltInTools(), '/');
  for (const path of ['/proc/self/environ', 'proc/self/environ', '/dev/stdin', '/sys/kernel/version'])
    expect((await tools.call('read_file', { path })).status, path).toBe('error');
  expect(await open('/proc/self')).toMatchObject({ code: 'root_not_local' });
});

test('a root that leads out of the allowed folders through a link is not opened', async () => {
  const { root, outside } = await freshGround();
  await symlink(outside, join(root, 'link'));
  const failure = await open(join(root, 'link'), { roots: [root] });
  expect(failure).toMatchObject({
    code: 'root_not_local',
    message: expect.stringContaining(`policy.roots allows ${root}`),
  });
});

test('rules that deny run_command leave it out', async () => {
  const { root } = await freshGround();
  const toolset = await open(root, { run_command: 'deny' });
  expect('tools' in toolset && toolset.tools.map(({ name }) => name)).not.toContain('run_command');
});

test('the guarded fetch asks no address of this machine, and follows no redirect', async () => {
  let asked = 0;
  const server = createServer((request, response) => {
    asked++;
    request.resume();
    if (request.url === '/moved') response.writeHead(307, { location: 'http://127.0.0.1:1/' }).end();
    else response.writeHead(200, { 'x-method': request.method ?? '' }).end('hello');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const guarded = createPublicFetch();
  for (const address of [url, url.replace('127.0.0.1', 'localhost'), url.replace('127.0.0.1', '[::ffff:7f00:1]')])
    await expect(guarded(address), address).rejects.toBeInstanceOf(TypeError);
  await expect(guarded('https://user:hunter2@a.example.org')).rejects.not.toThrow(/hunter2/);
  expect(asked).toBe(0);
  const open = createPublicFetch(true);
  const answer = await open(url, { method: 'POST', body: 'x' });
  expect([answer.status, answer.headers.get('x-method'), await answer.text()]).toEqual([200, 'POST', 'hello']);
  expect((await open(`${url}/moved`)).status).toBe(307);
});

test.each([
  ['changes the protocol', 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'],
  ['answers with an unknown status', 'HTTP/1.1 999 x\r\nContent-Length: 5\r\n\r\n'],
])('a server that %s fails the request, and its connection is closed', async (_name, answer) => {
  const server = createRawServer((socket) =>
    socket
      .on('error', () => {})
      .resume()
      .write(answer),
  );
  const connected = once(server, 'connection');
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const open = createPublicFetch(true);
  await expect(open(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)).rejects.toBeInstanceOf(TypeError);
  const [socket] = (await connected) as [Socket];
  if (!socket.closed) await once(socket, 'close');
});
