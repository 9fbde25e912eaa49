/** `cox doctor` where something is wrong: what it is, why, and what to do. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdir, readdir, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, test, vi } from 'vitest';
import { Child, COX_MAIN } from './kit/child.ts';
import { removeScratch, scratchFolder } from './kit/scratch.ts';

vi.setConfig({ testTimeout: 120_000 });
afterAll(() => removeScratch());

interface Check {
  readonly name: string;
  readonly status: 'ok' | 'warning' | 'failed';
  readonly message: string;
  readonly remedy?: string;
}

async function doctor(cwd: string, args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const child = new Child(COX_MAIN, ['doctor', '--json', ...args], { cwd, env });
  const { code } = await child.exited;
  const checks = child.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Check);
  // Whatever is found: what is not as it should be comes with what to do.
  for (const check of checks) {
    expect(check.message, check.name).not.toBe('');
    if (check.status !== 'ok') expect(check.remedy, check.name).toMatch(/\w+ \w+/);
    else expect(check.remedy, check.name).toBeUndefined();
  }
  return { code, of: (name: string) => checks.find((check) => check.name === name), stdout: child.stdout };
}

test('a folder that cannot be written, a port that is taken and a server that is not there are told with what to do', async () => {
  const folder = await scratchFolder('doctor');
  await writeFile(join(folder, 'file'), '');
  const taken = createServer();
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
  try {
    const { port } = taken.address() as AddressInfo;
    const { code, of } = await doctor(folder, ['--state-dir', join(folder, 'file/state'), '--port', String(port)], {
      COX_FETCH: 'never',
      COX_CACHE_DIR: join(folder, 'cache'),
      COX_NATS_SERVER: join(folder, 'no-server'),
    });
    expect(code).toBe(1);
    expect(of('state_dir')).toMatchObject({ status: 'failed', remedy: expect.stringContaining('--state-dir') });
    expect(of('port')).toMatchObject({
      status: 'failed',
      message: expect.stringContaining(`port ${port} cannot be used`),
      remedy: expect.stringContaining('--port'),
    });
    expect(of('nats_server')).toMatchObject({ status: 'failed', message: expect.stringContaining('no-server') });
  } finally {
    taken.close();
  }
});

test('a bus that nobody serves is told with who has named it', async () => {
  const folder = await scratchFolder('doctor');
  const { code, of } = await doctor(folder, [], { NATS_URL: 'nats://127.0.0.1:9' });
  expect(code).toBe(1);
  expect(of('bus')).toMatchObject({
    status: 'failed',
    remedy:
      'make sure that a NATS server runs there and that this machine reaches it; or unset NATS_URL and start your own with cox up',
  });
});

test.skipIf(process.platform !== 'linux')(
  'where the state folder cannot be made, nothing says that an instance could be started on it',
  async () => {
    const { code, of } = await doctor(await scratchFolder('doctor'), ['--state-dir', '/proc/nowhere']);
    expect(code).toBe(1);
    expect(of('state_dir')?.status).toBe('failed');
    expect(of('instance')).toMatchObject({
      status: 'warning',
      message: 'no instance of cox up runs in /proc/nowhere, and none can start',
      remedy: 'correct the state folder first (see above), then start cox up or cox run',
    });
  },
);

test.skipIf(process.platform === 'win32')(
  'a state folder that takes empty files alone, as a full disk does, is told',
  async () => {
    const folder = await scratchFolder('doctor');
    // Of files as large as a few blocks.
    const line = 'ulimit -f 64; exec "$0" "$@"';
    const args = ['-c', line, process.execPath, COX_MAIN, 'doctor', '--json', '--state-dir', join(folder, 'state')];
    const { stdout } = await promisify(execFile)('/bin/sh', args, { cwd: folder }).catch(
      (error: { stdout: string }) => error,
    );
    const checks = stdout
      .trim()
      .split('\n')
      .map((text) => JSON.parse(text) as Check);
    expect(checks.find(({ name }) => name === 'state_dir')).toMatchObject({
      status: 'failed',
      message: `state folder ${join(folder, 'state')} is not writable: file too large (EFBIG)`,
      remedy: expect.stringContaining('free disk space'),
    });
    expect(await readdir(join(folder, 'state'))).toEqual([]);
  },
);

test('what listens and is no NATS server is told as that, and nobody is sent to cox doctor', async () => {
  const other = createServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  try {
    const { port } = other.address() as AddressInfo;
    const { code, of, stdout } = await doctor(await scratchFolder('doctor'), ['--nats', `nats://127.0.0.1:${port}`]);
    expect(code).toBe(1);
    expect(of('bus')?.message).toContain(`the server at nats://127.0.0.1:${port} is not a NATS server`);
    expect(stdout).not.toContain('cox doctor');
  } finally {
    other.close();
  }
});

test('a model that cannot be asked and a persona that is none are told before a run needs them', async () => {
  const folder = await scratchFolder('doctor');
  await mkdir(join(folder, 'personas'));
  await writeFile(join(folder, 'personas/good.yaml'), 'name: good\n');
  await writeFile(join(folder, 'personas/bad.yaml'), 'name: bad\npromt: hello\n');
  const { code, of, stdout } = await doctor(folder, ['--state-dir', join(folder, 'state')], {
    COX_MODEL: 'anthropc/claude',
  });
  expect(code).toBe(1);
  expect(of('model')).toMatchObject({ status: 'failed', message: expect.stringContaining('unknown provider') });
  expect(stdout).toContain('persona good is valid');
  expect(stdout).toMatch(/bad\.yaml:2:1: unknown key \\"promt\\"/);
  expect(stdout).toContain('cox persona check personas/bad.yaml');
});

test('on a terminal the remedy stands below what it is for', async () => {
  const folder = await scratchFolder('doctor');
  const child = new Child(COX_MAIN, ['doctor'], { cwd: folder, env: { NATS_URL: 'nats://127.0.0.1:9' } });
  await child.exited;
  expect(child.stdout).toMatch(/^✗ .*\n {2}→ \S/m);
});

test('a manifest with a mistake is named by its line, and none of its code is run', async () => {
  const folder = await scratchFolder('doctor');
  const ran = join(folder, 'ran');
  await writeFile(
    join(folder, 'policy.mjs'),
    `import { writeFileSync } from 'node:fs';\nwriteFileSync(${JSON.stringify(ran)}, '');\nexport default () => true;\n`,
  );
  const manifest = join(folder, 'coxswain.yaml');
  await writeFile(manifest, 'hooks:\n  - event: PreToolUse\n    handler: ./policy.mjs\n');
  const state = ['--state-dir', join(folder, 'state')];
  expect((await doctor(folder, state)).of('manifest')).toMatchObject({
    status: 'warning',
    message: expect.stringContaining('1 hook; not trusted, or changed after cox trust'),
    remedy: expect.stringContaining('cox trust'),
  });
  await writeFile(manifest, 'hooks:\n  - event: PreToolUze\n    handler: ./policy.mjs\n');
  const { code, of } = await doctor(folder, state);
  expect(code).toBe(1);
  expect(of('manifest')).toMatchObject({
    status: 'failed',
    message: expect.stringContaining(`${manifest}:2:`),
    remedy: expect.stringContaining('--manifest none'),
  });
  expect(existsSync(ran)).toBe(false);
});

test('a token that others may read is told, and a gateway that has gone', async () => {
  const folder = await scratchFolder('doctor');
  const state = join(folder, 'state');
  await mkdir(state);
  const file = join(state, 'gateway.json');
  await writeFile(file, JSON.stringify({ url: 'http://127.0.0.1:9', token: 'cox_secret', pid: 1 }));
  await chmod(file, 0o644);
  const { of, stdout } = await doctor(folder, ['--state-dir', state]);
  expect(of('gateway_token')).toMatchObject({ status: 'failed', remedy: expect.stringContaining('chmod 600') });
  expect(of('gateway')).toMatchObject({ status: 'warning', message: expect.stringContaining('is a leftover') });
  expect(stdout).not.toContain('cox_secret');
});
