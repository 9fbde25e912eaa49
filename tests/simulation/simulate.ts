/** One simulation: everything of one schedule, from its beginning to the end of all sessions or of patience. */
import { sessionRef, tombstoneIn } from '@coxswain/protocol';
import { readRecord } from '@coxswain/session';
import { VirtualTime } from '../../libs/session/test/virtual-time.ts';
import { Caretaker } from './caretaker.ts';
import { check, type Evidence, type Journal, type Problem } from './checkers/check.ts';
import type { Stored } from './checkers/deletion.ts';
import { Client } from './client.ts';
import { Copier } from './copier.ts';
import { Deleter } from './deleter.ts';
import { generate, type Schedule, TROUBLE_MS } from './generator.ts';
import { History } from './history.ts';
import { Hosts } from './hosts.ts';
import { Nemesis } from './nemesis.ts';
import { createRandom } from './random.ts';
import { startProcesses } from './served/start-processes.ts';
import { NO_PLANT, type Plant, SimBus } from './sim-bus.ts';

/** What became of a seed. */
export interface Simulation {
  readonly schedule: Schedule;
  readonly history: History;
  readonly evidence: Evidence;
  readonly problems: readonly Problem[];
  /** Virtual time until all sessions had ended. */
  readonly tookMs: number;
  /** How often the first host has gone on after an await. */
  readonly awaits: number;
}

/** Runs the schedule of a seed. `plant` puts a fault in that checkers must find. */
export function simulate(seed: number, plant: Plant = NO_PLANT): Promise<Simulation> {
  return runSchedule(generate(seed), plant);
}

/** Runs a schedule. */
export async function runSchedule(schedule: Schedule, plant: Plant = NO_PLANT): Promise<Simulation> {
  const time = new VirtualTime();
  const history = new History(() => time.elapsedMs);
  const random = createRandom(schedule.seed).fork('run');
  const bus = new SimBus(time, random, history, schedule.faults, plant);
  const toolWorld = {
    clock: bus.world,
    random: random.fork('tools'),
    history,
    plant,
    recordsOf: (session: string) => bus.recordsOf(session),
    elapsedMs: () => time.elapsedMs,
  };
  const client = new Client(bus, history, random.fork('client'));
  const served = startProcesses(time, bus, toolWorld, schedule, (session, body, id) =>
    client.bringOutcome(session, body, id),
  );
  const hosts = new Hosts(time, bus, history, schedule, toolWorld, served);
  const nemesis = new Nemesis(bus, hosts, served.processes);

  for (let i = 0; i < schedule.hosts; i++) hosts.start();
  client.follow(schedule);
  new Copier(bus, client).follow(schedule);
  new Deleter(bus, client, history).follow(schedule);
  nemesis.follow(schedule);
  await time.advance(TROUBLE_MS);
  nemesis.stop();
  const caretaker = new Caretaker(time, hosts, client, random.fork('caretaker'), schedule);
  const ended = await caretaker.untilAllEnd();
  const tookMs = time.elapsedMs;
  // What is still on its way must find nothing left to change.
  await time.advance(30_000);

  const statuses = await caretaker.statuses();
  const stored = await storedOf(bus, schedule);
  const journals = await journalsOf(bus, stored);
  const waiting = await waitingOf(bus, schedule);
  const evidence = { schedule, history, ended, journals, statuses, stored, waiting, blobs: bus.bus.blobs };
  return { schedule, history, evidence, problems: await check(evidence), tookMs, awaits: hosts.awaitsOf('host1') };
}

async function storedOf(bus: SimBus, { sessions }: Schedule): Promise<ReadonlyMap<string, Stored>> {
  const all = new Map<string, Stored>();
  for (const { id } of sessions) {
    const stands: Uint8Array[] = [];
    for await (const { bytes } of bus.bus.journal.read(sessionRef(id))) stands.push(bytes);
    all.set(id, { written: bus.writtenOf(id), stands });
  }
  return all;
}

/** By their places: ids may be anything. */
async function waitingOf(bus: SimBus, { sessions }: Schedule): Promise<ReadonlyMap<string, readonly string[]>> {
  const inbox = bus.bus.createInbox();
  const all = new Map<string, readonly string[]>();
  for (const { id } of sessions) {
    const commands = await inbox.read(sessionRef(id), 0, null);
    all.set(
      id,
      commands.map(({ seq, verb }) => `${verb} (${seq})`),
    );
  }
  return all;
}

/** The journals as they stand; of those that were deleted what they were. */
function journalsOf(bus: SimBus, stored: ReadonlyMap<string, Stored>): Promise<Journal[]> {
  return Promise.all(
    [...stored].map(async ([session, { written, stands }]) => {
      const isDeleted = written.some((bytes) => tombstoneIn(bytes));
      const bytes = (isDeleted ? written : stands).filter((one) => !tombstoneIn(one));
      return { session, bytes, records: await Promise.all(bytes.map((one) => readRecord(one, bus.bus.blobs))) };
    }),
  );
}
