/** The turn machine as XState configuration in JSON, the form that XState viewers draw. */
import { MACHINE_VERSION, turnMachine } from '@coxswain/turn';

/** The part of the configuration that is sent: names of states, events, guards and actions, and transitions. */
export interface MachineDefinition {
  readonly id: string;
  /** The machine's version, as in `agent_start`. */
  readonly version: string;
  readonly initial: string;
  readonly on: Readonly<Record<string, unknown>>;
  readonly states: Readonly<Record<string, unknown>>;
}

let definition: string | undefined;

/**
 * The {@link MachineDefinition} as JSON text. `createMachine(JSON.parse(text))` gives a machine for drawing only: its guards are
 * names without implementation.
 */
export function machineDefinition(): string {
  // The configuration has one function, which makes the initial context. JSON leaves it out; snapshots have the context.
  definition ??= JSON.stringify({ ...turnMachine.config, version: String(MACHINE_VERSION) });
  return definition;
}
