import type { CommandInbox, StoredCommand, Timers } from '@coxswain/ports';
import type { SessionRef } from '@coxswain/protocol';
import { describe, expect, onTestFinished, test } from 'vitest';
import { eventually } from './eventually.ts';
import { bytes, freshSession, text } from './fresh-session.ts';

/** Timers under test, and the inbox that they arrive in. */
export interface TimerDoors {
  readonly timers: Timers;
  createInbox(): Promise<CommandInbox>;
}

/** What every store of timers promises. */
export function timersContract(name: string, doors: () => TimerDoors): void {
  describe(`timers in ${name}`, () => {
    test('arrive in the inbox of their session as the verb timer', async () => {
      const ref = freshSession();
      const arrived = await collect(doors(), ref);
      await doors().timers.schedule(ref, '3-0', Date.now() + 50, bytes('{"effect_id":"3-0"}'));
      await eventually('it has arrived', () => arrived.length === 1);
      expect(arrived.map(({ verb, payload }) => [verb, text(payload)])).toEqual([['timer', '{"effect_id":"3-0"}']]);
    });

    test('fire at once when their time has passed', async () => {
      const ref = freshSession();
      const arrived = await collect(doors(), ref);
      await doors().timers.schedule(ref, '1-0', Date.now() - 60_000, bytes('past'));
      await eventually('it has arrived', () => arrived.length === 1);
    });

    test('are replaced by the same id, and by no other', async () => {
      const ref = freshSession();
      const arrived = await collect(doors(), ref);
      const { timers } = doors();
      const now = Date.now();
      await timers.schedule(ref, '1-0', now + 1_000, bytes('replaced'));
      await timers.schedule(ref, '1-0', now + 1_200, bytes('instead'));
      await timers.schedule(ref, '1-1', now + 1_400, bytes('last'));
      await eventually('the last has arrived', () => arrived.some(({ payload }) => text(payload) === 'last'));
      expect(arrived.map(({ payload }) => text(payload)).sort()).toEqual(['instead', 'last']);
    });

    test('wait for an inbox that opens after they were due', async () => {
      const ref = freshSession();
      await doors().timers.schedule(ref, '1-0', Date.now() + 50, bytes('waited'));
      const inbox = await doors().createInbox();
      await eventually('it waits there', async () => (await inbox.read(ref, 0, 0)).length === 1);
      const arrived = await collect(doors(), ref);
      await eventually('it has arrived', () => arrived.length === 1);
    });

    test('refuse an id that is no token', async () => {
      await expect(doors().timers.schedule(freshSession(), 'a.b', Date.now(), bytes(''))).rejects.toThrow(TypeError);
    });
  });
}

/** The commands that arrive for a session, in order, acknowledged. */
export async function collect(doors: Pick<TimerDoors, 'createInbox'>, ref: SessionRef): Promise<StoredCommand[]> {
  const inbox = await doors.createInbox();
  const arrived: StoredCommand[] = [];
  onTestFinished(() => inbox.close());
  await inbox.open({
    notify(bell) {
      if (bell.ref.sessionId !== ref.sessionId) return;
      void inbox.read(ref, arrived.at(-1)?.seq ?? 0, bell.seq).then((commands) => {
        arrived.push(...commands.filter(({ seq }) => seq > (arrived.at(-1)?.seq ?? 0)));
        bell.ack();
      });
    },
    unroutable: () => undefined,
  });
  return arrived;
}
