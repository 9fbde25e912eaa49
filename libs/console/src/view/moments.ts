/** The timeline: states, seams, hooks, calls, decisions and commands in order. */
import type { JournalRecord, SessionEvent } from '@coxswain/protocol';
import { printable } from '../browser-client.ts';
import { durationText } from '../page/wording.ts';
import { stateName } from './state-name.ts';

/** The kind of a moment; readers can hide kinds. */
export type MomentKind = 'state' | 'seam' | 'hook' | 'call' | 'decision' | 'command';

/** A line of a timeline. */
export interface Moment {
  readonly key: string;
  readonly n: number;
  readonly at: string;
  readonly kind: MomentKind;
  /** A short title. */
  readonly title: string;
  /** Details; may be empty. */
  readonly detail: string;
  /** Whether it stopped something, delivered something or failed. */
  readonly marked: boolean;
}

/** The moments of one record. @param before The state's name after the previous record, or null. */
export function momentsOf(record: JournalRecord, before: string | null): Moment[] {
  const { n, at } = record;
  const moments: Moment[] = [];
  for (const [index, event] of record.events.entries()) {
    const moment = momentOf(event);
    if (moment) moments.push({ key: `${n}.${index}`, n, at, ...moment, detail: printable(moment.detail) });
  }
  const state = stateName(record.state);
  if (state !== before)
    moments.push({ key: `${n}.state`, n, at, kind: 'state', title: state, detail: '', marked: false });
  return moments;
}

type MomentText = Pick<Moment, 'kind' | 'title' | 'detail' | 'marked'>;

function momentOf(event: SessionEvent): MomentText | null {
  switch (event.type) {
    case 'loop_checkpoint': {
      const { kind, iteration, delivered, inbox_delivered, dispatch_skipped, skipped_call_ids = [] } = event;
      const words = [
        `turn ${iteration}`,
        ...(delivered > 0 ? [`${delivered} delivered`] : []),
        ...(inbox_delivered > 0 ? [`${inbox_delivered} of feedback`] : []),
        ...(dispatch_skipped ? [`${skipped_call_ids.length} calls skipped`] : []),
      ];
      return { kind: 'seam', title: kind, detail: words.join(', '), marked: words.length > 1 };
    }
    case 'hook_call':
      return { kind: 'hook', title: event.point, detail: `${event.hook} is called`, marked: false };
    case 'hook_returned': {
      const { hook, failure, verdict, not_run } = event;
      const said = failure
        ? `failed: ${failure.code}`
        : not_run
          ? 'was not called'
          : verdict
            ? `returned ${verdict.kind.replaceAll('_', ' ')}`
            : 'returned no decision';
      return { kind: 'hook', title: event.point, detail: `${hook} ${said}`, marked: failure !== undefined };
    }
    case 'hook_vetoed': {
      const detail = `${event.hook}: ${event.decision}${event.reason === undefined ? '' : `, ${event.reason}`}`;
      return { kind: 'hook', title: event.point, detail, marked: true };
    }
    case 'call_started':
      return { kind: 'call', title: event.tool, detail: `${event.call_id} begins`, marked: false };
    case 'call_ended': {
      const detail = `${event.call_id} ${event.status} after ${durationText(event.duration_ms)}`;
      return { kind: 'call', title: event.tool, detail, marked: event.is_error };
    }
    case 'approval_requested': {
      const detail = `${event.call_id} waits for approval (${event.requested_by})`;
      return { kind: 'decision', title: event.tool, detail, marked: true };
    }
    case 'approval_decided': {
      const by = event.hook === undefined ? event.actor?.name : `hook ${event.hook}`;
      const detail = `${event.decision}${by === undefined ? '' : ` by ${by}`}${event.args ? ', with edited arguments' : ''}`;
      return { kind: 'decision', title: event.call_id, detail, marked: event.decision !== 'allow' };
    }
    case 'edited_call_proposed': {
      const by = event.actor?.name;
      const detail = `${by === undefined ? 'an edit' : `an edit by ${by}`}: hooks are evaluating it`;
      return { kind: 'decision', title: event.call_id, detail, marked: false };
    }
    case 'control_outcome':
      return { kind: 'command', title: event.control, detail: `${event.status}: ${event.target}`, marked: false };
    case 'command_rejected':
      return { kind: 'command', title: event.verb, detail: `rejected: ${event.code}`, marked: true };
    case 'prompt_received':
      return { kind: 'command', title: 'prompt', detail: event.actor?.name ?? '', marked: false };
    case 'steering_received':
      return { kind: 'command', title: 'steer', detail: `${event.mode}, waits`, marked: false };
    case 'reminder_injected': {
      const { hook, direct, mode } = event;
      const by = hook === undefined ? '' : `hook ${hook}: `;
      return {
        kind: 'command',
        title: 'remind',
        detail: `${by}${direct ? 'at once' : `${mode}, waits`}`,
        marked: false,
      };
    }
    case 'followup_received':
      return { kind: 'command', title: 'followup', detail: 'waits', marked: false };
    case 'owned':
      return { kind: 'command', title: 'host', detail: `${event.host}, epoch ${event.epoch}`, marked: false };
    case 'budget_threshold': {
      const detail = `${event.percent} percent: ${event.used} of ${event.limit}`;
      return { kind: 'decision', title: event.budget, detail, marked: event.percent >= 100 };
    }
    default:
      return null;
  }
}
