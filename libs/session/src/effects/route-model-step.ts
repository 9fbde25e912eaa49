/**
 * Decides in which process a model step (a model call or a compaction) runs: in this one, or in one that serves the
 * session's persona. {@link modelsOfStep} hides this choice behind the port `Models`. The model itself is pinned: `chooseModel`
 * in provision-session.ts. Other retries of a model call: the header of model-answers.ts in libs/turn.
 *
 * The rules below apply on a host with the port `served`. A host without it runs each step itself, and knows no pauses.
 *
 * ROUTE-1  While a persona is paused, no step of it starts, in any process.
 * ROUTE-2  A step runs on an instance of exactly the pinned version. If no instance serves that version, the host runs the
 *         step itself, unless the persona is pinned as `served`: then the step waits.
 * ROUTE-3  A step ends once. A lost attempt is recorded. Then another one follows, or the step fails if
 *         `BOUNDS.stepTriesMax` attempts are lost, also those of earlier owners of the session. Output of a lost attempt
 *         is discarded, also if it arrives later.
 */
import { runModelStep } from '@coxswain/handlers';
import type { Clock, ModelPart, ModelRequest, ModelResult, Models, ServedPersonas } from '@coxswain/ports';
import { BOUNDS, failedStep, type PersonaStepInput, type SessionRef, stoppedStep } from '@coxswain/protocol';

/** One model step: what routing needs to know of its session, and how it reports progress. */
export interface RoutedStep {
  readonly ref: SessionRef;
  readonly effectId: string;
  readonly epoch: number;
  /** The epoch in which the step was requested. */
  readonly firstRequestEpoch: number;
  readonly persona: string;
  readonly version: string;
  /** Whether the host must not run the step itself. */
  readonly servedOnly: boolean;
  /** How long the step may wait for an instance before it fails (`wait_ms` in the journal), in milliseconds. */
  readonly waitMs: number;
  /** Number of lost attempts, including those on other hosts. */
  readonly lost: number;
  /** Whether the journal has recorded that the step waits. */
  isWaiting(): boolean;
  /** Records progress of the step in the journal. */
  recordProgress(input: PersonaStepInput): void;
}

/** Interval for checks of presence and pauses. Instances announce themselves, but their silent end gives no event. */
const RECHECK_INTERVAL_MS = 500;
/** Time until the next attempt after no instance accepted the step, as when all are busy. */
const RETRY_DELAY_MS = 100;
/** After more refusals than this, the journal records that the step waits (`unserved`). A lost attempt resets the count. */
const REFUSALS_MAX = 50;

/**
 * The port `Models` for one step of a session: its `stream` runs the step in the process that ROUTE-1 to ROUTE-3 choose.
 * @param models run the step in this process. Without `served`, they are the result.
 */
export function modelsOfStep(
  models: Models,
  served: ServedPersonas | undefined,
  clock: Clock,
  step: RoutedStep,
): Models {
  if (!served) return models;
  return {
    // The process that runs the step checks the model.
    check: async () => null,
    resolve: () => ({
      stream: (request, onPart, signal) => new Step(models, served, clock, step).run(request, onPart, signal),
    }),
  };
}

class Step {
  readonly #models: Models;
  readonly #served: ServedPersonas;
  readonly #clock: Clock;
  readonly #step: RoutedStep;
  #reportedWait: 'unserved' | 'paused' | null = null;

  constructor(models: Models, served: ServedPersonas, clock: Clock, of: RoutedStep) {
    this.#models = models;
    this.#served = served;
    this.#clock = clock;
    this.#step = of;
  }

  async run(request: ModelRequest, onPart: (part: ModelPart) => void, signal: AbortSignal): Promise<ModelResult> {
    const { ref, persona, version, servedOnly, epoch, firstRequestEpoch } = this.#step;
    let lost = this.#step.lost;
    let refusals = 0;
    while (!signal.aborted && lost < BOUNDS.stepTriesMax) {
      const pause = this.#served.pause(ref.tenant, persona);
      if (pause) {
        this.#reportWait('paused', pause.reason);
        await this.#waitForChange(RECHECK_INTERVAL_MS, signal);
        continue;
      }
      if (!this.#served.isServed(ref.tenant, persona, version)) {
        if (!servedOnly) {
          this.#reportContinuation();
          return runModelStep(this.#models, request, onPart, signal);
        }
        this.#reportWait('unserved');
        await this.#waitForChange(RECHECK_INTERVAL_MS, signal);
        continue;
      }
      let streamed = false;
      const end = await this.#served.step(
        {
          ref,
          epoch,
          firstRequestEpoch,
          attempt: lost,
          persona,
          version,
          request,
          onTaken: () => this.#reportContinuation(),
        },
        (part) => {
          streamed = true;
          onPart(part);
        },
        signal,
      );
      if (end.status === 'ended') return end.result;
      if (end.status === 'unserved') {
        if (++refusals > REFUSALS_MAX) this.#reportWait('unserved');
        await this.#waitForChange(RETRY_DELAY_MS, signal);
        continue;
      }
      if (signal.aborted) break;
      lost++;
      refusals = 0;
      const { instance, cause } = end;
      this.#report({ state: 'lost', persona, version, instance, cause });
      if (streamed && lost < BOUNDS.stepTriesMax) onPart({ type: 'again' });
    }
    return signal.aborted ? stoppedStep() : failedStep(gaveUp(persona, lost));
  }

  #reportWait(why: 'unserved' | 'paused', reason?: string): void {
    if (this.#reportedWait === why) return;
    this.#reportedWait = why;
    const { persona, version, waitMs } = this.#step;
    this.#report({
      state: 'waits',
      persona,
      version,
      why,
      ...(reason === undefined ? {} : { reason }),
      // A pause has no time limit: the person who paused the persona knows about it.
      ...(why === 'unserved' ? { wait_ms: waitMs } : {}),
    });
  }

  #reportContinuation(): void {
    if (this.#reportedWait === null && !this.#step.isWaiting()) return;
    this.#reportedWait = null;
    this.#report({ state: 'goes_on' });
  }

  #report(what: Progress): void {
    this.#step.recordProgress({ type: 'persona_step', effect_id: this.#step.effectId, ...what });
  }

  /** Resolves after a change of instances or pauses in the tenant, after `withinMs`, or when the signal aborts. */
  async #waitForChange(withinMs: number, signal: AbortSignal): Promise<void> {
    const woken = new AbortController();
    const wake = () => woken.abort();
    const endListening = this.#served.onChange((tenant) => {
      if (tenant === undefined || tenant === this.#step.ref.tenant) wake();
    });
    signal.addEventListener('abort', wake, { once: true });
    await this.#clock.sleep(withinMs, woken.signal);
    endListening();
    signal.removeEventListener('abort', wake);
  }
}

type Progress = PersonaStepInput extends infer One
  ? One extends PersonaStepInput
    ? Omit<One, 'type' | 'effect_id'>
    : never
  : never;

function gaveUp(persona: string, lost: number) {
  const message = `${lost} instances that ran the step of persona ${persona} were lost one after another: find out why they end, then prompt the session again`;
  return { code: 'persona_unavailable', message, retryable: true };
}
