/**
 * The live instances as one host hears of them. Heartbeats are no messages here, because thousands of them would cost
 * more than the sessions: what a host has heard follows from when a process ran.
 */
import type { Instances, ServedAddress } from '@coxswain/bus';
import { SERVED_LIVENESS } from '@coxswain/protocol';
import { lastBeatMs, type ServedProcess } from './served-process.ts';

/** A host that starts reads heartbeats that are not older. */
const STORED_MS = 1_000;

/** See the top of the file. */
export class SimPresence implements Instances {
  readonly #processes: () => readonly ServedProcess[];
  readonly #nowMs: () => number;
  readonly #startedMs: number;
  #restoredMs: number;
  /** When an instance of a service was forgotten. */
  readonly #forgottenMs = new Map<string, number>();

  constructor(processes: () => readonly ServedProcess[], nowMs: () => number) {
    this.#processes = processes;
    this.#nowMs = nowMs;
    this.#startedMs = nowMs();
    this.#restoredMs = this.#startedMs;
  }

  /** The connection of the host is back. */
  restored(): void {
    this.#restoredMs = this.#nowMs();
  }

  isServed(of: ServedAddress): boolean {
    return this.serving(of).length > 0;
  }

  serving(of: ServedAddress): readonly string[] {
    return this.#known(of)
      .filter(({ process, silentMs }) => process.state === 'serving' && silentMs < SERVED_LIVENESS.ttlMs)
      .sort((one, other) => one.silentMs - other.silentMs)
      .map(({ process }) => process.name);
  }

  living(of: ServedAddress): readonly string[] {
    return this.#known(of).flatMap(({ process, silentMs }) => (silentMs < SERVED_LIVENESS.ttlMs ? [process.name] : []));
  }

  silent(of: ServedAddress): readonly string[] {
    return this.#known(of).flatMap(({ process, silentMs }) =>
      silentMs >= SERVED_LIVENESS.ttlMs ? [process.name] : [],
    );
  }

  forget({ name }: ServedAddress, instance: string): void {
    this.#forgottenMs.set(`${name} ${instance}`, this.#nowMs());
  }

  silentMs(of: ServedAddress, instance: string): number {
    return this.#known(of).find(({ process }) => process.name === instance)?.silentMs ?? Number.POSITIVE_INFINITY;
  }

  listenedMs(): number {
    return this.#nowMs() - this.#restoredMs;
  }

  #known({ kind, name }: ServedAddress): { readonly process: ServedProcess; readonly silentMs: number }[] {
    const nowMs = this.#nowMs();
    return this.#processes().flatMap((process) => {
      if (process.kind !== kind || process.state === 'gone') return [];
      const beatMs = lastBeatMs(process, nowMs);
      const isStored = beatMs >= this.#startedMs - STORED_MS;
      const isForgotten = beatMs <= (this.#forgottenMs.get(`${name} ${process.name}`) ?? -1);
      return isStored && !isForgotten ? [{ process, silentMs: nowMs - Math.max(beatMs, this.#restoredMs) }] : [];
    });
  }
}
