/** The reader of a log that is rotated at a bound. */
import { closeSync, openSync } from 'node:fs';
import { appendFile, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { LogReader, logLineText, upLog } from '../src/service/mod.ts';

let folder: string;
let path: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cox-logs-'));
  path = join(folder, 'up.log');
});
afterEach(() => rm(folder, { recursive: true }));

test('the last lines come from both files', async () => {
  expect(await new LogReader(path).last(10)).toBeNull();
  await writeFile(`${path}.1`, 'a\nb\n');
  await writeFile(path, 'c\nd\nhalf');
  const last = async (limit: number) => {
    const reader = new LogReader(path);
    try {
      return await reader.last(limit);
    } finally {
      await reader.close();
    }
  };
  expect(await last(10)).toEqual(['a', 'b', 'c', 'd']);
  expect(await last(3)).toEqual(['b', 'c', 'd']);
  expect(await last(1)).toEqual(['d']);
  expect(await last(0)).toEqual([]);
});

test('a follower gets every line, also if the file appears later, is rotated, or ends within a line or a character', async () => {
  const reader = new LogReader(path);
  expect(await reader.last(10)).toBeNull();
  const stop = new AbortController();
  const got: string[] = [];
  const next = reader.follow(stop.signal);
  const until = async (line: string) => {
    while (!got.includes(line)) got.push(...((await next.next()).value ?? []));
  };
  const [first, ...others] = Buffer.from('é\n');
  await writeFile(path, Buffer.concat([Buffer.from('a\nb'), Buffer.from([first as number])]));
  await until('a');
  await appendFile(path, Buffer.from(others));
  await until('bé');
  await appendFile(path, 'c\n');
  await rename(path, `${path}.1`);
  await writeFile(path, 'd\n');
  await until('d');
  stop.abort();
  expect((await next.next()).done).toBe(true);
  await reader.close();
  expect(got).toEqual(['a', 'bé', 'c', 'd']);
});

test('a follower of a log that is emptied in place continues at its beginning', async () => {
  await writeFile(path, 'a long line\nhalf a lin');
  const reader = new LogReader(path);
  expect(await reader.last(10)).toEqual(['a long line']);
  const stop = new AbortController();
  const next = reader.follow(stop.signal).next();
  await writeFile(path, 'b\n');
  expect((await next).value).toEqual(['b']);
  stop.abort();
  await reader.close();
});

test('a line is printed for people, without control characters', () => {
  const line = JSON.stringify({
    level: 40,
    time: 0,
    pid: 7,
    hostname: 'x',
    name: 'gateway',
    port: 1,
    msg: 'two\nlines',
  });
  expect(logLineText(line)).toBe('1970-01-01T00:00:00.000Z warn gateway two ⏎ lines port=1');
  expect(logLineText('no JSON \u001b[31m')).toBe('no JSON [31m');
});

test('the log of cox up is complete although its standard error cannot be written', async () => {
  const unwritable = openSync('/dev/null', 'r');
  const log = await upLog(folder, true, unwritable);
  expect(() => log.write('a\n')).toThrow('EBADF');
  expect(() => log.write('b\n')).toThrow('EBADF');
  closeSync(unwritable);
  const reader = new LogReader(path);
  expect(await reader.last(10)).toEqual(['a', 'b']);
  await reader.close();
});
