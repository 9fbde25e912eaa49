/**
 * Calls that outlive the asking: somebody takes a call of a `long_running` tool up (`call_accepted`), and brings its
 * outcome later as a durable command (`call_outcome`). In between nothing of the host works for it, so a restart neither
 * sends it again nor ends it.
 */
import type { CallAccepted, CallOutcome, CommandInput } from '@coxswain/protocol';
import type { KnownTool, SessionContext } from './context.ts';
import { type Decision, events, late } from './decision.ts';
import * as q from './queries.ts';
import { reject } from './rejection.ts';
import { isEnded, type SessionState } from './state.ts';

// A child's answer comes from its host, on a verb that no worker has.
function isBroughtByWorker(tool: KnownTool | undefined): boolean {
  return tool?.long_running === true && !tool.by_session;
}

/** Decides that a call was taken up. */
export function decideCallAccepted(context: SessionContext, input: CallAccepted): Decision {
  const row = q.callRow(context, input.call_id);
  if (row?.status !== 'running' || row.effect_id !== input.effect_id || row.accepted !== undefined) {
    return late(input.effect_id);
  }
  return events({ type: 'call_accepted', call_id: row.call_id, epoch: input.epoch });
}

/**
 * Decides an outcome that came as a command: for the open call and its newest sending alone; whatever else is refused
 * with a code, which is its note.
 * @param decideCall what an outcome leads to, whichever way it came.
 */
export function decideCallOutcome(
  state: SessionState,
  input: CommandInput,
  decideCall: (context: SessionContext, outcome: CallOutcome) => Decision,
): Decision {
  const { context } = state;
  const { call_id, effect_id, epoch, status, result, duration_ms } = input.body as unknown as CallOutcome & {
    readonly epoch: number;
  };
  const row = isEnded(state) ? undefined : q.callRow(context, call_id);
  if (row?.status !== 'running' || row.effect_id !== effect_id || !isBroughtByWorker(context.tools[row.tool])) {
    const what = row
      ? row.effect_id === effect_id
        ? (row.ended ?? row.status)
        : 'open under another effect id'
      : 'not open';
    return reject(
      input,
      'call_not_open',
      `call ${call_id} does not accept an outcome of effect ${effect_id}: it is ${what}`,
      {
        field: 'call_id',
      },
    );
  }
  // One that was taken up is sent no more, whoever owns the session since. Before that is known, any owner may have sent it.
  const first = row.accepted ?? row.epoch ?? context.epoch;
  const last = row.accepted ?? context.epoch;
  if (epoch < first || epoch > last) {
    const sent = first === last ? `epoch ${first}` : `one of the epochs ${first} to ${last}`;
    return reject(
      input,
      'stale_epoch',
      `call ${call_id} was dispatched in ${sent}; this outcome is from epoch ${epoch}`,
      {
        field: 'epoch',
      },
    );
  }
  const decision = decideCall(context, { type: 'call_outcome', call_id, effect_id, status, result, duration_ms });
  if (decision.kind !== 'events') return decision;
  const [ended, ...rest] = decision.events;
  if (ended?.type !== 'call_ended' && ended?.type !== 'call_returned') return decision;
  return events({ ...ended, command_id: input.command_id }, ...rest);
}
