/** Evidence changed where it tells of waiting, waking, being used up and coming to an end. */
import type { EventOf, SessionEvent } from '@coxswain/protocol';
import { type Case, type Change, never, twice } from './changed-evidence.ts';
import type { Evidence, Journal } from './checkers/check.ts';
import { promptsOf } from './checkers/prompts.ts';

const having =
  <T extends SessionEvent['type']>(change: Partial<EventOf<T>>): Change =>
  (event) => [{ ...event, ...change } as SessionEvent];

/** A delivery that has never been. */
const delivered = (command_id: string): SessionEvent => ({
  type: 'message_injected',
  command_id,
  origin: 'steer',
  seam: 'iteration_end',
  turn: 1,
  message: { role: 'user', content: [{ type: 'text', text: 'x' }] },
});
const has =
  (holds: (event: SessionEvent) => boolean) =>
  ({ records }: Journal) =>
    records.some(({ events }) => events.some(holds));
const hasSteps = has(({ type }) => type === 'step_finished');
const hasTakenHold = ({ command_id, call_id }: EventOf<'suspend_requested'>) =>
  has((event) => event.type === 'suspended' && event.command_id === command_id && event.call_id === call_id);
const isSteer = (event: SessionEvent) =>
  event.type === 'message_injected' && event.origin === 'steer' && event.audit_only === undefined;
const isShown = (event: SessionEvent) => event.type === 'reminder_fired' && event.audit_only === undefined;
const isWaking = (seam: string) => seam === 'post_resume';
const moved = (at: string, byMs: number) => new Date(Date.parse(at) + byMs).toISOString();
const earlier = (at: string) => moved(at, -5_000);
const TEN_MINUTES_MS = 600_000;

