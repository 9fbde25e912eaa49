/** Session events without a duration, as moments (span events of OpenTelemetry) of the span around them. */
import type { SessionEvent } from '@coxswain/protocol';
import type { OpenSpan } from './open-spans.ts';

/** The attributes of an event as a moment. Null for other events, and for a seam that delivered and skipped nothing. */
export function momentAttributes(event: SessionEvent): Parameters<OpenSpan['moment']>[2] | null {
  switch (event.type) {
    case 'loop_checkpoint': {
      const delivered = event.delivered + event.inbox_delivered;
      if (delivered === 0 && !event.dispatch_skipped) return null;
      return {
        'coxswain.seam': event.kind,
        'coxswain.delivered': delivered,
        'coxswain.dispatch_skipped': event.dispatch_skipped || undefined,
      };
    }
    case 'steering_received':
    case 'reminder_injected':
    case 'followup_received':
      return { 'coxswain.command.id': event.command_id };
    case 'owned':
      return { 'coxswain.epoch': event.epoch, 'coxswain.host': event.host };
    case 'waiting_for_persona':
    case 'persona_wait_ended':
    case 'persona_step_lost':
      return { 'gen_ai.agent.name': event.persona };
    case 'budget_threshold':
      return { 'coxswain.budget': event.budget, 'coxswain.percent': event.percent };
    default:
      return null;
  }
}
