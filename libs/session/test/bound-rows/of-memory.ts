/** Bounds of what a session keeps in mind: queues, ids, what it watches for. */
import { createMemoryBus } from '@coxswain/adapter-memory';
import { BOUNDS, type SessionEvent } from '@coxswain/protocol';
import { recordsRejection, SessionActor } from '@coxswain/turn';
import { expect } from 'vitest';
import { given, type Outcome } from '../../../turn/test/given.ts';
import {
  approved,
  asked,
  call,
  callCancelled,
  fedBack,
  followedUp,
  hook,
  type Move,
  owned,
  reminded,
  returned,
  running,
  signalled,
  started,
  steered,
} from '../../../turn/test/moves.ts';
import { refOf } from '../test-bed.ts';
import { type BoundRows, from, list, most } from './row.ts';

/** The first code with which something was refused or dropped, or `ok`. */
function codeIn(events: readonly SessionEvent[]): string {
  for (const event of events) if ('code' in event) return String(event.code);
  return 'ok';
}
const refusal = ({ session }: Outcome) => codeIn(session.steps.flatMap(({ events }) => events));

/** A turn with one call of its own and this result. */
function turn(id: number, args: number, result: string): Move {
  const content = [{ type: 'text' as const, text: result }];
  return [
    asked(call(`c${id}`, 'read', { args: { n: args } })),
    returned(`c${id}`, 'ok', { result: { content, is_error: false } }),
  ];
}
const notices = ({ session }: Outcome) =>
  `${session.lines().filter((line) => line.startsWith('feedback_received')).length} notices`;

/** Whether one more rejection gets a record behind these commands. */
const recorded = (command_ids: readonly string[]) => (recordsRejection({ command_ids }) ? 'ok' : 'unrecorded');