/** See the top of the file. */
export const CHANGED_LIVES: readonly Case[] = [
  [
    'clocks',
    'a record holds the time of a host that is ahead',
    (sound) => sound.record(5, (record) => ({ ...record, at: moved(record.at, TEN_MINUTES_MS) })),
  ],
  [
    'clocks',
    'a record holds the time of a host that is behind',
    (sound) => sound.record(5, (record) => ({ ...record, at: moved(record.at, -TEN_MINUTES_MS) })),
  ],
  ['fates', 'a message is never delivered', (sound) => sound.changed('message_injected', never, isSteer)],
  ['fates', 'a message is delivered twice', (sound) => sound.changed('message_injected', twice, isSteer)],
  [
    'fates',
    'a message is delivered in other words',
    (sound) =>
      sound.changed(
        'message_injected',
        having<'message_injected'>({ message: { role: 'user', content: [{ type: 'text', text: 'another' }] } }),
        isSteer,
      ),
  ],
  [
    'fates',
    'a message that was revoked is delivered all the same',
    (sound) =>
      sound.changed(
        'control_outcome',
        (event) => [event, delivered((event as EventOf<'control_outcome'>).target)],
        ({ status }, { events }) => status === 'revoked' && !events.some(({ type }) => type === 'reminder_expired'),
      ),
  ],
  [
    'fates',
    'a message that made way for another is delivered all the same',
    (sound) =>
      sound.changed('injection_collapsed', (event) => [
        event,
        delivered((event as EventOf<'injection_collapsed'>).command_id),
      ]),
  ],
  [
    'fates',
    'messages collapse that have no key in common',
    (sound) => sound.changed('injection_collapsed', having<'injection_collapsed'>({ dedupe_key: 'three' })),
  ],
  [
    'fates',
    'what waits is not listed',
    (sound) =>
      sound.status(
        ({ pending }) => pending.length > 0,
        (status) => ({ ...status, pending: [] }),
      ),
  ],
  [
    'fates',
    'what was delivered is listed',
    (sound) =>
      sound.status(
        (_status, journal) => has(isSteer)(journal),
        (status, { records }) => {
          const steer = records.flatMap(({ events }) => events).find(isSteer) as EventOf<'message_injected'>;
          const pending = { command_id: steer.command_id, kind: 'steer' as const, body: 'x', at: status.at };
          return { ...status, pending: [...status.pending, pending] };
        },
      ),
  ],
  ['shown', 'a prompt lacks a steer', (sound) => sound.history(has(isSteer), forgetful)],
  ['reminders', 'a prompt lacks a reminder', (sound) => sound.history(promptsWithAReminder, forgetful)],
  ['reminders', 'a reminder ends twice', (sound) => sound.changed('reminder_expired', twice)],
  ['reminders', 'a reminder never ends', (sound) => sound.changed('reminder_expired', never)],
  [
    'reminders',
    'a reminder ends before its turns are over',
    (sound) =>
      sound.changed('reminder_fired', (event) => [
        event,
        { type: 'reminder_expired', command_id: (event as EventOf<'reminder_fired'>).command_id, reason: 'ttl' },
      ]),
  ],
  [
    'reminders',
    'a compaction is said to have taken what none has',
    (sound) =>
      sound.changed('reminder_expired', having<'reminder_expired'>({ reason: 'compaction' }), (event, { events }) => {
        return event.reason === 'ttl' && !events.some(({ type }) => type === 'compaction_done');
      }),
  ],
  [
    'reminders',
    'a reminder is said to be cleared, and nobody has done it',
    (sound) =>
      sound.changed(
        'reminder_expired',
        having<'reminder_expired'>({ reason: 'cleared' }),
        ({ reason }) => reason === 'ttl',
      ),
  ],
  [
    'reminders',
    'a reminder makes way for one of another key',
    (sound) => sound.changed('reminder_deduped', having<'reminder_deduped'>({ by: 'start-1' })),
  ],
  ['reminders', 'two of one key are shown', (sound) => sound.changed('reminder_deduped', never)],
  [
    'reminders',
    'a reminder that is shown is not listed',
    (sound) =>
      sound.status(
        ({ reminders }) => reminders.length > 0,
        (status) => ({ ...status, reminders: [] }),
      ),
  ],
  ['suspensions', 'a session wakes twice', (sound) => sound.changed('resumed', twice)],
  ['suspensions', 'a session works in its sleep', (sound) => sound.changed('resumed', never)],
  ['suspensions', 'a session is suspended twice', (sound) => sound.changed('suspended', twice)],
  [
    'suspensions',
    'nobody has asked for it',
    // A step that has failed asks by itself.
    (sound) =>
      sound.changed(
        'suspend_requested',
        never,
        (asked, _record, journal) => hasTakenHold(asked)(journal) && !hasSteps(journal),
      ),
  ],
  ...(['command', 'interrupt', 'signal', 'timeout'] as const).map(
    (cause): Case => [
      'suspensions',
      `a session is said to be woken by ${cause}`,
      (sound) =>
        sound.changed('resumed', having<'resumed'>({ cause, signal: { name: 'x' } }), (event) => event.cause !== cause),
    ],
  ),
  [
    'suspensions',
    'a session is said to have slept longer',
    (sound) => sound.changed('resumed', having<'resumed'>({ slept_ms: 1e12 })),
  ],
  [
    'suspensions',
    'a session sleeps longer than was asked',
    (sound) =>
      sound.changed('suspended', having<'suspended'>({ until_ms: 1 }), ({ until_ms }) => until_ms !== undefined),
  ],
  [
    'suspensions',
    'a session waits for another signal',
    (sound) => sound.changed('suspended', having<'suspended'>({ signal: 'x' }), ({ signal }) => signal !== undefined),
  ],
  [
    'suspensions',
    'a timer comes twice',
    (sound) => sound.changed('timer_fired', twice, ({ what }) => what === 'suspension'),
  ],
  [
    'suspensions',
    'a timer never came',
    (sound) => sound.changed('timer_fired', never, ({ what }) => what === 'suspension'),
  ],
  [
    'suspensions',
    'a timer comes too early',
    (sound) =>
      sound.recordOf(
        ({ events }) => events.some((event) => event.type === 'timer_fired' && event.what === 'suspension'),
        (record) => ({ ...record, at: earlier(record.at) }),
      ),
  ],
  [
    'suspensions',
    'a timer comes hours too late',
    (sound) =>
      sound.recordOf(
        ({ events }) => events.some((event) => event.type === 'timer_fired' && event.what === 'suspension'),
        (record) => ({ ...record, at: '2039-01-01T00:00:00.000Z' }),
      ),
  ],
  [
    'suspensions',
    'a daemon wakes too early',
    (sound) =>
      sound.recordOf(
        ({ events }) => events.some((event) => event.type === 'timer_fired' && event.what === 'wake_interval'),
        (record) => ({ ...record, at: earlier(record.at) }),
      ),
  ],
  [
    'suspensions',
    'a model is told twice that it slept',
    (sound) => sound.changed('message_injected', twice, ({ seam }) => isWaking(seam)),
  ],
  [
    'suspensions',
    'a model is not told that it slept',
    (sound) => sound.changed('message_injected', never, ({ seam }) => isWaking(seam)),
  ],
  ['budgets', 'a threshold is told twice', (sound) => sound.changed('budget_threshold', twice)],
  [
    'budgets',
    'a threshold is not told',
    (sound) =>
      sound.changed(
        'budget_threshold',
        never,
        ({ budget, percent }, { events }) =>
          budget !== 'wall_time_ms' &&
          percent < 100 &&
          // Of several that are told at once the highest is told still.
          events.filter(({ type }) => type === 'budget_threshold').length === 1 &&
          !events.some(({ type }) => type === 'loop_checkpoint'),
      ),
  ],
  [
    'budgets',
    'a threshold of time is told later than it could be',
    (sound) =>
      sound.changed(
        'budget_threshold',
        never,
        ({ budget, percent }, { events }) =>
          budget === 'wall_time_ms' && percent < 100 && !events.some(({ type }) => type === 'loop_checkpoint'),
      ),
  ],
  [
    'budgets',
    'a threshold is told before it is reached',
    (sound) =>
      sound.changed(
        'budget_threshold',
        having<'budget_threshold'>({ percent: 100 }),
        ({ used, limit }) => used < limit / 2 + limit / 4,
      ),
  ],
  [
    'budgets',
    'another use is told',
    (sound) =>
      sound.changed('budget_threshold', having<'budget_threshold'>({ used: 1e9 }), ({ budget }) => budget === 'tokens'),
  ],
  [
    'budgets',
    'another limit is told',
    (sound) => sound.changed('budget_threshold', having<'budget_threshold'>({ limit: 1 })),
  ],
  [
    'budgets',
    'a run goes on with its budget used up',
    (sound) =>
      sound.changed(
        'budget_threshold',
        (event) => [event, { type: 'turn_start', turn: 99 }],
        ({ percent }) => percent === 100,
      ),
  ],
  [
    'budgets',
    'a run whose budget is used up ends for another reason',
    (sound) =>
      sound.changed(
        'agent_end',
        having<'agent_end'>({ stop_reason: 'cancelled' }),
        (event, _record, journal) =>
          event.stop_reason === 'budget_exceeded' &&
          has((one) => one.type === 'budget_threshold' && one.percent === 100)(journal),
      ),
  ],
  ['commands', 'a signal is taken twice', (sound) => sound.changed('signal_received', twice)],
  ['commands', 'a signal leaves nothing behind', (sound) => sound.changed('signal_received', never)],
  [
    'commands',
    'an outcome that was accepted ends no call',
    (sound) =>
      sound.changed(
        'call_ended',
        having<'call_ended'>({ command_id: undefined }),
        ({ command_id }) => command_id !== undefined,
      ),
  ],
  [
    'commands',
    'a message that was taken back leaves no outcome',
    (sound) => sound.changed('control_outcome', never, ({ status }) => status === 'revoked'),
  ],
  ['calls', 'a call is taken up twice', (sound) => sound.changed('call_accepted', twice)],
  [
    'calls',
    'a call is taken up that does not run',
    (sound) =>
      sound.changed('call_started', never, ({ call_id }, _record, journal) =>
        has((event) => event.type === 'call_accepted' && event.call_id === call_id)(journal),
      ),
  ],
];

/** Whether a model was asked with a reminder that nobody has cleared, and that no other has the words of. */
function promptsWithAReminder(journal: Journal, { history }: Evidence): boolean {
  const all = journal.records.flatMap(({ events }) => events);
  const cleared = new Set(all.flatMap((event) => (event.type === 'control_outcome' ? [event.target] : [])));
  const bodies = all.flatMap((event) => (event.type === 'reminder_injected' ? [event.body] : []));
  const asked = promptsOf(journal, history);
  return all.some((event) => {
    if (event.type !== 'reminder_fired' || !isShown(event) || cleared.has(event.command_id)) return false;
    const injected = all.find((one) => one.type === 'reminder_injected' && one.command_id === event.command_id);
    const body = injected?.type === 'reminder_injected' ? injected.body : undefined;
    if (body === undefined || bodies.filter((one) => one === body).length > 1) return false;
    return asked.some(({ said }) => said.includes(body));
  });
}

function forgetful<E extends { readonly what: string }>(entry: E): E {
  return entry.what === 'asked' ? { ...entry, said: [] } : entry;
}
