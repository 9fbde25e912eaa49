/** Which registrations a hook point consults, and what every payload contains. */

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
 * The registrations that a point consults, in order.
 * @param target what their globs are held against.
 * @param payload without it, those whose conditions it may meet are among them.
 * @param step the step in which the point is, where it is another than the open one.
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
  // A condition is checked against the payload after the persona's own hooks, which have not run yet.
  const isRewritten = REWRITTEN.has(point) && asked.some((hook) => isOfPersona(hook) && hook.deny === undefined);
  if (payload === undefined || !isRewritten) return asked;
  const unknown = { ...occasion, payload: undefined };
  return context.hooks.filter(
    (hook) => hook.point === point && registrationMatches(hook, isOfPersona(hook) ? occasion : unknown),
  );
}

const NONE: readonly HookRegistration[] = [];

/** Points whose payload a hook may change for those behind it. */
const REWRITTEN: ReadonlySet<HookPoint> = new Set(
  [HOOK_RETURNS.args, HOOK_RETURNS.result, HOOK_RETURNS.output].flatMap(({ points }): readonly HookPoint[] => points),
);

/** Whether a point of the session itself is hooked. */
export function isHooked(context: SessionContext, point: HookPoint): boolean {
  return context.hooks.length > 0 && hooksFor(context, point, personaOfTurn(context)).length > 0;
}

/** What every payload has. */
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

/** Between runs the table is not read. The first table of a run comes with its provision. */
export function decideHooksChanged(state: MachineState, { fingerprint, table }: HooksChangedInput): Decision {
  const { context } = state;
  if (isEnded(state) || !context.run_started) return { kind: 'ignored', reason: 'no run is active' };
  if (context.pinned?.hooks_fingerprint === fingerprint) return { kind: 'ignored', reason: 'unchanged hook table' };
  return events({ type: 'hooks_changed', fingerprint, table });
}
