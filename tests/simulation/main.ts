/**
 * `npm run sim -- --seeds N [--seed S]`: N seeds from 1 on, or from S on; without N, S alone. `--coverage` says what was
 * reached, `--verbose` prints every journal. Exits 1 at the first seed that fails, with its journals, and where 300 seeds
 * or more have not reached all that they must. `COX_CHART=xstate` runs plain XState instead of the compiled chart.
 */
import '../chart-runner.ts';
import { parseArgs } from 'node:util';
import { journalLine } from '../../libs/turn/test/journal-line.ts';
import { type Coverage, cover, MUST_REACH } from './coverage.ts';
import { type Simulation, simulate } from './simulate.ts';

const values = readFlags();
const first = whole(values.seed ?? '1', '--seed');
const count = whole(values.seeds ?? (values.seed === undefined ? '300' : '1'), '--seeds');

const beganMs = performance.now();
const totals = {
  sessions: 0,
  answers: 0,
  turns: 0,
  ends: 0,
  records: 0,
  runs: 0,
  crashes: 0,
  takenOver: 0,
  sent: 0,
  virtualMs: 0,
};
const coverage: Coverage = new Map();
for (let seed = first; seed < first + count; seed++) {
  const simulation = await simulate(seed).catch((error: unknown) => {
    throw new Error(`seed ${seed} broke off; again with: npm run sim -- --seed ${seed}`, { cause: error });
  });
  if (values.verbose) print(simulation);
  if (simulation.problems.length > 0) {
    print(simulation);
    for (const { checker, session, what } of simulation.problems) console.log(`${checker} ${session}: ${what}`);
    console.log(`\nseed ${seed} failed; again with: npm run sim -- --seed ${seed}`);
    process.exit(1);
  }
  add(simulation);
}
const seconds = (performance.now() - beganMs) / 1_000;
console.log(`${count} seeds from ${first}: nothing wrong, ${(count / seconds).toFixed(1)} seeds a second`);
console.log(
  `${totals.sessions} sessions: ${totals.answers} answers, ${totals.turns} turns and ${totals.ends} runs, each with one end; ` +
    'every call with its result in every prompt',
);
console.log(
  `${totals.records} records, ${totals.sent} commands, ${totals.runs} tool runs, ${totals.crashes} hosts killed, ` +
    `${totals.takenOver} sessions taken over, ${Math.round(totals.virtualMs / 60_000)} virtual minutes`,
);
const missed = MUST_REACH.filter((what) => !coverage.has(what));
if (values.coverage)
  for (const [what, times] of [...coverage].sort()) console.log(`${String(times).padStart(9)} ${what}`);
if (count >= 300 && missed.length > 0) {
  console.log(`never reached: ${missed.join(', ')}`);
  process.exitCode = 1;
}

function add(simulation: Simulation): void {
  const { history, evidence, tookMs } = simulation;
  cover(coverage, simulation);
  totals.virtualMs += tookMs;
  totals.sent += history.of('sent').length;
  totals.runs += history.of('ran').length;
  totals.crashes += history.of('host').filter(({ did }) => did === 'is killed').length;
  for (const { records } of evidence.journals) {
    totals.records += records.length;
    if (records.length > 0) totals.sessions++;
    for (const { events } of records) {
      for (const { type } of events) {
        if (type === 'message_complete') totals.answers++;
        if (type === 'turn_end') totals.turns++;
        if (type === 'agent_end') totals.ends++;
      }
    }
    totals.takenOver += records.filter(({ input }) => input.type === 'owned').length;
  }
}

/** The journals as lines, with what hosts and tools did between. */
function print({ history, evidence, schedule }: Simulation): void {
  console.log(`seed ${schedule.seed}, ${schedule.profile}: ${JSON.stringify(schedule.faults)}`);
  for (const entry of history.entries) {
    const at = `${(entry.atMs / 1_000).toFixed(4).padStart(9)}s`;
    if (entry.what === 'stored') {
      const journal = evidence.journals.find(({ session }) => session === entry.session);
      const record = journal?.records[entry.n - 1];
      if (!record) continue;
      const { input, epoch, attempt, cursor } = record;
      const about = input.type === 'command' ? `${input.verb} ${input.command_id} @${cursor?.seq}` : input.type;
      console.log(`${at} ${entry.session} ${entry.n} (${about}) epoch ${epoch} by ${attempt}`);
      for (const event of record.events) console.log(`${' '.repeat(20)}${journalLine(event)}`);
    } else if (entry.what === 'ran') {
      console.log(`${at} ran ${entry.run.key} ${entry.run.tool} at ${entry.run.host} in epoch ${entry.run.epoch}`);
    } else console.log(`${at} ${JSON.stringify({ ...entry, atMs: undefined })}`);
  }
}

function readFlags() {
  try {
    return parseArgs({
      options: {
        seeds: { type: 'string' },
        seed: { type: 'string' },
        verbose: { type: 'boolean', default: false },
        coverage: { type: 'boolean', default: false },
      },
    }).values;
  } catch (error) {
    return badlyPut((error as Error).message);
  }
}

function badlyPut(message: string): never {
  console.error(message);
  process.exit(2);
}

function whole(text: string, flag: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value >= 0) return value;
  return badlyPut(`${flag} takes a whole number, not ${text}`);
}
