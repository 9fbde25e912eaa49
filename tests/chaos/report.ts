/** The report of a run: plain lines for people, JSON for keeping. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, totalmem } from 'node:os';
import { join } from 'node:path';
import type { Outcome } from './run-scenario.ts';
import type { Bar, RunOptions, Scenario } from './scenario.ts';

const SHOWN_MAX = 10;

/** Whether a bar is kept; null where there is none. */
export function keepsBar({ value, atMost }: Bar): boolean | null {
  if (atMost === undefined) return null;
  return value !== null && value <= atMost;
}

/** Whether no checker has found anything. */
export function isSound({ verdicts }: Outcome): boolean {
  return verdicts.every(({ problems }) => problems.length === 0);
}

/** The report as lines. */
export function reportLines({ name }: Scenario, options: RunOptions, { verdicts, measures, bars }: Outcome): string[] {
  const { hosts, workers, sessions, minutes, replicas, seed } = options;
  const lines = [
    `${name}: ${hosts} hosts, ${workers} workers, ${sessions} sessions, ${minutes} min, R${replicas}, seed ${seed}`,
    `  ${measures.records} records (${Math.round(measures.recordsPerSecond)} a second under load), ${measures.runs} runs, ${measures.calls} calls, ${measures.commands} commands`,
    `  ${measures.kills} kills, ${measures.pauses} pauses; ${measures.unacknowledged} publishes without an acknowledgement, ${measures.noReceipt} receipts waited for in vain`,
    '',
  ];
  for (const bar of bars) {
    const kept = keepsBar(bar);
    const value = bar.value === null ? 'none' : `${bar.value} ${bar.unit}`.trim();
    const atMost = bar.atMost === undefined ? '' : `≤ ${bar.atMost} ${bar.unit}`.trim();
    lines.push(
      `  ${bar.what.padEnd(66)} ${value.padStart(10)}  ${atMost.padEnd(10)} ${kept === null ? '' : kept ? 'ok' : 'MISSED'}`.trimEnd(),
    );
  }
  lines.push('');
  for (const { checker, problems } of verdicts) {
    lines.push(`  ${checker.padEnd(66)} ${problems.length === 0 ? 'holds' : `${problems.length} PROBLEMS`}`);
    for (const { session, what } of problems.slice(0, SHOWN_MAX)) lines.push(`    ${session} ${what}`.trimEnd());
    if (problems.length > SHOWN_MAX) lines.push(`    … and ${problems.length - SHOWN_MAX} more`);
  }
  return lines;
}

/** Keeps a run's figures; those of a run that is not as the scenario has it under a name of their own. @returns the file's. */
export function keep({ name, defaults }: Scenario, options: RunOptions, outcome: Outcome): string {
  const now = new Date().toISOString();
  const commit = git('rev-parse', '--short', 'HEAD');
  const kept = {
    at: now,
    commit,
    changed: git('status', '--porcelain', '--untracked-files=no', '--', 'libs', 'services', 'tests/chaos/*.ts') !== '',
    scenario: name,
    options,
    node: process.version,
    cpus: cpus().length,
    cpu: cpus()[0]?.model,
    memory_gib: Math.round(totalmem() / 2 ** 30),
    load_after: loadavg()[0],
    bars: outcome.bars.map((bar) => ({ ...bar, keeps_bar: keepsBar(bar) })),
    checkers: outcome.verdicts.map(({ checker, problems }) => ({
      checker,
      problems: problems.length,
      first: problems.slice(0, SHOWN_MAX),
    })),
    measures: outcome.measures,
  };
  const folder = join(import.meta.dirname, 'results');
  mkdirSync(folder, { recursive: true });
  const isWhole = (['hosts', 'workers', 'sessions', 'minutes'] as const).every((one) => options[one] >= defaults[one]);
  const file = `${isWhole ? '' : 'partial-'}${now.slice(0, 10)}-${name}-r${options.replicas}-${commit}.json`;
  writeFileSync(join(folder, file), `${JSON.stringify(kept, null, 2)}\n`);
  return file;
}

function git(...args: string[]): string {
  return execFileSync('git', args, { cwd: import.meta.dirname, encoding: 'utf8' }).trim();
}
