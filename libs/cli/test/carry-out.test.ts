/** What a typed line sends: each command, from the line to the call of the session. */
import type { Session, SessionState } from '@coxswain/client';
import type { SessionStatus } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { carryOut, readTyped } from '../src/live-view/mod.ts';

const AT = '2026-01-01T00:00:00.000Z';
const wire: SessionStatus['pending'] = [
  { command_id: 'm1', kind: 'steer', body: 'north', mode: 'finish_step', at: AT },
  { command_id: 'm2', kind: 'followup', body: 'then moor', at: AT },
];
const pending: SessionState['pending'] = wire.map(
  ({ command_id: commandId, ...one }) => ({ commandId, ...one }) as never,
);

/** Carries a line out on a session that keeps its calls. */
async function typed(
  line: string,
  { asked = undefined as string | undefined, running = null as string | null, startsRuns = false } = {},
) {
  const sent: unknown[][] = [];
  const shown: string[] = [];
  const state = async () => ({ pending: wire, reminders: [] }) as unknown as SessionStatus;
  const session = new Proxy({} as Session, {
    get: (_target, name) =>
      name === 'wire'
        ? { state }
        : (...args: unknown[]) => {
            if (name === 'pending') return Promise.resolve(pending);
            sent.push([name, ...args]);
            return Promise.resolve();
          },
  });
  const command = readTyped(line, 'steer', asked !== undefined);
  const call = asked === undefined ? undefined : { session, callId: asked };
  await carryOut(session, command, { asked: call, running, startsRuns }, (text) => shown.push(text));
  return { sent, shown };
}

test.each<[line: string, sent: unknown[]]>([
  ['east', ['steer', 'east']],
  ['/interrupt stop', ['steer', 'stop', { mode: 'interrupt_immediate', preempt: false }]],
  ['/followup then test', ['followup', 'then test']],
  ['/remind the tide', ['remind', 'the tide']],
  ['/cancel enough', ['cancel', 'enough']],
  ['/cancel-call c2', ['cancelCall', 'c2']],
  ['/suspend', ['suspend', {}]],
  ['/suspend 2h signal pilot', ['suspend', { forMs: 7_200_000, signal: 'pilot' }]],
  ['/resume', ['resume']],
  ['/signal pilot {"name": "Ines"}', ['signal', 'pilot', { name: 'Ines' }]],
  ['/signal pilot', ['signal', 'pilot', undefined]],
  ['/withdraw', ['revoke', 'm2']],
  ['/withdraw m1', ['revoke', 'm1']],
  ['/edit south', ['replace', 'm2', 'south']],
  ['/edit m1 south', ['replace', 'm1', 'south']],
])('the line %j sends its command', async (line, sent) => {
  expect((await typed(line)).sent).toEqual([sent]);
});

test('in a view that stays after a run, a line starts the next run', async () => {
  expect((await typed('east', { startsRuns: true })).sent).toEqual([['say', 'east']]);
});

test('a allows the pending call, and later calls like it in the session', async () => {
  expect((await typed('a', { asked: 'c1' })).sent).toEqual([['approve', 'c1', { remember: 'session' }]]);
});

test.each([
  ['y', 'approve', undefined],
  ['/deny not now', 'deny', 'not now'],
])('%j decides the pending call', async (line, verb, reason) => {
  expect((await typed(line, { asked: 'c1' })).sent).toEqual([[verb, 'c1', { reason }]]);
});

test('/cancel-call without an id cancels the running call, and fails without one', async () => {
  expect((await typed('/cancel-call', { running: 'c9' })).sent).toEqual([['cancelCall', 'c9']]);
  await expect(typed('/cancel-call')).rejects.toThrow('no call is running');
});

test('/messages shows the queued messages with their ids, and sends nothing', async () => {
  const { sent, shown } = await typed('/messages');
  expect(sent).toEqual([]);
  expect(shown.join('\n')).toMatch(/m1 +steer +finish_step.*north\nm2 +followup.*then moor/);
});

test.each(['/help', '/detach', ''])('%j sends nothing', async (line) => {
  expect((await typed(line)).sent).toEqual([]);
});
