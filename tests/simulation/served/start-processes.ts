/** Starts the processes of every kind. */
import type { VirtualTime } from '../../../libs/session/test/virtual-time.ts';
import type { Schedule } from '../generator.ts';
import type { SimBus } from '../sim-bus.ts';
import type { ToolWorld } from '../sim-tools.ts';
import { HookWork } from './hook-work.ts';
import type { ServedSide } from './host-asking.ts';
import type { ServedProcess } from './served-process.ts';
import { ServedProcesses } from './served-processes.ts';
import { LongRequests, StepWork } from './step-work.ts';
import { type BringOutcome, ToolWork } from './tool-work.ts';

/** @param bring stores the outcomes of long-running calls. */
export function startProcesses(
  time: VirtualTime,
  bus: SimBus,
  world: ToolWorld,
  { sessions, personas = [] }: Schedule,
  bring: BringOutcome,
): ServedSide {
  const { history } = world;
  const offers = new LongRequests();
  const started = (process: ServedProcess, key: string) => processes.started(process, key);
  const tools = new ToolWork(world, bring, started);
  const hooks = new HookWork(world, () => bus.faults, bus.random.fork('hooks'), started);
  const steps = new StepWork(world, { personas, plans: sessions }, offers, started);
  const processes: ServedProcesses = new ServedProcesses(
    { time, bus: bus.served, history, random: bus.random.fork('processes') },
    {
      tools: (process) => tools.serve(process),
      hooks: (process) => hooks.serve(process),
      ...(personas.length > 0 ? { personas: (process) => steps.serve(process) } : {}),
    },
  );
  return { time, bus: bus.served, processes, history, offers };
}
