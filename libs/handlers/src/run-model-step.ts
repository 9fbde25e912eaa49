/** Runs one request to a model, in the process of a host or of a persona's service. */
import { failedStep, type ModelAnswered, type ModelAsked, type StepModels } from '@coxswain/protocol';

/**
 * Runs one step. Hosts and persona services call models only here. Never rejects if `models` keeps its contract: every
 * end is a result.
 */
export async function runModelStep<Part>(
  models: StepModels<Part>,
  request: ModelAsked,
  onPart: (part: Part) => void,
  signal: AbortSignal,
): Promise<ModelAnswered> {
  const failure = await models.check(request.model);
  return failure ? failedStep(failure) : models.resolve(request.model).stream(request, onPart, signal);
}
