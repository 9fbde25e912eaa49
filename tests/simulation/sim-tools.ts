/**
 * The tools of a simulation. Most run in their host's process and die with it; `remote` ones run at a worker that
 * outlives hosts and keeps a ledger. Every run is written down: beside the journals that is the only truth.
 */
import type { Clock, ToolCall, ToolOutcome, ToolProbe, ToolSource, Toolset, ToolsetSpec } from '@coxswain/ports';
import type { ToolTraits } from '@coxswain/protocol';
import { answer, definition } from '../../libs/session/test/fake-tools.ts';
import type { History, ToolRun } from './history.ts';
import type { Random } from './random.ts';
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
  /** It edits a file. */
  readonly edits?: boolean;
  /** Bytes of its answer. */
  readonly bytes?: number;
}

const TOOLS: Readonly<Record<string, SimTool>> = {
  look: { takesMs: 600, traits: { idempotent: true } },
  count: { takesMs: 2_000, edits: true },
  stubborn: { takesMs: 8_000, deaf: true },
  remote_count: { takesMs: 3_000, remote: true },
  remote_look: { takesMs: 3_000, remote: true, traits: { idempotent: true } },
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

/** The worker of remote tools: it lives as long as the simulation. */
export class ToolWorker {
  readonly #world: ToolWorld;
  readonly #ledger = new Map<string, { outcome: ToolOutcome | null; readonly done: Promise<ToolOutcome> }>();
  readonly #epochs = new Map<string, number>();

  constructor(world: ToolWorld) {
    this.#world = world;
  }

  /** The same key runs once, and a host of an older epoch is refused. */
  async call(host: string, call: ToolCall, signal: AbortSignal): Promise<ToolOutcome> {
    const { sessionId } = call.ref;
    const known = this.#ledger.get(call.idempotencyKey);
    if (known) return known.done;
    if (call.epoch < (this.#epochs.get(sessionId) ?? 0)) return { ...answer('stale', 'error'), status: 'unavailable' };
    this.#epochs.set(sessionId, call.epoch);
    const entry: { outcome: ToolOutcome | null; done: Promise<ToolOutcome> } = {
      outcome: null,
      done: runTool(this.#world, this.#world.clock, host, call, signal),
    };
    this.#ledger.set(call.idempotencyKey, entry);
    entry.outcome = await entry.done;
    return entry.outcome;
  }

  /** What became of a call. */
  probe(key: string): ToolProbe {
    const known = this.#ledger.get(key);
    if (!known) return { state: 'unknown' };
    return known.outcome ? { state: 'done', outcome: known.outcome } : { state: 'running' };
  }
}

/** The tools of one host. */
export class SimTools implements ToolSource {
  readonly #world: ToolWorld;
  readonly #worker: ToolWorker;
  readonly #clock: Clock;
  readonly #host: string;

  constructor(world: ToolWorld, worker: ToolWorker, clock: Clock, host: string) {
    this.#world = world;
    this.#worker = worker;
    this.#clock = clock;
    this.#host = host;
  }

  async open(_spec: ToolsetSpec, _signal: AbortSignal): Promise<Toolset> {
    await this.#hop();
    return {
      tools: Object.entries(TOOLS).map(([name, { traits = {} }]) =>
        definition(name, { schema: SCHEMA, traits: this.#world.plant.traits(name, traits) }),
      ),
      call: (call, signal) => this.#call(call, signal),
      probe: async (key, name) => {
        await this.#hop();
        const probe: ToolProbe = TOOLS[name]?.remote ? this.#worker.probe(key) : { state: 'unknown' };
        await this.#hop();
        return probe;
      },
      close: async () => {
        await this.#hop();
        return [];
      },
    };
  }

  async #call(call: ToolCall, signal: AbortSignal): Promise<ToolOutcome> {
    for (let extra = this.#world.plant.runsPerCall; extra > 1; extra--)
      void runTool(this.#world, this.#clock, this.#host, call, signal);
    if (!TOOLS[call.tool]?.remote) return runTool(this.#world, this.#clock, this.#host, call, signal);
    await this.#hop();
    const outcome = await this.#worker.call(this.#host, call, signal);
    // The answer travels back to the host, which may be gone by then.
    await this.#hop();
    return outcome;
  }

  #hop(): Promise<void> {
    return this.#clock.sleep(this.#world.random.between(0, 3));
  }
}

async function runTool(
  world: ToolWorld,
  clock: Clock,
  host: string,
  call: ToolCall,
  signal: AbortSignal,
): Promise<ToolOutcome> {
  const { idempotencyKey: key, callId, tool, args, epoch, ref } = call;
  const { takesMs, deaf, fails, edits, bytes } = TOOLS[tool] as SimTool;
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
  const number = world.history.entries.length;
  if (world.random.chance(0.1)) call.onFeedback(`${tool} has more to say`);
  await clock.sleep(world.random.between(0, takesMs), deaf ? undefined : signal);
  if (signal.aborted && !deaf) return { ...answer('stopped', 'error'), status: 'cancelled' };
  const text = `${tool} run ${number} `.padEnd(bytes ?? 0, 'x');
  run.answered = text;
  run.answeredMs = world.elapsedMs();
  world.history.push({ what: 'answered', key, text: text.slice(0, 40) });
  const edited = edits ? { edited: [`file-${number % 3}`] } : {};
  return { ...answer(text, fails ? 'error' : 'ok'), ...edited };
}
