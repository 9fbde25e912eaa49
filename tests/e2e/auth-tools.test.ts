/** Tools on a bus where every program has a key of its own: calls pass, and a worker reaches nothing but its own tools. */
import { HookAnnouncement, QUEUE_GROUPS, sessionRef, subjects, tenantSubjects, VERBS } from '@coxswain/protocol';
import { headers, type NatsConnection } from '@nats-io/nats-core';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { Child, COX_MAIN, cox } from './kit/child.ts';
import { type GuardedBus, type KeyOwner, startGuardedBus } from './kit/guarded-bus.ts';
import { policyFile } from './kit/hook-service.ts';
import { removeScratch, scratchFolder } from './kit/scratch.ts';
import { type ScriptTurn, scripted } from './kit/scripts.ts';
import { type ToolModule, toolModule } from './kit/tool-service.ts';
import { until } from './kit/until.ts';

let bus: GuardedBus;
let host: Child;
let hooks: Child;
const services: Child[] = [];

beforeAll(async () => {
  const workers = ['stock=stock_level,slow_level,build', 'evil=evil_tool'].flatMap((worker) => ['--worker', worker]);
  bus = await startGuardedBus(['default'], workers);
  host = await bus.startHost();
  const policy = await policyFile(`
    import { defineHooks } from '@coxswain/client';
    export default defineHooks({
      PreToolUse: { pattern: '*_level', handler: (_, { feedback }) => feedback('the hook was asked') },
    });
  `);
  hooks = await serve('hooks', policy, 'hooks', '--name', 'policy');
  await host.says(/"service":"policy".*hooks are registered/);
}, 300_000);
afterEach(async () => {
  await Promise.all(services.splice(0).map((service) => service.kill()));
});
afterAll(async () => {
  await host?.kill();
  await hooks?.kill();
  await bus?.stop();
  await removeScratch();
});

async function serve(what: 'tools' | 'hooks', file: string, owner: KeyOwner, ...more: string[]): Promise<Child> {
  const service = new Child(COX_MAIN, ['serve', what, file, '--json', ...more], { env: bus.env(owner) });
  await service.says('"type":"ready"');
  return service;
}

async function serveTools(owner: KeyOwner, tools: string, name: string): Promise<ToolModule & { service: Child }> {
  const module = await toolModule(tools);
  const service = await serve('tools', module.file, owner);
  services.push(service);
  await host.says(new RegExp(`"tool":"${name}".*a tool is announced`));
  return { ...module, service };
}

async function start(turns: readonly ScriptTurn[]) {
  const operator = await bus.client('operator');
  const permissions = { rules: [{ tool: '*', action: 'allow' as const }] };
  const root = await scratchFolder('root');
  return operator.startSession(
    { prompt: 'Go.', model: await scripted(turns), root, permissions },
    { wait: 'accepted' },
  );
}
type Session = Awaited<ReturnType<typeof start>>;

async function callsOf(session: Session) {
  const ended: { tool: string; status: string; result: unknown }[] = [];
  for await (const { events } of session.records()) {
    for (const event of events) if (event.type === 'call_ended') ended.push(event);
    if (events.some(({ type }) => type === 'agent_end')) break;
  }
  return ended;
}

const calls = (...names: string[]): ScriptTurn => ({ calls: names.map((tool) => ({ tool, args: {} })) });
const done: ScriptTurn = { text: 'Done.' };
const tool = (name: string, rest: string) =>
  `defineTool({ name: '${name}', description: 'A tool.', inputSchema: z.object({}), ${rest} })`;
const answering = (text: string) => ({ status: 'ok', result: { content: [{ text }] } });

