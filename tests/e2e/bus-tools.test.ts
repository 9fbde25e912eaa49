/** Tools that other processes serve: shared, aborted, drained, killed together with hosts, garbled and forged. */
import { writeFile } from 'node:fs/promises';
import { subjects } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { anything, calledTools, calls, done, textOf } from './kit/called-tools.ts';
import { cox } from './kit/child.ts';
import { busAndHost } from './kit/fixture.ts';
import { endOf, eventOf, journalOf } from './kit/journal.ts';
import { startHost } from './kit/sessions-host.ts';
import { toolModule } from './kit/tool-service.ts';
import { until } from './kit/until.ts';

const fixture = busAndHost();
const { fresh, serve, tool, start } = calledTools(fixture);

test('a tool in another process is called with typed arguments, and shows progress and feedback', async () => {
  const { name } = await tool(`
    inputSchema: z.object({ article: z.string(), pieces: z.number().default(2) }),
    execute({ article, pieces }, { progress, feedback, idempotencyKey, epoch }) {
      progress('looking up ' + article);
      feedback('figures of last night');
      return pieces + ' ' + article + ' ' + idempotencyKey + ' ' + epoch;
    }`);
  const deltas: unknown[] = [];
  fixture.bus.bare.subscribe('cox.default.deltas.*', { callback: (_, message) => void deltas.push(message.json()) });
  const id = await start([calls(name, { article: 'rope' }), calls(name, { article: 7 }), done]);
  const journal = await endOf(fixture.bus, id);
  const [first, second] = journal.of('call_ended');
  expect(first).toMatchObject({ tool: name, status: 'ok' });
  expect(textOf(first?.result)).toMatch(new RegExp(`^2 rope default\\.${id}\\.\\d+-\\d+ 1$`));
  expect(second).toMatchObject({ status: 'error', result: { detail: { code: 'invalid_call_arguments' } } });
  expect(journal.of('feedback_received')).toMatchObject([{ body: 'figures of last night' }]);
  expect(deltas).toContainEqual(expect.objectContaining({ kind: 'progress', text: 'looking up rope', tool: name }));
  const [changed] = journal.of('tools_changed');
  expect(changed?.tools.find((one) => one.name === name)).toMatchObject({
    source: 'bus',
    input_schema: { required: ['article'] },
  });
});

test('without a rule a bus tool asks, and a persona chooses among them by name', async () => {
  const { name, module } = await tool(`${anything}, execute: () => { note('ran'); return 'x'; }`);
  const asking = await start([calls(name), done], { permissions: { rules: [] } });
  await eventOf(fixture.bus, asking, 'approval_requested');
  expect(await module.log()).toEqual([]);
  await fixture.bus.command(asking, 'cancel', {});
  await endOf(fixture.bus, asking);

  const without = await start([calls(name), done], { tools: { allow: ['*'], deny: ['tool_*'] } });
  const journal = await endOf(fixture.bus, without);
  expect(journal.of('call_ended')).toMatchObject([{ status: 'error', result: { detail: { code: 'unknown_tool' } } }]);
});

test('a bus tool decides by the arguments whether a person must approve the call, whatever the rules allow', async () => {
  const { name, module } = await tool(`
    inputSchema: z.object({ cents: z.number() }),
    needsApproval: ({ cents }) => { note('asked ' + cents); return cents > 100; },
    execute: ({ cents }) => { note('paid ' + cents); return 'x'; }`);
  const id = await start([calls(name, { cents: 100 }), calls(name, { cents: 101 }), done]);
  const { call_id, requested_by } = await eventOf(fixture.bus, id, 'approval_requested');
  expect(requested_by).toBe('rule:needs_approval');
  expect(await module.log()).toEqual(['asked 100', 'paid 100', 'asked 101']);
  await fixture.bus.command(id, 'approve', { call_id, decision: 'allow' });
  await endOf(fixture.bus, id);
  expect((await module.log()).at(-1)).toBe('paid 101');
});

