/** Personas in processes of their own: found by name, scaled, killed, paused, drained, waited for. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { calls, done, textOf } from './kit/called-tools.ts';
import { cox } from './kit/child.ts';
import { busAndHost } from './kit/fixture.ts';
import { endOf, eventOf, journalOf } from './kit/journal.ts';
import { type PersonaProcess, personaModule } from './kit/persona-service.ts';
import { servedPersonas } from './kit/served-personas.ts';
import { startHost } from './kit/sessions-host.ts';
import { until } from './kit/until.ts';

const fixture = busAndHost();
const { fresh, served, start, known, listed, working, busy, deltasOf } = servedPersonas(fixture);

const words = (count: number) => Array.from({ length: count }, (_, i) => `word${i}`).join(' ');

test('a session is started by the name of a persona, whose model and tools run where it is served', async () => {
  const { name, module, serve } = await served(
    [calls('where', { what: 'rope' }), done],
    `[defineTool({ name: 'where', description: 'Where.', inputSchema: z.object({ what: z.string() }),
       needsApproval({ what }) { note('asked about ' + what); return false; },
       execute({ what }, { progress }) { progress('looking'); note('ran'); return what + ' ' + process.pid; } })]`,
  );
  const { child, version } = await serve();
  await known(name);
  const journal = await endOf(fixture.bus, await start(name));
  expect(journal.of('persona_changed')[0]?.provision).toMatchObject({ persona: { name, version }, served: true });
  expect(journal.of('tools_changed')[0]?.tools.find((tool) => tool.name === 'where')).toMatchObject({
    source: 'persona',
  });
  expect(textOf(journal.of('call_ended')[0]?.result)).toBe(`rope ${child.pid}`);
  expect(await module.log()).toEqual(['asked about rope', 'ran']);
  expect(journal.of('agent_end')).toMatchObject([{ stop_reason: 'end_turn', turns: 2 }]);
});

test('the deltas of its answers come to watchers in order, and a long request comes to it whole', async () => {
  const { name, serve } = await served([{ text: words(20), chunk_ms: 5 }]);
  await serve();
  await known(name);
  const id = fresh('s');
  const deltas = deltasOf(id);
  await fixture.bus.bare.flush();
  await fixture.bus.command(id, 'start', { prompt: `Go. ${'x'.repeat(220_000)}`, persona: name });
  const journal = await endOf(fixture.bus, id);
  const text = deltas.map((delta) => delta.text).join('');
  expect(text).toBe(words(20));
  expect(deltas.map(({ index }) => index)).toEqual(deltas.map((_, index) => index));
  expect(textOf(journal.of('message_complete')[0]?.message)).toBe(words(20));
});

test('an instance is killed in the middle of an answer: another answers anew, the journal says so, and nothing is doubled', async () => {
  const { name, serve } = await served([{ text: words(100), chunk_ms: 30 }]);
  const among = await Promise.all([serve(), serve()]);
  await known(name);
  const id = fresh('s');
  const deltas = deltasOf(id);
  await fixture.bus.bare.flush();
  await fixture.bus.command(id, 'start', { prompt: 'Go.', persona: name });
  const victim = await busy(name, among);
  await until('it has begun to answer', () => deltas.length > 2);
  await victim.child.kill();
  const journal = await endOf(fixture.bus, id);
  expect(journal.of('persona_step_lost')).toMatchObject([{ persona: name, instance: victim.instance, lost: 1 }]);
  expect(journal.of('message_complete').map(({ message }) => textOf(message))).toEqual([words(100)]);
  // From index 0 again: what came before is void, and what comes from there is the whole.
  const again = deltas.findLastIndex(({ index }) => index === 0);
  expect(again).toBeGreaterThan(0);
  const anew = deltas.slice(again);
  expect(anew.map((delta) => delta.text).join('')).toBe(words(100));
  expect(anew.map(({ index }) => index)).toEqual(anew.map((_, index) => index));
});

test('from one instance to three and back under load, no step is lost or doubled', async () => {
  const steps = 40;
  const turns = Array.from({ length: steps - 1 }, () => ({ delay_ms: 100, ...calls('list_files', { path: '.' }) }));
  const { name, serve } = await served([...turns, { delay_ms: 100, ...done }]);
  const first = await serve('--at-once', '2');
  await known(name);
  const ids = await Promise.all(Array.from({ length: 8 }, () => start(name)));
  await eventOf(fixture.bus, ids[0] as string, 'message_complete');
  const others = await Promise.all([serve('--at-once', '2'), serve('--at-once', '2')]);
  await until('all of them work', async () => (await working(name)).length === 3);
  const exits = await Promise.all([first, others[0] as PersonaProcess].map(({ child }) => child.terminate()));
  expect(exits).toEqual([0, 0].map((code) => ({ code, signal: null })));
  for (const id of ids) {
    const journal = await endOf(fixture.bus, id);
    expect(journal.of('message_complete')).toHaveLength(steps);
    expect(journal.of('call_ended').filter(({ status }) => status === 'ok')).toHaveLength(steps - 1);
    expect(journal.of('agent_end')).toMatchObject([{ stop_reason: 'end_turn', turns: steps }]);
    expect(journal.of('persona_step_lost').filter(({ cause }) => cause === 'gone')).toEqual([]);
  }
});

test('a cancelled step reaches the request to the provider', async () => {
  const heard: string[] = [];
  const server = createServer((request, response) => {
    request.resume();
    heard.push('asked');
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const text = JSON.stringify({ id: 'x', choices: [{ index: 0, delta: { role: 'assistant', content: 'Well' } }] });
    response.write(`data: ${text}\n\n`);
    response.on('close', () => heard.push('closed'));
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  try {
    const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
    const { name, serve } = await served([done], '[]', { model: { name: 'openai-compatible/m', baseUrl } });
    await serve();
    await known(name);
    const id = await start(name);
    await until('the provider is asked', () => heard.includes('asked'));
    await fixture.bus.command(id, 'cancel', { reason: 'enough' });
    expect((await endOf(fixture.bus, id)).of('agent_end')).toMatchObject([{ stop_reason: 'cancelled' }]);
    await until('its request is aborted', () => heard.includes('closed'));
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

test('a step that nobody serves waits, over a restart of the host, until somebody does; or fails with a code', async () => {
  const { name, serve } = await served([done]);
  const one = await serve();
  await known(name);
  await one.child.terminate();
  const [patient, hasty] = [await start(name), await start(name, { limits: { wait_for_persona_ms: 300 } })];
  expect(await eventOf(fixture.bus, patient, 'waiting_for_persona')).toMatchObject({ persona: name, why: 'unserved' });
  expect((await endOf(fixture.bus, hasty)).of('agent_end')).toMatchObject([
    { stop_reason: 'error', error: { code: 'persona_unavailable' } },
  ]);
  await fixture.host.kill();
  fixture.host = await startHost(fixture.bus);
  await eventOf(fixture.bus, patient, 'owned', ({ epoch }) => epoch === 2);
  await serve();
  const journal = await endOf(fixture.bus, patient);
  expect(journal.of('persona_wait_ended')).toHaveLength(1);
  expect(journal.of('agent_end')).toMatchObject([{ stop_reason: 'end_turn' }]);
});

test('cox persona pause and resume: no new step starts, wherever it runs, also under the next host', async () => {
  const { name, serve } = await served([done]);
  await serve();
  await known(name);
  const onBus = ['--nats', fixture.bus.natsUrl];
  const paused = await cox(['persona', 'pause', name, '--reason', 'being changed', ...onBus]);
  expect(paused.code).toBe(0);
  expect((await cox(['persona', 'pause', name, ...onBus])).stderr).toContain('persona_paused');
  const id = await start(name);
  expect(await eventOf(fixture.bus, id, 'waiting_for_persona')).toMatchObject({
    why: 'paused',
    reason: 'being changed',
  });
  expect((await listed(name))?.pause).toMatchObject({ reason: 'being changed' });
  expect(await fixture.bus.client.session(id).state()).toMatchObject({
    waitingForPersona: { persona: name, why: 'paused', until: null },
  });
  await fixture.host.kill();
  fixture.host = await startHost(fixture.bus);
  await eventOf(fixture.bus, id, 'owned', ({ epoch }) => epoch === 2);
  expect((await journalOf(fixture.bus, id)).of('message_complete')).toEqual([]);
  expect((await cox(['persona', 'resume', name, ...onBus])).code).toBe(0);
  expect((await endOf(fixture.bus, id)).of('message_complete')).toHaveLength(1);
  expect((await cox(['persona', 'resume', name, ...onBus])).stderr).toContain('persona_not_paused');
});

test('an instance that is told to stop ends the answer that it gives, and takes nothing more', async () => {
  const { name, serve } = await served([{ text: words(100), chunk_ms: 30 }]);
  const one = await serve();
  await known(name);
  const id = await start(name);
  await busy(name, [one]);
  expect(await one.child.terminate()).toEqual({ code: 0, signal: null });
  const journal = await endOf(fixture.bus, id);
  expect(journal.of('message_complete').map(({ message }) => textOf(message))).toEqual([words(100)]);
  expect(journal.of('persona_step_lost')).toEqual([]);
});

test('what cannot be served is refused with its path or its name', async () => {
  const onBus = ['--nats', fixture.bus.natsUrl];
  const module = await personaModule({ name: 'no name at all' });
  const refused = await cox(['serve', 'personas', module.file, ...onBus]);
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain('name');
  const long = await personaModule(
    { name: 'fine' },
    `[defineTool({ name: 'x', description: 'x', inputSchema: z.object({}), longRunning: true, execute: () => 'x' })]`,
  );
  expect((await cox(['serve', 'personas', long.file, ...onBus])).stderr).toContain('longRunning');
  expect((await cox(['serve', 'personas', ...onBus])).stderr).toContain('needs <path…>');
  expect((await cox(['persona', 'pause', ...onBus])).stderr).toContain('needs <name>');
});
