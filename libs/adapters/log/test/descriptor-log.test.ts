import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync, readSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { DescriptorLog, UNWRITTEN_MAX_BYTES } from '../src/descriptor-log.ts';

describe.skipIf(process.platform === 'win32')('a pipe that does not block', () => {
  let folder: string;
  let fd: number;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'cox-descriptor-'));
    execFileSync('mkfifo', [join(folder, 'pipe')]);
    // The test is the reader and the writer. Node also makes the pipes of its standard streams non-blocking.
    fd = openSync(join(folder, 'pipe'), constants.O_RDWR | constants.O_NONBLOCK);
  });
  afterEach(async () => {
    closeSync(fd);
    await rm(folder, { recursive: true });
  });

  const available = () => {
    const chunk = Buffer.alloc(4_096);
    try {
      return chunk.toString('utf8', 0, readSync(fd, chunk));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
      return '';
    }
  };
  const readUntil = async (end: string) => {
    let text = '';
    while (!text.endsWith(end)) {
      text += available();
      await turn();
    }
    return text.trimEnd().split('\n');
  };

  test('gets every line whole and in order, also those that did not fit', async () => {
    const log = new DescriptorLog(fd);
    const lines = Array.from({ length: 2_000 }, (_, n) => `line ${n} ${'x'.repeat(90)}`);
    for (const line of lines) log.write(`${line}\n`);
    expect(await readUntil(`${lines.at(-1)}\n`)).toEqual(lines);
  });

  test('whose reader is too slow gets the number of lines that were left out', async () => {
    const log = new DescriptorLog(fd);
    const line = `${'x'.repeat(1_023)}\n`;
    const written = (2 * UNWRITTEN_MAX_BYTES) / line.length;
    for (let n = 0; n < written; n++) log.write(line);
    const read = await readUntil('slow reader"}\n');
    const { lines } = JSON.parse(read.pop() as string);
    expect(read.every((one) => one.length === 1_023)).toBe(true);
    expect(read.length + lines).toBe(written);
    expect(lines).toBeGreaterThan(0);
  });
});

test('a descriptor that cannot be written reports it to the writer of each line', () => {
  const fd = openSync('/dev/null', 'r');
  const log = new DescriptorLog(fd);
  expect(() => log.write('one\n')).toThrow('EBADF');
  expect(() => log.write('two\n')).toThrow('EBADF');
  closeSync(fd);
});
