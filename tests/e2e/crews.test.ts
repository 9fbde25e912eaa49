/**
 * Crews on a real server with two hosts: a tree that is cancelled at its top, hosts that die while children work, sessions that
 * message each other for ever, rules that reach down, reminders over three levels, and the tree as one view.
 */
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { readTree, type WireTreeNode } from '@coxswain/client';
import { BOUNDS } from '@coxswain/protocol';
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest';
import { startBus, type TestBus } from './kit/bus.ts';
import { type ChatProvider, contentOf, startChatProvider } from './kit/chat-provider.ts';
import { type Child, cox } from './kit/child.ts';
import { endOf, eventOf, expectAllSound, journalOf } from './kit/journal.ts';
import { removeScratch, scratchFolder } from './kit/scratch.ts';
import { type ScriptTurn, scripted } from './kit/scripts.ts';
import { startHost } from './kit/sessions-host.ts';
import { until } from './kit/until.ts';
import { waitCommand } from './kit/wait-command.ts';

const ALLOW = { rules: [{ tool: '*', action: 'allow' }] };

let bus: TestBus;
let hosts: Child[];

beforeEach(async () => {
  bus = await startBus();
  hosts = await Promise.all(['a', 'b'].map((name) => startHost(bus, { COX_HOST_NAME: name })));
});
afterEach(async () => {
  try {
    await expectAllSound(bus);
  } finally {
    await Promise.all(hosts.map((host) => host.kill()));
    await bus.stop();
  }
});
afterAll(removeScratch);

const delegate = (persona: string, prompt: string, more: object = {}) => ({
  tool: 'delegate',
  args: { persona, prompt, ...more },
});
const persona = (name: string, model: string, more: object = {}) => ({ name, model, permissions: ALLOW, ...more });

