/**
 * `cox session delete` is killed -9 half-way: the session is deleted to everybody from the tombstone on, whatever of it is still there,
 * and a second `cox session delete` takes away what is left.
 */
import { journalStreamOf, STREAMS, sessionRef, subjects, tombstoneIn } from '@coxswain/protocol';
import type { Subscription } from '@nats-io/nats-core';
import { expect, test, vi } from 'vitest';
import { Child, COX_MAIN, cox } from './kit/child.ts';
import { busAndHost } from './kit/fixture.ts';
import { endOf, expectReplays, journalOf } from './kit/journal.ts';
import { scratchFolder } from './kit/scratch.ts';
import { scripted } from './kit/scripts.ts';

// Many processes, each of which loads the command line from its source.
vi.setConfig({ testTimeout: 240_000 });
const fixture = busAndHost();
const at = () => ['--nats', fixture.bus.natsUrl];

/** A session that has ended, and a fork of it. */
async function endedAndForked(id: string): Promise<void> {
  const root = await scratchFolder(id);
  await fixture.bus.command(id, 'start', { prompt: 'Do it.', model: await scripted([{ text: 'Done.' }]), root });
  await endOf(fixture.bus, id);
  const forked = await cox(['session', 'fork', id, '--id', `${id}-copy`, '--detach', ...at()]);
  expect(forked.code, forked.told).toBe(0);
}

/** What the store has of a session: how many messages its journal, and whether the newest of them is a tombstone. */
async function stored(id: string): Promise<{ messages: number; isDeleted: boolean }> {
  const { bare } = fixture.bus;
  const subject = subjects.journal(sessionRef(id));
  const stream = journalStreamOf(id);
  const ask = async (what: string, body: object) =>
    (await bare.request(`$JS.API.STREAM.${what}.${stream}`, JSON.stringify(body), { timeout: 10_000 })).json<{
      state: { subjects?: Record<string, number> };
      message: { data: string };
    }>();
  const { state } = await ask('INFO', { subjects_filter: subject });
  const { message } = await ask('MSG.GET', { last_by_subj: subject });
  return {
    messages: state.subjects?.[subject] ?? 0,
    isDeleted: tombstoneIn(Buffer.from(message.data, 'base64')) !== null,
  };
}

/** Starts `cox session delete`, and kills it as soon as a message on a subject fits. */
async function deletedUntil(id: string, subject: string, fits: (text: string) => boolean): Promise<void> {
  let listening: Subscription | undefined;
  const child = new Child(COX_MAIN, ['session', 'delete', id, '--yes', ...at()]);
  const struck = new Promise<void>((resolve) => {
    listening = fixture.bus.bare.subscribe(subject, {
      callback(_, message) {
        if (!fits(message.string())) return;
        child.process.kill('SIGKILL');
        resolve();
      },
    });
  });
  try {
    await Promise.race([
      struck,
      child.exited.then((exit) => {
        if (exit.signal !== 'SIGKILL') throw new Error(`it ended by itself: ${child.told}`);
      }),
    ]);
    expect(await child.exited).toMatchObject({ signal: 'SIGKILL' });
  } finally {
    listening?.unsubscribe();
  }
}

/** The session is gone for everybody, and its fork is whole. */
async function expectConsistent(id: string, forked: number): Promise<void> {
  expect((await stored(id)).isDeleted).toBe(true);
  // A host that was not told has what it knows in memory, until the first command for the session.
  const steered = await cox(['steer', id, 'still there?', ...at()]);
  expect([steered.code, steered.stderr]).toEqual([1, expect.stringContaining('session_deleted')]);
  const shown = await cox(['session', 'show', id, ...at()]);
  expect([shown.code, shown.stderr]).toEqual([1, expect.stringContaining('session_deleted')]);
  const copy = await journalOf(fixture.bus, `${id}-copy`);
  expect(copy.records.length).toBe(forked);
  await expectReplays(fixture.bus, copy);
}

async function finishes(id: string, ends: RegExp): Promise<void> {
  const again = await cox(['session', 'delete', id, '--yes', ...at()]);
  expect(again.told).toMatch(ends);
  expect(await stored(id)).toEqual({ messages: 1, isDeleted: true });
  const third = await cox(['session', 'delete', id, '--yes', ...at()]);
  expect([third.code, third.stderr]).toEqual([1, expect.stringContaining('was already deleted')]);
}

test('killed when the tombstone stands and nothing is taken away yet', async () => {
  await endedAndForked('early');
  const { messages } = await stored('early');
  const forked = (await journalOf(fixture.bus, 'early-copy')).records.length;
  // Its host has it in memory, and is asked to let it go: as long as it does not answer, nothing goes on.
  fixture.host.process.kill('SIGSTOP');
  try {
    await deletedUntil(
      'early',
      subjects.journal(sessionRef('early')),
      (text) => tombstoneIn(Buffer.from(text)) !== null,
    );
  } finally {
    fixture.host.process.kill('SIGCONT');
  }
  expect(await stored('early')).toEqual({ messages: messages + 1, isDeleted: true });
  await expectConsistent('early', forked);
  await finishes('early', /its deletion is complete now/);
});

test.each([
  ['timers', () => STREAMS.timers],
  ['snapshots', () => STREAMS.snapshots],
  ['records', journalStreamOf],
] as const)('killed while it takes away the %s', async (what, streamOf) => {
  const id = `at-${what}`;
  await endedAndForked(id);
  const forked = (await journalOf(fixture.bus, `${id}-copy`)).records.length;
  await deletedUntil(id, `$JS.API.STREAM.PURGE.${streamOf(id)}`, (text) => text.includes(id));
  await expectConsistent(id, forked);
  // It may have come further before it died: at the last step there may be nothing left to do.
  await finishes(id, /its deletion is complete now|was already deleted/);
});
