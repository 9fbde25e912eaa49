/** Personas in processes of their own, when versions meet, instances go, and somebody asks for what cannot be. */
import { writeFile } from 'node:fs/promises';
import type { ServePersonaOptions } from '@coxswain/client';
import { QUEUE_GROUPS, subjects, versionToken } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { calls, done, textOf } from './kit/called-tools.ts';
import { cox } from './kit/child.ts';
import { busAndHost } from './kit/fixture.ts';
import { policyFile, serveHooks } from './kit/hook-service.ts';
import { endOf, eventOf, journalOf } from './kit/journal.ts';
import { personaModule } from './kit/persona-service.ts';
import { servedPersonas } from './kit/served-personas.ts';
import type { ToolModule } from './kit/tool-service.ts';
import { until } from './kit/until.ts';

const fixture = busAndHost();
const { fresh, served, serve, start, known, listed, working, busy } = servedPersonas(fixture);

type StepModel = ReturnType<ServePersonaOptions['models']['resolve']>;

const WHERE = `[defineTool({ name: 'where', description: 'Where.', inputSchema: z.object({}), execute: () => 'in ' + process.pid })]`;
const began = (module: ToolModule, count: number) =>
  until(`${count} have begun`, async () => (await module.log()).filter((line) => /began/.test(line)).length === count);
/** A model that says one word and nothing more until it is told to stop. */
const speechless: StepModel['stream'] = async (_request, onPart, signal) => {
  onPart({ type: 'text', text: 'Well' });
  await new Promise((stopped) => signal.addEventListener('abort', stopped, { once: true }));
  return {
    status: 'cancelled',
    message: { role: 'assistant', content: [{ type: 'text', text: 'Well' }], partial: true },
    finishReason: 'cancelled',
    usage: { input_tokens: 0, output_tokens: 0 },
    attempts: 1,
  };
};
/** A model that asks for a list once it is let to, and then answers. */
const callsOnceLet =
  (isLet: Promise<void>): StepModel['stream'] =>
  async ({ turn }, onPart) => {
    onPart({ type: 'text', text: 'Well' });
    if (turn === 1) await isLet;
    const text = { type: 'text' as const, text: 'Well' };
    const call = { type: 'call' as const, call_id: 'c1', tool: 'list_files', args: { path: '.' } };
    return {
      status: 'complete',
      message: { role: 'assistant', content: turn === 1 ? [text, call] : [text] },
      finishReason: turn === 1 ? 'tool-calls' : 'stop',
      usage: { input_tokens: 0, output_tokens: 0 },
      attempts: 1,
    };
  };
const prompted = (id: string) => fixture.bus.command(id, 'prompt', { body: 'Again.' });

test('a session stays with its version while another one is served, and waits where nobody has it; new sessions have the new one', async () => {
  const turns = Array.from({ length: 3 }, () => [calls('where'), done]).flat();
  const { name, module, definition } = await served(turns, WHERE, { version: 'v1' });
  const first = await serve(module);
  await known(name);
  const old = await start(name);
  await endOf(fixture.bus, old);
  const second = await serve(await personaModule({ ...definition, version: 'v2' }, WHERE));
  await fixture.host.says(new RegExp(`"persona":"${name}","version":"v2".*a persona is announced`));
  const fresh = await endOf(fixture.bus, await start(name));
  await prompted(old);
  const both = await endOf(fixture.bus, old, 2);
  const ran = (journal: typeof both) => journal.of('call_ended').map(({ result }) => textOf(result));
  expect(fresh.of('persona_changed')[0]?.provision.persona).toEqual({ name, version: 'v2' });
  expect(ran(fresh)).toEqual([`in ${second.child.pid}`]);
  expect(both.of('persona_changed').map(({ provision }) => provision.persona.version)).toEqual(['v1']);
  expect(ran(both)).toEqual([`in ${first.child.pid}`, `in ${first.child.pid}`]);
  expect((await listed(name))?.instances.map(({ version }) => version).sort()).toEqual(['v1', 'v2']);

  const shown = await cox(['session', 'show', old, '--nats', fixture.bus.natsUrl]);
  expect(shown.stdout).toMatch(new RegExp(`^persona +${name}, version v1$`, 'm'));

  await first.child.terminate();
  await prompted(old);
  expect(await eventOf(fixture.bus, old, 'waiting_for_persona')).toMatchObject({ version: 'v1', why: 'unserved' });
  const again = await serve(module);
  expect(ran(await endOf(fixture.bus, old, 3)).at(-1)).toBe(`in ${again.child.pid}`);
});