test('host, client, hook service and tool worker each have a key: calls, progress, outcomes, aborts and probes pass', async () => {
  const stock = await serveTools(
    'workers/stock',
    `[
      ${tool('stock_level', "execute: (_, { progress, feedback }) => { progress('looking'); feedback('old figures'); return 'seven'; }")},
      ${tool('slow_level', "execute: async (_, { abortSignal: signal }) => { note('began'); await opened(signal); note(signal.aborted ? 'aborted' : 'ended'); return 'slow'; }")},
      ${tool('build', "longRunning: true, execute: async () => 'built'")},
    ]`,
    'build',
  );
  const watched: string[] = [];
  const told: string[] = [];
  (await bus.as('viewer')).subscribe(tenantSubjects.deltas('default'), {
    callback: (_, message) => void watched.push(message.string()),
  });

  const quick = await start([calls('stock_level'), calls('build'), done]);
  expect(await callsOf(quick)).toMatchObject([answering('seven'), answering('built')]);
  expect(watched.join()).toContain('looking');
  for await (const { events } of quick.records()) {
    for (const event of events) if (event.type === 'feedback_received') told.push(event.body);
    if (events.some(({ type }) => type === 'agent_end')) break;
  }
  expect(told.sort()).toEqual(['old figures', 'the hook was asked']);

  // The host is killed: the next one probes, and attaches to what runs.
  const running = await start([calls('slow_level'), done]);
  await until('the call runs', async () => (await stock.log()).length === 1);
  await host.kill();
  host = await bus.startHost();
  const cancelled = await start([calls('slow_level'), done]);
  await until('the other call runs', async () => (await stock.log()).length === 2);
  await cancelled.cancel('enough');
  await until('it was told to stop', async () => (await stock.log()).includes('aborted'));
  await stock.open();
  expect(await callsOf(running)).toMatchObject([answering('slow')]);
  expect((await stock.log()).sort()).toEqual(['aborted', 'began', 'began', 'ended']);

  // The worker is killed: the call of nobody is known by the server to be nobody's.
  expect(await stock.service.terminate()).toMatchObject({ code: 0 });
  expect(await callsOf(await start([calls('stock_level'), done]))).toMatchObject([
    { status: 'error', result: { detail: { code: 'tool_unavailable' } } },
  ]);
  // But for what clients look for first, nobody asks for more than it may.
  expect((await bus.refusals()).filter((line) => !/STREAM.(INFO|MSG.GET).COX_/.test(line))).toEqual([]);
});

test('a worker whose process is killed is missed, also from another account', async () => {
  const stock = await serveTools(
    'workers/stock',
    tool(
      'slow_level',
      "execute: async (_, { abortSignal: signal }) => { note('began'); await opened(signal); return 'slow'; }",
    ),
    'slow_level',
  );
  const session = await start([calls('slow_level'), done]);
  await until('the call runs', async () => (await stock.log()).length === 1);
  await stock.service.kill();
  expect(await callsOf(session)).toMatchObject([
    { status: 'interrupted', result: { detail: { code: 'tool_interrupted' } } },
  ]);
  expect(await stock.log()).toEqual(['began']);
});

test('instances with the key of a worker hear which versions others serve, and put theirs in the place of one that has gone', async () => {
  const one = tool('stock_level', "execute: () => 'old'");
  const old = await serveTools('workers/stock', one, 'stock_level');
  const now = await toolModule(one.replace('A tool.', 'Another.').replace('old', 'new'));
  const next = await serve('tools', now.file, 'workers/stock');
  services.push(next);
  await next.says(/was announced as another version/, 'stderr');
  await next.kill();
  await old.service.says(/which has no instances: this version is now in use/, 'stderr');
});

test('who serves a tool that its key is not for is told so once', async () => {
  const module = await toolModule(tool('stock_level', "execute: () => 'x'"));
  const ended = await cox(['serve', 'tools', module.file], { env: bus.env('workers/evil') });
  expect(ended.code).toBe(1);
  expect(ended.stderr.trim().split('\n')).toEqual([expect.stringContaining('not_permitted')]);
});

