/** How long a person waits for `cox --help`: the whole process, from spawn to exit. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Part } from './bench-part.ts';
import { type Figure, median, type Skipped, shown } from './figures.ts';

const repository = join(import.meta.dirname, '../..');

/** The part `startup`. */
export const startUp: Part = {
  name: 'startup',
  async measure({ quick }) {
    const times = quick ? 5 : 15;
    const ways = [
      // Its first start after a change of source bundles again; the median is of the others.
      { what: 'start-up of `cox --help`', file: 'libs/cli/bin/cox.mjs', flags: [] as string[] },
      {
        what: 'start-up of `cox --help`, from source',
        file: 'libs/cli/src/main.ts',
        flags: ['--conditions=coxswain-source', '--import', 'tsx'],
      },
      // What Node itself takes: no program can be below it.
      { what: 'start-up of an empty program', file: null, flags: ['-e', '0'] },
    ];
    const samples = ways.map(() => [] as number[]);
    for (let i = 0; i < times; i++) {
      for (const [index, { file, flags }] of ways.entries()) {
        if (file !== null && !existsSync(join(repository, file))) continue;
        samples[index]?.push(await run([...flags, ...(file === null ? [] : [file, '--help'])]));
      }
    }
    const figures = ways.map(({ what, file }, index): Figure | Skipped => {
      const taken = samples[index] as number[];
      if (taken.length === 0) return { what, skipped: `skipped: there is no ${file}` };
      const value = median(taken) / 1_000;
      const from = `${shown(Math.min(...taken) / 1_000)} to ${shown(Math.max(...taken) / 1_000)} s`;
      return file?.includes('/bin/')
        ? { what, value, unit: 's', bar: { atMost: 0.12 }, from }
        : { what, value, unit: 's', from };
    });
    return { figures, detail: samples };
  },
};

async function run(args: readonly string[]): Promise<number> {
  const beganMs = performance.now();
  const child = spawn(process.execPath, args, {
    cwd: repository,
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: 60_000,
  });
  let complaint = '';
  child.stderr.on('data', (chunk) => {
    complaint += chunk;
  });
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}: ${complaint.slice(0, 500)}`);
  return performance.now() - beganMs;
}