/** A provider that answers nobody, and counts who asks and who goes away. */
async function silentProvider() {
  let asked = 0;
  let aborted = 0;
  const server = createServer((incoming, response) => {
    incoming.resume();
    incoming.on('end', () => {
      asked++;
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.flushHeaders();
    });
    response.on('close', () => {
      if (!response.writableFinished) aborted++;
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    counts: () => ({ asked, aborted }),
    stop: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

const treeOf = (id: string) => readTree((one) => bus.client.session(one).journal(), id);
const nodesOf = (node: WireTreeNode): WireTreeNode[] => [node, ...node.children.flatMap(nodesOf)];
const reasonsOf = async (ids: readonly string[]) =>
  Promise.all(ids.map(async (id) => (await journalOf(bus, id)).of('agent_end').map(({ stop_reason }) => stop_reason)));

test('a tree of 1 + 8 + 16 over two hosts: the cancel of its root ends all of it, for good', {
  timeout: 180_000,
}, async () => {
  const provider = await silentProvider();
  try {
    const root = await scripted([{ calls: Array.from({ length: 8 }, (_, i) => delegate('mate', `part ${i}`)) }]);
    const mate = await scripted([{ calls: [delegate('hand', 'left'), delegate('hand', 'right')] }]);
    const personas = [
      persona('mate', mate),
      persona('hand', 'openai-compatible/silent', {
        model: { name: 'openai-compatible/silent', base_url: provider.url },
      }),
    ];
    await bus.command('root', 'start', { prompt: 'All of it.', model: root, permissions: ALLOW, personas });
    await until('all hands have asked', () => provider.counts().asked === 16);
    const nodes = nodesOf((await treeOf('root')).top);
    expect(nodes).toHaveLength(25);
    const ids = nodes.map(({ session_id }) => session_id);
    const writers = new Set<string>();
    for (const id of ids)
      for (const { attempt } of (await journalOf(bus, id)).records) writers.add(attempt.slice(0, 1));
    expect([...writers].sort()).toEqual(['a', 'b']);

    const cancelledAt = (await bus.command('root', 'cancel', { reason: 'enough' })).seq;
    expect(cancelledAt).toBeGreaterThan(0);
    await until('all have ended', async () => (await reasonsOf(ids)).every((ends) => ends.length === 1));
    expect(new Set((await reasonsOf(ids)).flat())).toEqual(new Set(['cancelled']));
    // Measured by the journals' own clock: from the record of the cancel to the last end.
    const records = (await Promise.all(ids.map((id) => journalOf(bus, id)))).map((journal) => journal.records);
    const asked = records[0]?.find(({ input }) => input.type === 'command' && input.verb === 'cancel');
    const ends = records.map((all) => all.find(({ events }) => events.some(({ type }) => type === 'agent_end')));
    const tookMs = Math.max(...ends.map((end) => Date.parse(end?.at ?? ''))) - Date.parse(asked?.at ?? '');
    process.stderr.write(`25 sessions ended ${tookMs} ms after their root was cancelled\n`);
    await until('all requests are aborted', () => provider.counts().aborted === 16);

    await until('everything is said', async () => (await bus.commandsWaiting()) === 0);
    const before = await Promise.all(ids.map(async (id) => (await journalOf(bus, id)).records.length));
    await Promise.all(hosts.map((host) => host.kill()));
    hosts = await Promise.all(['c', 'd'].map((name) => startHost(bus, { COX_HOST_NAME: name })));
    const other = await scripted([{ text: 'Here.' }]);
    await bus.command('after', 'start', { prompt: 'Anybody?', model: other });
    await endOf(bus, 'after');
    expect(await Promise.all(ids.map(async (id) => (await journalOf(bus, id)).records.length))).toEqual(before);
    expect(provider.counts()).toEqual({ asked: 16, aborted: 16 });

    const { code, stdout } = await cox(['session', 'tree', 'root'], { env: { NATS_URL: bus.natsUrl } });
    expect(code).toBe(0);
    expect(stdout.match(/stopped \(cancelled\)/g)).toHaveLength(25);
    expect(stdout).toContain('25 sessions');
  } finally {
    await provider.stop();
  }
});

test('hosts that die while children work: every answer arrives once', { timeout: 180_000 }, async () => {
  const opened: (() => void)[] = [];
  const provider: ChatProvider = await startChatProvider(({ messages }) => {
    const prompt =
      messages
        .filter(({ role }) => role === 'user')
        .map(contentOf)
        .at(-1) ?? '';
    return { text: `did ${prompt}`, before_end: new Promise<void>((open) => opened.push(open)) };
  });
  try {
    const parts = ['one', 'two', 'three'];
    const root = await scripted([{ calls: parts.map((part) => delegate('mate', part)) }, { text: 'All done.' }]);
    const personas = [persona('mate', '', { model: { name: 'openai-compatible/mate', base_url: provider.url } })];
    await bus.command('root', 'start', { prompt: 'All of it.', model: root, permissions: ALLOW, personas });
    await until('all children have asked', () => provider.requests.length >= 3);
    await until('all calls are taken up', async () => (await journalOf(bus, 'root')).of('call_accepted').length === 3);
    const { attempt } = (await journalOf(bus, 'root')).records.at(-1) ?? { attempt: 'a' };
    const owner = attempt.startsWith('a') ? 0 : 1;
    await hosts[owner]?.kill();
    hosts[owner] = await startHost(bus, { COX_HOST_NAME: 'c' });
    const opening = setInterval(() => {
      for (const open of opened.splice(0)) open();
    }, 100);
    try {
      const journal = await endOf(bus, 'root');
      expect(journal.of('child_ended')).toHaveLength(3);
      const answers = journal.of('call_ended').map(({ status, result }) => [status, result.content[0]]);
      expect(new Set(answers.map((answer) => JSON.stringify(answer)))).toEqual(
        new Set(parts.map((part) => JSON.stringify(['ok', { type: 'text', text: `did ${part}` }]))),
      );
      expect(journal.of('agent_end')).toMatchObject([{ stop_reason: 'end_turn' }]);
    } finally {
      clearInterval(opening);
    }
  } finally {
    await provider.stop();
  }
});

test('two sessions that message each other are stopped at the bound, with a code', { timeout: 120_000 }, async () => {
  const answering = (to: string): ScriptTurn[] =>
    Array.from({ length: 20 }, () => [
      { calls: [{ tool: 'send_message', args: { to, body: 'And you?', mode: 'prompt' } }] },
      { text: 'Said.' },
    ]).flat();
  await bus.command('two', 'start', {
    prompt: 'Wait.',
    model: await scripted([{ text: 'Waiting.' }, ...answering('one')]),
    permissions: ALLOW,
  });
  await endOf(bus, 'two');
  await bus.command('one', 'start', { prompt: 'Begin.', model: await scripted(answering('two')), permissions: ALLOW });
  const sent = async () => {
    const journals = await Promise.all(['one', 'two'].map((id) => journalOf(bus, id)));
    return journals.flatMap((journal) => journal.of('call_ended'));
  };
  await until('the loop is stopped', async () => (await sent()).some(({ status }) => status === 'error'));
  const calls = await sent();
  expect(calls.filter(({ status }) => status === 'ok')).toHaveLength(BOUNDS.hopsMax);
  expect(calls.filter(({ status }) => status !== 'ok')).toMatchObject([
    { result: { detail: { code: 'too_many_hops' } } },
  ]);
  await Promise.all(
    ['one', 'two'].map((id) =>
      until(`${id} has ended`, async () => (await bus.client.session(id).newest())?.state === 'stopped'),
    ),
  );
});

test('a child asks for a tool that its parent may not use: refused by the parent’s rule, on tape', async () => {
  const hand = await scripted([{ calls: [{ tool: 'list_files', args: { path: '.' } }] }, { text: 'I may not.' }]);
  const root = await scripted([{ calls: [delegate('hand', 'Look around.')] }, { text: 'So be it.' }]);
  await bus.command('root', 'start', {
    prompt: 'Go.',
    model: root,
    personas: [persona('hand', hand)],
    permissions: { rules: [{ tool: 'list_files', action: 'deny' }, ...ALLOW.rules] },
  });
  const journal = await endOf(bus, 'root');
  const [begun] = journal.of('child_started');
  const child = await endOf(bus, begun?.session ?? '');
  expect(child.of('call_ended')).toMatchObject([
    { status: 'denied', denial: { by: 'rule', rule: 'session root: rules[0]' } },
  ]);
  expect(journal.of('call_ended')).toMatchObject([{ status: 'ok', result: { content: [{ text: 'I may not.' }] } }]);
});

test('reminders reach direct children, all below, or nobody: over three levels', async () => {
  const folder = await scratchFolder('reminders');
  const wait = { calls: [{ tool: 'run_command', args: { command: waitCommand('go') } }] };
  const hand = await scripted([{ text: 'Done.' }]);
  const mate = await scripted([{ calls: [delegate('hand', 'go')] }, { text: 'Done.' }]);
  const root = await scripted([wait, { calls: [delegate('mate', 'go')] }, { text: 'Done.' }]);
  await bus.command('root', 'start', {
    prompt: 'Go.',
    model: root,
    root: folder,
    personas: [persona('hand', hand), persona('mate', mate)],
    permissions: ALLOW,
  });
  await eventOf(bus, 'root', 'call_started');
  for (const propagate of ['session', 'all', 'none'])
    await bus.command('root', 'remind', { body: propagate, propagate });
  // Children inherit the reminders that the root has when it starts them.
  await until('the reminders', async () => (await bus.client.session('root').pending()).length === 3);
  await writeFile(join(folder, 'go'), '');
  const journal = await endOf(bus, 'root');
  const second = await endOf(bus, journal.of('child_started')[0]?.session ?? '');
  const third = await endOf(bus, second.of('child_started')[0]?.session ?? '');
  const born = (one: typeof second) => one.of('reminder_inherited').map(({ body, propagate }) => [body, propagate]);
  expect(journal.of('reminder_fired')).toHaveLength(3);
  expect(born(second)).toEqual([
    ['session', 'none'],
    ['all', 'all'],
  ]);
  expect(born(third)).toEqual([['all', 'all']]);
});
