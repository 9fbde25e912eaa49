/**
 * The registrations of a hook point, and the open consult: one effect that calls all matching registrations in the
 * order of the table (`inCallOrder` in libs/protocol).
 * The host calls them: `consultHooks` (consult-hooks.ts in libs/session). What the answers cause: `decideConsult`
 * (consult-outcome.ts).
 */

import {
  type EventOf,
  HOOK_RETURNS,
  type HookPoint,
  type HookRegistration,
  type HooksChangedInput,
  isOfPersona,
  type JsonObject,
  regexBudget,
  registrationMatches,
  type SessionEvent,
} from '@coxswain/protocol';
import type { SessionContext } from '../../core/context.ts';
import { type Decision, events } from '../../core/decision.ts';
import { nextEffectId, nextIndex, type PlacedEvent } from '../../core/journal-place.ts';
import { isEnded, type MachineState } from '../../machine/state.ts';
import type { CallRow } from '../calls/state.ts';
import { noteOnCall } from '../calls/table.ts';
import { openStep } from '../steps/progress.ts';
import type { OpenConsult } from './state.ts';

/**
 * The registrations that apply at a point, in order: their persona, globs, step and conditions match.
 * @param target the value for their globs.
 * @param payload the value for their conditions. Without it every condition counts as true. At a point of {@link REWRITTEN},
 *   hooks of the persona come first and may change it. If one matches, the conditions of hooks of hosts and services
 *   count as true here, and the host evaluates them when it calls the hooks (`doesNotApply`, consult-hooks.ts).
 * @param step the step of the point, if it differs from the open one.
 */
export function hooksFor(
  context: SessionContext,
  point: HookPoint,
  target: string,
  payload?: JsonObject,
  step: string | undefined = openStep(context)?.name,
): readonly HookRegistration[] {
  if (context.hooks.length === 0) return NONE;
  const occasion = { persona: personaOfTurn(context), target, step, payload, budget: regexBudget() };
  const matching = context.hooks.filter((hook) => hook.point === point && registrationMatches(hook, occasion));
  // The persona's hooks come first, and may change the payload. So the host evaluates the conditions of later hooks.
  const isRewritten = REWRITTEN.has(point) && matching.some((hook) => isOfPersona(hook) && hook.deny === undefined);
  if (payload === undefined || !isRewritten) return matching;
  const unknown = { ...occasion, payload: undefined };
  return context.hooks.filter(
    (hook) => hook.point === point && registrationMatches(hook, isOfPersona(hook) ? occasion : unknown),
  );
}

const NONE: readonly HookRegistration[] = [];

/** Points at which a hook may change the payload of later hooks. */
const REWRITTEN: ReadonlySet<HookPoint> = new Set(
  [HOOK_RETURNS.args, HOOK_RETURNS.result, HOOK_RETURNS.output].flatMap(({ points }): readonly HookPoint[] => points),
);

/**
 * Whether hooks may apply at a point whose target is the persona, not a tool, a file or a step. Their conditions are not
 * evaluated here, so the consult may find none.
 */
export function isHooked(context: SessionContext, point: HookPoint): boolean {
  return context.hooks.length > 0 && hooksFor(context, point, personaOfTurn(context)).length > 0;
}

/** The members of every payload. */
export function payloadHead(context: SessionContext, point: HookPoint): JsonObject {
  return {
    event: point,
    session: { id: context.session_id },
    persona: personaOfTurn(context),
    turn: context.turn,
  };
}

/** The persona that started the turn. After a hand-off the rest of the turn still counts for it. */
export function personaOfTurn({ relay, pinned }: SessionContext): string {
  return relay.from ?? pinned?.persona ?? '';
}

/**
 * Decides a change of the hook table. An unchanged table is ignored, and so is any table while no run is active: the
 * provision of a run has its first table.
 */
export function decideHooksChanged(state: MachineState, { fingerprint, table }: HooksChangedInput): Decision {
  const { context } = state;
  if (isEnded(state) || !context.run_started) return { kind: 'ignored', reason: 'no run is active' };
  if (context.pinned?.hooks_fingerprint === fingerprint) return { kind: 'ignored', reason: 'unchanged hook table' };
  return events({ type: 'hooks_changed', fingerprint, table });
}

/**
 * The next event of the consult of a point: the `hook_call` of its next registration, or `consult_ended` if none matches.
 * Null while hooks are called, for this point or another one.
 * @param detail the members of the payload in addition to {@link payloadHead}.
 * @param target the value for the globs of registrations; by default the persona.
 */
export function nextConsultEvent(
  context: SessionContext,
  point: HookPoint,
  detail: JsonObject,
  target?: string,
  callId?: string,
): SessionEvent | null {
  if (!mayConsult(context, point, callId)) return null;
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
    effect_id: open?.effect_id ?? nextEffectId(context),
    ...call,
    ...recordedPayload(open, payload),
  };
}

/**
 * The member `payload` of the next `hook_call` of a consult. The first one always has it. Later ones repeat it only while
 * all copies have at most {@link PAYLOADS_MAX_CHARS}: they are in one record, and small values cannot become blobs.
 * @param open the consult as the earlier registrations have it; null for the first one.
 */
export function recordedPayload(open: OpenConsult | null, payload: JsonObject): { readonly payload?: JsonObject } {
  const copies = (open?.hooks.length ?? 0) + 1;
  return copies === 1 || copies * JSON.stringify(payload).length <= PAYLOADS_MAX_CHARS ? { payload } : {};
}

/** Maximum of all copies of the payload in the `hook_call` events of one consult, as JSON. */
const PAYLOADS_MAX_CHARS = 64 * 1024;

/**
 * Whether a point may open a consult, or add a registration to the open one. Consults of a session never overlap.
 * Registrations join a consult only in the record that opened it: later changes of the table add none.
 */
export function mayConsult(context: SessionContext, point: HookPoint, callId?: string): boolean {
  const { consult } = context;
  return consult === null || (consult.point === point && consult.call_id === callId && isAsking(context));
}

/** Whether the current record is the one that opened the consult. Later records add no registrations. */
export function isAsking(context: SessionContext): boolean {
  return context.consult?.effect_id.startsWith(`${context.n}-`) === true;
}

/** Whether the open consult is about this call. */
export function isConsulted({ consult }: SessionContext, { call_id }: Pick<CallRow, 'call_id'>): boolean {
  return consult?.call_id === call_id;
}

/** A registration is to be called: it opens a consult, or joins the open one. */
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
      // The first `hook_call` has the payload.
      payload: event.payload ?? {},
      ...(context.aborting ? { of_end: true } : {}),
    },
    next_effect: nextIndex(context, event) + 1,
  };
}

/** The changes of the context by a hook's decision (`hook_vetoed`), in addition to those of the events that follow. */
export function hookVetoed(context: SessionContext, event: EventOf<'hook_vetoed'>): Partial<SessionContext> {
  const { point, decision, call_id, hook } = event;
  if (point === 'permission_asked' && decision === 'allow' && call_id)
    return noteOnCall(context, call_id, { granted_by: `hook:${hook}` });
  if (point === 'pre_suspend') return { suspend: null };
  if (point === 'pre_compact' && context.compaction) return { compaction: { ...context.compaction, vetoed: true } };
  return {};
}