test('two instances share the calls, and a third of the same name changes nothing of what is announced', async () => {
  const { name, module } = await tool(`${anything}, execute: async (_, { abortSignal: signal }) => {
    note(String(process.pid));
    await opened(signal);
    return 'x';
  }`);
  await serve(module);
  await serve(module);
  const batch = Array.from({ length: 24 }, () => ({ tool: name, args: {} }));
  const id = await start([{ calls: batch }, done]);
  await until('all calls run', async () => (await module.log()).length === 24);
  expect(new Set(await module.log()).size).toBeGreaterThan(1);
  await module.open();
  const journal = await endOf(fixture.bus, id);
  expect(journal.of('call_ended').every(({ status }) => status === 'ok')).toBe(true);
});

test('the host is killed in the middle of a call: it runs once, and the next host has its result', async () => {
  const { name, module } = await tool(`${anything}, execute: async (_, { abortSignal: signal }) => {
    note('began');
    await opened(signal);
    return 'the one result';
  }`);
  const running = await start([calls(name), done]);
  await until('the call runs', async () => (await module.log()).length === 1);
  await fixture.host.kill();
  fixture.host = await startHost(fixture.bus);
  await eventOf(fixture.bus, running, 'owned', ({ epoch }) => epoch === 2);
  await module.open();
  const journal = await endOf(fixture.bus, running);
  expect(journal.of('call_ended')).toMatchObject([{ status: 'ok', result: { content: [{ text: 'the one result' }] } }]);
  expect(await module.log()).toEqual(['began']);
});

test('the host is killed, and the call ends before the next one is there: the ledger has its result', async () => {
  const { name, module } = await tool(`${anything}, execute: async (_, { abortSignal: signal }) => {
    note('began');
    await opened(signal);
    note('ended');
    return 'kept';
  }`);
  const id = await start([calls(name), done]);
  await until('the call runs', async () => (await module.log()).length === 1);
  await fixture.host.kill();
  await module.open();
  await until('the call has ended', async () => (await module.log()).length === 2);
  fixture.host = await startHost(fixture.bus);
  const journal = await endOf(fixture.bus, id);
  expect(journal.of('call_ended')).toMatchObject([{ status: 'ok', result: { content: [{ text: 'kept' }] } }]);
  expect(await module.log()).toEqual(['began', 'ended']);
});

test('a host that is told to stop leaves the call where it runs', async () => {
  const { name, module } = await tool(`${anything}, execute: async (_, { abortSignal: signal }) => {
    note('began');
    await opened(signal);
    note(signal.aborted ? 'aborted' : 'ended');
    return 'went on';
  }`);
  const id = await start([calls(name), done]);
  await until('the call runs', async () => (await module.log()).length === 1);
  await fixture.host.terminate();
  fixture.host = await startHost(fixture.bus);
  await module.open();
  const journal = await endOf(fixture.bus, id);
  expect(journal.of('call_ended')).toMatchObject([{ status: 'ok', result: { content: [{ text: 'went on' }] } }]);
  expect(await module.log()).toEqual(['began', 'ended']);
});

test('the worker is killed in the middle of a call: it is in doubt, and only an idempotent one runs again', async () => {
  const slow = `execute: async (_, { abortSignal: signal }) => { note('began'); await opened(signal); return 'x'; }`;
  const [once, again] = [await tool(`${anything}, ${slow}`), await tool(`${anything}, idempotent: true, ${slow}`)];
  const interrupted = await start([calls(once.name), done]);
  const repeated = await start([calls(again.name), done]);
  for (const { module } of [once, again]) await until('it runs', async () => (await module.log()).length === 1);
  await Promise.all([once.service.kill(), again.service.kill()]);
  await serve(again.module);
  await again.module.open();
  expect((await endOf(fixture.bus, interrupted)).of('call_ended')).toMatchObject([
    { status: 'interrupted', result: { detail: { code: 'tool_interrupted' } } },
  ]);
  expect((await endOf(fixture.bus, repeated)).of('call_ended')).toMatchObject([{ status: 'ok' }]);
  expect(await once.module.log()).toEqual(['began']);
  expect(await again.module.log()).toEqual(['began', 'began']);
});

