/** The turn machine as XState's own configuration, in JSON: what viewers of XState's machines draw. */
import { MACHINE_VERSION, turnMachine } from '@coxswain/turn';

/** What is sent of the machine: names of states, events, guards and actions, and where they lead. */
export interface MachineDefinition {
  readonly id: string;
  /** Of the machine, as `agent_start` has it. */
  readonly version: string;
  readonly initial: string;
  readonly on: Readonly<Record<string, unknown>>;
  readonly states: Readonly<Record<string, unknown>>;
}

let definition: string | undefined;

/**
 * A {@link MachineDefinition} as text. `createMachine(JSON.parse(text))` makes a machine of it that can be drawn; its guards are
 * names alone, so that it decides nothing.
 */
export function machineDefinition(): string {
  // The one function of the configuration makes the first context, which snapshots have: JSON leaves it out.
  definition ??= JSON.stringify({ ...turnMachine.config, version: String(MACHINE_VERSION) });
  return definition;
}
