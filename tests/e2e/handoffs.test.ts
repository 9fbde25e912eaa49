/** Hand-offs on a real server: over a host that is killed half-way, to personas that processes of their own serve. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { calls, done, textOf } from './kit/called-tools.ts';
import { cox } from './kit/child.ts';
import { busAndHost } from './kit/fixture.ts';
import { endOf, eventOf } from './kit/journal.ts';
import { scratchFolder } from './kit/scratch.ts';
import { scripted } from './kit/scripts.ts';
import { servedPersonas } from './kit/served-personas.ts';
import { startHost } from './kit/sessions-host.ts';
import { waitCommand } from './kit/wait-command.ts';

const fixture = busAndHost();
const { served, start, known } = servedPersonas(fixture);

const ALLOW = { rules: [{ tool: '*', action: 'allow' }] };
const COUNTING_SERVER = fileURLToPath(new URL('./kit/counting-server.mjs', import.meta.url));
/** What a command of `cox` says of the bus. */
const inspect = (...args: readonly string[]) => cox([...args, '--nats', fixture.bus.natsUrl]);
const handOff = (to: string, brief = 'Go on.') => calls('handoff', { to, brief });

test('a host is killed -9 between a hand-off and what it needs: the next one brings the other persona in, once', async () => {
  const folder = await scratchFolder('handoff');
  const [gate, count] = [join(folder, 'gate'), join(folder, 'count')];
  await writeFile(count, '');
  // The tools of the other persona are not there before the gate is open.
  const server = `${waitCommand(gate)}; exec '${process.execPath}' '${COUNTING_SERVER}' '${count}'`;
  const id = await start(
    {
      name: 'desk',
      prompt: 'You are at the desk.',
      handoffs: ['clerk'],
      permissions: ALLOW,
      model: await scripted([handOff('clerk')]),
    },
    {
      personas: [
        {
          name: 'clerk',
          prompt: 'You keep papers.',
          permissions: ALLOW,
          model: await scripted([{ text: 'Found.' }]),
          mcp_servers: { papers: { command: 'sh', args: ['-c', server] } },
        },
      ],
    },
  );
  await eventOf(fixture.bus, id, 'handoff_emitted');
  await fixture.host.kill();
  await writeFile(gate, '');
  fixture.host = await startHost(fixture.bus);
  const journal = await endOf(fixture.bus, id);
  expect(journal.of('handoff_emitted')).toHaveLength(1);
  expect(journal.of('call_started')).toHaveLength(1);
  expect(journal.of('call_ended')).toMatchObject([{ status: 'ok' }]);
  expect(
    journal.of('persona_changed').map(({ provision, handoff }) => [provision.persona.name, handoff?.from]),
  ).toEqual([
    ['desk', undefined],
    ['clerk', 'desk'],
  ]);
  expect(
    journal
      .of('tools_changed')
      .at(-1)
      ?.tools.map(({ name }) => name),
  ).toContain('papers__count');
  expect(
    journal
      .of('message_complete')
      .map(({ message }) => textOf(message))
      .at(-1),
  ).toBe('Found.');
  // Whoever looks at the session sees whose it is.
  expect((await inspect('session', 'show', id)).stdout).toMatch(/clerk/);
  expect((await inspect('session', 'replay', id)).code).toBe(0);
});

test('a persona in a process of its own takes a session over, with its model and tools, and hands it back', async () => {
  const { name, module, serve } = await served(
    [calls('where'), handOff('desk', 'It is here.')],
    `[defineTool({ name: 'where', description: 'Where.', inputSchema: z.object({}), execute() { note('ran'); return String(process.pid); } })]`,
    { handoffs: ['desk'] },
  );
  const { child, version } = await serve();
  await known(name);
  const id = await start({
    name: 'desk',
    prompt: 'You are at the desk.',
    handoffs: [name],
    permissions: ALLOW,
    model: await scripted([handOff(name), done]),
  });
  const journal = await endOf(fixture.bus, id);
  expect(journal.of('persona_changed').map(({ provision }) => [provision.persona.name, provision.served])).toEqual([
    ['desk', undefined],
    [name, true],
    ['desk', undefined],
  ]);
  expect(journal.of('persona_changed')[1]?.provision.persona.version).toBe(version);
  expect(journal.of('call_ended').map(({ tool, status }) => `${tool} ${status}`)).toEqual([
    'handoff ok',
    'where ok',
    'handoff ok',
  ]);
  expect(textOf(journal.of('call_ended')[1]?.result)).toBe(String(child.pid));
  expect(await module.log()).toEqual(['ran']);
  expect(journal.of('agent_end')).toMatchObject([{ stop_reason: 'end_turn', turns: 4 }]);
});

test('a persona that nobody serves any more has the session, and is waited for', async () => {
  const { name, serve } = await served([done]);
  const first = await serve();
  await known(name);
  await first.child.kill();
  const id = await start({
    name: 'desk',
    handoffs: [name],
    permissions: ALLOW,
    model: await scripted([handOff(name)]),
  });
  expect(await eventOf(fixture.bus, id, 'waiting_for_persona')).toMatchObject({ persona: name, why: 'unserved' });
  await serve();
  const journal = await endOf(fixture.bus, id);
  expect(journal.of('agent_end')).toMatchObject([{ stop_reason: 'end_turn', turns: 2 }]);
});
