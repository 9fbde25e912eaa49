/**
 * A suspension is what was asked for, and ends once: the session is woken for a true reason (someone resumes it, an
 * interrupt, the signal that it waits for, its time), or its run ends. Nothing else happens before; what its model is
 * told of it is told once. A daemon wakes by itself only after its interval.
 */
import { type EventOf, isDelivery, type JournalRecord, type SessionEvent } from '@coxswain/protocol';
import type { Checker } from './check.ts';

/** Hosts may be down, stand still or be cut off when the time comes; but not for longer. */
const OVERSLEEP_MAX_MS = 120_000;

interface Sleep {
  readonly n: number;
  readonly event: EventOf<'suspended'>;
  readonly asked: EventOf<'suspend_requested'> | null;
  readonly sinceMs: number;
  readonly resumes: Set<string>;
  fired: boolean;
}

/** See the top of the file. */
export const checkSuspensions: Checker = ({ records }) => {
  const wrong: string[] = [];
  let asked: EventOf<'suspend_requested'> | null = null;
  let sleep: Sleep | null = null;
  /** What the model has still to be told of the last waking. */
  let owed: { readonly id: string; left: number } | null = null;
  let isEnding = false;
  const interrupts = new Set<string>();
  const said = new Set<string>();
  const signals = new Map<string, string>();
  for (const record of records) {
    const { n } = record;
    const atMs = Date.parse(record.at);
    for (const event of record.events) {
      if (isDelivery(event)) said.add(event.command_id);
      switch (event.type) {
        case 'prompt_received':
          [asked, sleep, owed, isEnding] = [null, null, null, false];
          signals.clear();
          break;
        case 'suspend_requested':
          asked = event;
          // What was said before nobody can have missed.
          for (const id of said) interrupts.delete(id);
          break;
        case 'step_finished':
          // A failed step that is escalated replaces an earlier request, and keeps its command.
          if (event.error_boundary === 'escalate') asked = escalated(asked);
          break;
        case 'steering_received':
        case 'reminder_injected':
          if (event.mode === 'interrupt_immediate') interrupts.add(event.command_id);
          break;
        case 'signal_received':
          signals.set(event.command_id, event.name);
          break;
        case 'control_outcome':
          if (event.control === 'resume' && event.status === 'resumed') {
            if (sleep) sleep.resumes.add(event.command_id);
            else asked = null;
          }
          if (event.control === 'suspend' && event.status === 'lapsed') asked = null;
          if (event.control === 'cancel' && event.status === 'cancelled') isEnding = true;
          // One that was said has interrupted what was asked for, also where it is cleared afterwards.
          if (event.status === 'revoked' && !said.has(event.target)) interrupts.delete(event.target);
          break;
        case 'hook_vetoed':
          if (event.point === 'pre_suspend') asked = null;
          break;
        case 'injection_blocked':
        case 'injection_collapsed':
          interrupts.delete(event.command_id);
          break;
        case 'suspended':
          if (sleep) wrong.push(`record ${n}: suspended while suspended`);
          wrong.push(...otherThanAsked(record, event, asked));
          sleep = { n, event, asked, sinceMs: atMs, resumes: new Set(), fired: false };
          asked = null;
          break;
        case 'timer_fired':
          if (event.what === 'suspension') {
            if (sleep?.event.effect_id !== event.effect_id || sleep.fired)
              wrong.push(`record ${n}: timer ${event.effect_id} fired, and nobody waits for it`);
            if (sleep) wrong.push(...outOfTime(record, sleep));
            if (sleep) sleep.fired = true;
          }
          break;
        case 'resumed':
          if (!sleep) {
            wrong.push(`record ${n}: resumed and not suspended`);
            break;
          }
          if (!isTrue(event, sleep, interrupts, signals))
            wrong.push(`record ${n}: resumed by ${event.cause}, which is not so`);
          if (event.slept_ms !== sleptMs(sleep.sinceMs, atMs))
            wrong.push(`record ${n}: ${event.slept_ms} ms slept, and it were ${sleptMs(sleep.sinceMs, atMs)}`);
          // A signal wakes once.
          if (event.cause === 'signal') signals.delete(event.command_id ?? '');
          owed = {
            id: sleep.event.command_id ?? sleep.event.call_id ?? '',
            left: event.cause === 'timeout' && sleep.event.on_timeout === 'resume_with_input' ? 2 : 1,
          };
          sleep = null;
          break;
        case 'run_failed':
          if (event.source === 'suspension' && !(sleep?.fired && sleep.event.on_timeout === 'fail'))
            wrong.push(`record ${n}: a suspension has expired that had not`);
          isEnding = true;
          break;
        case 'budget_threshold':
          if (event.percent === 100) isEnding = true;
          break;
        case 'message_injected':
          if (event.origin !== 'direct' || event.seam !== 'post_resume') break;
          if (owed?.id !== event.command_id || owed.left === 0)
            wrong.push(`record ${n}: a waking of ${event.command_id} is told out of turn`);
          if (owed) owed.left--;
          break;
        case 'turn_start':
          if (sleep) wrong.push(`record ${n}: a turn begins while the session is suspended`);
          if (owed && owed.left > 0) wrong.push(`record ${n}: the model is not told how long it slept`);
          owed = null;
          // A message has kept it from suspending itself: what a call asked for holds until the next turn, and no longer.
          if (asked?.call_id !== undefined) asked = null;
          break;
        case 'agent_end':
          if (sleep && !isEnding) wrong.push(`record ${n}: a run ends in the middle of a suspension, by itself`);
          [asked, sleep] = [null, null];
          break;
        default:
          break;
      }
    }
  }
  return wrong.concat(earlyDaemons(records));
};

