/** Events that a transcript shows as one line. */
import type { UiEvent } from '../browser-client.ts';
import type { Tone } from './entries.ts';

/** The line of an event; null if it has none. */
export function noticeOf(event: UiEvent): { tone: Tone; text: string; session?: string } | null {
  switch (event.type) {
    case 'session_copied':
      return {
        tone: 'plain',
        text: `${event.how === 'fork' ? 'forked' : 'imported'} at record ${event.record} of ${event.session}`,
        session: event.session,
      };
    case 'copy_failed':
      return { tone: 'error', text: `the copy failed after ${event.copied} records: ${event.message}` };
    case 'child_ended':
      return {
        tone: 'plain',
        text: `child ended (${event.stopReason}) after ${event.turns} turns${event.restarts ? '; it restarts' : ''}`,
        session: event.session,
      };
    case 'settings_changed': {
      const mode = event.mode === undefined ? null : event.mode === null ? 'no mode' : `mode ${event.mode}`;
      return { tone: 'plain', text: `from now on ${[event.persona, event.model, mode].filter(Boolean).join(', ')}` };
    }
    case 'session_handed_off':
      return { tone: 'plain', text: `${event.from} hands off to ${event.persona}` };
    case 'injection_collapsed':
      return { tone: 'plain', text: 'a newer message replaced a queued one' };
    case 'reminder_ended':
      return { tone: 'plain', text: `a reminder is no longer shown (${event.reason})` };
    case 'command_rejected':
      return { tone: 'warning', text: `${event.verb} rejected: ${event.code}: ${event.message}` };
    case 'control_reported':
      return { tone: 'plain', text: controlText(event) };
    case 'hook_vetoed': {
      const reason = event.reason === null ? '' : `: ${event.reason}`;
      return { tone: 'warning', text: `hook ${event.hook} at ${event.point}: ${event.decision}${reason}` };
    }
    case 'context_overflowed':
      return { tone: 'warning', text: `the prompt was too long: ${event.message}` };
    case 'compaction_started':
      return { tone: 'plain', text: `compacting older messages (${event.strategy})` };
    case 'context_compacted':
      return {
        tone: 'plain',
        text: `compacted by ${event.strategy}: about ${event.tokensBefore} tokens became ${event.tokensAfter}${
          event.instead === null ? '' : `; ${event.instead}`
        }`,
      };
    case 'compaction_skipped':
      return { tone: 'warning', text: `compaction failed: ${event.reason}` };
    case 'step_started':
      return { tone: 'plain', text: `step ${event.step} begins${event.attempt > 1 ? `, try ${event.attempt}` : ''}` };
    case 'step_ended': {
      const error = event.error === null ? '' : `: ${event.error}`;
      return { tone: event.error === null ? 'plain' : 'error', text: `step ${event.step} ${event.status}${error}` };
    }
    case 'injection_blocked':
      return { tone: 'warning', text: `a message was blocked: ${event.reason}` };
    case 'session_suspended': {
      const until = [event.until, event.signal === null ? null : `the signal ${event.signal}`].filter(Boolean);
      const reason = event.reason === null ? '' : `: ${event.reason}`;
      return {
        tone: 'plain',
        text: `${event.byItself ? 'suspended itself' : 'suspended'}${until.length > 0 ? ` until ${until.join(' or ')}` : ''}${reason}`,
      };
    }
    case 'session_resumed':
      return { tone: 'plain', text: `resumed (${event.cause}) after ${Math.round(event.sleptMs / 1_000)} s` };
    case 'signal_received':
      return { tone: 'plain', text: `signal ${event.name}` };
    case 'host_changed':
      return event.epoch > 1 ? { tone: 'plain', text: `now on host ${event.host} (epoch ${event.epoch})` } : null;
    case 'persona_awaited':
      return { tone: 'warning', text: `waits for persona ${event.persona}: ${event.why}` };
    case 'output_rejected':
      return { tone: 'warning', text: `the answer does not fit the output schema: ${event.problems.join('; ')}` };
    case 'step_lost':
      return { tone: 'warning', text: `a step of ${event.persona} was lost (${event.cause}); it is retried` };
    case 'budget_reported':
      return {
        tone: event.percent >= 100 ? 'error' : 'warning',
        text: `${event.percent} percent of the budget ${event.budget} used: ${event.used} of ${event.limit}`,
      };
    default:
      return null;
  }
}

function controlText(event: Extract<UiEvent, { type: 'control_reported' }>): string {
  const reason = event.reason === null ? '' : `: ${event.reason}`;
  const of = event.tool === null ? '' : ` ${event.tool}`;
  const by = event.by === null ? '' : ` by ${event.by}`;
  return `${event.control.replaceAll('_', ' ')}${of}: ${event.status.replaceAll('_', ' ')}${by}${reason}`;
}
