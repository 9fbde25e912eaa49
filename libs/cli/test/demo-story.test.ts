/** The script of the demo: the answers of the model to each action of a person. */
import { createModels } from '@coxswain/adapter-models';
import type { Session, UiEvent } from '@coxswain/client';
import { callsOf, type Message, sessionRef, textOf, userText } from '@coxswain/protocol';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { ask } from '../../adapters/models/test/request.ts';
import { VirtualClock } from '../../adapters/models/test/virtual-clock.ts';
import { reachable, SelfPlayer, SLOW_TOOL, STEER, type Story, writeStory } from '../src/demo/mod.ts';

let story: Story;
beforeAll(async () => {
  story = await writeStory();
});
afterAll(() => story.remove());

const FORECAST = 'High water at 06:10 and 18:35, no wind before noon.';
const CANCELLED = 'Cancelled by demo: too slow';
const EDITED = 'replaced one occurrence in plan.md';
const DENIED = 'Denied by a person.';

interface Watched {
  readonly forecast: string;
  readonly edit: string;
  /** The steering message during the forecast. */
  readonly steer?: string;
}

/** Plays the whole run. @returns the texts of the model after the forecast, and its edits of the plan. */
async function play({ forecast, edit, steer }: Watched): Promise<{ texts: string[]; written: unknown[] }> {
  const models = createModels({ clock: new VirtualClock(), baseFolder: '/' });
  const messages: Message[] = [userText(story.body.prompt)];
  const texts: string[] = [];
  const written: unknown[] = [];
  for (let turn = 1; turn < 10; turn++) {
    const { result } = await ask(models, { name: story.body.model }, messages, { turn });
    expect(result.error).toBeUndefined();
    messages.push(result.message);
    texts.push(textOf(result.message));
    const calls = callsOf(result.message);
    if (calls.length === 0) return { texts: texts.slice(2), written };
    for (const { call_id, tool, args } of calls) {
      const text = tool === SLOW_TOOL ? forecast : tool === 'edit_file' ? edit : 'plan.md boats.txt';
      if (tool === 'edit_file') written.push((args as { new_text?: unknown }).new_text);
      messages.push({ role: 'tool', call_id, tool, status: 'ok', is_error: false, content: [{ type: 'text', text }] });
      if (tool === SLOW_TOOL && steer !== undefined) messages.push(userText(steer));
    }
  }
  throw new Error('the demo does not end');
}

test('without an action, the model uses the forecast and does not mention steering', async () => {
  const { texts, written } = await play({ forecast: FORECAST, edit: EDITED });
  expect(texts[0]).toMatch(/^High water is at/);
  expect(texts.join(' ')).not.toMatch(/understood|approach/i);
  expect(texts.at(-1)).toBe('Done: plan.md has the new Saturday.');
  expect(written).toEqual([expect.stringContaining('17:30')]);
});

test.each([
  ['with a cancelled call', CANCELLED, STEER],
  ['in other words, without a cancelled call', FORECAST, 'take the tide into account next week'],
])('the model follows a steering message %s', async (_how, forecast, steer) => {
  const { texts, written } = await play({ forecast, edit: EDITED, steer });
  expect(texts[0]).toMatch(/^Understood: I take another approach/);
  expect(written).toEqual([expect.stringContaining('15:00')]);
});

test('a forecast that is cancelled without a message is missing', async () => {
  const { texts } = await play({ forecast: CANCELLED, edit: EDITED });
  expect(texts[0]).toMatch(/^There is no forecast/);
});

test('a denied edit changes nothing, and the model reports it', async () => {
  const { texts } = await play({ forecast: FORECAST, edit: DENIED });
  expect(texts.at(-1)).toBe('The edit was denied, so plan.md stays as it is.');
});

test.each([
  ['nats://secret@one:4222,nats://two:4222', { url: 'nats://one:4222', token: 'secret' }],
  ['one', { url: 'nats://one', token: '' }],
])('the bare client of the demo connects to the first server of %s', (servers, wanted) => {
  expect(reachable({ embedded: null, address: { servers, token: undefined, source: '--nats' } })).toEqual(wanted);
});

test.each([
  ['a key', { servers: 'nats://one', credentials: {} as never }],
  ['a password', { servers: 'nats://user:password@one' }],
  ['TLS', { servers: 'tls://one' }],
])('on a bus with %s, the demo steers without the bare client', async (_what, address) => {
  const bus = reachable({ embedded: null, address: { token: undefined, source: '--nats', ...address } });
  const steer = vi.fn(async () => ({}));
  const session = { id: 's', ref: sessionRef('s'), steer } as unknown as Session;
  const player = new SelfPlayer(
    session,
    bus,
    () => undefined,
    (command) => command,
  );
  player.saw({ type: 'call_started', tool: SLOW_TOOL } as UiEvent);
  await player.done;
  expect(steer.mock.calls).toEqual([[STEER, { actor: 'demo' }]]);
});
