import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { readRegularFile } from '../src/regular-file.ts';

let folder: string;
beforeAll(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'regular-file-')));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('a regular file is read whole, also through a symbolic link', async () => {
  const bytes = Buffer.alloc(2_500_000, 'abc');
  writeFileSync(join(folder, 'file'), bytes);
  symlinkSync('file', join(folder, 'link'));
  for (const name of ['file', 'link']) {
    const read = await readRegularFile(join(folder, name), bytes.length);
    expect(read.bytes.equals(bytes)).toBe(true);
    expect(read.mtimeMs).toBeGreaterThan(0);
    expect(read.realPath).toBe(join(folder, 'file'));
  }
});

test('a file of more bytes than the limit is refused', async () => {
  writeFileSync(join(folder, 'large'), 'secret');
  await expect(readRegularFile(join(folder, 'large'), 5)).rejects.toMatchObject({
    reason: 'too_large',
    message: 'has 6 bytes; the limit is 5',
  });
});

describe.skipIf(process.platform === 'win32')('without waiting for it, the reader refuses', () => {
  test('a pipe that nothing writes to, also through a symbolic link', async () => {
    execFileSync('mkfifo', [join(folder, 'pipe')]);
    symlinkSync('pipe', join(folder, 'to-pipe'));
    // More of them than threads that Node reads files with.
    const reads = Array.from({ length: 8 }, (_, at) => readRegularFile(join(folder, at % 2 ? 'pipe' : 'to-pipe'), 10));
    for (const read of await Promise.allSettled(reads))
      expect(read).toMatchObject({ reason: { reason: 'not_regular', message: 'is a pipe, not a regular file' } });
  });

  test.each(['/dev/zero', '/dev/random', '/dev/tty'])('the device %s', async (path) => {
    await expect(readRegularFile(path, 10)).rejects.toMatchObject({
      reason: 'not_regular',
      message: 'is a device, not a regular file',
    });
  });

  test('a socket and a folder', async () => {
    const server = createServer();
    onTestFinished(() => void server.close());
    await new Promise<void>((listening) => server.listen(join(folder, 'socket'), listening));
    await expect(readRegularFile(join(folder, 'socket'), 10)).rejects.toThrow('is a socket, not a regular file');
    await expect(readRegularFile(folder, 10)).rejects.toThrow('is a folder, not a regular file');
  });
});

test.skipIf(process.platform !== 'linux')('a pseudo file states no size and is empty', async () => {
  expect((await readRegularFile('/proc/self/environ', 1_000_000)).bytes).toHaveLength(0);
});

test('an error names the problem and quotes no path', async () => {
  mkdirSync(join(folder, 'private'), { mode: 0o700 });
  for (const path of [join(folder, 'private', 'none'), join(folder, 'large', 'below')]) {
    const error = await readRegularFile(path, 10).catch((failure: Error) => failure);
    expect(error).toMatchObject({ reason: 'not_found', message: expect.stringMatching(/^does not exist \(E\w+\)$/) });
  }
});
