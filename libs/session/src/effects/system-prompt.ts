/**
 * The system text of a run: the persona's prompt, the index of its skills, the prompt of its mode, and the instruction for
 * structured output, in this order. Provisioning pins it as `system_prompt`, and model-request.ts puts it into each request.
 */
import {
  type Failure,
  LOAD_SKILL,
  modeProblem,
  type OutputSchema,
  outputInstruction,
  type Persona,
  skillIndex,
  type ToolDefinition,
} from '@coxswain/protocol';

/**
 * Joins the parts of the system text. Empty parts are left out.
 * @param tools the session's tools. Without `load_skill` among them, the text has no index of skills.
 * @param mode the prompt of the mode, from {@link promptOfMode}.
 * @param output the schema of the final answer, if there is one.
 */
export function systemPromptOf(
  persona: Persona,
  tools: readonly ToolDefinition[],
  mode: string,
  output: OutputSchema | undefined,
): string {
  const index = tools.some(({ name }) => name === LOAD_SKILL) ? skillIndex(persona.skills ?? []) : '';
  const instruction = output ? outputInstruction(output) : '';
  return [persona.prompt, index, mode, instruction].filter((text) => text.trim() !== '').join('\n\n');
}

/** The prompt of a mode of the persona; empty without a mode. A failure for an unknown mode. */
export function promptOfMode(mode: string | undefined, persona: Persona): string | Failure {
  if (mode === undefined) return '';
  const problem = modeProblem(persona, mode);
  return problem === null ? (persona.modes?.[mode]?.prompt ?? '') : { code: 'mode_not_found', message: problem };
}
