/** `npm run chaos`: runs a scenario, or checks the files of one that has run. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runCaseTable } from './case-table.ts';
import { USAGE, UsageError, type Wanted, wantedBy } from './command-line.ts';
import { filesOf } from './evidence.ts';
import { History } from './history.ts';
import { isSound, keep, reportLines } from './report.ts';
import { judge, runScenario } from './run-scenario.ts';
import type { RunOptions } from './scenario.ts';
import { CASE_TABLES, SCENARIOS } from './scenarios.ts';

const say = (line: string) => void process.stdout.write(`${line}\n`);

async function main(wanted: Wanted): Promise<number> {
  if (wanted.want === 'help') {
    say(USAGE);
    return 0;
  }
  if (wanted.want === 'list') {
    const width = Math.max(...[...SCENARIOS, ...CASE_TABLES].map(({ name }) => name.length));
    for (const { name, about, defaults } of SCENARIOS) {
      const { hosts, workers, sessions, minutes } = defaults;
      say(`${name.padEnd(width)}  ${about} (${hosts} hosts, ${workers} workers, ${sessions} sessions, ${minutes} min)`);
    }
    for (const { name, about, cases } of CASE_TABLES)
      say(`${name.padEnd(width)}  ${about} (${cases.length} cases, about ${cases.length} min)`);
    return 0;
  }
  if (wanted.want === 'check') {
    const [run] = History.read(filesOf(wanted.folder).history).of('run');
    const scenario = SCENARIOS.find(({ name }) => name === run?.scenario);
    if (!run || !scenario) throw new UsageError(`${wanted.folder} holds no run of a scenario that is known`);
    const outcome = await judge(scenario, wanted.folder);
    for (const line of reportLines(scenario, run.options as unknown as RunOptions, outcome)) say(line);
    return isSound(outcome) ? 0 : 1;
  }
  if (wanted.want === 'table') return (await runCaseTable(wanted.table, say)) ? 0 : 1;
  const { scenario, options } = wanted;
  const why = scenario.impossible?.() ?? null;
  if (why !== null) {
    say(`SKIPPED ${scenario.name}: ${why}`);
    return 0;
  }
  const folder = wanted.folder ?? mkdtempSync(join(tmpdir(), 'cox-chaos-'));
  mkdirSync(folder, { recursive: true });
  const beganMs = performance.now();
  const tell = (line: string) => say(`[${Math.round((performance.now() - beganMs) / 1_000)} s] ${line}`);
  tell(`files in ${folder}`);
  const outcome = await runScenario(scenario, options, folder, tell);
  say('');
  for (const line of reportLines(scenario, options, outcome)) say(line);
  say(`\nwritten to tests/chaos/results/${keep(scenario, options, outcome)}`);
  if (wanted.folder === undefined && isSound(outcome)) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  else say(`files: ${folder} (npm run chaos -- --check ${folder})`);
  return isSound(outcome) ? 0 : 1;
}

// Servers and hosts are ended as this process exits, which a signal alone would not let it do.
process.once('SIGINT', () => process.exit(130));
process.once('SIGTERM', () => process.exit(143));
try {
  process.exitCode = await main(wantedBy(process.argv.slice(2), SCENARIOS, CASE_TABLES));
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  process.stderr.write(`chaos: ${error.message}\n`);
  process.exitCode = 2;
}