test('a tool that nobody serves any more stays in the list, and a call of it is unavailable', async () => {
  const { name, service } = await tool(`${anything}, execute: () => 'x'`);
  await service.terminate();
  const id = await start([calls(name), done]);
  const journal = await endOf(fixture.bus, id);
  expect(journal.of('tools_changed')[0]?.tools.map((one) => one.name)).toContain(name);
  expect(journal.of('call_ended')).toMatchObject([
    { status: 'error', result: { detail: { code: 'tool_unavailable' } } },
  ]);
});

test('a cancelled call reaches the signal of its function', async () => {
  const { name, module } = await tool(`${anything}, execute: async (_, { abortSignal: signal }) => {
    note('began');
    await opened(signal);
    note('aborted: ' + signal.reason.message);
    throw new Error('stopped');
  }`);
  const id = await start([calls(name), done]);
  await until('the call runs', async () => (await module.log()).length === 1);
  await fixture.bus.command(id, 'cancel', { reason: 'enough' });
  const journal = await endOf(fixture.bus, id);
  expect(journal.of('call_ended')).toMatchObject([{ status: expect.stringMatching(/cancelled|aborted/) }]);
  expect(await until('it heard', async () => (await module.log())[1])).toContain('enough');
});

test('a service that is told to stop answers what it has, and takes nothing more', async () => {
  const { name, module, service } = await tool(`${anything}, execute: async (_, { abortSignal: signal }) => {
    note('began');
    await opened(signal);
    return 'finished';
  }`);
  const id = await start([calls(name), done]);
  await until('the call runs', async () => (await module.log()).length === 1);
  const ended = service.terminate();
  await service.says('tool service stops', 'stderr');
  await module.open();
  expect(await ended).toEqual({ code: 0, signal: null });
  expect((await endOf(fixture.bus, id)).of('call_ended')).toMatchObject([
    { status: 'ok', result: { content: [{ text: 'finished' }] } },
  ]);
});

test('a long-running call outlives its host, and its outcome comes as a command', async () => {
  const { name, module } = await tool(`${anything}, longRunning: true, execute: async (_, { abortSignal: signal }) => {
    note('began');
    await opened(signal);
    note('ended');
    return 'built';
  }`);
  const id = await start([calls(name), done]);
  await until('the call runs', async () => (await module.log()).length === 1);
  await fixture.host.kill();
  await module.open();
  await until('the call has ended', async () => (await module.log()).length === 2);
  fixture.host = await startHost(fixture.bus);
  const journal = await endOf(fixture.bus, id);
  expect(journal.of('call_ended')).toMatchObject([
    { status: 'ok', result: { content: [{ text: 'built' }] }, command_id: expect.stringMatching(/^outcome-/) },
  ]);
  expect(await module.log()).toEqual(['began', 'ended']);
});

test('an older owner of the session is refused once a newer one has asked', async () => {
  const { name, module } = await tool(`${anything}, execute: () => { note('ran'); return 'x'; }`);
  const ask = async (subject: string, what: object) =>
    (
      await fixture.bus.bare.request(subject, JSON.stringify({ v: 1, session_id: 'z', ...what }), { timeout: 5_000 })
    ).json();
  const question = (effect: string, epoch: number) => ({ key: `default.z.${effect}`, epoch, call_id: 'c', args: {} });
  const at = subjects.tool('default', name);
  expect(
    await ask(subjects.orders(subjects.tool('default', name)), { want: 'probe', key: 'default.z.1-1', epoch: 5 }),
  ).toMatchObject({ type: 'unknown' });
  expect(await ask(at, question('1-1', 4))).toMatchObject({ type: 'refused', code: 'stale_epoch' });
  expect(await ask(at, question('1-2', 5))).toMatchObject({ type: 'running' });
  const stop = { want: 'abort', key: 'default.z.1-2', epoch: 4, reason: 'a zombie says so' };
  expect(await ask(subjects.orders(subjects.tool('default', name)), stop)).toMatchObject({ type: 'refused' });
  // The same key again is answered from the ledger.
  await until('it ran', async () => (await module.log()).length === 1);
  expect(await ask(at, question('1-2', 5))).toMatchObject({ type: 'ended', status: 'ok' });
  expect(await module.log()).toEqual(['ran']);
});

