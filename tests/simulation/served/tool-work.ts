/**
 * The workers of remote tools: they outlive hosts, share the calls, and are killed now and then. What they do with calls,
 * probes and orders is the real thing, ledger and all; what is simulated is that they are processes. Outcomes of
 * long-running tools they bring as commands: once as a rule, now and then twice, in two versions, with an epoch that
 * was never given, or not at all; where a function has answered LATER, somebody else does.
 */
import { type AcceptedCall, type CallEnding, RunningWork, type SendReport } from '@coxswain/bus';
import { DEFAULT_TRAITS, type JsonObject, type SessionRef, type WorkOrder, type WorkRequest } from '@coxswain/protocol';
import { type CheckedTool, LATER, type ToolCallContext } from '../../libs/client/src/define-tool.ts';
import { answer } from '../../libs/session/test/fake-tools.ts';
import type { ToolRun } from './history.ts';
import { beginRun, TOOLS, type ToolWorld } from './sim-tools.ts';

/** How the workers' commands reach the command stream. */
export type BringOutcome = (session: string, body: JsonObject, id: string | null) => Promise<void>;

/** How the history calls the end of a worker. */
export const WORKER_KILLED = 'a worker is killed';

const WORKERS = 2;

/** One process that serves every remote tool. What reaches it when it is dead is lost. */
export class WorkerProcess {
  readonly name: string;
  /** When it was killed. */
  diedMs: number | null = null;
  readonly #calls = new Map<string, RunningWork>();
  readonly #make: (tool: string) => RunningWork;

  constructor(name: string, make: (worker: WorkerProcess, tool: string) => RunningWork) {
    this.name = name;
    this.#make = (tool) => make(this, tool);
  }

  get isAlive(): boolean {
    return this.diedMs === null;
  }

  /** A call comes. */
  ask(tool: string, asked: WorkRequest, to: SendReport): void {
    if (this.isAlive) this.#of(tool).take(asked, this.#living(to));
  }

  /** An order comes. */
  order(tool: string, order: WorkOrder, to: SendReport): void {
    if (this.isAlive) this.#of(tool).order(order, this.#living(to));
  }

  #living(to: SendReport): SendReport {
    return (said) => {
      if (this.isAlive) to(said);
    };
  }

  #of(tool: string): RunningWork {
    const known = this.#calls.get(tool) ?? this.#make(tool);
    this.#calls.set(tool, known);
    return known;
  }
}

/** See the top of the file. */
export class ToolWorkers {
  /** All that there ever were. */
  readonly all: WorkerProcess[] = [];
  readonly #world: ToolWorld;
  readonly #bring: BringOutcome;
  #brought = 0;

  constructor(world: ToolWorld, bring: BringOutcome) {
    this.#world = world;
    this.#bring = bring;
    for (let i = 0; i < WORKERS; i++) this.#start();
  }

  /** Those that run now. */
  get living(): readonly WorkerProcess[] {
    return this.all.filter(({ isAlive }) => isAlive);
  }

  /** Kills one; another takes its place, and knows nothing of its calls. */
  crash(downMs: number): void {
    const { random, history, clock } = this.#world;
    if (this.living.length === 0) return;
    const victim = random.pick(this.living);
    victim.diedMs = this.#world.elapsedMs();
    history.push({ what: 'host', host: victim.name, did: WORKER_KILLED });
    void clock.sleep(downMs).then(() => this.#start());
  }

  #start(): void {
    this.all.push(new WorkerProcess(`worker${this.all.length + 1}`, (worker, tool) => this.#serve(worker, tool)));
  }

  #serve(worker: WorkerProcess, name: string): RunningWork {
    const traits = this.#world.plant.traits(name, { ...DEFAULT_TRAITS, ...TOOLS[name]?.traits });
    const tool: CheckedTool = {
      announced: {
        name,
        description: '',
        input_schema: { type: 'object' },
        traits: { ...DEFAULT_TRAITS, ...traits },
      },
      check: async (args) => ({ args }),
      run: (args, context) => this.#run(worker, name, args, context),
    };
    return new RunningWork(() => tool, {
      tenant: 'default',
      nowMs: () => this.#world.elapsedMs(),
      sendOutcome: async (ref, call, ending) => {
        if (!worker.isAlive) return new Promise(() => undefined);
        this.#outcome(ref, call, ending);
        return true;
      },
    });
  }

  async #run(worker: WorkerProcess, tool: string, args: unknown, context: ToolCallContext): Promise<unknown> {
    const { clock, random, history } = this.#world;
    const { takesMs = 0, traits } = TOOLS[tool] ?? {};
    const run: ToolRun = beginRun(this.#world, worker.name, {
      ...context,
      callId: context.toolCallId,
      tool,
      args: args as JsonObject,
    });
    const number = history.entries.length;
    if (random.chance(0.1)) context.feedback(`${tool} has more to say`);
    await clock.sleep(random.between(0, takesMs), context.abortSignal);
    // Its process has gone, and everything with it.
    if (!worker.isAlive) return new Promise(() => undefined);
    if (context.abortSignal.aborted) throw new Error('stopped');
    const isJob = traits?.long_running === true;
    const isLater = isJob && random.chance(0.5);
    if (isLater && random.chance(0.25)) return LATER;
    run.answered = `${tool} run ${number} `;
    run.answeredMs = this.#world.elapsedMs();
    history.push({ what: 'answered', key: run.key, text: run.answered });
    if (isLater) {
      // Whoever brings it is no worker of these, and outlives them.
      const ending = { status: 'ok' as const, result: answer(run.answered).result };
      void clock.sleep(random.between(0, 3_000)).then(() => this.#outcome(context.ref, context, ending));
      return LATER;
    }
    return answer(run.answered, isJob && random.chance(0.1) ? 'error' : 'ok').result;
  }

  #outcome(ref: SessionRef, call: AcceptedCall, { status, result }: CallEnding): void {
    const { random, clock } = this.#world;
    const send = (epoch: number, id: string | null, text?: string) =>
      this.#bring(
        ref.sessionId,
        {
          call_id: call.toolCallId,
          effect_id: call.idempotencyKey.split('.').at(-1) as string,
          epoch,
          status,
          result: (text === undefined ? result : answer(text).result) as unknown as JsonObject,
        },
        id,
      );
    const how = random.weighted([
      [6, 'once'],
      [2, 'twice'],
      [1, 'in two versions'],
      [1, 'with a wrong epoch first'],
    ] as const);
    const id = `outcome-${++this.#brought}`;
    if (how === 'with a wrong epoch first') void send(call.epoch + 50, `${id}-wrong`);
    const first = send(call.epoch, random.chance(0.7) ? id : null);
    if (how === 'twice') void clock.sleep(random.between(0, 3_000)).then(() => send(call.epoch, id));
    if (how !== 'in two versions') return;
    // Both wait for the bus where it is out: the other one is to come second all the same.
    const pause = clock.sleep(random.between(0, 50));
    void first.then(() => pause).then(() => send(call.epoch, `${id}-other`, 'another version'));
  }
}
