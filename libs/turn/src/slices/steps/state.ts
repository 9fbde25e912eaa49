/**
 * The progress of a run in the declared steps of its persona; and the wait and the lost attempts of a model step.
 */
import type { ErrorBoundary, Failure, Json, StepArgs, StopReason } from '@coxswain/protocol';
import type { OpenEffect } from '../../core/journal-place.ts';

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
  /** The number of this attempt of the step, or of its next attempt, from 1. */
  readonly attempt: number;
  readonly args: StepArgs;
  /** Whether the step's task is in the transcript. */
  readonly told: boolean;
  /** The usage that counts against the run's budgets (`count`) when the step started, in tokens and nano-USD. */
  readonly tokens: number;
  readonly nano_usd: number;
  /** A text for the model at the next start of a step. */
  readonly note?: string | undefined;
  /** The text of the newest answer without calls in the step: the member `output` of the payload of PostStep hooks. */
  readonly answer?: string | undefined;
  /** The output by which a PostStep hook replaced the answer. */
  readonly output?: Json | undefined;
  /** The turn in which the last step ended. */
  readonly ended_in?: number | undefined;
  /** The failure of the step that ends the run, and the stop reason. */
  readonly fatal?: { readonly error: Failure; readonly stop_reason: StopReason } | undefined;
}

/** The wait of a model step for its persona. It applies as long as the effect with this id is open. */
export interface PersonaWait {
  readonly effect_id: string;
  readonly persona: string;
  readonly version: string;
  readonly why: 'unserved' | 'paused';
  readonly since_ms: number;
  /** The timer of the limit of the wait. A wait for the end of a pause has none. */
  readonly timer?: (OpenEffect & { readonly due_at_ms: number }) | undefined;
}

/** The number of lost attempts of one model step. */
export interface LostSteps {
  readonly effect_id: string;
  readonly lost: number;
}

/** The members of the context for the steps of a persona. */
export interface StepsState {
  /** The progress in the declared steps; null before the first, and without any. */
  readonly step: StepProgress | null;
  /** The wait of a model step, until its end is recorded. Whether that step is still open: `personaWait`. */
  readonly persona_wait: PersonaWait | null;
  /** The lost attempts of the newest model step that lost one. */
  readonly lost_steps: LostSteps | null;
}

/** No step has started. */
export const EMPTY_STEPS: StepsState = { step: null, persona_wait: null, lost_steps: null };

/** A run starts before its first step. */
export const STEPS_AT_RUN_START: Pick<StepsState, 'step'> = { step: null };
