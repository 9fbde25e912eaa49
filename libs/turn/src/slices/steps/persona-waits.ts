/**
 * Waits and lost attempts of model steps (model calls and compactions). A model step that cannot start stays open: it
 * waits for an instance that serves its persona up to a limit, and for the end of a pause of its persona without a
 * limit. Where a model step runs: route-model-step.ts in libs/session.
 */

import type { EventOf, PersonaStepInput, SessionEvent } from '@coxswain/protocol';
import type { SessionContext } from '../../core/context.ts';
import { type Decision, events, late } from '../../core/decision.ts';
import { nextIndex, type PlacedEvent } from '../../core/journal-place.ts';
import type { PersonaWait } from './state.ts';
import { stepFailure } from './steps.ts';

/** The wait of the open model step for its persona, or null. */
export function personaWait(context: SessionContext): PersonaWait | null {
  const wait = context.persona_wait;
  return wait && isOpen(context, wait.effect_id) ? wait : null;
}

function isOpen({ model, compacting }: SessionContext, effectId: string): boolean {
  return model?.id === effectId || compacting?.id === effectId;
}

/** Decides the progress of a model step, as its host reports it: it waits, it continues, or an attempt was lost. */
export function decidePersonaStep(context: SessionContext, input: PersonaStepInput): Decision {
  if (!isOpen(context, input.effect_id) || context.aborting) return late(input.effect_id);
  const { effect_id } = input;
  const wait = personaWait(context);
  const ended: SessionEvent[] = wait
    ? [{ type: 'persona_wait_ended', effect_id, persona: wait.persona, version: wait.version, why: wait.why }]
    : [];
  switch (input.state) {
    case 'waits': {
      const { persona, version, why, reason, wait_ms } = input;
      if (wait?.why === why) return { kind: 'ignored', reason: 'the wait is already recorded' };
      return events(...ended, {
        type: 'waiting_for_persona',
        effect_id,
        persona,
        version,
        why,
        ...(reason === undefined ? {} : { reason }),
        ...(wait_ms === undefined ? {} : { wait_ms }),
      });
    }
    case 'goes_on':
      return wait ? events(...ended) : { kind: 'ignored', reason: 'no wait is recorded' };
    case 'lost': {
      const { persona, version, instance, cause } = input;
      const lost = lostAttempts(context, effect_id) + 1;
      return events({ type: 'persona_step_lost', effect_id, persona, version, instance, cause, lost });
    }
  }
}

/** The number of lost attempts of a model step: attempts that a persona's process started and did not finish. */
export function lostAttempts({ lost_steps }: SessionContext, effectId: string): number {
  return lost_steps?.effect_id === effectId ? lost_steps.lost : 0;
}

/** A model step has started to wait for its persona. */
export function personaWaitStarted(
  context: SessionContext,
  event: EventOf<'waiting_for_persona'> & PlacedEvent,
): Partial<SessionContext> {
  const { effect_id, persona, version, why, wait_ms } = event;
  const wait = { effect_id, persona, version, why, since_ms: event.at_ms };
  if (wait_ms === undefined) return { persona_wait: wait };
  const index = nextIndex(context, event);
  const timer = { id: `${event.n}-${index}`, epoch: context.epoch, due_at_ms: event.at_ms + wait_ms };
  return { persona_wait: { ...wait, timer }, next_effect: index + 1 };
}

/**
 * The events if a wait for a persona exceeded its limit. A model call fails the open declared step (STEPS-4), or the
 * run if no step is open. A compaction fails the run, without the fallback of COMPACTION-4 (compaction.ts): the model
 * call after it would wait for the same persona. There are no events if the wait has ended, or if an interrupt has
 * ended the model call.
 */
export function afterPersonaWaitExpiry(context: SessionContext): SessionEvent[] {
  const wait = personaWait(context);
  // A preempting interrupt has ended the model call already, and its outcome will follow.
  if (!wait || context.model?.preempted) return [];
  const { persona, version, since_ms, timer } = wait;
  const waited = timer ? ` for ${inWords(timer.due_at_ms - since_ms)} (limits.wait_for_persona_ms)` : '';
  const message = `no instance of persona ${persona} ${version} was available${waited}: start one with cox serve personas, then prompt the session again`;
  const error = { code: 'persona_unavailable', message, retryable: true };
  const failed: EventOf<'run_failed'> = { type: 'run_failed', source: 'model', error, stop_reason: 'error' };
  // As for a failed model: the error boundary of a declared step decides (STEPS-4, steps.ts).
  const ofStep = context.model?.id === wait.effect_id ? stepFailure(context, error, failed) : null;
  return ofStep ?? [failed];
}

/** A duration for people: `1.5 s`, `10 min`. */
function inWords(ms: number): string {
  if (ms < 1_000) return `${ms} ms`;
  return ms < 60_000 ? `${rounded(ms / 1_000)} s` : `${rounded(ms / 60_000)} min`;
}

const rounded = (value: number) => Math.round(value * 10) / 10;
