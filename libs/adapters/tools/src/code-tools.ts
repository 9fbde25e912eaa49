/** Tools of the embedding program, declared as functions. */
import type { ToolOutcome, ToolSource } from '@coxswain/ports';
import { LATER, readTool, type Tool, ToolDefinitionError, toolAnswerToWire } from '@coxswain/protocol';
import { inputSchemaProblem } from '@coxswain/protocol/validate-arguments';
import { type FunctionTool, functionToolset } from './function-toolset.ts';
import { failed, textResult } from './tool-outcome.ts';

/**
 * Creates a source of tools whose functions run in this process. The session has validated the arguments by JSON
 * Schema. A Zod schema validates them again, and the function gets its defaults and transformations.
 * @throws ToolDefinitionError if a definition is invalid or two tools have the same name.
 */
// biome-ignore lint/suspicious/noExplicitAny: each tool has an input of its own
export function createCodeTools(tools: readonly Tool<any>[]): ToolSource {
  const declared = tools.map(readTool);
  const names = new Set<string>();
  for (const { definition, forSession } of declared) {
    const unusable = inputSchemaProblem(definition);
    if (unusable !== null) throw new ToolDefinitionError(`the tool ${definition.name}: ${unusable}`);
    if (names.has(definition.name)) throw new ToolDefinitionError(`two tools are named ${definition.name}`);
    if (forSession !== undefined)
      throw new ToolDefinitionError(`the tool ${definition.name}: forSession applies only to tools on the bus`);
    names.add(definition.name);
  }
  return {
    async open({ root }) {
      return functionToolset(
        declared.map(
          (tool): FunctionTool => ({
            definition: { ...tool.definition, source: 'code' },
            needsApproval: (args, context) => tool.needsApproval(args, context),
            stop: tool.stop,
            async run(args, context) {
              const checked = tool.validate ? await tool.validate(args) : { input: args };
              if ('problem' in checked) return failed('invalid_call_arguments', checked.problem);
              if (tool.validate) context.abortSignal.throwIfAborted();
              return outcomeOf(await tool.execute(checked.input, { ...context, root }));
            },
          }),
        ),
      );
    },
  };
}

function outcomeOf(returned: unknown): ToolOutcome {
  if (returned === LATER) return { status: 'accepted', result: textResult(false, ['']) };
  const read = toolAnswerToWire(returned);
  if (!read.ok) return failed('tool_failed', `the tool returned an invalid result: ${read.problem}`);
  return { status: read.result.is_error ? 'error' : 'ok', result: read.result };
}
