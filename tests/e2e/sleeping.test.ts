/** A session that sleeps on a real server: its timer outlives a killed host and a restarted server. */
import { expect, onTestFinished, test } from 'vitest';
import { startOwnBus } from './kit/bus.ts';
import { startChatProvider } from './kit/chat-provider.ts';
import { busAndHost } from './kit/fixture.ts';
import { endOf, eventOf, expectReplays, expectSound } from './kit/journal.ts';
import { scripted } from './kit/scripts.ts';
import { startHost } from './kit/sessions-host.ts';

const fixture = busAndHost();

// Others use the servers that all share: this one is the test's own.
test('a parked session wakes by its timer, though its host was killed and the server restarted meanwhile', async () => {
  const model = await scripted([
    { calls: [{ tool: 'park', args: { for_ms: 4_000, reason: 'the tide' } }] },
    { text: 'Awake again.' },
  ]);
  const first = await startOwnBus();
  const killed = await startHost(first);
  const session = await first.client.startSession({ prompt: 'Wait for the tide.', model });
  const parked = await eventOf(first, session.id, 'suspended');
  await killed.kill();
  await first.stop();

  const bus = await startOwnBus(first.stateDir);
  const host = await startHost(bus);
  onTestFinished(async () => {
    await host.kill();
    await bus.stop();
  });
  const journal = await endOf(bus, session.id);
  expectSound(journal);
  await expectReplays(bus, journal);
  const [resumed] = journal.of('resumed');
  expect(resumed).toMatchObject({ cause: 'timeout' });
  expect(resumed?.slept_ms).toBeGreaterThanOrEqual(4_000);
  expect(journal.of('timer_fired')).toMatchObject([{ effect_id: parked.effect_id, what: 'suspension' }]);
  expect(journal.of('agent_end')).toMatchObject([{ stop_reason: 'end_turn', turns: 2 }]);
});

test('a signal wakes a session on the bus with its data, by whoever can publish', async () => {
  const { bus } = fixture;
  // The first answer ends once the session has taken the suspension.
  let goOn: () => void = () => undefined;
  const taken = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  const provider = await startChatProvider((_request, number) =>
    number === 1 ? { text: 'Waiting.', before_end: taken } : { text: 'It has come.' },
  );
  onTestFinished(() => {
    goOn();
    return provider.stop();
  });
  const start = { prompt: 'Wait for the pilot.', model: 'openai-compatible/x', baseUrl: provider.url };
  const session = await bus.client.startSession(start);
  await provider.request(1);
  await bus.command(session.id, 'suspend', { signal: 'pilot', for_ms: 600_000, on_timeout: 'fail' });
  await eventOf(bus, session.id, 'control_outcome');
  goOn();
  await eventOf(bus, session.id, 'suspended');
  await bus.command(session.id, 'signal', { name: 'pilot', data: { name: 'Ines' } });
  const journal = await endOf(bus, session.id);
  expect(journal.of('resumed')).toMatchObject([{ cause: 'signal', signal: { name: 'pilot', data: { name: 'Ines' } } }]);
  expect(journal.of('agent_end')).toMatchObject([{ stop_reason: 'end_turn', turns: 2 }]);
});
