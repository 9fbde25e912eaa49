/** The duration of an effect's work, for its outcome and for the metrics. */
import type { Clock, Meters } from '@coxswain/ports';
import type { Outcome } from '@coxswain/protocol';
import type { SessionState, WorkEffect } from '@coxswain/turn';

/**
 * Records the durations of model answers, compactions and consulted hooks. Those of calls come from records
 * (session-meters.ts), as a call may outlive its host.
 */
export function measure(
  meters: Meters,
  effect: WorkEffect,
  outcome: Outcome,
  { context }: SessionState,
  seconds: number,
): void {
  if (outcome.type === 'model_outcome' || outcome.type === 'compact_outcome') {
    const model = context.pinned?.model ?? 'none';
    meters.observe('coxswain_model_seconds', { model, outcome: outcome.status }, seconds);
  } else if (effect.kind === 'consult' && outcome.type === 'consult_outcome') {
    const failed = outcome.answers.some(({ failure }) => failure !== undefined);
    const how = failed ? 'failed' : outcome.status;
    meters.observe('coxswain_hook_seconds', { point: effect.point, outcome: how }, seconds);
  }
}

/** Milliseconds since `startedMs` of the monotonic clock, rounded to microseconds, at least 0. */
export function elapsedMs(clock: Pick<Clock, 'monotonicMs'>, startedMs: number): number {
  return Math.max(0, Math.round((clock.monotonicMs() - startedMs) * 1_000) / 1_000);
}
