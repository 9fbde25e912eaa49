/**
 * Crew calls: calls that a session executes itself, of the tools `delegate`, `handoff` and `send_message`.
 */

import { BOUNDS } from '@coxswain/protocol';
import type { SessionContext } from '../../core/context.ts';
import type { CallRow } from '../calls/state.ts';
import { handoffRefusal } from '../handoff/handoff.ts';
import { delegationRefusal } from './delegation.ts';

/** The tools that a session executes itself. */
export type SessionTool = 'delegate' | 'handoff' | 'send_message';

/** The tool of a call that the session executes itself; null for other calls. */
export function sessionToolOf(context: SessionContext, { tool }: Pick<CallRow, 'tool'>): SessionTool | null {
  if (context.tools[tool]?.by_session !== true) return null;
  return tool === 'delegate' || tool === 'handoff' || tool === 'send_message' ? tool : null;
}

/** Why a call of a {@link SessionTool} cannot start although it is allowed; null if it can, and for other calls. */
export function crewRefusal(
  context: SessionContext,
  row: CallRow,
): { readonly code: string; readonly text: string } | null {
  const tool = sessionToolOf(context, row);
  if (tool === null) return null;
  if (tool === 'handoff') return handoffRefusal(context, row);
  if (tool === 'send_message') {
    if (context.hops < BOUNDS.hopsMax) return null;
    const text = `The message was not sent: its chain of messages between sessions already has ${BOUNDS.hopsMax} hops, which is the limit.`;
    return { code: 'too_many_hops', text };
  }
  return delegationRefusal(context, row);
}
