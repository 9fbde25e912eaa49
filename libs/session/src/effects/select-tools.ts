/** Which of the opened tools a session has, with which settings, and which of them a step of its persona may call. */
import {
  BOUNDS,
  cutText,
  type Failure,
  globMatches,
  HANDOFF,
  LOAD_SKILL,
  PERSONA_TOOL_SOURCE,
  type Persona,
  problemSentences,
  readStrictly,
  type StartSettings,
  ToolDefinition,
  type ToolSelection,
} from '@coxswain/protocol';
import { withHandoffs } from './crew-names.ts';

/**
 * The tools that the persona and the start select, with the persona's `tool_settings`; the first `BOUNDS.toolsMax` of
 * them. The description of `handoff` lists the persona's targets. Without targets, `handoff` is left out.
 */
export function selectTools(
  tools: readonly ToolDefinition[],
  settings: StartSettings,
  persona: Persona,
): ToolDefinition[] {
  // A persona that has skills or hand-offs need not allow the tools for them. Its `deny` and the start's selection still apply.
  const meant = [...(persona.skills?.length ? [LOAD_SKILL] : []), ...(persona.handoffs?.length ? [HANDOFF] : [])];
  const own = persona.tools && allowing(persona.tools, meant);
  const selections = [own, settings.tools].filter((selection) => selection !== undefined);
  const selected = tools.filter((tool) => selections.every((selection) => selects(selection, tool.name)));
  return withHandoffs(selected, persona, settings.personas ?? [])
    .slice(0, BOUNDS.toolsMax)
    .map((tool) => withSettings(tool, persona));
}

function allowing({ allow, deny }: ToolSelection, more: readonly string[]): ToolSelection {
  return { allow: [...allow, ...more], deny };
}

/** Whether a tool selection includes a tool. */
function selects({ allow, deny }: ToolSelection, tool: string): boolean {
  return allow.some((glob) => globMatches(glob, tool)) && !deny.some((glob) => globMatches(glob, tool));
}

/**
 * The session's tools for a declared step of its persona: those that the step's `tools` select. If the persona has
 * skills, also the tool that loads them, unless `tools` deny it. All tools without a step, and for a step without
 * `tools`.
 */
export function toolsOfStep(
  tools: readonly ToolDefinition[],
  { steps = [], skills = [] }: Persona,
  name: string | undefined,
): readonly ToolDefinition[] {
  const selection = steps.find((step) => step.name === name)?.tools;
  if (!selection) return tools;
  const own = allowing(selection, skills.length > 0 ? [LOAD_SKILL] : []);
  return tools.filter((tool) => selects(own, tool.name));
}

function withSettings(definition: ToolDefinition, { tool_settings = [] }: Persona): ToolDefinition {
  const settings = tool_settings.find(({ tool }) => globMatches(tool, definition.name));
  if (!settings) return definition;
  const { max_output, idempotent, sequential, terminates } = settings;
  const { traits } = definition;
  return {
    ...definition,
    traits: {
      ...traits,
      idempotent: idempotent ?? traits.idempotent,
      sequential: sequential ?? traits.sequential,
      terminates: terminates ?? traits.terminates,
    },
    ...(max_output === undefined ? {} : { max_output }),
  };
}

/** The tools that run in the process of the served persona. */
export function servedToolsIn(tools: readonly ToolDefinition[]): readonly ToolDefinition[] {
  return tools.filter(({ source }) => source === PERSONA_TOOL_SOURCE);
}

/**
 * The failure of a persona with skills on a host without the tool that loads them; otherwise null.
 * @param tools the opened tools, before the selection: a persona may deny the tool.
 */
export function unreadableSkills({ name, skills = [] }: Persona, tools: readonly ToolDefinition[]): Failure | null {
  // A list of skills without the tool would confuse the model. If the persona denies the tool, its prompt has no list.
  if (skills.length === 0 || tools.some((tool) => tool.name === LOAD_SKILL)) return null;
  const message = `the persona ${name} has skills, but this host has no tool ${LOAD_SKILL}`;
  return { code: 'skills_unavailable', message };
}

/**
 * The failure of the first tool that a record cannot contain; otherwise null. A tool's schema may be nested deeper than
 * `BOUNDS.jsonDepthMax`, or contain `1e999`, which JSON parsers read as Infinity. The source of MCP tools omits such
 * tools itself.
 * @param tools the selected tools: a tool that the persona or the start denies does not matter.
 */
export function unrecordableTool(tools: readonly ToolDefinition[]): Failure | null {
  for (const tool of tools) {
    const read = readStrictly(ToolDefinition, tool);
    if (read.ok) continue;
    const problem = problemSentences(read.problems).join('; ');
    const message = `the tool ${cutText(tool.name, 128)} (${tool.source}) cannot be used: ${problem}`;
    return { code: 'provision_failed', message };
  }
  return null;
}
