/**
 * The progress of a run in the steps of its persona, and the wait of the open step.
 */
import type { ErrorBoundary, Failure, Json, StepArgs, StopReason } from '@coxswain/protocol';
import type { OpenEffect } from '../../core/place.ts';

/** The members of a declared step that the machine needs. The host selects its tools. */
export interface PinnedStep {
  readonly name: string;
  readonly prompt: string;
  readonly max_tokens?: number | undefined;
  readonly max_nano_usd?: number | undefined;
  readonly error_boundary: ErrorBoundary;
}

/** The progress of a run in its steps. */
export interface StepProgress {
  readonly name: string;
  /** The index of the open step, or of the next one; the number of steps if all have ended. */
  readonly index: number;
  readonly open: boolean;
  /** The number of its starts, with the next one if it is due. */
  readonly attempt: number;
  readonly args: StepArgs;
  /** Whether the model has its task. */
  readonly told: boolean;
  /** Usage of the run when it started. */
  readonly tokens: number;
  readonly nano_usd: number;
  /** A text for the model at the next start of a step. */
  readonly note?: string | undefined;
  /** Its answer, if PostStep hooks must check it. */
  readonly answer?: string | undefined;
  /** The answer after a PostStep hook rewrote it. */
  readonly output?: Json | undefined;
  /** The turn in which the last step ended. */
  readonly ended_in?: number | undefined;
  /** It failed, and the run with it. */
  readonly fatal?: { readonly error: Failure; readonly stop_reason: StopReason } | undefined;
}

/** The wait of a step. It applies as long as the step is open under the effect's id. */
export interface PersonaWait {
  readonly effect_id: string;
  readonly persona: string;
  readonly version: string;
  readonly why: 'unserved' | 'paused';
  readonly since_ms: number;
  /** The timer that ends the wait. */
  readonly timer?: (OpenEffect & { readonly due_at_ms: number }) | undefined;
}

/** The lost attempts of one step. */
export interface LostSteps {
  readonly effect_id: string;
  readonly lost: number;
}

/** The members of the context for the steps of a persona. */
export interface StepsState {
  /** The progress in the persona's steps; null before the first. */
  readonly step: StepProgress | null;
  /** The wait of the open step before its start, and its lost attempts. Only for served personas. */
  readonly persona_wait: PersonaWait | null;
  readonly lost_steps: LostSteps | null;
}

/** No step has started. */
export const EMPTY_STEPS: StepsState = { step: null, persona_wait: null, lost_steps: null };

/** A run starts with the first step. */
export const STEPS_AT_RUN_START: Pick<StepsState, 'step'> = { step: null };
