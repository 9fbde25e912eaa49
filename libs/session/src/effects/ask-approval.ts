/**
 * Asks tools whether a person must approve a call. The answer is recorded with the input that brings the arguments (a model's
 * answer or the outcome of a hook), so that a replay asks no tool.
 */
import type { ApprovalQuestion, Clock, Toolset } from '@coxswain/ports';
import { APPROVAL_CHECK_MS, type CallPart, type ModelOutcome, type ToolDefinition } from '@coxswain/protocol';

/**
 * Whether a person must approve a call.
 * Contract: never rejects; settles within {@link APPROVAL_CHECK_MS}. True where the tool does not answer in time.
 * @param toolset opens the session's tools; null where they cannot be opened.
 */
export async function needsApproval(
  tool: ToolDefinition | undefined,
  question: ApprovalQuestion,
  toolset: () => Promise<Toolset | null>,
  clock: Clock,
  signal: AbortSignal,
): Promise<boolean> {
  if (tool?.needs_approval !== 'by_call') return tool?.needs_approval === 'always';
  const answered = new AbortController();
  const either = AbortSignal.any([signal, answered.signal]);
  const ask = async () => (await (await toolset())?.needsApproval?.(question, either)) ?? true;
  const late = clock.sleep(APPROVAL_CHECK_MS, either).then(() => true);
  const needed = await Promise.race([ask().catch(() => true), late]);
  answered.abort();
  return needed;
}

/** A model's answer, with the tools' answers on approval. */
export async function withApprovals(
  outcome: ModelOutcome,
  tools: readonly ToolDefinition[],
  ask: (tool: ToolDefinition, call: CallPart) => Promise<boolean>,
): Promise<ModelOutcome> {
  if (outcome.status !== 'complete' || !tools.some((tool) => tool.needs_approval)) return outcome;
  const content = await Promise.all(
    outcome.message.content.map(async (part) => {
      if (part.type !== 'call' || part.problem) return part;
      const tool = tools.find(({ name }) => name === part.tool);
      const needed = tool?.needs_approval !== undefined && (await ask(tool, part));
      return needed ? { ...part, needs_approval: true as const } : part;
    }),
  );
  return { ...outcome, message: { ...outcome.message, content } };
}
