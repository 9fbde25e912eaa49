/** A command runner: who may use it, what it refuses, and what becomes of commands when it or its host goes away. */

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { rename, stat, writeFile } from 'node:fs/promises';
import { createConnection, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createBuiltInTools, startCommandRunner, TOOL_BOUNDS } from '../src/mod.ts';
import { runInGroup } from '../src/process-group.ts';
import { codeOf, eventually, freshGround, hasEnded, openTools, pidIn, textOf } from './session-tools.ts';

// Processes start and end in these tests, on machines that may be busy.
vi.setConfig({ testTimeout: 60_000 });

async function freshSocket() {
  const ground = await freshGround();
  const socket = join(ground.outside, 'runner.sock');
  const tools = await openTools(createBuiltInTools({ runCommand: { socket } }), ground.root);
  const run = (command: string) => tools.call('run_command', { command });
  return { ...ground, socket, run };
}

async function startedRunner() {
  const fresh = await freshSocket();
  const runner = await startCommandRunner(fresh.socket);
  onTestFinished(() => runner.stop());
  return { ...fresh, runner };
}

/** A process that listens in place of a runner. */
async function listener(socket: string, onConnection: (peer: Socket) => void): Promise<Server> {
  const server = createServer(onConnection);
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  onTestFinished(() => void server.close());
  return server;
}

/** Sends one line, and collects what is answered until the runner closes the connection. */
async function answersTo(socket: string, line: string): Promise<Record<string, unknown>[]> {
  const peer = createConnection(socket).setEncoding('utf8');
  peer.write(`${line}\n`);
  let text = '';
  for await (const part of peer) text += part;
  return text
    .trim()
    .split('\n')
    .map((answer) => JSON.parse(answer));
}

const frame = (over: object) =>
  JSON.stringify({
    type: 'run',
    shell: '/bin/sh',
    command: 'true',
    cwd: '/',
    inherit: [],
    env: {},
    timeout_ms: 60_000,
    ...over,
  });

test('a command does not run in the host when nothing serves the socket', async () => {
  const { root, run } = await freshSocket();
  const outcome = await run('touch ran');
  expect([outcome.status, codeOf(outcome)]).toEqual(['unavailable', 'tool_unavailable']);
  expect(textOf(outcome)).toMatch(/command runner cannot be reached: .*ENOENT/);
  expect(existsSync(join(root, 'ran'))).toBe(false);
});

test('a runner that stops ends its commands, whose outcome is then unknown', async () => {
  const { root, run, runner } = await startedRunner();
  const outcome = run('echo $$ > pid; exec sleep 3600');
  const pid = await pidIn(join(root, 'pid'));
  await runner.stop();
  expect(await hasEnded(pid)).toBe(true);
  expect([(await outcome).status, codeOf(await outcome)]).toEqual(['lost', 'tool_interrupted']);
});

test.each([
  ['dies', (peer: Socket) => peer.destroy()],
  ['answers what is not a frame', (peer: Socket) => peer.end('{"type":"ended"}\n')],
  ['sends a frame without an end', (peer: Socket) => peer.write('x'.repeat(TOOL_BOUNDS.commandFrameMaxBytes + 1))],
])('the outcome is unknown when the runner %s after it was asked', async (_what, answer) => {
  const { socket, run } = await freshSocket();
  await listener(socket, (peer) => {
    peer.on('error', () => undefined);
    peer.once('data', () => answer(peer));
  });
  expect((await run('true')).status).toBe('lost');
});

test('a command ends when its host is gone', async () => {
  const { root, socket } = await startedRunner();
  const host = createConnection(socket);
  host.write(`${frame({ cwd: root, command: 'echo $$ > pid; exec sleep 3600' })}\n`);
  const pid = await pidIn(join(root, 'pid'));
  host.destroy();
  await eventually(() => hasEnded(pid), `process ${pid} has ended`);
});