test('a worker with the key of one tool answers no other’s calls, announces no other, publishes no command', async () => {
  const stock = await serveTools(
    'workers/stock',
    tool(
      'slow_level',
      "execute: async (_, { abortSignal: signal }) => { note('began'); await opened(signal); return 'honest'; }",
    ),
    'slow_level',
  );
  const admin = await bus.as('admin');
  const registry = async () => {
    const info = await admin.request('$JS.API.STREAM.INFO.KV_cox_registry', '{"subjects_filter":">"}');
    return Object.keys(info.json<{ state: { subjects: Record<string, number> } }>().state.subjects).sort();
  };
  const before = await registry();
  expect(before).toContain(subjects.announcement('tools', 'default', 'slow_level'));

  const attacker = await bus.as('workers/evil');
  const refused = refusalsOf(attacker);
  const heard: string[] = [];
  const listen = (subject: string, queue?: string) =>
    attacker.subscribe(subject, {
      ...(queue === undefined ? {} : { queue }),
      callback: (error, message) => {
        if (!error) heard.push(message.subject);
      },
    });
  const victim = subjects.tool('default', 'slow_level');
  listen(victim);
  listen(victim, QUEUE_GROUPS.tools);
  listen(subjects.orders(subjects.tool('default', 'slow_level')));
  listen(subjects.orderTo(subjects.tool('default', 'slow_level'), 'x'));
  listen(tenantSubjects.allRequests('tools', 'default'));
  listen(tenantSubjects.heartbeats('tools', 'default', 'slow_level'));
  listen('_R_.>');
  listen('_INBOX.>');

  const session = await start([calls('slow_level'), done]);
  await until('the call runs', async () => (await stock.log()).length === 1);
  const forbidden = [
    ...VERBS.map((verb) => subjects.command(sessionRef(session.id, 'default'), verb)),
    subjects.command(sessionRef(session.id, 'default'), 'feedback'),
    subjects.announcement('tools', 'default', 'slow_level'),
    subjects.heartbeat('tools', 'default', 'slow_level', 'x'),
    subjects.announcement('tools', 'other', 'evil_tool'),
    subjects.announcement('hooks', 'default', 'policy'),
    subjects.heartbeat('hooks', 'default', 'policy', 'x'),
    subjects.journal(sessionRef(session.id, 'default')),
    victim,
    subjects.orders(subjects.tool('default', 'slow_level')),
    '_R_.x.y',
    '_INBOX.host.x.q',
    '$JS.API.STREAM.PURGE.KV_cox_registry',
    '$JS.API.STREAM.MSG.DELETE.KV_cox_registry',
    `$JS.API.DIRECT.GET.KV_cox_registry.${subjects.announcement('tools', 'default', 'slow_level')}`,
  ];
  for (const subject of forbidden) attacker.publish(subject, 'hostile');
  attacker.publish('nobody.may', 'x');
  await until('the last refusal', () => refused.has('publish nobody.may'));
  expect(forbidden.filter((subject) => !refused.has(`publish ${subject}`))).toEqual([]);

  // Its own key it may write; by a header it can have nobody else's deleted.
  const own = subjects.announcement('tools', 'default', 'evil_tool');
  for (const rollup of ['all', 'sub']) {
    const head = headers();
    head.set('Nats-Rollup', rollup);
    const { error } = (await attacker.request(own, 'x', { headers: head, timeout: 5_000 })).json<{ error?: object }>();
    expect(error).toBeDefined();
  }
  // An outcome that is brought for a call which is not long-running is refused by its session.
  const outcome = {
    call_id: 'c1_1',
    effect_id: '3-0',
    epoch: 1,
    status: 'ok',
    result: { content: [], is_error: false },
  };
  await attacker.request(subjects.command(sessionRef(session.id, 'default'), 'call_outcome'), JSON.stringify(outcome));
  await stock.open();
  expect(await callsOf(session)).toMatchObject([answering('honest')]);
  expect(await registry()).toEqual(before);
  expect(heard).toEqual([]);
});

test('a hook service cannot empty the registry by a header, nor hear questions outside its group', async () => {
  const attacker = await bus.as('hooks');
  const refused = refusalsOf(attacker);
  const head = headers();
  head.set('Nats-Rollup', 'all');
  const announcement: HookAnnouncement = HookAnnouncement.parse({
    v: 1,
    service: 'evil',
    since: '2026-01-01T00:00:00.000Z',
    registrations: [],
  });
  const said = await attacker.request(subjects.announcement('hooks', 'default', 'evil'), JSON.stringify(announcement), {
    headers: head,
    timeout: 5_000,
  });
  expect(said.json()).toMatchObject({ error: { description: expect.stringContaining('rollup') } });
  attacker.subscribe(subjects.hook('default', 'policy'), { callback: () => undefined });
  await until('it is refused', () => refused.has(`subscription ${subjects.hook('default', 'policy')}`));
});

test.each([
  [['--worker', 'stock'], 'it takes NAME=TOOL'],
  [['--worker', 'stock='], 'it takes NAME=TOOL'],
  [['--worker', 'st.ock=a'], 'its name'],
  [['--worker', 'stock=a,b c'], 'its tool'],
  [['--worker', 'stock=a,*'], 'its tool'],
  [['--worker', 'stock=read_file'], 'its tool'],
  [['--worker', 'stock=a,a'], 'twice'],
  [['--worker', 'stock=a', '--worker', 'stock=b'], 'twice'],
  [['--worker', 'red/stock=a'], 'unknown tenant'],
  [['--tenant', 'red', '--tenant', 'blue', '--worker', 'stock=a'], 'needs a tenant'],
])('cox admin auth %j is refused: %s', async (args, said) => {
  const ended = await cox(['admin', 'auth', '--out', 'x', ...args], { cwd: await scratchFolder('bad') });
  expect(ended.code).toBe(2);
  expect(ended.stderr).toContain(said);
});

/** What the server has refused this connection. */
function refusalsOf(nc: NatsConnection): Set<string> {
  const refused = new Set<string>();
  void (async () => {
    for await (const status of nc.status()) {
      const { error } = status as { error?: { operation?: string; subject?: string } };
      if (status.type === 'error' && error?.operation) refused.add(`${error.operation} ${error.subject}`);
    }
  })();
  return refused;
}
