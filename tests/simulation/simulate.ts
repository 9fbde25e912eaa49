/** One simulation: everything of one schedule, from its beginning to the end of all sessions or of patience. */
import { sessionRef } from '@coxswain/protocol';
import { readRecord } from '@coxswain/session';
import { VirtualTime } from '../../libs/session/test/virtual-time.ts';
import { check, type Evidence, type Journal, type Problem } from './checkers/check.ts';
import { Client } from './client.ts';
import { generate, type Schedule, TROUBLE_MS } from './generator.ts';
import { History } from './history.ts';
import { Hosts } from './hosts.ts';
import { Nemesis } from './nemesis.ts';
import { createRandom } from './random.ts';
import { NO_PLANT, type Plant, SimBus } from './sim-bus.ts';
import { ToolWorker } from './sim-tools.ts';

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

/** Once nothing goes wrong any more, every session must end within this time. */
const PATIENCE_MS = 10 * 60_000;
const LOOK_EVERY_MS = 2_000;
/** A command that was delivered to a host that is gone comes again after seconds, and may begin another run. */
const QUIET_LOOKS = 4;

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
  const hosts = new Hosts(time, bus, history, schedule, toolWorld, new ToolWorker(toolWorld));
  const client = new Client(bus, history, random.fork('client'));
  const nemesis = new Nemesis(bus, hosts);

  for (let i = 0; i < schedule.hosts; i++) hosts.start();
  client.follow(schedule);
  nemesis.follow(schedule);
  await time.advance(TROUBLE_MS);
  nemesis.stop();
  const ended = await untilAllEnd(time, schedule, hosts, client);
  const tookMs = time.elapsedMs;
  // What is still on its way must find nothing left to change.
  await time.advance(30_000);

  const evidence = { schedule, history, ended, journals: await journalsOf(bus, schedule), blobs: bus.bus.blobs };
  return { schedule, history, evidence, problems: await check(evidence), tookMs, awaits: hosts.awaitsOf('host1') };
}

/** Looks after the sessions until each has ended: decides what waits for a person, wakes what sleeps. */
async function untilAllEnd(time: VirtualTime, schedule: Schedule, hosts: Hosts, client: Client): Promise<boolean> {
  const untilMs = time.elapsedMs + PATIENCE_MS;
  let quiet = 0;
  while (time.elapsedMs < untilMs) {
    await time.advance(LOOK_EVERY_MS);
    let open = hosts.anyDown;
    for (const { id } of schedule.sessions) {
      let isOpen = true;
      void hosts
        .nth(0)
        ?.host.status(sessionRef(id))
        .then(async (status) => {
          isOpen = status !== null && status.state !== 'stopped' && status.state !== 'failed';
          if (!isOpen || status === null) return;
          const top = typeof status.state === 'string' ? status.state : Object.keys(status.state)[0];
          for (const { call_id } of status.approvals) void client.ask(id, 'approve', { call_id, decision: 'allow' });
          if (top === 'suspended') void client.ask(id, 'resume', {});
          if (top === 'daemon_idle') void client.ask(id, 'cancel', {});
        })
        .catch(() => {
          // It cannot be read just now; it is looked at again.
        });
      await time.advance(200);
      open ||= isOpen;
    }
    quiet = open ? 0 : quiet + 1;
    if (quiet === QUIET_LOOKS) return true;
  }
  return false;
}

async function journalsOf(bus: SimBus, schedule: Schedule): Promise<Journal[]> {
  const journals: Journal[] = [];
  for (const { id } of schedule.sessions) {
    const stored: Uint8Array[] = [];
    for await (const { bytes } of bus.bus.journal.read(sessionRef(id))) stored.push(bytes);
    const records = await Promise.all(stored.map((bytes) => readRecord(bytes, bus.bus.blobs)));
    journals.push({ session: id, bytes: stored, records });
  }
  return journals;
}