function escalated(asked: EventOf<'suspend_requested'> | null): EventOf<'suspend_requested'> {
  return { type: 'suspend_requested', ...(asked?.command_id ? { command_id: asked.command_id } : {}) };
}

function otherThanAsked(
  { n, at }: JournalRecord,
  event: EventOf<'suspended'>,
  asked: EventOf<'suspend_requested'> | null,
) {
  if (!asked) return [`record ${n}: suspended, and nobody has asked for it`];
  const untilMs = asked.until_ms ?? (asked.for_ms === undefined ? undefined : Date.parse(at) + asked.for_ms);
  const wrong: string[] = [];
  if (event.until_ms !== untilMs) wrong.push(`record ${n}: suspended until ${event.until_ms}, not ${untilMs}`);
  if (event.signal !== asked.signal || event.on_timeout !== asked.on_timeout)
    wrong.push(`record ${n}: suspended for something else than was asked`);
  if ((event.command_id ?? event.call_id) !== (asked.command_id ?? asked.call_id))
    wrong.push(`record ${n}: suspended for ${event.command_id ?? event.call_id}, who has not asked`);
  return wrong;
}

// The clock of the next host can be behind that of the one that recorded the suspension.
const sleptMs = (sinceMs: number, atMs: number) => Math.max(0, atMs - sinceMs);

function outOfTime({ n, at }: JournalRecord, { event: { until_ms = 0 } }: Sleep): string[] {
  const lateMs = Date.parse(at) - until_ms;
  if (lateMs < 0) return [`record ${n}: its time came ${-lateMs} ms too early`];
  return lateMs > OVERSLEEP_MAX_MS ? [`record ${n}: it has overslept by ${lateMs} ms`] : [];
}

function isTrue(
  { cause, command_id = '', signal }: EventOf<'resumed'>,
  sleep: Sleep,
  interrupts: ReadonlySet<string>,
  signals: ReadonlyMap<string, string>,
): boolean {
  switch (cause) {
    case 'command':
      return sleep.resumes.has(command_id);
    case 'interrupt':
      return interrupts.has(command_id);
    case 'signal':
      return signal !== undefined && signals.get(command_id) === signal.name && sleep.event.signal === signal.name;
    case 'timeout':
      return sleep.fired && sleep.event.on_timeout !== 'fail';
  }
}

/** A wake interval counts from the moment at which the daemon began to wait. */
function earlyDaemons(records: readonly JournalRecord[]): string[] {
  const wrong: string[] = [];
  let intervalMs: number | undefined;
  let idleSinceMs = 0;
  for (const { n, at, events } of records) {
    for (const event of events as readonly SessionEvent[]) {
      if (event.type === 'persona_changed') intervalMs = event.provision.wake_interval_ms;
      if (event.type === 'loop_checkpoint' && event.kind === 'daemon_idle_pre') idleSinceMs = Date.parse(at);
      if (event.type !== 'timer_fired' || event.what !== 'wake_interval') continue;
      const earlyMs = idleSinceMs + (intervalMs ?? Number.POSITIVE_INFINITY) - Date.parse(at);
      if (earlyMs > 0) wrong.push(`record ${n}: the daemon woke ${earlyMs} ms before its interval was over`);
    }
  }
  return wrong;
}
