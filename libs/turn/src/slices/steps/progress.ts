/**
 * Queries of the declared steps of a run.
 */
import { nanoUsdOf, type Step } from '@coxswain/protocol';
import type { SessionContext } from '../../core/context.ts';
import type { PinnedStep } from './state.ts';

/** The member `seam` of a step's task in the journal. No seam delivers it: it follows the start of the step. */
export const STEP_SEAM = 'step';

/** The steps of a definition in the form that the machine pins. */
export function pinnedSteps(steps: readonly Step[] | undefined): { readonly steps?: readonly PinnedStep[] } {
  if (!steps) return {};
  return {
    steps: steps.map(({ name, prompt, max_tokens, max_usd, error_boundary }) => ({
      name,
      prompt,
      ...(max_tokens === undefined ? {} : { max_tokens }),
      ...(max_usd === undefined ? {} : { max_nano_usd: nanoUsdOf(max_usd) }),
      error_boundary,
    })),
  };
}

/** The open step as the persona declares it; undefined if none is open, or if the persona does not declare it. */
export function openStep({ pinned, step }: SessionContext): PinnedStep | undefined {
  const declared = step?.open ? pinned?.steps?.[step.index] : undefined;
  return declared?.name === step?.name ? declared : undefined;
}

/** Whether the first step has started, and a step is open or still to start. */
export function stepsAreLeft({ pinned, step }: SessionContext): boolean {
  return step !== null && step.index < (pinned?.steps?.length ?? 0);
}

/** Whether the current step is the last one. */
export function isLastStep({ pinned, step }: SessionContext): boolean {
  return step !== null && step.index + 1 === pinned?.steps?.length;
}

/** Whether a step has ended in the open turn. Then calls or a cut-short answer alone do not continue the run. */
export function stepHasEnded({ step, turn }: SessionContext): boolean {
  return step !== null && !step.open && step.ended_in === turn;
}

/** The target of PreStep and PostStep hooks, which their globs must match: `<persona>.<step>`. */
export function stepTarget({ pinned }: SessionContext, step: string): string {
  return `${pinned?.persona ?? ''}.${step}`;
}
