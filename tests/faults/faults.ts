/** All faults, by the test file that must find them. */
import type { Fault } from './fault.ts';
import { FAULTS_OF_COPIES } from './faults-of-copies.ts';
import { FAULTS_OF_HOOKS } from './faults-of-hooks.ts';
import { FAULTS_OF_RUNS } from './faults-of-runs.ts';
import { FAULTS_OF_SERVED_WORK } from './faults-of-served-work.ts';

/** A fault of a test file. */
export interface PlantedFault {
  readonly testFile: string;
  readonly name: string;
  readonly plant: Fault;
}

const GROUPS: readonly { readonly [testFile: string]: { readonly [name: string]: Fault } }[] = [
  FAULTS_OF_RUNS,
  FAULTS_OF_HOOKS,
  FAULTS_OF_COPIES,
  FAULTS_OF_SERVED_WORK,
];

/** Every fault, in order. */
export const FAULTS: readonly PlantedFault[] = GROUPS.flatMap((group) =>
  Object.entries(group).flatMap(([testFile, faults]) =>
    Object.entries(faults).map(([name, plant]) => ({ testFile, name, plant })),
  ),
);
