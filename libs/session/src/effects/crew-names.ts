/** Whom a session can delegate to, and whom it can be handed to, as its model is told it. */
import { cutText, HANDOFF, type Persona, SESSION_SOURCE, type ToolDefinition } from '@coxswain/protocol';

/** Names that a description lists; those beyond are known all the same. */
const NAMED_MAX = 64;
const DESCRIBED_CHARS = 120;

/** Whether a tool starts children. */
const delegates = ({ name, source }: ToolDefinition) => source === SESSION_SOURCE && name === 'delegate';

/** Whether a session with these tools can start children. */
export function canDelegate(tools: readonly ToolDefinition[]): boolean {
  return tools.some(delegates);
}

/** The tools, with the names of those whom `delegate` can start. What the host knows is looked up only for that tool. */
export async function withCrew(
  tools: readonly ToolDefinition[],
  own: Persona,
  came: readonly Persona[],
  known: () => Promise<readonly string[]>,
): Promise<ToolDefinition[]> {
  if (!canDelegate(tools)) return [...tools];
  const lines = new Map([own, ...came].map((persona) => [persona.name, lineOf(persona)]));
  for (const name of await known()) if (!lines.has(name)) lines.set(name, name);
  const named = [...lines.values()].sort().slice(0, NAMED_MAX).join(', ');
  return tools.map((tool) =>
    delegates(tool) ? { ...tool, description: `${tool.description} Personas: ${named}.` } : tool,
  );
}

/** The tools, with the names of those whom `handoff` can bring in; without it where the persona names nobody. */
export function withHandoffs(
  tools: readonly ToolDefinition[],
  { handoffs = [] }: Persona,
  came: readonly Persona[],
): ToolDefinition[] {
  const isHandoff = ({ name, source }: ToolDefinition) => source === SESSION_SOURCE && name === HANDOFF;
  const lines = handoffs.map((name) => {
    const known = came.find((persona) => persona.name === name);
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
