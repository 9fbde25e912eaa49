/** The hosts of a simulation: real ones, each on its own wires, that can be killed between any two of their awaits. */
import { StoreClock } from '@coxswain/adapter-memory';
import { combineToolSources, createCrewTools } from '@coxswain/adapter-tools';
import type { Clock, ToolSource } from '@coxswain/ports';
import { HANDOFF_TOOL, type SessionRef, type SessionStatus } from '@coxswain/protocol';
import { createSessionHost, type SessionHost } from '@coxswain/session';
import type { VirtualTime } from '../../libs/session/test/virtual-time.ts';
import type { Schedule } from './generator.ts';
import type { History } from './history.ts';
import { HostLink } from './host-link.ts';
import { HostAsking, type ServedSide } from './served/host-asking.ts';
import type { SimBus } from './sim-bus.ts';
import { SimHooks } from './sim-hooks.ts';
import { SimModels } from './sim-models.ts';
import { simPredicates } from './sim-predicates.ts';
import { SimTools, type ToolWorld } from './sim-tools.ts';

/** One process. */
export interface Process {
  readonly name: string;
  readonly link: HostLink;
  readonly host: SessionHost;
}

/** A host that cannot start is started again after this time. */
const START_AGAIN_MS = 1_000;

/** See the top of the file. */
export class Hosts {
  readonly #time: VirtualTime;
  readonly #bus: SimBus;
  readonly #history: History;
  readonly #schedule: Schedule;
  readonly #toolWorld: ToolWorld;
  readonly #served: ServedSide;
  readonly #running: Process[] = [];
  readonly #countdowns = new Map<string, { awaits: number; readonly strike: () => void }>();
  readonly #awaits = new Map<string, number>();
  #started = 0;
  #down = 0;

  constructor(
    time: VirtualTime,
    bus: SimBus,
    history: History,
    schedule: Schedule,
    toolWorld: ToolWorld,
    served: ServedSide,
  ) {
    this.#time = time;
    this.#bus = bus;
    this.#history = history;
    this.#schedule = schedule;
    this.#toolWorld = toolWorld;
    this.#served = served;
    time.afterWake = (owner) => {
      this.#awaits.set(owner, (this.#awaits.get(owner) ?? 0) + 1);
      const countdown = this.#countdowns.get(owner);
      if (!countdown || --countdown.awaits > 0) return;
      this.#countdowns.delete(owner);
      countdown.strike();
    };
  }

  /** The processes that run now. */
  get running(): readonly Process[] {
    return this.#running;
  }

  /** How often a process has gone on after an await. */
  awaitsOf(name: string): number {
    return this.#awaits.get(name) ?? 0;
  }

  /** Whether a process is still to come up again. */
  get anyDown(): boolean {
    return this.#down > 0;
  }

  /** One of those that run, or undefined. */
  nth(index: number): Process | undefined {
    return this.#running[index % Math.max(1, this.#running.length)];
  }

  /** What some host says of a session. Rejects where the bus cannot be reached. */
  async statusOf(ref: SessionRef): Promise<SessionStatus | null | undefined> {
    const status = await this.nth(0)?.host.status(ref);
    return status ? this.#bus.plant.status(status) : status;
  }

