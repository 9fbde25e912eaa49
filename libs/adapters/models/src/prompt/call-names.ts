/** Names in calls as providers accept them: one that a model made up must not make every later request fail. */
import type { PromptRules } from './prompt-rules.ts';

const TOOL_NAME_MAX_CHARS = 128;

/** A tool's name; one that does not fit has its other characters replaced by `_`. */
export function promptToolName(tool: string): string {
  return tool.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, TOOL_NAME_MAX_CHARS);
}

/** A call's id; likewise, where the provider is particular about it. */
export function promptCallId(callId: string, rules: PromptRules): string {
  return rules.plainCallIds ? callId.replaceAll(/[^A-Za-z0-9_-]/g, '_') : callId;
}
