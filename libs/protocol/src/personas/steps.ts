/**
 * Steps: the declared units of a persona's work. A run executes them in order.
 */
import * as z from 'zod';
import { WrittenToolSelection } from '../tools/tool-selection.ts';
import { BOUNDS } from '../wire/bounds.ts';
import { listOf } from '../wire/containers.ts';
import { ID_PATTERN } from '../wire/ids.ts';
import type { JsonObject } from '../wire/json.ts';

/** Steps of every persona. Declared steps cannot have these names. */
export const BUILT_IN_STEPS: readonly string[] = ['model', 'tools'];

/** Effect of a failed step on its run: the run fails, continues with the next step, or waits for a person. */
export const ErrorBoundary = z.enum(['fail', 'continue', 'escalate']);
export type ErrorBoundary = z.infer<typeof ErrorBoundary>;

/** One declared step. */
export const Step = z.strictObject({
  name: z
    .string()
    .regex(ID_PATTERN, { error: 'a step’s name is 1 to 64 characters of A-Z a-z 0-9 _ -' })
    .refine((name) => !BUILT_IN_STEPS.includes(name), { error: 'model and tools are steps of every persona' }),
  /** The task for the model. */
  prompt: z
    .string()
    .max(BOUNDS.stepPromptMaxChars)
    .refine((text) => text.trim() !== '', { error: 'must not be empty' }),
  /** The subset of the persona's tools for this step. */
  tools: WrittenToolSelection.optional(),
  /** Limit of tokens, in and out. */
  max_tokens: z.number().int().positive().max(1e12).optional(),
  /** Limit in USD. Needs a known price of the model. */
  max_usd: z.number().min(0.000_001).max(1_000_000).optional(),
  error_boundary: ErrorBoundary.default('fail'),
});
export type Step = z.infer<typeof Step>;

/** The steps of a persona, in order. */
export const Steps = listOf(Step)
  .min(1)
  .max(BOUNDS.stepsMax)
  .superRefine((steps, context) => {
    const twice = steps.findIndex(({ name }, index) => steps.findIndex((one) => one.name === name) < index);
    if (twice < 0) return;
    context.addIssue({ code: 'custom', path: [twice, 'name'], message: `there are two steps ${steps[twice]?.name}` });
  });

/** The arguments of a declared step. PreStep hooks may replace the prompt. */
export const StepArgs = z.strictObject({ prompt: Step.shape.prompt });
export type StepArgs = z.infer<typeof StepArgs>;

/** Parses the arguments that a PreStep hook returned. @returns the arguments, or a sentence with the problem. */
export function readStepArgs(args: JsonObject): StepArgs | string {
  const read = StepArgs.safeParse(args);
  return read.success ? read.data : 'the arguments of a step are {prompt}, a text that is not empty';
}

/**
 * The outcome of a step. `unfinished`: the run ended or was handed off before, or the persona of a fork does not
 * declare the step.
 */
export const StepStatus = z.enum(['completed', 'failed', 'unfinished']);
export type StepStatus = z.infer<typeof StepStatus>;
