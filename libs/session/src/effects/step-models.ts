/**
 * Where a step of a model runs: in this process, or in one that serves the session's persona. To what asks models it is a
 * model like any other.
 *
 * S1: While a persona is paused no step of it begins, wherever it would run.
 * S2: A step is asked of an instance of exactly the version that the session has pinned. A host runs it itself only where
 *     the session has pinned a whole definition, and nobody serves that version.
 * S3: A step ends once. A try that is lost is followed by another one, which the journal says; what the lost one has
 *     streamed is void, and its late words are heard by nobody.
 */
import { runModelStep } from '@coxswain/handlers';
import type { Clock, ModelPart, ModelRequest, ModelResult, Models, ServedPersonas } from '@coxswain/ports';
import { BOUNDS, type PersonaStepInput, refusedStep, type SessionRef, stoppedStep } from '@coxswain/protocol';

/** What a step must know of its session. */
export interface StepOf {
  readonly ref: SessionRef;
  readonly effectId: string;
  readonly epoch: number;
  /** The epoch in which it was asked for. */
  readonly askedIn: number;
  readonly persona: string;
  readonly version: string;
  /** No host runs it itself. */
  readonly servedOnly: boolean;
  readonly waitMs: number;
  /** Tries that were lost before, also under another host. */
  readonly lost: number;
  /** Whether the journal says that it waits. */
  isWaiting(): boolean;
  /** Puts how it fares into the journal. */
  tell(input: PersonaStepInput): void;
}

/** What is said again and again by those who serve, and is not heard of when it ceases, is looked at so often. */
const LOOKED_EVERY_MS = 500;
/** All instances may have as much as they can for a moment. */
const ASKED_AGAIN_MS = 100;
/** So often in a row, and nobody serves it indeed. */
const REFUSALS_MAX = 50;

/** The models as a step of this session has them. */
export function stepModels(models: Models, served: ServedPersonas | undefined, clock: Clock, step: StepOf): Models {
  if (!served) return models;
  return {
    // Whoever runs it says whether it can.
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
  readonly #of: StepOf;
  #told: 'unserved' | 'paused' | null = null;

  constructor(models: Models, served: ServedPersonas, clock: Clock, of: StepOf) {
    this.#models = models;
    this.#served = served;
    this.#clock = clock;
    this.#of = of;
  }

  async run(request: ModelRequest, onPart: (part: ModelPart) => void, signal: AbortSignal): Promise<ModelResult> {
    const { ref, persona, version, servedOnly, epoch, askedIn } = this.#of;
    let lost = this.#of.lost;
    let refusals = 0;
    while (!signal.aborted) {
      const pause = this.#served.pause(ref.tenant, persona);
      if (pause) {
        this.#waits('paused', pause.reason);
        await this.#changed(LOOKED_EVERY_MS, signal);
        continue;
      }
      if (!this.#served.isServed(ref.tenant, persona, version)) {
        if (!servedOnly) {
          this.#goesOn();
          return runModelStep(this.#models, request, onPart, signal);
        }
        this.#waits('unserved');
        await this.#changed(LOOKED_EVERY_MS, signal);
        continue;
      }
      let streamed = false;
      const end = await this.#served.step(
        { ref, epoch, askedIn, tries: lost, persona, version, request, onTaken: () => this.#goesOn() },
        (part) => {
          streamed = true;
          onPart(part);
        },
        signal,
      );
      if (end.status === 'ended') return end.result;
      if (end.status === 'unserved') {
        if (++refusals > REFUSALS_MAX) this.#waits('unserved');
        await this.#changed(ASKED_AGAIN_MS, signal);
        continue;
      }
      if (signal.aborted) break;
      lost++;
      refusals = 0;
      const { instance, cause } = end;
      this.#tell({ state: 'lost', persona, version, instance, cause });
      if (lost >= BOUNDS.stepTriesMax) return refusedStep(gaveUp(persona, lost));
      if (streamed) onPart({ type: 'again' });
    }
    return stoppedStep();
  }

  #waits(why: 'unserved' | 'paused', reason?: string): void {
    if (this.#told === why) return;
    this.#told = why;
    const { persona, version, waitMs } = this.#of;
    this.#tell({
      state: 'waits',
      persona,
      version,
      why,
      ...(reason === undefined ? {} : { reason }),
      // Whoever has paused it knows why nothing happens.
      ...(why === 'unserved' ? { wait_ms: waitMs } : {}),
    });
  }

  #goesOn(): void {
    if (this.#told === null && !this.#of.isWaiting()) return;
    this.#told = null;
    this.#tell({ state: 'goes_on' });
  }

  #tell(what: Told): void {
    this.#of.tell({ type: 'persona_step', effect_id: this.#of.effectId, ...what });
  }

  /** Resolves when something may have changed, or after a while, or when it is to stop. */
  async #changed(withinMs: number, signal: AbortSignal): Promise<void> {
    const woken = new AbortController();
    const wake = () => woken.abort();
    const endListening = this.#served.onChange(wake);
    signal.addEventListener('abort', wake, { once: true });
    await this.#clock.sleep(withinMs, woken.signal);
    endListening();
    signal.removeEventListener('abort', wake);
  }
}

type Told = PersonaStepInput extends infer One
  ? One extends PersonaStepInput
    ? Omit<One, 'type' | 'effect_id'>
    : never
  : never;

function gaveUp(persona: string, lost: number) {
  const message = `${lost} instances that ran the step of persona ${persona} were lost one after another: find out why they end, then prompt the session again`;
  return { code: 'persona_unavailable', message, retryable: true };
}
