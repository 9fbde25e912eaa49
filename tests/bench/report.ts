/** Runs the parts, prints the table and writes the raw results to `results/`, which git ignores. */
import { execFileSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { cpus, loadavg, totalmem } from 'node:os';
import { join } from 'node:path';
import type { Effort, Part } from './bench-part.ts';
import { barText, type Figure, keepsBar, type PartResult, type Skipped, shown } from './figures.ts';

interface Measured {
  readonly part: string;
  readonly loadBefore: number;
  readonly loadAfter: number;
  readonly seconds: number;
  readonly result: PartResult;
}

/**
 * Measures the parts one after another and prints each as it is done.
 * @param whole whether these are all parts. Results of some parts get a name with `partial-`.
 * @returns whether every part could be measured.
 */
export async function measureAll(parts: readonly Part[], effort: Effort, whole: boolean): Promise<boolean> {
  const measured: Measured[] = [];
  let complete = true;
  for (const part of parts) {
    const loadBefore = loadavg()[0] as number;
    const beganMs = performance.now();
    let result: PartResult;
    try {
      result = await part.measure(effort);
    } catch (error) {
      complete = false;
      process.stderr.write(`${part.name}: ${(error as Error).stack}\n`);
      result = { figures: [{ what: part.name, skipped: `failed: ${(error as Error).message}` }] };
    }
    const seconds = Math.round((performance.now() - beganMs) / 1_000);
    measured.push({ part: part.name, loadBefore, loadAfter: loadavg()[0] as number, seconds, result });
    printPart(measured.at(-1) as Measured);
  }
  await keep(measured, effort, whole);
  return complete;
}

function printPart({ part, loadBefore, loadAfter, seconds, result }: Measured): void {
  const lines = [`\n${part}  (${seconds} s, load ${shown(loadBefore)} before, ${shown(loadAfter)} after)`];
  for (const figure of result.figures) lines.push(`  ${'skipped' in figure ? skippedLine(figure) : line(figure)}`);
  process.stdout.write(`${lines.join('\n')}\n`);
}

function line(figure: Figure): string {
  const kept = keepsBar(figure);
  const verdict = kept === null ? '' : kept ? 'ok' : 'MISSED';
  const bar = figure.bar ? barText(figure.bar) : '';
  const value = `${shown(figure.value)} ${figure.unit}`.trim();
  return `${figure.what.padEnd(58)} ${value.padStart(12)}  ${bar.padEnd(9)} ${verdict.padEnd(6)}  ${figure.from ?? ''}`.trimEnd();
}

function skippedLine({ what, skipped }: Skipped): string {
  return `${what.padEnd(58)} ${skipped}`;
}

async function keep(measured: readonly Measured[], { quick }: Effort, whole: boolean): Promise<void> {
  const commit = git('rev-parse', '--short', 'HEAD');
  const now = new Date();
  const report = {
    at: now.toISOString(),
    commit,
    // A work tree with changes: the commit alone does not repeat these figures.
    changed: git('status', '--porcelain', '--untracked-files=no', '--', 'libs', 'services', 'tests/bench/*.ts') !== '',
    quick,
    node: process.version,
    cpus: cpus().length,
    cpu: cpus()[0]?.model,
    memory_gib: Math.round(totalmem() / 2 ** 30),
    parts: measured.map(({ part, loadBefore, loadAfter, seconds, result }) => ({
      part,
      load: [loadBefore, loadAfter],
      seconds,
      figures: result.figures.map((figure) =>
        'skipped' in figure ? figure : { ...figure, keeps_bar: keepsBar(figure) },
      ),
      detail: result.detail,
    })),
  };
  const dir = join(import.meta.dirname, 'results');
  await mkdir(dir, { recursive: true });
  const text = `${JSON.stringify(report, null, 2)}\n`;
  const name = `${whole ? '' : 'partial-'}${report.at.slice(0, 10)}-${commit}.json`;
  await writeFile(join(dir, name), text);
  process.stdout.write(`\nwritten to tests/bench/results/${name}\n`);
}

function git(...args: string[]): string {
  return execFileSync('git', args, { cwd: join(import.meta.dirname, '../..'), encoding: 'utf8' }).trim();
}
