import { type RunResult, usageToWire } from '@coxswain/client';
import type { z } from 'zod';
import { MCP_SERVER_BOUNDS } from '../mcp-server-bounds.ts';
import { shortenText } from '../shorten-text.ts';
import type { Result } from './tool-inputs.ts';

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
