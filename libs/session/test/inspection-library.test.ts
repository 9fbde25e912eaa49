/** What the library `@statelyai/inspect` sends of a live actor, beside what is told of the same journal. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { turnMachine } from '@coxswain/turn';
import { createInspector, type StatelyInspectionEvent } from '@statelyai/inspect';
import { expect, test } from 'vitest';
import { createActor } from 'xstate';
import { journal } from '../../../tests/traces/golden-journals.ts';
import { INSPECT_VERSION, SessionInspector } from '../src/mod.ts';

/** As they would go over a connection. */
type Message = Readonly<Record<string, unknown>> & { readonly type: string };

const asSent = (messages: readonly unknown[]) => JSON.parse(JSON.stringify(messages)) as Message[];

/** A live actor of the machine, sent a journal's events. */
async function ofTheLibrary(name: string): Promise<Message[]> {
  const sent: StatelyInspectionEvent[] = [];
  const { inspect } = createInspector({ send: (event) => void sent.push(event) });
  const [first] = journal(name);
  const actor = createActor(turnMachine, { input: { sessionId: first?.session_id ?? '' }, inspect }).start();
  for (const { n, at, events } of journal(name))
    for (const event of events) actor.send({ ...event, n, at_ms: Date.parse(at) });
  const all = journal(name).reduce((count, { events }) => count + 2 * events.length, 0);
  // It sends when there is time; the actor's own beginning goes before.
  await expect.poll(() => sent.length, { timeout: 20_000 }).toBe(all + 3);
  return asSent([sent[0], ...sent.slice(3)]);
}

function ofOurs(name: string): Message[] {
  const records = journal(name);
  const inspector = new SessionInspector(records[0]?.session_id ?? '');
  return asSent(records.flatMap((record) => [...inspector.take(record)]));
}

test('the library’s release is the one that our messages name', () => {
  const manifest = readFileSync(resolve(import.meta.dirname, '../../../package.json'), 'utf8');
  expect(JSON.parse(manifest).devDependencies['@statelyai/inspect']).toBe(INSPECT_VERSION);
});

test.each(['follow-up', 'cancel-call', 'hooks-at-every-point'])(
  'our messages for %s equal those of the library',
  async (name) => {
    const [theirs, ours] = [await ofTheLibrary(name), ofOurs(name)];
    const gist = (message: Message) => {
      const { value, status, tags } = (message.snapshot ?? {}) as Record<string, unknown>;
      return [message.type, (message.event as { type?: string } | undefined)?.type, value, status, tags];
    };
    expect(ours.map(gist)).toEqual(theirs.map(gist));
  },
);

test('each message has the members that the library gives it', async () => {
  const [theirs, ours] = [await ofTheLibrary('follow-up'), ofOurs('follow-up')];
  for (const type of ['@xstate.actor', '@xstate.event', '@xstate.snapshot']) {
    const [library, own] = [theirs, ours].map((all) => all.find((message) => message.type === type) ?? { type: '' });
    expect(Object.keys(own ?? {})).toEqual(expect.arrayContaining(Object.keys(library ?? {})));
    if (type === '@xstate.event') continue;
    const snapshots = [library, own].map((message) => Object.keys(message?.snapshot as object));
    expect(snapshots[1]).toEqual(expect.arrayContaining(snapshots[0] ?? []));
  }
  expect(ours[0]).toMatchObject({ name: theirs[0]?.name });
});

test('the definition is the one that the library would send', async () => {
  const [theirs, ours] = [await ofTheLibrary('follow-up'), ofOurs('follow-up')].map(
    ([actor]) => JSON.parse(String(actor?.definition)) as Record<string, unknown>,
  );
  // The one function of it; and what only ours says.
  const { context: _, ...drawn } = theirs ?? {};
  const { version, ...own } = ours ?? {};
  expect(own).toEqual(drawn);
  expect(version).toMatch(/^\d+$/);
});