  /** Starts a process. */
  start(): void {
    const name = `host${++this.#started}`;
    const link = new HostLink(this.#bus, name);
    const clock = new StoreClock(link.clock, () => link.storeTimeMs(), NO_LOG);
    const process: Process = { name, link, host: createSessionHost(this.#ports(name, link, clock), OPTIONS(name)) };
    this.#running.push(process);
    this.#note(name, 'starts');
    const start = async () => {
      await clock.start();
      return process.host.start();
    };
    void start().then(
      ({ found }) => this.#note(name, `takes up ${found}`),
      () => this.crash(process, 0, START_AGAIN_MS),
    );
  }

  /** Kills a process at once; another takes its place after a while. */
  crash(process: Process, pinLostAfterMs: number, downMs: number): void {
    const place = this.#running.indexOf(process);
    if (place < 0) return;
    this.#running.splice(place, 1);
    this.#countdowns.delete(process.name);
    this.#endProcess(process);
    this.#note(process.name, 'is killed');
    this.#down++;
    void this.#bus.world.sleep(pinLostAfterMs).then(() => process.link.loseInbox());
    void this.#bus.world.sleep(downMs).then(() => {
      this.#down--;
      this.start();
    });
  }

  /** Does this just after so many of the process's awaits. */
  after(process: Process, awaits: number, strike: () => void): void {
    this.#countdowns.set(process.name, { awaits, strike });
  }

  /** Stops a process in order; another takes its place after a while. */
  stop(process: Process, pinLostAfterMs: number, downMs: number): void {
    const place = this.#running.indexOf(process);
    if (place < 0) return;
    this.#running.splice(place, 1);
    this.#note(process.name, 'is stopped');
    this.#down++;
    void process.host.stop(2_000).then(() => {
      this.#note(process.name, 'has stopped');
      // The process ends; what it had not sent by then is not sent any more.
      this.#endProcess(process);
      void this.#bus.world.sleep(pinLostAfterMs).then(() => process.link.loseInbox());
    });
    void this.#bus.world.sleep(downMs).then(() => {
      this.#down--;
      this.start();
    });
  }

  #endProcess({ name, link }: Process): void {
    link.isDead = true;
    this.#time.kill(name);
    this.#bus.served.disconnect(name);
  }

  /** Stops a process for a while; it goes on as if nothing had happened. */
  pause(process: Process, forMs: number, losesInbox: boolean): void {
    this.#time.hold(process.name, this.#time.nowMs + forMs);
    this.#note(process.name, `stands still for ${Math.round(forMs)} ms`);
    if (!losesInbox) return;
    void process.link.loseInbox();
    void this.#bus.world.sleep(forMs).then(() => process.link.regainInbox());
  }

  #ports(name: string, link: HostLink, clock: Clock): Parameters<typeof createSessionHost>[0] {
    let ids = 0;
    const asking = new HostAsking(name, this.#served);
    const log = (fields: object, message: string) => {
      const reason = 'reason' in fields ? String(fields.reason) : null;
      const session = 'session_id' in fields ? String(fields.session_id) : null;
      this.#history.push({ what: 'log', host: name, session, message: message.slice(0, 200), reason });
    };
    return {
      journal: link.journal,
      inbox: { ...link.inbox, incarnation: this.#bus.bus.createInbox().incarnation },
      snapshots: link.snapshots,
      timers: link.timers,
      blobs: link.blobs,
      hostChannel: link.hostChannel,
      active: link.active,
      publisher: link.publisher,
      sender: link.sender,
      clock,
      ids: { next: () => String(++ids) },
      log: { debug: () => {}, info: () => {}, warn: log, error: log },
      hooks: new SimHooks(
        this.#schedule.hooks,
        this.#schedule.hookChanges ?? [],
        // When its table changes is planned by the time of the simulation.
        this.#time.clock(name),
        asking,
      ),
      models: new SimModels(this.#schedule.sessions, clock, this.#history, this.#bus.plant.shown),
      tools: this.#tools(new SimTools(this.#toolWorld, asking, clock, name)),
      personas: { find: async () => null, names: async () => [] },
      served: asking.personas(this.#schedule.personas ?? []),
      prices: [{ model: 'sim/*', input: 10, output: 30 }],
      stopPredicates: simPredicates(clock, this.#bus.random.fork(`predicates ${name}`)),
      defaultRoot: '/',
    };
  }

  #tools(own: ToolSource): ToolSource {
    const { crew, sessions } = this.#schedule;
    if (crew) return combineToolSources([createCrewTools(), own]);
    return sessions.some(({ handsOff }) => handsOff) ? combineToolSources([HANDING_OVER, own]) : own;
  }

  #note(host: string, did: string): void {
    this.#history.push({ what: 'host', host, did });
  }
}

const NO_LOG = { debug() {}, info() {}, warn() {}, error() {} };

/** Sessions that may not delegate may hand off; whose personas name nobody for that have no such tool. */
const HANDING_OVER: ToolSource = {
  open: async () => ({
    tools: [HANDOFF_TOOL],
    call: () => Promise.reject(new Error('a session carries hand-offs out itself')),
    probe: async () => ({ state: 'unknown' }),
    close: async () => [],
  }),
};

// Small figures, so that snapshots, passivations and given-up appends happen within seconds.
const OPTIONS = (name: string) => ({
  name,
  snapshotEvery: 7,
  passivateAfterMs: 2_000,
  sweepEveryMs: 500,
  appendBounds: { attemptsMax: 5, firstDelayMs: 20, maxDelayMs: 400 },
});
