/** The effects of calls that run. */

import type { JsonObject } from '@coxswain/protocol';
import type { SessionContext } from '../../core/context.ts';
import type { AbortOrder, Effect } from '../../core/effect.ts';
import { crewEffects } from '../children/children.ts';
import { sessionToolOf } from '../children/delegation.ts';
import { PREEMPT_ORDER } from '../injections/preempt.ts';
import { cancelOrder } from './cancel.ts';

/** What the outside world does for each call that runs. */
export function callEffects(context: SessionContext, abort: AbortOrder | null): readonly Effect[] {
  return context.calls.flatMap((row): readonly Effect[] => {
    if (row.status !== 'running' || row.effect_id === undefined) return [];
    const { call_id: callId, tool, cancel } = row;
    const order = (cancel ? cancelOrder(cancel) : null) ?? abort ?? (row.preempted ? PREEMPT_ORDER : null);
    const head = { id: row.effect_id, epoch: row.epoch };
    const own = sessionToolOf(context, row);
    if (own !== null) return crewEffects(context, row, own, head, order);
    // The worker that has accepted a call brings its end; a host has only to tell the worker to stop.
    if (row.accepted !== undefined)
      return order ? [{ kind: 'stop_call', ...head, abort: null, callId, tool, order }] : [];
    return [{ kind: 'call_tool', ...head, abort: order, callId, tool, args: row.args as JsonObject }];
  });
}
