/** The nemesis: crashes, pauses, rivals and outages, when the schedule says so; and at the end, mends everything. */
import type { NemesisAct, Schedule } from './generator.ts';
import type { Hosts } from './hosts.ts';
import type { ServedProcesses } from './served/served-processes.ts';
import type { SimBus } from './sim-bus.ts';

/** The server notices so long after a host has gone silent. */
export const PIN_LOST_AFTER_MS = 1_000;

/** See the top of the file. */
export class Nemesis {
  readonly #bus: SimBus;
  readonly #hosts: Hosts;
  readonly #processes: ServedProcesses;
  #over = false;
  #acts = 0;

  constructor(bus: SimBus, hosts: Hosts, processes: ServedProcesses) {
    this.#bus = bus;
    this.#hosts = hosts;
    this.#processes = processes;
  }

  /** Does what the schedule says. */
  follow(schedule: Schedule): void {
    for (const act of schedule.nemesis) {
      void this.#bus.world.sleep(act.atMs).then(() => {
        if (!this.#over) this.#do(act);
      });
    }
  }

  /** Things go wrong no more. What is down comes up again in its own time. */
  stop(): void {
    this.#over = true;
    this.#processes.disarm();
    this.#bus.isOut = false;
    this.#bus.slowMs = 0;
    const { hookSlow, hookDead, latencyMs } = this.#bus.faults;
    this.#bus.faults = {
      ...(Object.fromEntries(Object.keys(this.#bus.faults).map((name) => [name, 0])) as unknown as SimBus['faults']),
      hookSlow,
      hookDead,
      latencyMs,
    };
  }

  #do(act: NemesisAct): void {
    if (act.kind === 'strike') {
      this.#processes.strike(act);
      return;
    }
    if (act.kind === 'slow') {
      this.#bus.slowMs = act.latencyMs;
      void this.#bus.world.sleep(act.forMs).then(() => {
        this.#bus.slowMs = 0;
      });
      return;
    }
    const victim = this.#hosts.nth(this.#acts++);
    switch (act.kind) {
      case 'crash':
        if (victim) this.#hosts.crash(victim, PIN_LOST_AFTER_MS, act.downMs);
        return;
      case 'crash_at_await':
        if (victim)
          this.#hosts.after(victim, act.awaits, () => this.#hosts.crash(victim, PIN_LOST_AFTER_MS, act.downMs));
        return;
      case 'pause':
        if (victim) this.#hosts.pause(victim, act.forMs, act.losesInbox);
        return;
      case 'rival':
        this.#hosts.start();
        return;
      case 'rival_at_await':
        if (victim) this.#hosts.after(victim, act.awaits, () => this.#hosts.start());
        return;
      case 'stop':
        if (victim) this.#hosts.stop(victim, PIN_LOST_AFTER_MS, act.downMs);
        return;
      case 'outage':
        this.#bus.isOut = true;
        void this.#bus.world.sleep(act.forMs).then(() => {
          this.#bus.isOut = false;
        });
        return;
    }
  }
}
