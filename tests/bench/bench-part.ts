/** What every part of the bench is given. */
import type { NatsConnection } from '@nats-io/nats-core';
import type { BenchServer } from './bench-server.ts';
import type { PartResult } from './figures.ts';
import type { HostProcess } from './host-process.ts';

/** A bus that is up, a host on it, and a bare client. */
export interface Bench {
  readonly server: BenchServer;
  readonly host: HostProcess;
  readonly nc: NatsConnection;
}

/** How thorough to be. */
export interface Effort {
  readonly quick: boolean;
  /** Runs of the part `steps` on each side. */
  readonly rounds: number;
}

/** One part: its name on the command line, and how it is measured. */
export interface Part {
  readonly name: string;
  measure(effort: Effort): Promise<PartResult>;
}
