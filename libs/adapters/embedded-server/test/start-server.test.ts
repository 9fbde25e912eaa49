import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { createConnection, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { readConnection } from '@coxswain/ports/discovery';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { type RunningServer, type ServerExit, type StartServerOptions, startServer } from '../src/mod.ts';
import {
  eventually,
  fetchBoundMs,
  realServerBinary,
  temporaryDir,
  versionScript,
  writeExecutable,
} from './server-binary.ts';

let binary: string;
beforeAll(async () => {
  binary = await realServerBinary();
}, fetchBoundMs);

async function start(stateDir: string, more: Partial<StartServerOptions> = {}): Promise<RunningServer> {
  const server = await startServer({ binary, stateDir, ...more });
  onTestFinished(() => server.stop());
  return server;
}

async function client(server: RunningServer) {
  const connection = await connect({ servers: server.url, token: server.token });
  onTestFinished(() => connection.close());
  return connection;
}

const mode = (path: string) => (statSync(path).mode & 0o777).toString(8);

describe('a started server', { timeout: 60_000 }, () => {
  test('takes records of 1 MiB on loopback, and is gone after stop', async () => {
    const stateDir = temporaryDir();
    const server = await start(stateDir);
    expect(server.url).toBe(`nats://127.0.0.1:${server.port}`);
    const connection = await client(server);
    expect(connection.info?.version).toBe(server.version);
    await (await jetstreamManager(connection)).streams.add({ name: 'S', subjects: ['s'] });
    expect(await jetstream(connection).publish('s', new Uint8Array(1024 * 1024))).toMatchObject({ seq: 1 });
    await server.stop();
    expect(await server.exited).toMatchObject({ expected: true, code: 0, logTail: '' });
    await expect(connect({ servers: server.url, token: server.token, reconnect: false })).rejects.toThrow();
    await server.stop();
  });

  test('lets nobody in without its token', async () => {
    const server = await start(temporaryDir());
    await expect(connect({ servers: server.url, reconnect: false })).rejects.toThrow(/Authorization Violation/);
    await expect(connect({ servers: server.url, token: 'guess', reconnect: false })).rejects.toThrow();
    expect(server.token).toMatch(/^[\w-]{43}$/);
  });

  test('waits for a client that takes its time to say who it is', async () => {
    const server = await start(temporaryDir());
    const socket = createConnection({ host: '127.0.0.1', port: server.port });
    onTestFinished(() => void socket.destroy());
    let said = '';
    socket.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
    await eventually('the greeting', () => said.startsWith('INFO '));
    // More than the 2 s after which a server of its own mind ends the connection.
    await sleep(3_000);
    socket.write(`CONNECT ${JSON.stringify({ auth_token: server.token, verbose: false })}\r\nPING\r\n`);
    await eventually('the answer', () => said.endsWith('PONG\r\n'));
  });

  test('keeps what was stored over a restart, under a new token', async () => {
    const stateDir = temporaryDir();
    const first = await start(stateDir);
    const before = await client(first);
    await (await jetstreamManager(before)).streams.add({ name: 'S', subjects: ['s'] });
    await jetstream(before).publish('s', 'kept');
    await first.stop();

    const second = await start(stateDir);
    expect(second.token).not.toBe(first.token);
    const message = await (await jetstreamManager(await client(second))).streams.getMessage('S', { seq: 1 });
    expect(message?.string()).toBe('kept');
  });

  test('takes a subject of 60 kB, so that whoever sent it can be answered, and reads it again after a restart', async () => {
    const stateDir = temporaryDir();
    const first = await start(stateDir);
    const before = await client(first);
    const long = 'x'.repeat(60_000);
    await (await jetstreamManager(before)).streams.add({ name: 'S', subjects: ['s.*'] });
    await jetstream(before).publish(`s.${long}`, 'kept');
    await first.stop();

    const second = await start(stateDir);
    const message = await (await jetstreamManager(await client(second))).streams.getMessage('S', { seq: 1 });
    expect(message?.subject).toBe(`s.${long}`);
  });

  test('writes its token only into files that are this user’s alone', async () => {
    const stateDir = join(temporaryDir(), 'state');
    writeFileSync(join(stateDir, '..', 'other'), '');
    const server = await start(stateDir);
    const holders = ['nats-server.conf', 'connection.json'];
    expect(mode(stateDir)).toBe('700');
    for (const name of holders) expect(mode(join(stateDir, name))).toBe('600');
    for (const name of readdirSync(stateDir)) {
      const path = join(stateDir, name);
      if (statSync(path).isFile())
        expect(readFileSync(path, 'utf8').includes(server.token)).toBe(holders.includes(name));
    }
  });

  test('syncs every write unless told otherwise', async () => {
    const config = async (more: Partial<StartServerOptions>) => {
      const stateDir = temporaryDir();
      await start(stateDir, more);
      return readFileSync(join(stateDir, 'nats-server.conf'), 'utf8');
    };
    expect(await config({})).toContain('sync_interval: always');
    expect(await config({ syncAlways: false })).not.toContain('sync_interval');
  });

  test.runIf(process.platform === 'linux')(
    'is held to an amount of memory, unless the environment says another',
    async () => {
      const set = ({ pid }: RunningServer) =>
        readFileSync(`/proc/${pid}/environ`, 'utf8')
          .split('\0')
          .filter((one) => /^GO(GC|MEMLIMIT)=/.test(one))
          .sort();
      for (const name of ['GOGC', 'GOMEMLIMIT']) vi.stubEnv(name, undefined);
      onTestFinished(() => void vi.unstubAllEnvs());
      expect(set(await start(temporaryDir()))).toEqual(['GOGC=50', 'GOMEMLIMIT=768MiB']);
      vi.stubEnv('GOMEMLIMIT', '2GiB');
      vi.stubEnv('GOGC', '100');
      expect(set(await start(temporaryDir()))).toEqual(['GOGC=100', 'GOMEMLIMIT=2GiB']);
    },
  );

  test('that is killed says so, with its log, and frees its folder', async () => {
    const stateDir = temporaryDir();
    const server = await start(stateDir);
    process.kill(server.pid, 'SIGKILL');
    const exit = await server.exited;
    expect(exit).toMatchObject({ expected: false, signal: 'SIGKILL' });
    expect(exit.logTail).toContain('Server is ready');
    expect(await readConnection(stateDir)).toBeUndefined();
    await server.stop();
    await start(stateDir);
  });
});

async function reconnected(connection: NatsConnection): Promise<void> {
  for await (const { type } of connection.status()) if (type === 'reconnect') return;
  throw new Error('the connection was closed before it was there again');
}

describe('a server with restarts', { timeout: 60_000 }, () => {
  test('comes back on its port with its token, and keeps its folder meanwhile', async () => {
    const stateDir = temporaryDir();
    const ends: ServerExit[] = [];
    const server = await start(stateDir, { restartsMax: 3, onRestart: (end) => ends.push(end) });
    const { url, token, pid: first } = server;
    const connection = await connect({ servers: url, token, maxReconnectAttempts: -1, reconnectTimeWait: 50 });
    onTestFinished(() => connection.close());
    await (await jetstreamManager(connection)).streams.add({ name: 'S', subjects: ['s'] });
    expect(await jetstream(connection).publish('s', 'before')).toMatchObject({ seq: 1 });

    const back = reconnected(connection);
    process.kill(first, 'SIGKILL');
    await eventually('the restart', () => ends.length === 1);
    expect(ends).toEqual([expect.objectContaining({ expected: false, signal: 'SIGKILL', restarts: 1 })]);
    expect(server.pid).not.toBe(first);
    expect(await readConnection(stateDir)).toEqual({ url, token, pid: server.pid });
    expect(readdirSync(join(stateDir, 'lock'))).toHaveLength(1);
    await back;
    expect(await jetstream(connection).publish('s', 'after')).toMatchObject({ seq: 2 });

    await server.stop();
    expect(await server.exited).toMatchObject({ expected: true, logTail: '' });
    expect(await readConnection(stateDir)).toBeUndefined();
  });

  test.skipIf(process.platform === 'win32')(
    'while it is away, others find its address and the process that restarts it',
    async () => {
      const stateDir = temporaryDir();
      const breakable = breakableBinary();
      const server = await start(stateDir, { binary: breakable.path, restartsMax: 9 });
      const { url, token, pid: first } = server;
      breakable.broken(true);
      process.kill(first, 'SIGKILL');
      await eventually('the notice', async () => (await readConnection(stateDir))?.pid === process.pid);
      expect(await readConnection(stateDir)).toEqual({ url, token, pid: process.pid });
      breakable.broken(false);
      await eventually('the restart', () => server.pid !== first);
      expect(await readConnection(stateDir)).toEqual({ url, token, pid: server.pid });
    },
  );

  test.skipIf(process.platform === 'win32')(
    'ends when all restarts are used, with the reason, and frees its folder',
    async () => {
      const stateDir = temporaryDir();
      const breakable = breakableBinary();
      const server = await start(stateDir, { binary: breakable.path, restartsMax: 2 });
      breakable.broken(true);
      process.kill(server.pid, 'SIGKILL');
      expect(await server.exited).toMatchObject({
        expected: false,
        signal: 'SIGKILL',
        restarts: 2,
        logTail: expect.stringContaining('broken on purpose'),
      });
      expect(await readConnection(stateDir)).toBeUndefined();
      await start(stateDir);
    },
  );

  test.skipIf(process.platform === 'win32')('is not restarted once it is stopped', async () => {
    const stateDir = temporaryDir();
    const breakable = breakableBinary();
    const server = await start(stateDir, { binary: breakable.path, restartsMax: 9 });
    breakable.broken(true);
    process.kill(server.pid, 'SIGKILL');
    await eventually('the notice', async () => (await readConnection(stateDir))?.pid === process.pid);
    await server.stop();
    expect(await server.exited).toMatchObject({ expected: true, logTail: '' });
    await start(stateDir);
  });
});

/** A server binary that refuses to start while it is broken. */
function breakableBinary(): { readonly path: string; broken(isBroken: boolean): void } {
  const path = join(temporaryDir(), 'nats-server');
  const mark = `${path}.broken`;
  const script = `#!/bin/sh\nif [ -e '${mark}' ]; then echo 'broken on purpose' >&2; exit 1; fi\nexec '${binary}' "$@"\n`;
  writeExecutable(path, script);
  return { path, broken: (isBroken) => (isBroken ? writeFileSync(mark, '') : rmSync(mark)) };
}

describe('a state folder', { timeout: 60_000 }, () => {
  test('is held by one server: the second is told which process has it', async () => {
    const stateDir = temporaryDir();
    const server = await start(stateDir);
    const refused = {
      code: 'state_dir_in_use',
      pid: process.pid,
      message: expect.stringContaining(`process ${process.pid}`),
    };
    await expect(startServer({ binary, stateDir })).rejects.toMatchObject(refused);
    await server.stop();
    await start(stateDir);
  });

  // As on a full disk: the folder is there, and nothing can be written into it.
  test.runIf(process.platform === 'linux')('in which nothing can be written says so, and which it is', async () => {
    const stateDir = temporaryDir();
    symlinkSync('/proc/self', join(stateDir, 'lock'));
    const message = expect.stringMatching(
      new RegExp(`^the state folder ${stateDir} cannot be used: .*; give another --state-dir$`),
    );
    await expect(startServer({ binary, stateDir })).rejects.toMatchObject({ code: 'state_dir_unusable', message });
  });

  test('names who has it, where that one has said so', async () => {
    const stateDir = temporaryDir();
    const passing = await start(stateDir, { holder: { title: 'cox run', passing: true } });
    await expect(startServer({ binary, stateDir })).rejects.toMatchObject({
      holder: { title: 'cox run', passing: true },
      message: `${stateDir} is in use by process ${process.pid}, cox run: wait for its end, stop it, or choose another state directory`,
    });
    await passing.stop();
    await start(stateDir, { holder: { title: 'cox up', passing: false } });
    await expect(startServer({ binary, stateDir })).rejects.toMatchObject({
      message: expect.stringContaining('cox up: stop that one'),
    });
  });

  test('goes to exactly one of many that want it at once', async () => {
    const stateDir = temporaryDir();
    const results = await Promise.allSettled(Array.from({ length: 6 }, () => start(stateDir)));
    const refusals = results.filter((result) => result.status === 'rejected');
    expect(refusals.map(({ reason }) => (reason as { code: string }).code)).toEqual(Array(5).fill('state_dir_in_use'));
  });

  test('is taken over from a dead process, also when its id has gone to another', async () => {
    const stateDir = temporaryDir();
    await (await start(stateDir)).stop();
    const stale = (pid: number) => JSON.stringify({ owner: { pid, birth: 'another boot:1' }, server: null });
    writeFileSync(join(stateDir, 'lock', '999999999-a.json'), stale(999_999_999));
    // Without births (Windows) a living id counts as the living holder.
    if (process.platform !== 'win32')
      writeFileSync(join(stateDir, 'lock', `${process.pid}-b.json`), stale(process.pid));
    await start(stateDir);
    expect(readdirSync(join(stateDir, 'lock'))).toHaveLength(1);
  });

  test.each(['', '{', 'null', '{}', '{"owner":{"pid":1},"server":{}}'])('names a claim that is %j', async (text) => {
    const stateDir = temporaryDir();
    const claim = join(stateDir, 'lock', '1-a.json');
    mkdirSync(join(stateDir, 'lock'));
    writeFileSync(claim, text);
    await expect(startServer({ binary, stateDir })).rejects.toMatchObject({
      code: 'state_dir_unusable',
      message: expect.stringContaining(`${claim} is not a claim; if no process of Coxswain uses this folder, delete`),
    });
    expect(readdirSync(join(stateDir, 'lock'))).toEqual(['1-a.json']);
  });

  test('tells others how to reach its server while that runs', async () => {
    const stateDir = temporaryDir();
    expect(await readConnection(stateDir)).toBeUndefined();
    const server = await start(stateDir);
    const { url, token, pid } = server;
    expect(await readConnection(stateDir)).toEqual({ url, token, pid });
    await server.stop();
    expect(readdirSync(stateDir)).not.toContain('connection.json');

    const path = join(stateDir, 'connection.json');
    writeFileSync(path, JSON.stringify({ url, token, pid, birth: null }));
    expect(await readConnection(stateDir)).toBeUndefined();
    for (const text of [
      '{',
      '[]',
      JSON.stringify({ url, token, pid, birth: null, more: 1 }),
      JSON.stringify({ url, pid, birth: null }),
    ]) {
      writeFileSync(path, text);
      await expect(readConnection(stateDir)).rejects.toMatchObject({ code: 'connection_file_invalid', path });
    }
  });
});

describe('a server that cannot start', { timeout: 60_000 }, () => {
  test('on a port that is taken says so, and frees its folder', async () => {
    const stateDir = temporaryDir();
    const squatter = createServer();
    await new Promise<void>((resolve) => squatter.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void squatter.close());
    const { port } = squatter.address() as { port: number };
    await expect(startServer({ binary, stateDir, port })).rejects.toMatchObject({
      code: 'port_in_use',
      message: expect.stringContaining(`port ${port} is taken`),
    });
    await start(stateDir);
  });

  test.skipIf(process.platform === 'win32')('because it never gets ready is ended after the bound', async () => {
    const root = temporaryDir();
    const sleeper = writeExecutable(
      join(root, 'nats-server'),
      '#!/bin/sh\n[ "$1" = --version ] && echo "nats-server: v2.15.1" && exit\necho "asleep, pid $$" >&2\nexec sleep 600\n',
    );
    const stateDir = join(root, 'state');
    const error = await startServer({ binary: sleeper, stateDir, startTimeoutMs: 300 }).catch(
      (reason: unknown) => reason,
    );
    expect(error).toMatchObject({
      code: 'nats_server_start_failed',
      message: expect.stringContaining('within 300 ms'),
    });
    const pid = Number(/pid (\d+)/.exec((error as { logTail: string }).logTail)?.[1]);
    await eventually('the sleeper is gone', () => {
      try {
        return !process.kill(pid, 0);
      } catch {
        return true;
      }
    });
    await start(stateDir);
  });

  test.skipIf(process.platform === 'win32')('because it is too old is not even tried', async () => {
    const old = writeExecutable(join(temporaryDir(), 'nats-server'), versionScript('2.11.9'));
    await expect(startServer({ binary: old, stateDir: temporaryDir() })).rejects.toMatchObject({
      code: 'nats_server_too_old',
    });
  });

  test.each([
    { host: '0.0.0.0' },
    { host: 'example.com' },
    { token: 'short' },
    { token: '$2a$11$looks-like-a-hash' },
    { port: 70_000 },
  ])('with $host$token$port is refused', async (option) => {
    await expect(startServer({ binary, stateDir: temporaryDir(), ...option })).rejects.toMatchObject({
      code: 'server_option_invalid',
    });
  });
});
