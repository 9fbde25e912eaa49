/** The research crew, as its README tells it; whether its citations hold, and what becomes of other documents. */
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { removeScratch } from '../e2e/kit/scratch.ts';
import { Walkthrough } from './walkthrough.ts';

afterAll(removeScratch);

describe('research', () => {
  test('readers side by side, and a report of which each citation holds', async () => {
    const readme = await Walkthrough.of('research', 'crews');
    expect(await (await readme.next()).end()).toBe(0);
    await readme.next();
    readme.expectEnd();
    const report = await readFile(join(readme.folder, 'work/report.md'), 'utf8');
    const citations = [...report.matchAll(/\[([\w.-]+):(\d+)\s"([^"]+)"\]/g)];
    expect(citations).toHaveLength(11);
    for (const [, file, line, words] of citations) {
      const lines = (await readFile(join(readme.folder, 'work', String(file)), 'utf8')).split('\n');
      expect(lines[Number(line) - 1], `${file}:${line}`).toContain(words);
    }
  });

  test('a document that says something else has no answer in the script', async () => {
    const readme = await Walkthrough.of('research', 'crews');
    const log = join(readme.folder, 'input/keepers-log-1953.txt');
    await writeFile(log, (await readFile(log, 'utf8')).replace('4.15   The highest', '4.75   The highest'));
    const { code, output } = await readme.type('./run.sh');
    expect({ code, output }).toEqual({ code: 1, output: expect.stringContaining('script_exhausted') });
    expect(output).toContain('✗ delegate');
    expect(await readdir(join(readme.folder, 'work'))).not.toContain('report.md');
  });

  test('a folder without documents is told', async () => {
    const readme = await Walkthrough.of('research', 'crews');
    await rm(join(readme.folder, 'input'), { recursive: true });
    const { code, output } = await readme.type('./run.sh');
    expect(code).not.toBe(0);
    expect(output).toContain('input');
  });
});
