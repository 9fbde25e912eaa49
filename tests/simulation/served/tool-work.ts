/**
 * The work of processes that serve remote tools. They send outcomes of long-running tools as commands: usually once,
 * sometimes twice, in two versions, with an unknown epoch, or not at all. If a function returned LATER, another process
 * sends the outcome.
 */
import { type AcceptedCall, RunningWork } from '@coxswain/bus';
import { type ServableTool, toolWork } from '@coxswain/handlers';
import { type CallEnding, DEFAULT_TRAITS, type JsonObject, type SessionRef, TenantId } from '@coxswain/protocol';
import { LATER, type ToolCallContext } from '../../../libs/client/src/define-tool.ts';
import { answer } from '../../../libs/session/test/fake-tools.ts';
import type { ToolRun } from '../history.ts';
import { beginRun, isRemote, TOOL_NAMES, TOOLS, type ToolWorld } from '../sim-tools.ts';
import { type ServedProcess, type ServedWork, workClock } from './served-process.ts';

/** How the outcomes of long-running calls reach the command stream. */
export type BringOutcome = (session: string, body: JsonObject, id: string | null) => Promise<void>;

/** See the top of the file. */
export class ToolWork {
  readonly #world: ToolWorld;
  readonly #bring: BringOutcome;
  readonly #started: (process: ServedProcess, key: string) => void;
  #brought = 0;

  /** @param started is called for each call that begins. */
  constructor(world: ToolWorld, bring: BringOutcome, started: (process: ServedProcess, key: string) => void) {
    this.#world = world;
    this.#bring = bring;
    this.#started = started;
  }

  /** The services of one process: every remote tool. */
  serve(process: ServedProcess): readonly ServedWork[] {
    return TOOL_NAMES.filter(isRemote).map((name) => ({
      at: { kind: 'tools', tenant: TenantId.parse('default'), name },
      work: this.#workOf(process, name),
    }));
  }

  #workOf(process: ServedProcess, name: string): RunningWork {
    const traits = this.#world.plant.traits(name, { ...DEFAULT_TRAITS, ...TOOLS[name]?.traits });
    const tool: ServableTool = {
      announced: { name, traits: { ...DEFAULT_TRAITS, ...traits } },
      check: async (args) => ({ args }),
      run: (args, context) => this.#run(process, name, args, context),
    };
    return new RunningWork((request) => toolWork(tool, request), {
      tenant: 'default',
      clock: workClock(process.clock),
      sendOutcome: async (ref, call, ending) => {
        this.#outcome(ref, call, ending);
        return true;
      },
    });
  }

  async #run(process: ServedProcess, tool: string, args: unknown, context: ToolCallContext): Promise<unknown> {
    const { clock, random, history } = this.#world;
    const { takesMs = 0, traits } = TOOLS[tool] ?? {};
    const run: ToolRun = beginRun(this.#world, process.name, {
      ...context,
      callId: context.toolCallId,
      tool,
      args: args as JsonObject,
    });
    this.#started(process, run.key);
    const number = history.entries.length;
    if (random.chance(0.1)) context.feedback(`${tool} has more to say`);
    // Where its process is killed, nothing follows.
    await process.clock.sleep(random.between(0, takesMs), context.abortSignal);
    if (context.abortSignal.aborted) throw new Error('stopped');
    const isJob = traits?.long_running === true;
    const isLater = isJob && random.chance(0.5);
    if (isLater && random.chance(0.25)) return LATER;
    run.answered = `${tool} run ${number} `;
    run.answeredMs = this.#world.elapsedMs();
    history.push({ what: 'answered', key: run.key, text: run.answered });
    if (isLater) {
      // Another process brings it, and outlives this one.
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