test('a worker that answers garbage, for others, twice and too much does no harm', async () => {
  const name = fresh('tool');
  const { bare } = fixture.bus;
  const announcement = {
    v: 1,
    since: new Date().toISOString(),
    name,
    description: 'A liar.',
    input_schema: { type: 'object' },
    traits: { idempotent: false, long_running: false, sequential: false, terminates: false },
  };
  bare.subscribe(subjects.tool('default', name), {
    callback(_, message) {
      const { key } = message.json<{ key: string }>();
      const say = (what: object | string) =>
        bare.publish(message.reply as string, typeof what === 'string' ? what : JSON.stringify(what));
      const ended = (text: string) => ({
        v: 1,
        key,
        instance: 'liar',
        type: 'ended',
        status: 'ok',
        result: { content: [{ type: 'text', text }], is_error: false },
      });
      say('no JSON');
      say('{"__proto__": {"type": "ended"}}');
      say({ ...ended('of another session'), key: 'default.other.1-1' });
      say({ v: 1, key, instance: 'liar', type: 'progress', text: 'y'.repeat(5_000) });
      say(ended('the answer'));
      say(ended('another answer'));
    },
  });
  await fixture.bus.publish(subjects.announcement('tools', 'default', name), JSON.stringify(announcement));
  // What is announced so that it would take a host's own place is not taken.
  await fixture.bus.publish(
    '$KV.cox_registry.tools.default.read_file',
    JSON.stringify({ ...announcement, name: 'read_file' }),
  );
  await fixture.host.says(new RegExp(`"tool":"${name}".*a tool is announced`));
  await fixture.host.says(/tools\.default\.read_file.*invalid key of tools/);
  const id = await start([calls(name), done]);
  const journal = await endOf(fixture.bus, id);
  expect(journal.of('call_ended')).toMatchObject([{ status: 'ok', result: { content: [{ text: 'the answer' }] } }]);
  expect((await journalOf(fixture.bus, id)).of('tools_changed')[0]?.tools).toContainEqual(
    expect.objectContaining({ name: 'read_file', source: 'built_in' }),
  );
});

test('a changed module is served without a restart, and one that is broken is not', async () => {
  const { name, module, service } = await tool(`${anything}, execute: () => 'one'`);
  await writeFile(module.file, 'export default {{{');
  await service.says('the new version was rejected', 'stderr');
  const text = `export default { name: '${name}', description: 'Another.', inputSchema: { type: 'object' }, execute: () => 'two' };`;
  await writeFile(module.file, text);
  await service.says('tools reloaded', 'stderr');
  const id = await start([calls(name), done]);
  expect((await endOf(fixture.bus, id)).of('call_ended')).toMatchObject([{ result: { content: [{ text: 'two' }] } }]);
});

test.each([
  ['no tool', 'export default 7;', 'tool_module_invalid'],
  [
    'a name of the host’s',
    "export default { name: 'read_file', description: '', inputSchema: {}, execute() {} };",
    'tool_definition_invalid',
  ],
  [
    'a schema that is none',
    "export default { name: 'x', description: '', inputSchema: { type: 'nonsense' }, execute() {} };",
    'inputSchema must describe an object',
  ],
  [
    'an unknown setting',
    "export default { name: 'x', description: '', inputSchema: {}, idempotnt: true, execute() {} };",
    'idempotnt',
  ],
])('a module with %s is refused by name before anything is announced', async (_, text, said) => {
  const module = await toolModule('0');
  await writeFile(module.file, text);
  const ended = await cox(['serve', 'tools', module.file, '--nats', fixture.bus.natsUrl]);
  expect(ended.code).toBe(1);
  expect(ended.stderr).toContain(said);
});