test('a version is one definition: another one under it is refused with what differs, until the first is taken back', async () => {
  const { name, definition } = await served([done], '[]', { version: 'v1' });
  const first = await serve(await personaModule(definition));
  const other = await personaModule({ ...definition, prompt: 'You work otherwise.', description: 'Another one.' });
  const onBus = ['--nats', fixture.bus.natsUrl];
  const refused = await cox(['serve', 'personas', other.file, ...onBus]);
  expect(refused.code).toBe(1);
  expect(refused.stderr).toMatch(
    /persona_version_taken|another definition \((prompt, description|description, prompt)\)/,
  );
  expect(refused.stderr).toMatch(/another definition \((prompt, description|description, prompt)\)/);
  expect((await listed(name))?.announcement?.definition.prompt).toBe('You work.');
  expect((await cox(['persona', 'remove', name, ...onBus])).stderr).toContain('persona_serving');
  await first.child.terminate();
  expect((await cox(['persona', 'remove', name, ...onBus])).code).toBe(0);
  await serve(other);
  expect((await listed(name))?.announcement?.definition.prompt).toBe('You work otherwise.');
});

test('what ends sends elsewhere what it cannot end in time', async () => {
  const { name, module, definition } = await served([{ text: 'from there' }]);
  const leaving = await fixture.bus.client.servePersona(definition as { name: string }, {
    models: { check: async () => null, resolve: () => ({ stream: speechless }) },
    drainMs: 50,
  });
  await known(name);
  const id = await start(name);
  await until('it answers', async () => (await working(name)).length === 1);
  const staying = await serve(module);
  expect(staying.version).toBe(leaving.version);
  await leaving.stop();
  const journal = await endOf(fixture.bus, id);
  expect(journal.of('persona_step_lost')).toMatchObject([
    { persona: name, instance: leaving.instance, cause: 'handed_back', lost: 1 },
  ]);
  expect(journal.of('message_complete').map(({ message }) => textOf(message))).toEqual(['from there']);
});

test('steps that come to whoever dies before it says that it has them are begun by the others', async () => {
  const { name, serve } = await served([done]);
  const { version } = await serve();
  await known(name);
  const swallowed: unknown[] = [];
  const token = versionToken(version);
  const dying = fixture.bus.bare.subscribe(subjects.persona('default', name, token), {
    queue: QUEUE_GROUPS.personas,
    callback: (_, message) => {
      swallowed.push(message.subject);
      if (swallowed.length === 2) dying.unsubscribe();
    },
  });
  await fixture.bus.bare.flush();
  const ids: string[] = [];
  // Which of the two is asked the server says.
  while (swallowed.length < 2) {
    ids.push(await start(name));
    await eventOf(fixture.bus, ids.at(-1) as string, 'turn_start');
    await fixture.bus.bare.flush();
  }
  for (const id of ids) {
    const journal = await endOf(fixture.bus, id);
    expect(journal.of('message_complete')).toHaveLength(1);
    expect(journal.of('agent_end')).toMatchObject([{ stop_reason: 'end_turn' }]);
  }
});

