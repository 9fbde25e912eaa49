/** Runs the parts, prints the table and writes the raw results to `results/`, which git ignores. */
import { execFileSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { cpus, loadavg, totalmem } from 'node:os';
import { join } from 'node:path';
import type { Effort, Part } from './bench-part.ts';
import { barText, type Figure, keepsBar, type PartResult, type Skipped, shown } from './figures.ts';
import { QUIET_AT_MOST, untilQuiet } from './quiet-machine.ts';
import type { StepsRuns } from './steps-runs.ts';

interface Measured {
  readonly part: string;
  readonly load: readonly [before: number, after: number];
  /** The share of the CPU time that was in use before, 0 to 1. */
  readonly busyBefore: number;
  readonly seconds: number;
  readonly result: PartResult;
}

/** Where, when and on what a run measured: what its figures need to be compared with others. */
export interface Circumstances {
  /** ISO 8601. */
  readonly at: string;
  readonly commit: string;
  /** Whether the work tree had changes: the commit alone does not repeat the figures. */
  readonly changed: boolean;
  readonly quick: boolean;
  readonly node: string;
  readonly cpus: number;
  readonly cpu: string | undefined;
  readonly memory_gib: number;
}

/** What a run of the bench gives back. */
export interface Report extends Circumstances {
  /** Whether every part could be measured. */
  readonly complete: boolean;
  /** The part `steps`, if it was measured. */
  readonly steps?: StepsRuns & Pick<Measured, 'load'>;
}

/**
 * Measures the parts one after another, prints each when it is done, and writes the raw results.
 * @param whole whether these are all parts. Results of some parts get a name with `partial-`.
 */
export async function measureAll(parts: readonly Part[], effort: Effort, whole: boolean): Promise<Report> {
  const measured: Measured[] = [];
  const circumstances = circumstancesOf(effort);
  let complete = true;
  let steps: Report['steps'];
  for (const part of parts) {
    const busyBefore = await untilQuiet();
    const loadBefore = loadavg()[0] as number;
    const beganMs = performance.now();
    let result: PartResult;
    try {
      result = await part.measure(effort);
      if (result.complete === false) complete = false;
    } catch (error) {
      complete = false;
      process.stderr.write(`${part.name}: ${(error as Error).stack}\n`);
      result = { figures: [{ what: part.name, skipped: `failed: ${(error as Error).message}` }] };
    }
    const seconds = Math.round((performance.now() - beganMs) / 1_000);
    const load = [loadBefore, loadavg()[0] as number] as const;
    measured.push({ part: part.name, load, busyBefore, seconds, result });
    printPart(measured.at(-1) as Measured);
    if (part.name === 'steps' && result.detail) steps = { ...(result.detail as StepsRuns), load };
  }
  await keep(measured, circumstances, whole);
  return { ...circumstances, complete, ...(steps ? { steps } : {}) };
}

function printPart({ part, load: [before, after], busyBefore, seconds, result }: Measured): void {
  const busy =
    busyBefore > QUIET_AT_MOST ? `, BUSY MACHINE: ${Math.round(busyBefore * 100)} % of the CPU in use before` : '';
  const lines = [`\n${part}  (${seconds} s, load ${shown(before)} before, ${shown(after)} after${busy})`];
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

function circumstancesOf({ quick }: Effort): Circumstances {
  return {
    at: new Date().toISOString(),
    commit: git('rev-parse', '--short', 'HEAD'),
    changed: git('status', '--porcelain', '--untracked-files=no', '--', 'libs', 'services', 'tests/bench/*.ts') !== '',
    quick,
    node: process.version,
    cpus: cpus().length,
    cpu: cpus()[0]?.model,
    memory_gib: Math.round(totalmem() / 2 ** 30),
  };
}

async function keep(measured: readonly Measured[], circumstances: Circumstances, whole: boolean): Promise<void> {
  const report = {
    ...circumstances,
    parts: measured.map(({ part, load, busyBefore, seconds, result }) => ({
      part,
      load,
      busy_before: busyBefore,
      seconds,
      figures: result.figures.map((figure) =>
        'skipped' in figure ? figure : { ...figure, keeps_bar: keepsBar(figure) },
      ),
      detail: result.detail,
    })),
  };
  const dir = join(import.meta.dirname, 'results');
  await mkdir(dir, { recursive: true });
  const name = resultName(circumstances, whole);
  await writeFile(join(dir, name), `${JSON.stringify(report, null, 2)}\n`);
  process.stdout.write(`\nwritten to tests/bench/results/${name}\n`);
}

/** The name of the file of a run. The time of day is in it: a second run does not replace the first. */
export function resultName({ at, commit, node }: Circumstances, whole: boolean): string {
  const began = at.slice(0, 19).replaceAll(':', '');
  return `${whole ? '' : 'partial-'}${began}-${commit}-node-${node}.json`;
}

function git(...args: string[]): string {
  return execFileSync('git', args, { cwd: join(import.meta.dirname, '../..'), encoding: 'utf8' }).trim();
}
