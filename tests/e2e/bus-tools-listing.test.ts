/** `cox tool list`: which tools are announced, who serves them, versions side by side, other tenants, and taking one back. */
import { SERVED_LIVENESS, subjects } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { anything, type CalledTool, calledTools, calls, done, textOf, waiting } from './kit/called-tools.ts';
import { type Child, cox } from './kit/child.ts';
import { busAndHost } from './kit/fixture.ts';
import { endOf } from './kit/journal.ts';
import { toolModule } from './kit/tool-service.ts';
import { until } from './kit/until.ts';

const fixture = busAndHost();
const { serve, tool, start, fresh } = calledTools(fixture);

const coxTools = (...args: string[]) => cox(['tool', ...args, '--nats', fixture.bus.natsUrl]);

interface Listed {
  readonly name: string;
  readonly since: string;
  readonly digest: string;
  readonly instances: readonly { state: string; since: string; digest: string; running: number }[];
}

async function listed(name: string, ...more: string[]): Promise<Listed | undefined> {
  const { json } = await coxTools('list', '--json', ...more);
  return (json as unknown as Listed[]).find((one) => one.name === name);
}

/** The announcement of a version that no instance here serves. */
function foreign(name: string) {
  const traits = { idempotent: false, long_running: false, sequential: false, terminates: false };
  return { v: 1, since: '2026-01-01T00:00:00.000Z', name, description: 'x', input_schema: {}, traits };
}

/** Serves what is in another file under the name of a tool. */
async function another({ name }: CalledTool, rest: string) {
  const module = await toolModule(`defineTool({ name: '${name}', description: 'A tool.', ${rest} })`);
  return { module, service: await serve(module) };
}

test('shows who serves a tool, since when, and how many calls each works on; nobody has to know why', async () => {
  const begun = new Date().toISOString();
  const one = await tool(`${anything}, ${waiting('x')}`);
  await serve(one.module);
  const id = await start([{ calls: [1, 2, 3].map(() => ({ tool: one.name, args: {} })) }, done]);
  await until('the calls run', async () => (await one.module.log()).length === 3);
  const at = await until('the listing shows them', async () => {
    const found = await listed(one.name);
    return found?.instances.reduce((sum, { running }) => sum + running, 0) === 3 ? found : null;
  });
  expect(at.instances.map(({ state, digest }) => [state, digest])).toEqual([
    ['serving', at.digest],
    ['serving', at.digest],
  ]);
  expect(at.instances.every(({ since }) => since >= begun)).toBe(true);
  expect((await coxTools('list')).stdout).toMatch(new RegExp(`^${one.name}  [0-9a-f]{8}  since .*  2 instances$`, 'm'));
  await one.module.open();
  await endOf(fixture.bus, id);
});

test('an announcement that nobody serves is taken back; one that somebody serves is not', async () => {
  const one = await tool(`${anything}, execute: () => 'x'`);
  expect((await coxTools('remove', one.name)).stderr).toContain(`tool_serving: ${one.name} has 1 running instance;`);
  await one.service.terminate();
  expect((await coxTools('list')).stdout).toMatch(new RegExp(`^${one.name}  .*  no instances$`, 'm'));
  expect(await coxTools('remove', one.name)).toMatchObject({ code: 0 });
  await fixture.host.says(new RegExp(`"tool":"${one.name}".*a tool was removed`));
  expect(await listed(one.name)).toBeUndefined();
  expect((await coxTools('remove', one.name)).stderr).toContain('tool_not_registered');
  const journal = await endOf(fixture.bus, await start([calls(one.name), done]));
  expect(journal.of('call_ended')).toMatchObject([{ result: { detail: { code: 'unknown_tool' } } }]);
  // What was taken back can be announced again.
  await serve(one.module);
  expect(await listed(one.name)).toMatchObject({ instances: [{ state: 'serving' }] });
});

test('of two versions the one that was announced last is shown to models, and each instance checks by its own', async () => {
  const old = await tool(`inputSchema: z.object({ pieces: z.number() }), execute: ({ pieces }) => 'old ' + pieces`);
  const before = await listed(old.name);
  const now = await another(
    old,
    `inputSchema: z.object({ pieces: z.string() }), execute: ({ pieces }) => 'new ' + pieces`,
  );
  await now.service.says(/was announced as another version/, 'stderr');
  const both = await listed(old.name);
  expect(both?.digest).not.toBe(before?.digest);
  expect(new Set(both?.instances.map(({ digest }) => digest))).toEqual(new Set([before?.digest, both?.digest]));
  expect((await coxTools('list')).stdout).toContain(`another version, ${before?.digest}`);

  const id = await start([
    { calls: Array.from({ length: 24 }, () => ({ tool: old.name, args: { pieces: '2' } })) },
    done,
  ]);
  const texts = (await endOf(fixture.bus, id)).of('call_ended').map(({ result }) => textOf(result));
  // Who serves the old version takes calls too, and refuses what does not fit it.
  expect(texts.every((text) => text === 'new 2' || /do not fit/.test(text ?? ''))).toBe(true);
  await old.service.terminate();
  const alone = await endOf(fixture.bus, await start([calls(old.name, { pieces: '3' }), done]));
  expect(textOf(alone.of('call_ended')[0]?.result)).toBe('new 3');
});

