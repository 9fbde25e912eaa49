import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { RotatingFile } from '../src/rotating-file.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cox-rotating-'));
});
afterEach(() => rm(folder, { recursive: true }));

test('a file is set aside at its bound, and two are kept', async () => {
  const path = join(folder, 'up.log');
  await writeFile(path, 'from an earlier run\n');
  const file = new RotatingFile(path, 64);
  for (let n = 0; n < 40; n++) file.write(`line ${n}\n`);
  expect((await readdir(folder)).sort()).toEqual(['up.log', 'up.log.1']);
  const [older, newer] = await Promise.all([readFile(`${path}.1`, 'utf8'), readFile(path, 'utf8')]);
  for (const text of [older, newer]) expect(text.length).toBeLessThanOrEqual(64);
  expect(newer.endsWith('line 39\n')).toBe(true);
  // Nothing is lost between the two.
  const lines = `${older}${newer}`.trim().split('\n');
  expect(lines).toEqual(lines.map((_, at) => `line ${40 - lines.length + at}`));
});

test('a text that is larger than the bound is written whole', async () => {
  const path = join(folder, 'up.log');
  const file = new RotatingFile(path, 8);
  file.write(`${'x'.repeat(100)}\n`);
  expect(await readFile(path, 'utf8')).toHaveLength(101);
});

test('a file that was removed is replaced at its bound', async () => {
  const path = join(folder, 'up.log');
  const file = new RotatingFile(path, 16);
  file.write('one, before\n');
  await rm(path);
  for (const line of ['two, after\n', 'three\n']) file.write(line);
  expect(await readFile(path, 'utf8')).toContain('three');
});
