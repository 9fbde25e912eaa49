/** Names of the personas that a session can delegate to or hand over to, for the descriptions of its tools. */
import { cutText, HANDOFF, type Persona, SESSION_SOURCE, type ToolDefinition } from '@coxswain/protocol';

/** Maximum number of names in the description of `delegate`. It accepts further names as well. */
const NAMED_MAX = 64;
const DESCRIBED_CHARS = 120;

/** Whether a tool is the session's own `delegate`, which starts child sessions. */
const delegates = ({ name, source }: ToolDefinition) => source === SESSION_SOURCE && name === 'delegate';

/** Whether a session with these tools can start child sessions. */
export function canDelegate(tools: readonly ToolDefinition[]): boolean {
  return tools.some(delegates);
}

/**
 * The given tools, with the names that `delegate` accepts in its description, at most {@link NAMED_MAX}.
 * @param ofStart the personas of the session's start.
 * @param known looks up the other names. Called only if `delegate` is present.
 * @throws errors of `known`.
 */
export async function withCrew(
  tools: readonly ToolDefinition[],
  own: Persona,
  ofStart: readonly Persona[],
  known: () => Promise<readonly string[]>,
): Promise<ToolDefinition[]> {
  if (!canDelegate(tools)) return [...tools];
  const lines = new Map([own, ...ofStart].map((persona) => [persona.name, lineOf(persona)]));
  for (const name of await known()) if (!lines.has(name)) lines.set(name, name);
  const named = [...lines.values()].sort().slice(0, NAMED_MAX).join(', ');
  return tools.map((tool) =>
    delegates(tool) ? { ...tool, description: `${tool.description} Personas: ${named}.` } : tool,
  );
}

/**
 * The given tools, with the targets of the persona in the description of `handoff`. Without targets, `handoff` is left out.
 * @param ofStart the personas of the session's start. A target among them is shown with its description.
 */
export function withHandoffs(
  tools: readonly ToolDefinition[],
  { handoffs = [] }: Persona,
  ofStart: readonly Persona[],
): ToolDefinition[] {
  const isHandoff = ({ name, source }: ToolDefinition) => source === SESSION_SOURCE && name === HANDOFF;
  const lines = handoffs.map((name) => {
    const known = ofStart.find((persona) => persona.name === name);
    return known ? lineOf(known) : name;
  });
  return tools
    .filter((tool) => !isHandoff(tool) || handoffs.length > 0)
    .map((tool) =>
      isHandoff(tool) ? { ...tool, description: `${tool.description} Personas: ${lines.join(', ')}.` } : tool,
    );
}

function lineOf({ name, description }: Persona): string {
  if (description === undefined) return name;
  const [first = ''] = description.trim().split('\n');
  return `${name} (${first.length > DESCRIBED_CHARS ? `${cutText(first, DESCRIBED_CHARS)}…` : first})`;
}
