/** How far a run is in the steps of its persona, and what the open step waits for. */
import type { ErrorBoundary, Failure, Json, StepArgs, StopReason } from '@coxswain/protocol';
import type { OpenEffect } from '../../core/place.ts';

/** What of a declared step the machine goes by. Which tools it has is the host's affair. */
export interface PinnedStep {
  readonly name: string;
  readonly prompt: string;
  readonly max_tokens?: number | undefined;
  readonly max_nano_usd?: number | undefined;
  readonly error_boundary: ErrorBoundary;
}

/** How far a run is in its steps. */
export interface StepProgress {
  readonly name: string;
  /** The step that is open, or the one that comes next; as many as there are where all are over. */
  readonly index: number;
  readonly open: boolean;
  /** The number of its starts, the next one included if it is due. */
  readonly attempt: number;
  readonly args: StepArgs;
  /** The model was told what it is to do in it. */
  readonly told: boolean;
  /** What the run had used when it began. */
  readonly tokens: number;
  readonly nano_usd: number;
  /** The text for the model at the next start of the step before. */
  readonly note?: string | undefined;
  /** Its answer, where PostStep hooks are to see it. */
  readonly answer?: string | undefined;
  /** What a PostStep hook has made of it. */
  readonly output?: Json | undefined;
  /** The turn in which the last step ended. */
  readonly ended_in?: number | undefined;
  /** It has failed, and the run with it. */
  readonly fatal?: { readonly error: Failure; readonly stop_reason: StopReason } | undefined;
}

/** What a step waits for. It counts as long as the step is open under the effect's id. */
export interface PersonaWait {
  readonly effect_id: string;
  readonly persona: string;
  readonly version: string;
  readonly why: 'unserved' | 'paused';
  readonly since_ms: number;
  /** Gives it up. */
  readonly timer?: (OpenEffect & { readonly due_at_ms: number }) | undefined;
}

/** Tries of one step that were lost. */
export interface LostSteps {
  readonly effect_id: string;
  readonly lost: number;
}

/** The members of the context that belong to the steps of a persona. */
export interface StepsState {
  /** How far the run is in its persona's steps; null before the first. */
  readonly step: StepProgress | null;
  /** What the open step waits for before it can begin; and how many of its tries were lost. Only of served personas. */
  readonly persona_wait: PersonaWait | null;
  readonly lost_steps: LostSteps | null;
}

/** No step has started. */
export const EMPTY_STEPS: StepsState = { step: null, persona_wait: null, lost_steps: null };

/** A run begins with the first step. */
export const STEPS_AT_RUN_START: Pick<StepsState, 'step'> = { step: null };
