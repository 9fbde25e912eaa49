/**
 * The tools whose calls the session executes itself (`sessionToolOf`, calls/table.ts): why a call cannot start, and its
 * effects.
 */

import { BOUNDS, type DelegateArgs, type SendMessageArgs } from '@coxswain/protocol';
import type { SessionContext } from '../../core/context.ts';
import type { AbortOrder, Effect, EffectHead } from '../../core/effect.ts';
import type { CallRow } from '../calls/state.ts';
import { type SessionTool, sessionToolOf } from '../calls/table.ts';
import { handoffArgs, handoffRefusal } from '../handoff/handoff.ts';
import { delegationRefusal } from './delegation.ts';

/** Why a call of a {@link SessionTool} cannot start although it is allowed; null if it can, and for other calls. */
export function sessionToolRefusal(
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

/**
 * The effects of a running call of a {@link SessionTool}: one for a hand-off or a message. A delegation has one until
 * the start command of its child is stored, and afterwards only if the child must stop.
 * @param order the order to stop the call, or null.
 */
export function sessionToolEffects(
  context: SessionContext,
  row: CallRow,
  tool: SessionTool,
  head: Pick<EffectHead, 'id' | 'epoch'>,
  order: AbortOrder | null,
): Effect[] {
  const callId = row.call_id;
  if (tool === 'handoff') {
    return [{ kind: 'hand_off', ...head, abort: order, callId, to: handoffArgs(row).to }];
  }
  if (tool === 'send_message') {
    const args = row.args as unknown as SendMessageArgs;
    return [{ kind: 'send_message', ...head, abort: order, callId, args, hops: context.hops + 1 }];
  }
  const child = context.children.find(({ effect_id }) => effect_id === head.id);
  if (!child) return [];
  const args = row.args as unknown as DelegateArgs;
  if (row.accepted === undefined) return [{ kind: 'start_child', ...head, abort: null, callId, args, child }];
  return order ? [{ kind: 'stop_child', ...head, abort: null, callId, tool: row.tool, child, order }] : [];
}
