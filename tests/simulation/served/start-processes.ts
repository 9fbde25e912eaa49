/** Starts the processes of every kind. */
import type { VirtualTime } from '../../../libs/session/test/virtual-time.ts';
import type { SimBus } from '../sim-bus.ts';
import type { ToolWorld } from '../sim-tools.ts';
import { HookWork } from './hook-work.ts';
import { ServedProcesses } from './served-processes.ts';
import { type BringOutcome, ToolWork } from './tool-work.ts';

/** @param bring stores the outcomes of long-running calls. */
export function startProcesses(time: VirtualTime, bus: SimBus, world: ToolWorld, bring: BringOutcome): ServedProcesses {
  const tools = new ToolWork(world, bring, (process, key) => processes.started(process, key));
  const hooks = new HookWork(
    world,
    () => bus.faults,
    bus.random.fork('hooks'),
    (process, key) => processes.started(process, key),
  );
  const processes: ServedProcesses = new ServedProcesses(
    { time, bus: bus.served, history: world.history, random: bus.random.fork('processes') },
    { tools: (process) => tools.serve(process), hooks: (process) => hooks.serve(process) },
  );
  return processes;
}
