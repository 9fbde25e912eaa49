/** A short description of a record, for rejections and for comparisons of journals. */
import { assertNever, type CommandInput, isDeferredBy, type JournalRecord, rejectionIn } from '@coxswain/protocol';

/** For example `the result of call c1 (read)`, `a steer`, `the hook returns at PreToolUse (policy)`. */
export function describeRecord({ input, events }: Pick<JournalRecord, 'input' | 'events'>): string {
  switch (input.type) {
    case 'command':
      return describeCommand(input, events);
    case 'provision_outcome':
      return 'the resolution of persona, model and tools';
    case 'model_outcome':
      return 'an answer of the model';
    case 'compact_outcome':
      return 'the summary of a compaction';
    case 'call_outcome': {
      const ended = events.find((event) => 'call_id' in event && event.call_id === input.call_id && 'tool' in event);
      const tool = ended && 'tool' in ended && ended.tool !== undefined ? ` (${ended.tool})` : '';
      return `the result of call ${input.call_id}${tool}`;
    }
    case 'call_accepted':
      return `the acceptance of call ${input.call_id}`;
    case 'consult_outcome': {
      const returned = events.find((event) => event.type === 'hook_returned');
      const hooks = input.answers.map(({ hook }) => hook).join(', ');
      return `the hook returns${returned ? ` at ${returned.point}` : ''} (${hooks})`;
    }
    case 'close_outcome':
      return 'the closing of the tools';
    case 'stop_outcome':
      return 'the results of stop predicates';
    case 'notify_outcome':
      return 'the report to the parent';
    case 'notice_outcome':
      return 'the outcome of an approval notice';
    case 'owned':
      return 'the claim by a host';
    case 'hooks_changed':
      return 'a change of the hooks';
    case 'persona_step':
      return 'the progress of a step of a served persona';
    case 'feedback':
      return 'inbox feedback';
    case 'session_failed':
      return 'a failure of the session';
    case 'timer':
      return 'a timer';
    default:
      return assertNever(input);
  }
}

function describeCommand({ verb, body, command_id }: CommandInput, events: JournalRecord['events']): string {
  if (rejectionIn(events, command_id)) return `the rejection of a ${verb}`;
  if (verb === 'approve' && isDeferredBy(events, command_id)) return `an edit of call ${String(body.call_id)}`;
  if (verb === 'call_outcome') return `the result of call ${String(body.call_id)}`;
  return verb === 'approve' ? `the decision of call ${String(body.call_id)}` : `a ${verb}`;
}