/** The rows for bounds of what a session holds in memory: queues, ids and watches. */
export const OF_MEMORY: BoundRows = {
  pendingInjectionsMax: most('too_many_pending', (size) => {
    // Reminders have a bound of their own, below this one.
    const kinds = [steered, followedUp] as const;
    return refusal(given(running()).when(...list(size, (i) => (kinds[i % 2] as typeof followedUp)(`m${i}`))));
  }),
  pendingInjectionsMaxBytes: most('pending_full', (size) => {
    const half = 512 * 1024;
    const rest = (id: string) => ({ body: id.repeat(size - half) });
    return refusal(
      given(running()).when(
        steered('a', 'finish_step', { body: 'a'.repeat(half) }),
        // What takes another's place needs only the difference.
        steered('b', 'finish_step', { body: 'b'.repeat(size - half - 1), dedupe_key: 'k' }),
        steered('c', 'finish_step', { ...rest('c'), dedupe_key: 'k' }),
      ),
    );
  }),
  remindersLiveMaxBytes: most('too_many_reminders', (size) => {
    const half = 512 * 1024;
    const { session } = given(
      running(),
      asked(call('c', 'read')),
      reminded('a', 'finish_step', { body: 'a'.repeat(half) }),
      returned('c'),
    ).when(reminded('b', 'finish_step', { body: 'b'.repeat(size - half) }));
    expect(session.state.context.reminders).toHaveLength(1);
    return codeIn(session.steps.flatMap(({ events }) => events));
  }),
  rejectionsRecordedMax: most('unrecorded', (size) => recorded(list(size - 1, (i) => `r${i}!invalid_json`))),
  rejectionWindowCommands: {
    of: (size) =>
      recorded([
        ...list(BOUNDS.rejectionsRecordedMax, (i) => `r${i}!invalid_json`),
        ...list(size - BOUNDS.rejectionsRecordedMax, (i) => `a${i}`),
      ]),
    comes: ['unrecorded', 'unrecorded', 'ok'],
  },
  remindersLiveMax: most('too_many_reminders', (size) =>
    refusal(given(running()).when(...list(size, (i) => reminded(`r${i}`)))),
  ),
  signalsStoredMax: most('too_many_signals', (size) =>
    refusal(given(running()).when(...list(size, (i) => signalled('go', `s${i}`)))),
  ),
  inboxCatchUpMax: most('the last waits for its notification', async (size) => {
    const bus = createMemoryBus();
    const ref = refOf('s1');
    for (let i = 0; i < size; i++) await bus.sender.send(ref, 'steer', Buffer.from(`${i}`));
    const read = await bus.createInbox().read(ref, 0, null);
    return read.length === size ? 'ok' : 'the last waits for its notification';
  }),
  feedbackPendingMax: most('too_much_feedback', (size) =>
    refusal(given(running()).when(...list(size, () => fedBack(1)))),
  ),
  commandIdsRemembered: most('command_too_old', (size) => {
    const uuid = (i: number) => `0190${i.toString(16).padStart(4, '0')}-0000-7000-8000-000000000000`;
    const actor = new SessionActor('s1');
    let n = 0;
    const afterMs = 0x0191_0000_0000;
    actor.step(started(), ++n, afterMs);
    for (let i = 0; i < size; i++) actor.step(callCancelled('absent', {}, uuid(i)), ++n, afterMs);
    const { decision, events } = actor.step(callCancelled('absent', {}, uuid(0)), ++n, afterMs);
    return decision.kind === 'ignored' ? 'ok' : codeIn(events);
  }),
  editedPathsPerTurnMax: most('1 left out', (size) => {
    const batches = Math.ceil(size / BOUNDS.editedPathsPerCallMax);
    const paths = list(size, (i) => `file-${String(i).padStart(4, '0')}`);
    const { session } = given(
      running({ hooks: [hook('file_edited')] }),
      asked(...list(batches + 1, (i) => call(`c${i}`, 'read'))),
    ).when(
      // One call more is under way still, so hooks have not been told of any.
      ...list(batches, (i) => {
        const edited = paths.slice(i * BOUNDS.editedPathsPerCallMax, (i + 1) * BOUNDS.editedPathsPerCallMax);
        return returned(`c${i}`, 'ok', { edited });
      }),
    );
    const left = size - session.state.context.edited.length;
    return left === 0 ? 'ok' : `${left} left out`;
  }),
  rememberedRulesMax: most('too_many_rules', (size) => {
    const allowed = list(size, (i): Move => {
      const id = `c${i}`;
      return [asked(call(id, 'ask', { args: { n: i } })), approved(id, { remember: 'session' }), returned(id)];
    });
    // The last one that is refused waits still: nothing of it has come back.
    const [last = []] = allowed.splice(-1);
    return refusal(given(running({ maxTurns: 1_000 }), ...allowed).when(...(last as readonly Move[]).slice(0, 2)));
  }),
  rememberedMatchMaxBytes: most('not_rememberable', (size) => {
    const frame = JSON.stringify({ kind: 'args', args: { text: '' } }).length;
    const args = { text: 'x'.repeat(size - frame) };
    return refusal(given(running(), asked(call('c', 'ask', { args }))).when(approved('c', { remember: 'session' })));
  }),
  modelRestartsMax: most('model_restarts_exhausted', (size) => {
    const { session } = given(running()).when(...list(size, (i) => owned(i + 2)));
    return session.state.context.failure?.code ?? 'ok';
  }),
  stallIdenticalCalls: from('0 notices', '1 notices', (size) =>
    notices(given(running()).when(...list(size, (i) => turn(i, 0, `result ${i}`)))),
  ),
  // The first turn brings the result that is not new in those after it.
  stallTurnsWithoutNewResult: from('0 notices', '1 notices', (size) =>
    notices(given(running()).when(...list(size + 1, (i) => turn(i, i, 'the same')))),
  ),
  stallResultsRemembered: most('new again', (size) => {
    const different = list(size, (i) => turn(i, i, `result ${i}`));
    const { session } = given(running({ maxTurns: 1_000 }), ...different).when(turn(size, size, 'result 0'));
    return session.state.context.stall.stale_turns === 1 ? 'ok' : 'new again';
  }),
};