test('an instance is killed under load: what it had in its hands and in its line is answered elsewhere, each once', async () => {
  const steps = 10;
  const turns = Array.from({ length: steps - 1 }, () => ({ delay_ms: 400, ...calls('list_files', { path: '.' }) }));
  const { name, serve: another } = await served([...turns, { delay_ms: 400, ...done }]);
  const among = await Promise.all([1, 2, 3].map(() => another('--at-once', '1')));
  await known(name);
  const ids = await Promise.all(Array.from({ length: 9 }, () => start(name)));
  await until('all of them work', async () => (await working(name)).length === 3);
  const victim = await busy(name, among);
  await victim.child.kill();
  const journals = await Promise.all(ids.map((id) => endOf(fixture.bus, id)));
  for (const journal of journals) {
    expect(journal.of('message_complete')).toHaveLength(steps);
    expect(journal.of('agent_end')).toMatchObject([{ stop_reason: 'end_turn', turns: steps }]);
  }
  const lost = journals.flatMap((journal) => journal.of('persona_step_lost'));
  expect(lost.length).toBeGreaterThan(0);
  expect(new Set(lost.map(({ instance }) => instance))).toEqual(new Set([victim.instance]));
});

test('calls whose instance is killed are in doubt: run again where that does no harm, told to the model otherwise', async () => {
  const tool = (name: string, more: string) =>
    `defineTool({ name: '${name}', description: 'x', inputSchema: z.object({}), ${more}
       execute: async (_, { abortSignal: signal }) => { note('${name} began'); await opened(signal); note('${name} ended'); return 'x'; } })`;
  const { name, module } = await served(
    [{ calls: ['once', 'again'].map((tool) => ({ tool, args: {} })) }, done],
    `[${tool('once', '')}, ${tool('again', 'idempotent: true,')}]`,
  );
  const first = await serve(module);
  await known(name);
  const id = await start(name);
  await began(module, 2);
  await first.child.kill();
  await serve(module);
  await began(module, 3);
  await module.open();
  const journal = await endOf(fixture.bus, id);
  expect(
    journal
      .of('call_ended')
      .map(({ tool, status }) => `${tool} ${status}`)
      .sort(),
  ).toEqual(['again ok', 'once interrupted']);
  expect((await module.log()).sort()).toEqual(['again began', 'again began', 'again ended', 'once began']);
});

test('a persona stands in the registry with its version, its tools and their schemas, and its instances as long as they live', async () => {
  const { name, module } = await served([done], WHERE);
  const one = await serve(module);
  const there = await listed(name);
  expect(there?.announcement).toMatchObject({ version: one.version, tools: [{ name: 'where', source: 'persona' }] });
  expect(there?.announcement?.tools[0]?.input_schema).toMatchObject({ type: 'object' });
  expect(there?.instances).toMatchObject([{ instance: one.instance, state: 'serving', version: one.version }]);
  const asText = await cox(['persona', 'list', '--served', '--nats', fixture.bus.natsUrl]);
  expect(asText.stdout).toMatch(new RegExp(`^${name}  ${one.version}  1 instance$`, 'm'));
  await one.child.kill();
  await until('it is forgotten', async () => (await listed(name))?.instances.length === 0);
  expect((await listed(name))?.announcement?.version).toBe(one.version);
  const id = await start(name);
  expect(await eventOf(fixture.bus, id, 'waiting_for_persona')).toMatchObject({ why: 'unserved' });
  await fixture.bus.command(id, 'cancel', { reason: 'enough' });
  expect((await endOf(fixture.bus, id)).of('agent_end')).toMatchObject([{ stop_reason: 'cancelled' }]);
});

