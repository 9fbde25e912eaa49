/** Steps: the units that a persona declares of its work. A run takes them one after another. */
import * as z from 'zod';
import { WrittenToolSelection } from '../tools/tool-selection.ts';
import { BOUNDS } from '../wire/bounds.ts';
import { ID_PATTERN } from '../wire/ids.ts';
import type { JsonObject } from '../wire/json.ts';

/** Steps that every persona has; a declared one cannot be called like them. */
export const BUILT_IN_STEPS: readonly string[] = ['model', 'tools'];

/** Effect of a failed step on its run: the run fails, continues with the next step, or waits for a person. */
export const ErrorBoundary = z.enum(['fail', 'continue', 'escalate']);
/** See {@link ErrorBoundary}. */
export type ErrorBoundary = z.infer<typeof ErrorBoundary>;

/** One step, as a persona declares it. */
export const Step = z.strictObject({
  name: z
    .string()
    .regex(ID_PATTERN, { error: 'a step’s name is 1 to 64 characters of A-Z a-z 0-9 _ -' })
    .refine((name) => !BUILT_IN_STEPS.includes(name), { error: 'model and tools are steps of every persona' }),
  /** What the model is to do in it. */
  prompt: z
    .string()
    .max(BOUNDS.stepPromptMaxChars)
    .refine((text) => text.trim() !== '', { error: 'must not be empty' }),
  /** Of the persona's tools those that it has in this step. */
  tools: WrittenToolSelection.optional(),
  /** Tokens in and out that it may use. */
  max_tokens: z.number().int().positive().max(1e12).optional(),
  /** USD that it may use; needs a known price of the model. */
  max_usd: z.number().min(0.000_001).max(1_000_000).optional(),
  error_boundary: ErrorBoundary.default('fail'),
});
/** See {@link Step}. */
export type Step = z.infer<typeof Step>;

/** The steps of a persona, in order. */
export const Steps = z
  .array(Step)
  .min(1)
  .max(BOUNDS.stepsMax)
  .superRefine((steps, context) => {
    const twice = steps.findIndex(({ name }, index) => steps.findIndex((one) => one.name === name) < index);
    if (twice < 0) return;
    context.addIssue({ code: 'custom', path: [twice, 'name'], message: `there are two steps ${steps[twice]?.name}` });
  });

/** What a declared step is given: PreStep hooks may give it another prompt. */
export const StepArgs = z.strictObject({ prompt: Step.shape.prompt });
/** See {@link StepArgs}. */
export type StepArgs = z.infer<typeof StepArgs>;

/** The arguments that a PreStep hook has returned, or why they are none. */
export function readStepArgs(args: JsonObject): StepArgs | string {
  const read = StepArgs.safeParse(args);
  return read.success ? read.data : 'the arguments of a step are {prompt}, a text that is not empty';
}

/** How a step has ended. `unfinished`: the run ended first. */
export const StepStatus = z.enum(['completed', 'failed', 'unfinished']);
/** See {@link StepStatus}. */
export type StepStatus = z.infer<typeof StepStatus>;
