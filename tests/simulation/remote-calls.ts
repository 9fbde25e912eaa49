/**
 * Calls of one host to the workers: sent to one of them, followed, asked after. What a bus does in between is a moment's delay,
 * and nothing at all once host or worker has gone.
 */

import type { SendReport } from '@coxswain/bus';
import type { Clock, ToolCall, ToolOutcome, ToolProbe } from '@coxswain/ports';
import { SESSION_LEFT, type WorkOrder, type WorkRequest } from '@coxswain/protocol';
import { answer } from '../../libs/session/test/fake-tools.ts';
import type { ToolWorld } from './sim-tools.ts';
import type { ToolWorkers, WorkerProcess } from './tool-workers.ts';

/** A worker is believed in for so long after its last sign of life. */
const BELIEVED_MS = 3_000;
const LOOKED_EVERY_MS = 500;

type Named = Pick<WorkOrder, 'v' | 'key' | 'session_id' | 'epoch'>;

/** See the top of the file. */
export class RemoteCalls {
  readonly #workers: ToolWorkers;
  readonly #clock: Clock;
  readonly #world: ToolWorld;
  readonly #host: string;

  constructor(workers: ToolWorkers, clock: Clock, world: ToolWorld, host: string) {
    this.#workers = workers;
    this.#clock = clock;
    this.#world = world;
    this.#host = host;
  }

  /** As the tool port's. */
  async call(call: ToolCall, signal: AbortSignal): Promise<ToolOutcome> {
    await this.#hop();
    const { living } = this.#workers;
    if (living.length === 0) return { ...answer('nobody serves it', 'error'), status: 'unavailable' };
    const asked: WorkRequest = { ...named(call), call_id: call.callId, hold: 1, args: call.args };
    const worker = this.#world.random.pick(living);
    return this.#follow(worker, call, signal, true, (to) => worker.ask(call.tool, asked, to));
  }

  /** As the tool port's: everybody that may live is asked, and those that have just died are waited for. */
  async probe(key: string, sessionId: string, tool: string, epoch: number): Promise<ToolProbe> {
    const order: WorkOrder = { v: 1, key, session_id: sessionId, epoch, want: 'probe' };
    for (;;) {
      await this.#hop();
      let probe: ToolProbe | null = null;
      for (const worker of this.#world.plant.workersForget ? [] : this.#workers.living) {
        worker.order(tool, order, (said) => {
          if (said.type === 'ended') probe = { state: 'done', outcome: { status: said.status, result: said.result } };
          if (said.type !== 'running' && said.type !== 'accepted') return;
          const attach: WorkOrder = { ...order, want: 'attach' };
          probe = {
            state: 'running',
            attach: (call, signal) => {
              this.#world.history.push({ what: 'host', host: this.#host, did: 'attaches to a call' });
              return this.#follow(worker, call, signal, false, (to) => worker.order(tool, attach, to));
            },
          };
        });
      }
      await this.#hop();
      if (probe) return probe;
      const isBelieved = ({ diedMs }: WorkerProcess) =>
        diedMs !== null && this.#world.elapsedMs() - diedMs < BELIEVED_MS;
      if (!this.#workers.all.some(isBelieved)) return { state: 'unknown' };
      await this.#clock.sleep(LOOKED_EVERY_MS);
    }
  }

  /** As the tool port's; now and then it reaches nobody. */
  async stop(key: string, sessionId: string, tool: string, reason: string, epoch: number): Promise<boolean> {
    await this.#hop();
    if (this.#world.random.chance(0.2)) return false;
    const order: WorkOrder = { v: 1, key, session_id: sessionId, epoch, want: 'abort', reason };
    let told = false;
    for (const worker of this.#workers.living)
      worker.order(tool, order, ({ type }) => {
        told ||= type === 'running';
      });
    return told;
  }

  /** @param isNew the worker holds the call until this host orders it to begin. */
  #follow(
    worker: WorkerProcess,
    call: ToolCall,
    signal: AbortSignal,
    isNew: boolean,
    send: (to: SendReport) => void,
  ): Promise<ToolOutcome> {
    return new Promise((resolve) => {
      let settled = false;
      let isUnanswered = isNew;
      const settle = (outcome: ToolOutcome) => {
        settled = true;
        resolve(outcome);
      };
      const lost = () => settle({ ...answer('whoever ran it has gone', 'error'), status: 'lost' });
      const hear: SendReport = (said) => {
        isUnanswered = false;
        if (said.type === 'running') call.onTaken?.();
        else if (said.type === 'progress') call.onProgress(said.text);
        else if (said.type === 'feedback') call.onFeedback(said.text);
        else if (said.type === 'accepted') settle({ ...answer('taken up'), status: 'accepted', epoch: said.epoch });
        else if (said.type === 'ended') settle({ status: said.status, result: said.result });
        else if (said.type === 'unknown' || said.type === 'given_up') lost();
        else if (said.type === 'ready') worker.order(call.tool, { ...named(call), want: 'start', hold: said.hold }, to);
        else if (said.type === 'refused') {
          this.#refused();
          settle({ ...answer(said.message, 'error'), status: 'unavailable' });
        }
      };
      // Answers come in their order, each a moment later; a host that is dead hears none.
      let before: Promise<void> = Promise.resolve();
      const to: SendReport = (said) => {
        before = before.then(() => this.#hop()).then(() => (settled ? undefined : hear(said)));
      };
      const aborted = () => {
        if (signal.reason === SESSION_LEFT) return lost();
        const reason = String(signal.reason).slice(0, 100);
        void this.#hop().then(() =>
          worker.order(call.tool, { ...named(call), want: 'abort', reason }, ({ type }) => {
            if (type === 'refused') this.#refused();
          }),
        );
        // Without an answer, this host sent no order to begin: the call never ran.
        if (isUnanswered) settle({ ...answer('cancelled before it began', 'error'), status: 'cancelled' });
      };
      signal.addEventListener('abort', aborted, { once: true });
      void this.#hop().then(() => send(to));
      if (signal.aborted) aborted();
      void (async () => {
        while (!settled) {
          await this.#clock.sleep(LOOKED_EVERY_MS);
          if (worker.diedMs !== null && this.#world.elapsedMs() - worker.diedMs > BELIEVED_MS) lost();
        }
      })();
    });
  }

  /** A newer owner of the session has asked there. */
  #refused(): void {
    this.#world.history.push({ what: 'host', host: this.#host, did: 'is refused by a worker' });
  }

  #hop(): Promise<void> {
    return this.#clock.sleep(this.#world.random.between(0, 3));
  }
}

function named({ idempotencyKey, ref, epoch }: ToolCall): Named {
  return { v: 1, key: idempotencyKey, session_id: ref.sessionId, epoch };
}
