/** Results of runs in the results of tools. */
import { ResultCollector, type RunResult, usageToWire } from '@coxswain/client';
import type { JournalRecord } from '@coxswain/protocol';
import type { z } from 'zod';
import { MCP_SERVER_BOUNDS } from '../mcp-server-bounds.ts';
import { shortenText } from '../shorten-text.ts';
import type { Result } from './tool-inputs.ts';

/**
 * The result of the run that ended last; null without one. Unlike the result of a session, it does not wait for a run
 * that has started meanwhile.
 */
export async function newestResult(
  journal: AsyncIterable<{ readonly record: JournalRecord }>,
): Promise<RunResult | null> {
  const results = new ResultCollector();
  for await (const { record } of journal) results.add(record);
  return results.newest;
}

/** Formats the result of a run. */
export function shownResult(result: RunResult): z.output<typeof Result> {
  const { stopReason, text, turns, usage, costUsd, pending, error } = result;
  return {
    stop_reason: stopReason,
    text: shortenText(text, MCP_SERVER_BOUNDS.answerMaxChars),
    turns,
    usage: usageToWire(usage),
    cost_usd: costUsd ?? null,
    pending,
    error: error === undefined ? null : { code: error.code, message: shortenText(error.message) },
  };
}
