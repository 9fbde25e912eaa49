/**
 * The worker of remote tools: it outlives hosts and keeps a ledger of what it was asked. Calls of long-running tools it
 * takes up; their outcomes it brings later as commands: once as a rule, now and then twice, in two versions, with an
 * epoch that was never given, or not at all.
 */
import type { ToolCall, ToolOutcome, ToolProbe } from '@coxswain/ports';
import type { JsonObject } from '@coxswain/protocol';
import { answer } from '../../libs/session/test/fake-tools.ts';
import type { ToolRun } from './history.ts';
import { beginRun, runTool, TOOLS, type ToolWorld } from './sim-tools.ts';

/** How the worker's commands reach the command stream. */
export type BringOutcome = (session: string, body: JsonObject, id: string | null) => void;

interface Job {
  readonly call: ToolCall;
  /** Of the newest sending. */
  epoch: number;
  outcome: ToolOutcome | null;
  /** Of a call that is answered at once. */
  readonly done: Promise<ToolOutcome> | null;
  readonly stop: AbortController;
}

/** See the top of the file. */
export class ToolWorker {
  readonly #world: ToolWorld;
  readonly #bring: BringOutcome;
  readonly #ledger = new Map<string, Job>();
  readonly #epochs = new Map<string, number>();
  #brought = 0;

  constructor(world: ToolWorld, bring: BringOutcome) {
    this.#world = world;
    this.#bring = bring;
  }

  /** The same key runs once, and a host of an older epoch is refused. */
  async call(host: string, call: ToolCall, signal: AbortSignal): Promise<ToolOutcome> {
    const { sessionId } = call.ref;
    const known = this.#ledger.get(call.idempotencyKey);
    if (known) {
      known.epoch = Math.max(known.epoch, call.epoch);
      return known.done ?? known.outcome ?? ACCEPTED;
    }
    if (call.epoch < (this.#epochs.get(sessionId) ?? 0)) return { ...answer('stale', 'error'), status: 'unavailable' };
    this.#epochs.set(sessionId, call.epoch);
    const takesUp = TOOLS[call.tool]?.traits?.long_running === true && this.#world.random.chance(0.85);
    const job: Job = {
      call,
      epoch: call.epoch,
      outcome: null,
      done: takesUp ? null : runTool(this.#world, this.#world.clock, host, call, signal),
      stop: new AbortController(),
    };
    this.#ledger.set(call.idempotencyKey, job);
    if (job.done) {
      job.outcome = await job.done;
      return job.outcome;
    }
    void this.#work(job, beginRun(this.#world, host, call));
    return ACCEPTED;
  }

  /** What became of a call. */
  probe(key: string): ToolProbe {
    const known = this.#ledger.get(key);
    if (!known) return { state: 'unknown' };
    return known.outcome ? { state: 'done', outcome: known.outcome } : { state: 'running' };
  }

  /** Whether it could be told to stop; that does not mean that it does. */
  stop(key: string): boolean {
    const job = this.#ledger.get(key);
    if (!job || this.#world.random.chance(0.2)) return false;
    if (this.#world.random.chance(0.7)) job.stop.abort();
    return true;
  }

  async #work(job: Job, run: ToolRun): Promise<void> {
    const { clock, random, history } = this.#world;
    const { tool } = job.call;
    await clock.sleep(random.between(0, TOOLS[tool]?.takesMs ?? 0), job.stop.signal);
    if (job.stop.signal.aborted) {
      this.#outcomeOf(job, { ...answer('stopped', 'error'), status: 'cancelled' });
    } else if (random.chance(0.92)) {
      run.answered = `${tool} job ${history.entries.length} `;
      run.answeredMs = this.#world.elapsedMs();
      history.push({ what: 'answered', key: job.call.idempotencyKey, text: run.answered });
      this.#outcomeOf(job, answer(run.answered, random.chance(0.1) ? 'error' : 'ok'));
    }
  }

  #outcomeOf(job: Job, outcome: ToolOutcome): void {
    const { random, clock } = this.#world;
    job.outcome = outcome;
    const { call } = job;
    const send = (epoch: number, id: string | null, text?: string) =>
      this.#bring(
        call.ref.sessionId,
        {
          call_id: call.callId,
          effect_id: call.idempotencyKey.split('.').at(-1) as string,
          epoch,
          status: outcome.status,
          result: (text === undefined ? outcome : answer(text)).result as unknown as JsonObject,
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
    if (how === 'with a wrong epoch first') send(job.epoch + 50, `${id}-wrong`);
    send(job.epoch, random.chance(0.7) ? id : null);
    if (how === 'twice') void clock.sleep(random.between(0, 3_000)).then(() => send(job.epoch, id));
    if (how === 'in two versions')
      void clock.sleep(random.between(0, 50)).then(() => send(job.epoch, `${id}-other`, 'another version'));
  }
}

const ACCEPTED: ToolOutcome = { ...answer('taken up'), status: 'accepted' };
