/** Tools that a module exports. */
import { readTool, type Tool, type ToolCallContext, ToolDefinitionError } from '@coxswain/protocol';
import { runAs, runAsOurs } from './unhandled-failures.ts';

/** Validates an export of a module: one tool, or a list of tools. */
export function exportedTools(member: object): { readonly tools: readonly Tool[] } | { readonly problem: string } {
  const tools = (Array.isArray(member) ? member : [member]) as readonly Tool[];
  const names = new Set<string>();
  for (const tool of tools) {
    try {
      readTool(tool);
    } catch (error) {
      if (!(error instanceof ToolDefinitionError)) throw error;
      return { problem: error.message };
    }
    if (names.has(tool.name)) return { problem: `two tools are named ${tool.name}` };
    names.add(tool.name);
  }
  return tools.length === 0 ? { problem: 'its list of tools is empty' } : { tools };
}

/** Wraps a tool of a manifest that runs in this process, so that its unhandled failures are attributed to it. */
export function watchedTool(tool: Tool): Tool {
  const { needsApproval } = tool;
  const whose = { tool: tool.name };
  return {
    ...tool,
    execute: (input, context) => runAs(whose, () => tool.execute(input, ours(context))),
    ...(typeof needsApproval === 'function'
      ? { needsApproval: (input, context) => runAs(whose, () => needsApproval(input, context)) }
      : {}),
  };
}

function ours(context: ToolCallContext): ToolCallContext {
  return {
    ...context,
    progress: (text) => runAsOurs(() => context.progress(text)),
    feedback: (text) => runAsOurs(() => context.feedback(text)),
    edited: (path) => runAsOurs(() => context.edited(path)),
  };
}