test('a runner takes no more connections than its bound', async () => {
  const { socket, run } = await startedRunner();
  const held = await Promise.all(
    Array.from({ length: TOOL_BOUNDS.commandsAtOnceMax }, async () => {
      const peer = createConnection(socket);
      await new Promise((resolve) => peer.once('connect', resolve));
      return peer;
    }),
  );
  const outcome = await run('true');
  expect([outcome.status, textOf(outcome)]).toEqual([
    'unavailable',
    'the command runner already runs 64 commands, which is the limit',
  ]);
  for (const peer of held) peer.destroy();
  await eventually(async () => (await run('true')).status === 'ok', 'a command runs');
});

test.each([
  ['an unknown member', frame({ uid: 0 }), 'tool_unavailable'],
  ['what is not JSON', 'run true', 'tool_unavailable'],
  ['a folder that the runner does not have', frame({ cwd: '/no/such/folder' }), 'tool_failed'],
])('a runner refuses %s', async (_what, line, code) => {
  const { socket } = await startedRunner();
  expect(await answersTo(socket, line)).toEqual([
    { type: 'refused', code, message: expect.stringContaining('runner') },
  ]);
});

test('only its user may use the socket, and only one process serves it', async () => {
  const { socket, runner } = await startedRunner();
  expect((await stat(socket)).mode & 0o777).toBe(0o600);
  await runner.ping();
  await expect(startCommandRunner(socket)).rejects.toMatchObject({
    code: 'command_socket_unusable',
    message: expect.stringContaining('another process serves it'),
  });
  await runner.ping();
});

test('a socket in a missing folder is rejected with the name of the folder', async () => {
  const { outside } = await freshSocket();
  const folder = join(outside, 'missing');
  await expect(startCommandRunner(join(folder, 'runner.sock'))).rejects.toMatchObject({
    code: 'command_socket_unusable',
    message: expect.stringContaining(`there is no folder ${folder}`),
  });
});

test('a socket that a killed process left behind is replaced, and a file is not', async () => {
  const { outside, socket, run } = await freshSocket();
  const dead = await listener(`${socket}.1`, () => undefined);
  // A server removes the path that it listened on; under another name the socket stays.
  await rename(`${socket}.1`, socket);
  dead.close();
  const runner = await startCommandRunner(socket);
  onTestFinished(() => runner.stop());
  expect((await run('true')).status).toBe('ok');
  const file = join(outside, 'file');
  await writeFile(file, 'kept');
  await expect(startCommandRunner(file)).rejects.toThrow('it is not a socket');
});

test('long output arrives whole', async () => {
  const { run } = await startedRunner();
  const outcome = await run('head -c 10000000 /dev/zero | tr "\\0" x');
  expect(outcome.result.detail).toMatchObject({ exit_code: 0, output_bytes: 10_000_000 });
});

test('no output is read while the reader holds it', async () => {
  let [held, heldMax, total] = [0, 0, 0];
  const onOutput = async (chunk: Buffer) => {
    total += chunk.length;
    heldMax = Math.max(heldMax, ++held);
    await new Promise((resolve) => setTimeout(resolve, 2));
    held--;
  };
  const command = { file: '/bin/sh', args: ['-c', 'head -c 2000000 /dev/zero'], cwd: '/', env: {}, timeoutMs: 60_000 };
  await runInGroup({ ...command, onOutput }, new AbortController().signal);
  // Node itself reads on once when the process has exited.
  expect(heldMax).toBeLessThanOrEqual(2);
  expect(total).toBe(2_000_000);
});

test.skipIf(process.platform === 'win32')(
  'a command that finds no free file descriptor fails, and its process continues',
  async () => {
    const script = join(import.meta.dirname, 'without-descriptors.ts');
    const node = [process.execPath, '--conditions=coxswain-source', '--import', 'tsx', script];
    const { stdout } = await promisify(execFile)('/bin/sh', ['-c', 'ulimit -n 128; exec "$0" "$@"', ...node]);
    expect(stdout).toMatch(/^exit 7\nspawn .*EMFILE\nexit 7$/);
  },
);

test('a command that cannot be started fails with the reason, also if its call was cancelled before', async () => {
  const command = { file: '/bin/missing', args: [], cwd: '/', env: {}, timeoutMs: 60_000, onOutput: () => undefined };
  await expect(runInGroup(command, AbortSignal.abort())).rejects.toThrow('spawn /bin/missing ENOENT');
});
