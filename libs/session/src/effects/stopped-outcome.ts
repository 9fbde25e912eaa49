/** The outcomes of effects that were stopped, or that have no recordable outcome of their own. */
import type { Outcome } from '@coxswain/protocol';
import type { WorkEffect } from '@coxswain/turn';
import { errorOutcome } from './run-tool-call.ts';

/**
 * The outcome of an effect that was stopped, or that has no recordable outcome of its own.
 * @param isUnconfirmed whether nothing confirms that the effect has stopped: its grace period is over, or the order to stop
 *   reached no worker. The outcome of a call then has `timed_out`, and its text says so; other outcomes do not show it.
 */
export function stoppedOutcome(effect: WorkEffect, reason: string, isUnconfirmed: boolean): Outcome {
  switch (effect.kind) {
    case 'provision':
    case 'hand_off':
      return { type: 'provision_outcome', effect_id: effect.id, status: 'cancelled' };
    case 'call_model':
      return {
        type: 'model_outcome',
        effect_id: effect.id,
        status: 'cancelled',
        message: { role: 'assistant', content: [] },
        finish_reason: 'cancelled',
        usage: { input_tokens: 0, output_tokens: 0 },
        body_streamed: false,
        attempts: 0,
        duration_ms: 0,
      };
    case 'compact':
      return {
        type: 'compact_outcome',
        effect_id: effect.id,
        status: 'cancelled',
        text: '',
        usage: { input_tokens: 0, output_tokens: 0 },
        attempts: 0,
        duration_ms: 0,
      };
    case 'notify_parent': {
      const error = { code: 'session_failed', message: reason };
      return { type: 'notify_outcome', effect_id: effect.id, error };
    }
    case 'start_child':
    case 'stop_child':
    case 'send_message':
    case 'stop_call':
    case 'call_tool': {
      const mayStillRun = isUnconfirmed
        ? ' The tool did not confirm that it stopped. Its later output is ignored.'
        : '';
      const { result } = errorOutcome('cancelled', `Cancelled: ${reason}.${mayStillRun}`, 'tool_interrupted');
      const head = {
        type: 'call_outcome',
        effect_id: effect.id,
        call_id: effect.callId,
        status: 'cancelled',
        result,
        duration_ms: 0,
      } as const;
      return isUnconfirmed ? { ...head, timed_out: true } : head;
    }
    case 'consult':
      return {
        type: 'consult_outcome',
        effect_id: effect.id,
        status: 'cancelled',
        answers: effect.hooks.map((hook) => ({ hook, not_run: true })),
      };
    case 'check_stop':
      return { type: 'stop_outcome', effect_id: effect.id, status: 'cancelled', answers: [] };
    case 'notify':
      return { type: 'notice_outcome', effect_id: effect.id, status: 'cancelled', attempts: 0 };
    case 'close_tools':
      return { type: 'close_outcome', effect_id: effect.id, notes: [] };
  }
}
