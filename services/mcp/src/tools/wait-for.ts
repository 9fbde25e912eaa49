import { createEventTranslator, topState, type UiEvent } from '@coxswain/client';
import type { JournalRecord } from '@coxswain/protocol';
import * as z from 'zod';
import { MCP_SERVER_BOUNDS } from '../mcp-server-bounds.ts';
import { mcpTool } from '../mcp-tool.ts';
import { shortenText } from '../shorten-text.ts';
import { existingSession } from './existing-session.ts';
import { shownApproval } from './shown-approvals.ts';
import { newestResult, shownResult } from './shown-result.ts';
import { Approval, OfSession, Result, StateFields } from './tool-inputs.ts';

const { waitMaxMs, waitDefaultMs, entriesMax, progressEveryMs } = MCP_SERVER_BOUNDS;

/** The states of each condition. */
const WAITED: Readonly<Record<string, readonly string[]>> = {
  ended: ['stopped', 'failed'],
  approval: ['function_awaiting_approval'],
  suspended: ['suspended'],
  idle: ['daemon_idle'],
};
const Until = z.enum(['ended', 'approval', 'suspended', 'idle']);

const Waited = z.strictObject({
  session_id: z.string(),
  reached: Until.nullable().describe('The reached condition; null after a timeout.'),
  ...StateFields,
  approvals: z.array(Approval).describe('Pending approvals, if it waits for a decision.'),
  result: Result.nullable().describe('Result, if the run has ended.'),
});

/** The tool `wait_for`: waits for a bounded time until a session has ended, needs a person, or is suspended or idle. */
export const waitFor = mcpTool({
  name: 'wait_for',
  title: 'Wait for a session',
  description:
    'Wait until the session has ended, waits for an approval, is suspended or idle. Return the condition, with its result or the ' +
    'approvals. After timeout_ms it returns reached: null; call it again. Cancelling it does not change the session.',
  scope: 'read',
  input: z.strictObject({
    ...OfSession,
    until: z
      .array(Until)
      .min(1)
      .max(4)
      .default(['ended', 'approval', 'suspended', 'idle'])
      .describe('Conditions; any one of them is enough.'),
    after: z
      .number()
      .int()
      .min(0)
      .default(0)
      .describe('Ignore records up to this one: n of the last event that you have seen.'),
    timeout_ms: z
      .number()
      .int()
      .min(0)
      .max(waitMaxMs)
      .default(waitDefaultMs)
      .describe('Time limit. Many clients cancel a call after a minute unless they request progress.'),
  }),
  output: Waited,
  run: async ({ session_id, until, after, timeout_ms }, { client, signal, progress }) => {
    const { session, newest } = await existingSession(client, session_id);
    const meant = (record: JournalRecord) =>
      record.n > after ? until.find((one) => WAITED[one]?.includes(topState(record.state))) : undefined;
    let last = newest;
    let reached = meant(newest);
    if (reached === undefined && timeout_ms > 0) {
      const over = AbortSignal.timeout(timeout_ms);
      const translator = createEventTranslator();
      let doing: string = topState(newest.state);
      const heartbeat = setInterval(() => progress(doing), progressEveryMs);
      try {
        for await (const record of session.records({ from: newest.n, signal: AbortSignal.any([signal, over]) })) {
          last = record;
          reached = meant(record);
          if (reached !== undefined) break;
          doing = inWords(translator.record(record)) ?? doing;
          progress(doing);
        }
      } finally {
        clearInterval(heartbeat);
      }
      signal.throwIfAborted();
    }
    const state = topState(last.state);
    const waits = state === 'function_awaiting_approval' ? await session.wire.stateAfter(last.n, { signal }) : null;
    const result = WAITED.ended?.includes(state) ? await newestResult(session.journal()) : null;
    return {
      session_id,
      reached: reached ?? null,
      ...{ state, stop_reason: result?.stopReason ?? null, n: last.n },
      approvals: waits?.approvals.slice(0, entriesMax).map((one) => shownApproval(waits, one)) ?? [],
      result: result && shownResult(result),
    };
  },
});

/** Describes the newest event for a progress notification; null if there is none to describe. */
function inWords(events: readonly UiEvent[]): string | null {
  for (const event of events.toReversed()) {
    if (event.type === 'call_started') return shortenText(`calls ${event.tool} ${event.summary}`, 200);
    if (event.type === 'call_ended') return shortenText(`${event.tool}: ${event.status}`, 200);
    if (event.type === 'text_appended') return shortenText(event.text, 200);
    if (event.type === 'turn_started') return `turn ${event.turn}`;
  }
  return null;
}
