/**
 * The open consult: one effect calls all registrations of a hook point.
 */

import type { EventOf, HookPoint, JsonObject, SessionEvent } from '@coxswain/protocol';
import type { SessionContext } from '../../core/context.ts';
import { effectId, nextIndex, type PlacedEvent } from '../../core/place.ts';
import type { CallRow } from '../calls/state.ts';
import { noteOnCall } from '../calls/table.ts';
import { hooksFor, payloadHead, personaOfTurn } from './registrations.ts';

/** The next registration of a point, or the end of a consult without any. Null while answers are awaited. */
export function consult(
  context: SessionContext,
  point: HookPoint,
  detail: JsonObject,
  target?: string,
  callId?: string,
): SessionEvent | null {
  if (!consultable(context, point, callId)) return null;
  const open = context.consult;
  const payload = open?.payload ?? { ...payloadHead(context, point), ...detail };
  const hooks = hooksFor(context, point, target ?? personaOfTurn(context), payload);
  const hook = hooks[open?.hooks.length ?? 0];
  const call = callId === undefined ? {} : { call_id: callId };
  if (!hook) return open ? null : { type: 'consult_ended', point, ...call };
  return {
    type: 'hook_call',
    hook: hook.id,
    point,
    effect_id: open?.effect_id ?? effectId(context),
    ...call,
    payload,
  };
}

/**
 * Whether a point may open a consult. Consults of one session never overlap. Registrations are called only in the
 * record that opened their consult, whatever later changes of the table.
 */
export function consultable(context: SessionContext, point: HookPoint, callId?: string): boolean {
  const { consult } = context;
  return consult === null || (consult.point === point && consult.call_id === callId && isAsking(context));
}

/** Whether the record that opened the consult is still being made. Later records add no registrations. */
export function isAsking(context: SessionContext): boolean {
  return context.consult?.effect_id.startsWith(`${context.n}-`) === true;
}

/** Whether hooks are being called about a call. Their answer is awaited even if the table changes. */
export function isConsulted({ consult }: SessionContext, { call_id }: Pick<CallRow, 'call_id'>): boolean {
  return consult?.call_id === call_id;
}

/** A registration is called: it opens the consult, or joins it. */
export function hookAsked(context: SessionContext, event: EventOf<'hook_call'> & PlacedEvent): Partial<SessionContext> {
  const { consult } = context;
  const registration = context.hooks.find(({ id, point }) => id === event.hook && point === event.point);
  const failsOpen = registration?.on_error === 'fail_open';
  const fail_open = failsOpen ? { fail_open: [...(consult?.fail_open ?? []), event.hook] } : {};
  if (consult) return { consult: { ...consult, hooks: [...consult.hooks, event.hook], ...fail_open } };
  return {
    consult: {
      effect_id: event.effect_id,
      epoch: context.epoch,
      point: event.point,
      ...(event.call_id ? { call_id: event.call_id } : {}),
      ...(event.command_id ? { command_id: event.command_id } : {}),
      hooks: [event.hook],
      ...fail_open,
      payload: event.payload,
      ...(context.aborting ? { of_end: true } : {}),
    },
    next_effect: nextIndex(context, event) + 1,
  };
}

/** The effect of a veto on the context, in addition to the events that follow. */
export function hookVetoed(context: SessionContext, event: EventOf<'hook_vetoed'>): Partial<SessionContext> {
  const { point, decision, call_id, hook } = event;
  if (point === 'permission_asked' && decision === 'allow' && call_id)
    return noteOnCall(context, call_id, { granted_by: `hook:${hook}` });
  if (point === 'pre_suspend') return { suspend: null };
  if (point === 'pre_compact' && context.pass) return { pass: { ...context.pass, vetoed: true } };
  return {};
}
