/**
 * The tools of a simulation. Most run in their host's process and die with it; `remote` ones run at an instance
 * that outlives hosts (see `served/tool-work.ts`). Every run is recorded: with the journals, these records are the evidence.
 */
import type { Clock, ToolCall, ToolOutcome, ToolSource, Toolset, ToolsetSpec } from '@coxswain/ports';
import type { ToolTraits } from '@coxswain/protocol';
import { answer, definition } from '../../libs/session/test/fake-tools.ts';
import type { History, ToolRun } from './history.ts';
import { planSuspension } from './plan-suspension.ts';
import { createRandom, type Random } from './random.ts';
import type { HostAsking } from './served/host-asking.ts';
import type { Plant } from './sim-bus.ts';

interface SimTool {
  readonly traits?: Partial<ToolTraits>;
  /** Longest time that a run takes. */
  readonly takesMs: number;
  /** It does not stop when it is told to. */
  readonly deaf?: boolean;
  /** It runs at the worker. */
  readonly remote?: boolean;
  readonly fails?: boolean;
  /** It parks its session: for how long and for what is in its number. */
  readonly parks?: boolean;
  /** It edits a file. */
  readonly edits?: boolean;
  /** Bytes of its answer. */
  readonly bytes?: number;
}

/** The tools by name. */
export const TOOLS: Readonly<Record<string, SimTool>> = {
  look: { takesMs: 600, traits: { idempotent: true } },
  count: { takesMs: 2_000, edits: true },
  stubborn: { takesMs: 8_000, deaf: true },
  remote_count: { takesMs: 9_000, remote: true },
  remote_look: { takesMs: 6_000, remote: true, traits: { idempotent: true } },
  long_job: { takesMs: 5_000, remote: true, traits: { long_running: true } },
  long_look: { takesMs: 5_000, remote: true, traits: { long_running: true, idempotent: true } },
  park: { takesMs: 50, parks: true },
  ask_count: { takesMs: 1_000 },
  ask_look: { takesMs: 300, traits: { idempotent: true } },
  forbidden: { takesMs: 0 },
  finish: { takesMs: 50, traits: { terminates: true }, edits: true },
  in_order: { takesMs: 500, traits: { sequential: true } },
  big: { takesMs: 100, bytes: 90_000 },
  fails: { takesMs: 100, fails: true },
};
const SCHEMA = { type: 'object', properties: { n: { type: 'integer' } } };

/** The names of all tools. */
export const TOOL_NAMES: readonly string[] = Object.keys(TOOLS);

/** Whether a tool's answer is its host's the moment it is given: no way back from a worker, nothing to be stored apart. */
export const answersAtOnce = (tool: string): boolean => !TOOLS[tool]?.remote && TOOLS[tool]?.bytes === undefined;

/** Whether a tool runs at a worker. */
export const isRemote = (tool: string): boolean => TOOLS[tool]?.remote === true;

/** Whether a tool may run again when nobody knows whether it ran. */
export const isIdempotent = (tool: string): boolean => TOOLS[tool]?.traits?.idempotent === true;

/** What tools need of the world around them. */
export interface ToolWorld {
  readonly clock: Clock;
  readonly random: Random;
  readonly history: History;
  readonly plant: Plant;
  recordsOf(session: string): number;
  /** Time since the simulation began. */
  elapsedMs(): number;
}

/** The tools of one host. */
export class SimTools implements ToolSource {
  readonly #world: ToolWorld;
  readonly #remote: HostAsking;
  readonly #clock: Clock;
  readonly #host: string;

  constructor(world: ToolWorld, remote: HostAsking, clock: Clock, host: string) {
    this.#world = world;
    this.#remote = remote;
    this.#clock = clock;
    this.#host = host;
  }

  async open({ ref }: ToolsetSpec, _signal: AbortSignal): Promise<Toolset> {
    await this.#hop();
    return {
      tools: Object.entries(TOOLS).map(([name, { traits = {} }]) =>
        definition(name, { schema: SCHEMA, traits: this.#world.plant.traits(name, traits) }),
      ),
      call: (call, signal) => this.#call(call, signal),
      probe: (key, name, epoch) =>
        isRemote(name)
          ? this.#remote.probe(key, ref, name, epoch)
          : this.#hop().then(() => ({ state: 'unknown' }) as const),
      stop: (key, name, reason, epoch) => this.#remote.stop(key, ref, name, reason, epoch),
      close: async () => {
        await this.#hop();
        return [];
      },
    };
  }

  async #call(call: ToolCall, signal: AbortSignal): Promise<ToolOutcome> {
    for (let extra = this.#world.plant.runsPerCall; extra > 1; extra--)
      void runTool(this.#world, this.#clock, this.#host, call, signal);
    if (isRemote(call.tool)) return this.#remote.call(call, signal);
    return runTool(this.#world, this.#clock, this.#host, call, signal);
  }

  #hop(): Promise<void> {
    return this.#clock.sleep(this.#world.random.between(0, 3));
  }
}

/** Writes down that a tool is run now. */
export function beginRun(
  world: ToolWorld,
  host: string,
  call: Pick<ToolCall, 'idempotencyKey' | 'callId' | 'tool' | 'args' | 'epoch' | 'ref'>,
): ToolRun {
  const { idempotencyKey: key, callId, tool, args, epoch, ref } = call;
  const run: ToolRun = {
    session: ref.sessionId,
    key,
    callId,
    tool,
    args,
    epoch,
    host,
    startedMs: world.elapsedMs(),
    recordsThen: world.recordsOf(ref.sessionId),
    answered: null,
    answeredMs: null,
  };
  world.history.push({ what: 'ran', run });
  return run;
}

/** Runs a tool on a clock: its host's, or the world's. */
export async function runTool(
  world: ToolWorld,
  clock: Clock,
  host: string,
  call: ToolCall,
  signal: AbortSignal,
): Promise<ToolOutcome> {
  const { idempotencyKey: key, tool, args } = call;
  const { takesMs, deaf, fails, edits, parks, bytes } = TOOLS[tool] as SimTool;
  const run = beginRun(world, host, call);
  const number = world.history.entries.length;
  if (world.random.chance(0.1)) call.onFeedback(`${tool} has more to say`);
  await clock.sleep(world.random.between(0, takesMs), deaf ? undefined : signal);
  if (signal.aborted && !deaf) return { ...answer('stopped', 'error'), status: 'cancelled' };
  const text = `${tool} run ${number} `.padEnd(bytes ?? 0, 'x');
  run.answered = text;
  run.answeredMs = world.elapsedMs();
  world.history.push({ what: 'answered', key, text: text.slice(0, 40) });
  const edited = edits ? { edited: [`file-${number % 3}`] } : {};
  const park = parks ? { park: planSuspension(createRandom(Number(args.n)), clock.nowMs()) } : {};
  return { ...answer(text, fails ? 'error' : 'ok'), ...edited, ...park };
}
