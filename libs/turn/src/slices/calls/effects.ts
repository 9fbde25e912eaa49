/**
 * The effects of running calls.
 */

import type { JsonObject } from '@coxswain/protocol';
import type { SessionContext } from '../../core/context.ts';
import type { AbortOrder, Effect } from '../../core/effect.ts';
import { crewEffects } from '../children/children.ts';
import { sessionToolOf } from '../children/delegation.ts';
import { PREEMPT_ORDER } from '../injections/preempt.ts';
import { cancelOrder } from './cancel.ts';

/** The effect of each running call. */
export function callEffects(context: SessionContext, abort: AbortOrder | null): readonly Effect[] {
  return context.calls.flatMap((row): readonly Effect[] => {
    if (row.status !== 'running' || row.effect_id === undefined) return [];
    const { call_id: callId, tool, cancel } = row;
    const order = (cancel ? cancelOrder(cancel) : null) ?? abort ?? (row.preempted ? PREEMPT_ORDER : null);
    const head = { id: row.effect_id, epoch: row.epoch };
    const own = sessionToolOf(context, row);
    if (own !== null) return crewEffects(context, row, own, head, order);
    // The worker that accepted the call sends its outcome. The host only tells it to stop.
    if (row.accepted !== undefined)
      return order ? [{ kind: 'stop_call', ...head, abort: null, callId, tool, order }] : [];
    return [{ kind: 'call_tool', ...head, abort: order, callId, tool, args: row.args as JsonObject }];
  });
}
