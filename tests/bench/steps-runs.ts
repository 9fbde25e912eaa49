/** What the part `steps` measures, and its goals. */
import type { PeerRun } from './peers.ts';

/** The levels of the part `steps`. `ofRestate`: our goal, as a multiple of Restate's figure. */
export const LEVELS = [
  { sessions: 1, turns: 300, ofRestate: 2 },
  { sessions: 50, turns: 40, ofRestate: 1.5 },
  { sessions: 500, turns: 10, ofRestate: 1.3 },
] as const;
/** One level. */
export type Level = (typeof LEVELS)[number];

/** Our goal for a warm host, as a share of the raw appends of one client. */
export const OF_RAW = 0.5;
/** One level on one of our hosts. */
export interface OurLevel {
  readonly steps_s: number;
  readonly turn_p50_ms: number;
  readonly turn_p99_ms: number;
  readonly host_cpu_us_per_step: number;
}

/** One of our hosts, at each level. */
export interface OurRun {
  /** Version of the nats-server. */
  readonly server: string;
  readonly started: Record<number, OurLevel>;
  readonly warm: Record<number, OurLevel & { readonly raw_appends_s: number }>;
}

/** All runs of the part `steps`: its detail in the results. */
export interface StepsRuns {
  readonly ours: readonly OurRun[];
  /** `failed`: why a peer has fewer runs than we have. */
  readonly peers: readonly {
    readonly name: string;
    readonly runs: readonly PeerRun[];
    readonly failed?: string | undefined;
  }[];
  /** The share of the CPU time that was in use before each run, 0 to 1. */
  readonly busy_before: readonly number[];
}
