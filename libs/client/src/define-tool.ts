/** Declares a tool with an input type from its schema, and checks tools that are served on the bus. */
import type { ServableTool } from '@coxswain/handlers';
import {
  type InputSchema,
  type JsonObject,
  LATER,
  problemSentences,
  readStrictly,
  readTool,
  type Tool,
  ToolAnnouncement,
  type ToolAnswer,
  type ToolApprovalContext,
  type ToolCallContext,
  ToolDefinitionError,
  toolAnswerToWire,
} from '@coxswain/protocol';

export {
  type InputSchema,
  LATER,
  type Tool,
  type ToolAnswer,
  type ToolApprovalContext,
  type ToolCallContext,
  ToolDefinitionError,
};

/**
 * Declares a tool: `defineTool({ name, description, inputSchema: z.object({ … }), execute(input) { … } })`. The same
 * definition works in a host's process, on the bus, in a persona module, in `coxswain.yaml` and in tests.
 * @returns its argument. The function that receives the tool checks it.
 */
export function defineTool<const Schema extends InputSchema | JsonObject>(tool: Tool<Schema>): Tool<Schema> {
  return tool;
}

/** A validated tool, ready to be announced and run. */
export interface CheckedTool extends ServableTool {
  readonly announced: Omit<ToolAnnouncement, 'v' | 'since'>;
}

/** Validates a definition, which may come from JavaScript. @throws ToolDefinitionError. */
export async function checkTool(given: unknown): Promise<CheckedTool> {
  const tool = readTool(given);
  const { definition, forSession } = tool;
  const subject = `the tool ${JSON.stringify(definition.name).slice(0, 140)}`;
  // Validates the announcement. Its time is a placeholder.
  const read = readStrictly(ToolAnnouncement, {
    v: 1,
    since: '2000-01-01T00:00:00.000Z',
    ...definition,
    ...(forSession === undefined ? {} : { for_session: forSession }),
  });
  if (!read.ok) throw new ToolDefinitionError(`${subject} is not valid: ${problemSentences(read.problems)[0]}`);
  const { v: _v, since: _since, ...announced } = read.data;
  // Loaded only where tools are served: it contains a JSON Schema validator.
  const { argumentsProblem, inputSchemaProblem } = await import('@coxswain/protocol/validate-arguments');
  const unusable = inputSchemaProblem(announced);
  if (unusable !== null) throw new ToolDefinitionError(`${subject}: ${unusable}`);
  return {
    announced,
    async check(args) {
      const problem = argumentsProblem(announced, args);
      if (problem !== null) return { problem };
      if (!tool.validate) return { args };
      const validated = await tool.validate(args);
      return 'problem' in validated ? validated : { args: validated.input };
    },
    ...(definition.needs_approval ? { needsApproval: tool.needsApproval } : {}),
    async run(args, context) {
      const returned = await tool.execute(args, context);
      if (returned === LATER) return returned;
      const read = toolAnswerToWire(returned);
      if (!read.ok) throw new Error(`the tool returned an invalid result: ${read.problem}`);
      return read.result;
    },
  };
}
