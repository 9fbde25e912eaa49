/** Runs a scenario: world, clients, nemesis, then what they have left, checked. */
import { setMaxListeners } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { createRandom } from '../simulation/random.ts';
import { CHECKERS, check, type Verdict } from './checkers/check.ts';
import { startClients } from './clients.ts';
import { collectJournals } from './collect-journals.ts';
import { filesOf, readEvidence } from './evidence.ts';
import { planLoad, USUAL_LOAD } from './generator.ts';
import { HistoryWriter, type MemorySample } from './history.ts';
import { type Measures, measure } from './measures.ts';
import { strike } from './nemesis.ts';
import { OPERATIONS } from './operations.ts';
import type { Bar, RunOptions, Scenario } from './scenario.ts';
import { openServersFor } from './servers.ts';
import { hostNames, openWorld, type World, workerNames } from './world.ts';

/** How a run went. */
export interface Outcome {
  readonly verdicts: readonly Verdict[];
  readonly measures: Measures;
  readonly bars: readonly Bar[];
}

/** Everything has to come to its end so long after the load. */
const SETTLE_MS = 90_000;
const SAMPLE_EVERY_MS = 2_000;

/**
 * Runs a scenario in an empty folder of its own, and checks it.
 * @param say is told how far it is.
 */
export async function runScenario(
  scenario: Scenario,
  options: RunOptions,
  folder: string,
  say: (line: string) => void = () => undefined,
): Promise<Outcome> {
  const files = filesOf(folder);
  const history = new HistoryWriter(files.history);
  history.push({ what: 'run', scenario: scenario.name, options: { ...options }, wallMs: wallNow() });
  const loadMs = options.minutes * 60_000;
  const plan = planLoad(options.seed, options.sessions, loadMs, { ...USUAL_LOAD, ...scenario.load });
  writeFileSync(files.plan, JSON.stringify(plan));
  const faults = scenario.faults(options, createRandom(options.seed).fork('faults'));
  const openServers = scenario.openServers ?? openServersFor(options.replicas);
  const world = await openWorld(folder, history, openServers, scenario.hostSetting);
  try {
    say(`servers are up; ${options.hosts} hosts and ${options.workers} workers start`);
    // Hosts make the streams, each for itself if need be; workers need them.
    await Promise.all(hostNames(options.hosts).map((name) => world.hosts.start(name)));
    await Promise.all(workerNames(options.workers).map((name) => world.workers.start(name)));
    await scenario.prepare?.(world);
    await underLoad(world, { plan, faults, operations: { ...OPERATIONS, ...scenario.operations } }, say);
    say(`${await collectJournals(world.servers, files.journals)} records are collected`);
  } finally {
    history.close();
    await world.close();
  }
  return judge(scenario, folder);
}

async function underLoad(
  world: World,
  {
    plan,
    faults,
    operations,
  }: { plan: ReturnType<typeof planLoad>; faults: ReturnType<Scenario['faults']>; operations: typeof OPERATIONS },
  say: (line: string) => void,
): Promise<void> {
  const { history } = world;
  const ended = new AbortController();
  setMaxListeners(0, ended.signal);
  const clients = await startClients(world, plan);
  const sampling = sampleMemory(world, ended.signal);
  try {
    history.push({ what: 'phase', phase: 'load' });
    say(`load for ${Math.round(plan.loadMs / 1_000)} s, ${faults.length} faults`);
    // What could not be carried out stands in the history, and is a finding of its own.
    const struck = strike(world, faults, operations, ended.signal).catch((error: Error) =>
      say(`nemesis: ${error.message}`),
    );
    await clients.loaded;
    await struck;
    history.push({ what: 'phase', phase: 'settling' });
    say('the load is over; everything has to come to its end');
    const left = await clients.settle(SETTLE_MS);
    if (left.length === 0) history.push({ what: 'phase', phase: 'settled' });
    else history.push({ what: 'phase', phase: 'unsettled', detail: `${left.length}: ${left.slice(0, 10).join('; ')}` });
  } finally {
    ended.abort();
    await sampling;
    await clients.close();
  }
}

/** Reads a run's folder and checks it; also long after. */
export async function judge(scenario: Scenario, folder: string): Promise<Outcome> {
  const evidence = readEvidence(folder);
  const verdicts = await check(evidence, { ...CHECKERS, ...scenario.checkers });
  const measures = measure(evidence);
  return { verdicts, measures, bars: scenario.bars(measures) };
}

async function sampleMemory({ hosts, workers, servers, history }: World, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const pids: [MemorySample['role'], string, number][] = [
      ...hosts.running.map(({ name, pid }): [MemorySample['role'], string, number] => ['host', name, pid]),
      ...workers.running.map(({ name, pid }): [MemorySample['role'], string, number] => ['worker', name, pid]),
      ...Object.entries(servers.pids()).map(([name, pid]): [MemorySample['role'], string, number] => [
        'server',
        name,
        pid,
      ]),
    ];
    const samples = pids.flatMap(([role, name, pid]) => {
      const rssKib = residentKib(pid);
      return rssKib === null ? [] : [{ role, name, rssKib }];
    });
    history.push({ what: 'memory', samples });
    await sleep(SAMPLE_EVERY_MS, undefined, { signal }).catch(() => undefined);
  }
}

/** Resident memory of a process, where the system tells it; null where it does not, or the process is gone. */
function residentKib(pid: number): number | null {
  try {
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? Number.NaN) || null;
  } catch {
    return null;
  }
}

/** The wall clock with fractions, as of now. */
function wallNow(): number {
  return performance.timeOrigin + performance.now();
}