test('a pause lets the step end that runs, and holds up the next one; hooks are told of both ends', async () => {
  const { name, module, definition } = await served([done]);
  let goOn = () => {};
  const paused = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  const one = await fixture.bus.client.servePersona(definition as { name: string }, {
    models: { check: async () => null, resolve: () => ({ stream: callsOnceLet(paused) }) },
  });
  await known(name);
  const policy = await policyFile(`
    import { appendFileSync } from 'node:fs';
    import { defineHooks } from '@coxswain/client';
    const told = (payload) => appendFileSync(${JSON.stringify(`${module.file}.told`)}, JSON.stringify(payload) + '\\n');
    export default defineHooks({
      OnPersonaPaused: { persona: '${name}', handler: told },
      OnPersonaResumed: { persona: '${name}', handler: told },
    });
  `);
  const hooks = await serveHooks(fixture.bus, policy, fresh('told'));
  await fixture.host.says(/"service":"told-\d+".*hooks are registered/);
  try {
    const id = await start(name);
    await until('it answers', async () => (await working(name)).length === 1);
    const onBus = ['--nats', fixture.bus.natsUrl];
    expect((await cox(['persona', 'pause', name, '--reason', 'a look', ...onBus])).code).toBe(0);
    await fixture.host.says(new RegExp(`"persona":"${name}".*a persona is paused`));
    goOn();
    await eventOf(fixture.bus, id, 'waiting_for_persona');
    const held = await journalOf(fixture.bus, id);
    expect(held.of('message_complete').map(({ message }) => textOf(message))).toEqual(['Well']);
    expect(held.of('call_ended')).toMatchObject([{ status: 'ok' }]);
    expect((await cox(['persona', 'resume', name, ...onBus])).code).toBe(0);
    const journal = await endOf(fixture.bus, id);
    expect(journal.of('message_complete')).toHaveLength(2);
    expect(journal.of('persona_step_lost')).toEqual([]);
    expect(journal.of('hook_call').map(({ point, payload }) => [point, payload?.version, payload?.reason])).toEqual([
      ['OnPersonaPaused', one.version, 'a look'],
      ['OnPersonaResumed', one.version, undefined],
    ]);
    expect(journal.of('hook_returned').map(({ failure }) => failure)).toEqual([undefined, undefined]);
  } finally {
    await hooks.terminate();
    await one.stop();
  }
});

test('what is asked for and cannot be is refused with a code, and what it is about', async () => {
  const { name, module } = await served([done], '[]', { modes: { strict: { prompt: 'Be strict.' } } });
  await serve(module);
  await known(name);
  const ended = async (persona: string, more: object = {}) =>
    (await endOf(fixture.bus, await start(persona, more))).of('agent_end')[0]?.error;
  expect(await ended('nobody')).toMatchObject({ code: 'persona_not_found', message: expect.stringContaining(name) });
  expect(await ended(name, { mode: 'stric' })).toMatchObject({ code: 'mode_not_found' });
  const receipts = fixture.bus.receipts();
  const head = { 'Cox-Command-Id': fresh('command'), 'Cox-Receipt-To': receipts.subject };
  const body = { prompt: 'Go.', persona: name, limits: { wait_for_persona_ms: 0 } };
  await fixture.bus.command(fresh('s'), 'start', body, head);
  expect(await receipts.first()).toMatchObject({
    stage: 'rejected',
    code: 'invalid_field',
    field: 'limits.wait_for_persona_ms',
  });

  const onBus = ['--nats', fixture.bus.natsUrl];
  expect((await cox(['serve', 'personas', module.file, '--at-once', '0', ...onBus])).stderr).toContain('--at-once');
  const twice = await cox(['serve', 'personas', module.file, module.file, ...onBus]);
  expect([twice.code, twice.stderr]).toEqual([1, expect.stringContaining(`two personas have the name ${name}`)]);
  const noPersona = `${module.file}.mjs`;
  await writeFile(noPersona, 'export const tools = [];');
  expect((await cox(['serve', 'personas', noPersona, ...onBus])).stderr).toContain('no persona in this module');
  expect((await cox(['persona', 'pause', 'no such name', ...onBus])).code).toBe(2);
  const unknown = await cox(['persona', 'pause', 'nosuch', ...onBus]);
  expect({ code: unknown.code, stdout: unknown.stdout }).toEqual({ code: 1, stdout: '' });
  expect(unknown.stderr).toMatch(new RegExp(`persona_not_found: no persona nosuch .*known: .*${name}`));
  expect((await cox(['persona', 'pause', name, '--reason', 'x'.repeat(2_049), ...onBus])).code).toBe(2);
  expect((await cox(['persona', 'remove', 'nobody', ...onBus])).stderr).toContain('persona_not_registered');
});
