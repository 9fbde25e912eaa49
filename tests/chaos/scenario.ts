/** A scenario: a load, faults, and what must hold. Adding one is a file in `scenarios/` and a line in `scenarios.ts`. */
import type { Random } from '../simulation/random.ts';
import type { ChaosChecker } from './checkers/check.ts';
import type { LoadShape } from './generator.ts';
import type { Measures } from './measures.ts';
import type { Operation, PlannedFault } from './nemesis.ts';
import type { OpenServers } from './servers.ts';
import type { HostSetting, World } from './world.ts';

/** What a run is started with. */
export interface RunOptions {
  readonly hosts: number;
  readonly workers: number;
  readonly sessions: number;
  /** Of load; settling comes after it. */
  readonly minutes: number;
  readonly replicas: 1 | 3;
  readonly seed: number;
}

/** A figure and what it should be at most. Without a bar it is only told. */
export interface Bar {
  readonly what: string;
  readonly value: number | null;
  readonly unit: string;
  readonly atMost?: number;
}

/** See the top of the file. */
export interface Scenario {
  readonly name: string;
  /** One line for `--list`. */
  readonly about: string;
  readonly defaults: RunOptions;
  /** How clients behave; default {@link LoadShape} of `generator.ts`. */
  readonly load?: Partial<LoadShape>;
  /** Default: one server, or a cluster of three where three replicas are asked for. */
  readonly openServers?: OpenServers;
  readonly hostSetting?: HostSetting;
  /** Beside those of `operations.ts`. */
  readonly operations?: Readonly<Record<string, Operation>>;
  /** Why it cannot be run on this machine, in words; null where it can. */
  impossible?(): string | null;
  /** What is done once hosts and workers are up and before the load. */
  prepare?(world: World): Promise<void>;
  /** The nemesis' plan; all of its chance comes from `random`. */
  faults(options: RunOptions, random: Random): readonly PlannedFault[];
  /** Beside {@link import('./checkers/check.ts').CHECKERS}. */
  readonly checkers?: Readonly<Record<string, ChaosChecker>>;
  /** Figures, with their bars. */
  bars(measures: Measures): readonly Bar[];
}