test.each([
  ['stopped', (service: Child) => service.terminate()],
  ['killed', (service: Child) => service.kill()],
])(
  'when the last instance of the announced version is %s, one that somebody serves takes its place',
  async (_, end) => {
    const old = await tool(`inputSchema: z.object({ pieces: z.number() }), execute: ({ pieces }) => 'old ' + pieces`);
    await serve(old.module);
    const before = await listed(old.name);
    const now = await another(old, `inputSchema: z.object({ colour: z.string() }), execute: () => 'new'`);
    const rolled = await listed(old.name);
    // Since when it is announced, and not since when there is a tool of the name.
    expect(rolled?.since).toSatisfy((since: string) => since > (before?.since ?? ''));
    await end(now.service);
    const back = await until('the old version to be announced again', async () => {
      const found = await listed(old.name);
      return found?.digest === before?.digest ? found : null;
    });
    expect(back.since).toSatisfy((since: string) => since > (rolled?.since ?? ''));
    const journal = await endOf(fixture.bus, await start([calls(old.name, { pieces: 3 }), done]));
    expect(textOf(journal.of('call_ended')[0]?.result)).toBe('old 3');
    // It was not replaced, it has gone: when it starts again it is new again.
    const again = await serve(now.module);
    expect((await listed(old.name))?.digest).toBe(rolled?.digest);
    await again.terminate();
  },
);

test('a version whose only instance starts and stops within a moment does not stay announced', async () => {
  const one = await tool(`${anything}, execute: () => 'x'`);
  const before = await listed(one.name);
  // Time to have read the registry: the service looks at it once it has listened for as long as others take to be heard.
  await until(
    'two reads of the registry',
    async () => Date.now() - Date.parse(before?.since ?? '') > 2 * SERVED_LIVENESS.ttlMs,
  );
  await fixture.bus.publish(subjects.announcement('tools', 'default', one.name), JSON.stringify(foreign(one.name)));
  for (const state of ['serving', 'gone']) {
    const beat = { v: 1, state, since: new Date().toISOString(), version: '00000000', running: 0 };
    await fixture.bus.publish(subjects.heartbeat('tools', 'default', one.name, 'x'), JSON.stringify(beat));
  }
  await until('its own version', async () => (await listed(one.name))?.digest === before?.digest);
});

test('an old instance that starts again in the middle of a rollout does not undo it, and is there to roll back to', async () => {
  const old = await tool(`inputSchema: z.object({ pieces: z.number() }), execute: () => 'old'`);
  const before = await listed(old.name);
  const now = await another(old, `inputSchema: z.object({ colour: z.string() }), execute: () => 'new'`);
  const rolled = await listed(old.name);
  await old.service.kill();
  const again = await serve(old.module);
  await again.says(/was replaced by another served version/, 'stderr');
  expect(await listed(old.name)).toMatchObject({ digest: rolled?.digest, since: rolled?.since });
  await now.service.terminate();
  await until('the old version is announced', async () => (await listed(old.name))?.digest === before?.digest);
});

test('a version that was replaced and is announced again where it starts and nobody serves another', async () => {
  const old = await tool(`inputSchema: z.object({ pieces: z.number() }), execute: () => 'old'`);
  const before = await listed(old.name);
  const now = await another(old, `inputSchema: z.object({ colour: z.string() }), execute: () => 'new'`);
  await Promise.all([old.service.terminate(), now.service.terminate()]);
  await serve(old.module);
  expect((await listed(old.name))?.digest).toBe(before?.digest);
});

test('where nobody serves what is announced the listing says so, and what to do', async () => {
  const name = fresh('tool');
  const announcement = foreign(name);
  await fixture.bus.publish(subjects.announcement('tools', 'default', name), JSON.stringify(announcement));
  const beat = { v: 1, state: 'serving', since: announcement.since, version: '00000000', running: 0 };
  const beats = setInterval(
    () => void fixture.bus.publish(subjects.heartbeat('tools', 'default', name, 'x'), JSON.stringify(beat)),
    SERVED_LIVENESS.heartbeatMs,
  );
  try {
    const said = await until('the listing to say so', async () => {
      const { stdout } = await coxTools('list');
      return /no instance serves the announced version/.test(stdout) ? stdout : null;
    });
    expect(said).toContain('otherwise restart one');
  } finally {
    clearInterval(beats);
  }
});

test('a tool belongs to the tenant that it is served for', async () => {
  const name = fresh('tool');
  const module = await toolModule(
    `defineTool({ name: '${name}', description: 'A tool.', ${anything}, execute: () => 'x' })`,
  );
  await serve(module, '--tenant', 'red');
  expect(await listed(name)).toBeUndefined();
  expect(await listed(name, '--tenant', 'red')).toMatchObject({ instances: [{ state: 'serving' }] });
  const journal = await endOf(fixture.bus, await start([calls(name), done]));
  expect(journal.of('call_ended')).toMatchObject([{ result: { detail: { code: 'unknown_tool' } } }]);
});

test('what is no announcement is passed over, in the listing too', async () => {
  await fixture.bus.publish('$KV.cox_registry.tools.default.odd', 'no JSON');
  expect(await coxTools('list')).toMatchObject({ code: 0 });
  expect(await listed('odd')).toBeUndefined();
});

test.each([
  [['tool', 'drop'], 'list, remove'],
  [['tool', 'remove'], 'needs <name>'],
  [['tool', 'remove', 'a b'], 'needs the name'],
  [['tool', 'remove', 'read_file'], 'needs the name'],
  [['tool', 'list', 'x'], 'has an unexpected argument "x"'],
  [['tool', 'list', '--tenant', '*'], '--tenant takes'],
  [['serve', 'tools', 'x.ts', '--tenant', 'a.b'], '--tenant takes'],
  [['serve', 'sessions', '--tenant', 'red'], 'has no flag --tenant'],
])('cox %j is refused: %s', async (args, said) => {
  const ended = await cox([...args, '--nats', fixture.bus.natsUrl]);
  expect(ended).toMatchObject({ code: 2, stderr: expect.stringContaining(said) });
});
