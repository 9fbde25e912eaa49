/**
 * Selects the registrations of a hook point, and builds the common part of payloads.
 */

import {
  HOOK_RETURNS,
  type HookPoint,
  type HookRegistration,
  type HooksChangedInput,
  isOfPersona,
  type JsonObject,
  registrationMatches,
} from '@coxswain/protocol';
import type { SessionContext } from '../../core/context.ts';
import { type Decision, events } from '../../core/decision.ts';
import type { MachineState } from '../../machine/state.ts';
import { isEnded } from '../../machine/state.ts';
import { openStep } from '../steps/progress.ts';

/**
 * The registrations of a point, in order.
 * @param target the value for their globs.
 * @param payload the value for their conditions; without it, conditions count as true.
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
  const occasion = { persona: personaOfTurn(context), target, step, payload };
  const asked = context.hooks.filter((hook) => hook.point === point && registrationMatches(hook, occasion));
  // The persona's own hooks may still change the payload, so conditions on it are evaluated later.
  const isRewritten = REWRITTEN.has(point) && asked.some((hook) => isOfPersona(hook) && hook.deny === undefined);
  if (payload === undefined || !isRewritten) return asked;
  const unknown = { ...occasion, payload: undefined };
  return context.hooks.filter(
    (hook) => hook.point === point && registrationMatches(hook, isOfPersona(hook) ? occasion : unknown),
  );
}

const NONE: readonly HookRegistration[] = [];

/** Points whose payload a hook may change for later ones. */
const REWRITTEN: ReadonlySet<HookPoint> = new Set(
  [HOOK_RETURNS.args, HOOK_RETURNS.result, HOOK_RETURNS.output].flatMap(({ points }): readonly HookPoint[] => points),
);

/** Whether hooks are registered for a point of the session itself. */
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

/** The persona of the turn: hooks of the rest of a turn get the persona that started it. */
export function personaOfTurn({ relay, pinned }: SessionContext): string {
  return relay.from ?? pinned?.persona ?? '';
}

/** Decides a change of the table. Between runs it is ignored: the first table of a run is part of its provision. */
export function decideHooksChanged(state: MachineState, { fingerprint, table }: HooksChangedInput): Decision {
  const { context } = state;
  if (isEnded(state) || !context.run_started) return { kind: 'ignored', reason: 'no run is active' };
  if (context.pinned?.hooks_fingerprint === fingerprint) return { kind: 'ignored', reason: 'unchanged hook table' };
  return events({ type: 'hooks_changed', fingerprint, table });
}
