/** Calls of bus tools when things stand still, die or are replaced: workers, hosts, and the server between them. */
import { type JournalRecord, subjects } from '@coxswain/protocol';
import type { Msg } from '@nats-io/nats-core';
import { expect, test } from 'vitest';
import { anything, calledTools, calls, done, textOf, waiting } from './kit/called-tools.ts';
import { busAndHost } from './kit/fixture.ts';
import { endOf, eventOf, journalOf } from './kit/journal.ts';
import { startHost } from './kit/sessions-host.ts';
import { until } from './kit/until.ts';

const fixture = busAndHost();
const { fresh, serve, tool, start } = calledTools(fixture);

const began = async (module: { log(): Promise<string[]> }, times = 1) =>
  until('the call runs', async () => (await module.log()).filter((line) => line === 'began').length === times);
const endings = async (id: string) => (await endOf(fixture.bus, id)).of('call_ended');

test('calls move away from a frozen worker: an idempotent one that it runs, and any that it has not taken', async () => {
  const notes = (text: string) => `execute: async (_, { abortSignal: signal }) => {
    note('began ' + process.pid);
    await opened(signal);
    note('ended ' + process.pid);
    return '${text}';
  }`;
  const repeatable = await tool(`${anything}, idempotent: true, ${notes('again')}`);
  const once = await tool(`${anything}, ${notes('once')}`);
  const others = [await serve(repeatable.module), await serve(once.module)];
  const taken = await start([calls(repeatable.name), done]);
  const startedCalls = async (module: typeof once.module) =>
    (await module.log()).filter((line) => line.startsWith('began')).map((line) => Number(line.split(' ')[1]));
  await until('the call runs', async () => (await startedCalls(repeatable.module)).length === 1);
  const [pid] = await startedCalls(repeatable.module);
  const frozen = [repeatable.service, ...others].find(({ process }) => process.pid === pid);
  frozen?.process.kill('SIGSTOP');
  once.service.process.kill('SIGSTOP');
  // About every second one of them lies in the frozen process's socket first.
  const ids = await Promise.all(Array.from({ length: 6 }, () => start([calls(once.name), done])));
  await Promise.all([once.module.open(), repeatable.module.open()]);
  for (const id of [taken, ...ids]) expect(await endings(id)).toMatchObject([{ status: 'ok' }]);
  expect(new Set(await startedCalls(repeatable.module)).size).toBe(2);
  frozen?.process.kill('SIGCONT');
  once.service.process.kill('SIGCONT');
  // What it finds in its socket is handled before it says that it ends.
  expect(await once.service.terminate()).toMatchObject({ code: 0 });
  expect(await startedCalls(once.module)).toHaveLength(6);
});

test('a host that is stopped does not wait for a call at a worker, and the next one has its result', async () => {
  const { name, module } = await tool(`${anything}, ${waiting('went on')}`);
  const ids = await Promise.all([1, 2, 3].map(() => start([calls(name), done])));
  await began(module, 3);
  const next = await startHost(fixture.bus);
  expect(await fixture.host.terminate()).toEqual({ code: 0, signal: null });
  // It has not waited for them: they run still.
  expect((await module.log()).filter((line) => line !== 'began')).toEqual([]);
  fixture.host = next;
  for (const id of ids) await eventOf(fixture.bus, id, 'owned', ({ epoch }) => epoch === 2);
  await module.open();
  for (const id of ids) expect(await endings(id)).toMatchObject([{ status: 'ok' }]);
  expect((await module.log()).sort()).toEqual(['began', 'began', 'began', 'ended', 'ended', 'ended']);
});

test('a host that stood still while another took over calls and aborts nothing any more', async () => {
  const { name, module } = await tool(`${anything}, ${waiting('the new owner’s')}`);
  const other = await startHost(fixture.bus);
  const id = await start([calls(name), done]);
  await began(module);
  // Whichever of the two has it stands still.
  const { attempt } = (await journalOf(fixture.bus, id)).records.at(-1) as JournalRecord;
  const isOthers = other.json.some(({ host }) => host === attempt);
  const [zombie, next] = isOthers ? [other, fixture.host] : [fixture.host, other];
  const orders: { want: string; epoch: number }[] = [];
  const listening = fixture.bus.bare.subscribe(`cox.default.tool.${name}.>`, {
    callback: (_, message) => void orders.push(message.json()),
  });
  zombie.process.kill('SIGSTOP');
  await eventOf(fixture.bus, id, 'owned', ({ epoch }) => epoch === 2);
  await until('the new owner to ask', () => orders.some(({ epoch }) => epoch === 2));
  zombie.process.kill('SIGCONT');
  await zombie.says('it releases its sessions to them');
  // What it says late is refused by its epoch where the call runs: said here in its name.
  const refused = await fixture.bus.bare.request(
    subjects.orders(subjects.tool('default', name)),
    JSON.stringify({ v: 1, session_id: id, key: (await keyOf(id)) ?? '', epoch: 1, want: 'abort', reason: 'late' }),
    { timeout: 5_000 },
  );
  expect(refused.json()).toMatchObject({ type: 'refused', code: 'stale_epoch' });
  await module.open();
  expect(await endings(id)).toMatchObject([{ status: 'ok' }]);
  expect(await module.log()).toEqual(['began', 'ended']);
  // The one above; the host itself has told nobody to stop.
  expect(orders.filter(({ want }) => want === 'abort')).toHaveLength(1);
  listening.unsubscribe();
  await zombie.kill();
  fixture.host = next;

  async function keyOf(session: string): Promise<string | undefined> {
    const [started] = (await journalOf(fixture.bus, session)).of('call_started');
    return started && `default.${session}.${started.effect_id}`;
  }
});

test('a worker that is killed while the function of a long-running tool runs leaves that call in doubt, as any other', async () => {
  const long = (traits: string) => tool(`${anything}, longRunning: true, ${traits} ${waiting('built')}`);
  const [once, again, orphan] = [await long(''), await long('idempotent: true,'), await long('')];
  const ids = await Promise.all([once, again, orphan].map(({ name }) => start([calls(name), done])));
  const [interrupted, repeated, taken] = ids as [string, string, string];
  for (const { module } of [once, again, orphan]) await began(module);
  await Promise.all([once.service.kill(), again.service.kill()]);
  expect(await endings(interrupted)).toMatchObject([
    { status: 'interrupted', result: { detail: { code: 'tool_interrupted' } } },
  ]);
  await serve(again.module);
  await began(again.module, 2);
  await again.module.open();
  expect(await endings(repeated)).toMatchObject([{ status: 'ok', result: { content: [{ text: 'built' }] } }]);
  // The host that has the session goes with its worker: the next one finds out as well.
  await Promise.all([fixture.host.kill(), orphan.service.kill()]);
  fixture.host = await startHost(fixture.bus);
  expect(await endings(taken)).toMatchObject([{ status: 'interrupted' }]);
  expect([await once.module.log(), await orphan.module.log()]).toEqual([['began'], ['began']]);
});

test('a worker that is killed leaves calls open whose function has answered LATER, until somebody brings their outcome', async () => {
  const { name, module, service } = await tool(`${anything}, longRunning: true, execute: () => {
    note('began');
    return LATER;
  }`);
  const id = await start([calls(name), done]);
  await eventOf(fixture.bus, id, 'call_accepted');
  await service.kill();
  const again = await serve(module);
  const [accepted] = (await journalOf(fixture.bus, id)).of('call_accepted');
  const [started] = (await journalOf(fixture.bus, id)).of('call_started');
  expect((await journalOf(fixture.bus, id)).of('call_ended')).toEqual([]);
  await fixture.bus.command(id, 'call_outcome', {
    call_id: accepted?.call_id,
    effect_id: started?.effect_id,
    epoch: 1,
    status: 'ok',
    result: { content: [{ type: 'text', text: 'brought by somebody' }], is_error: false },
  });
  expect(textOf((await endings(id))[0]?.result)).toBe('brought by somebody');
  expect(await module.log()).toEqual(['began']);
  await again.terminate();
});

test('code that throws outside of its call ends its process in order: one sentence, exit code 1, its calls in doubt', async () => {
  const { name, module, service } = await tool(`${anything}, execute: async (_, { abortSignal: signal }) => {
    note('began');
    setTimeout(() => { throw new Error('thrown by a timer'); }, 50);
    await opened(signal);
    return 'x';
  }`);
  const id = await start([calls(name), done]);
  await began(module);
  expect(await service.exited).toMatchObject({ code: 1 });
  expect(service.told).toMatch(
    /"code":"tool_crashed","message":"[^"]*thrown by a timer; the outcome of in-flight calls is unknown"/,
  );
  expect(service.told).toMatch(/"running":1.*the outcome of in-flight calls is unknown/);
  expect(service.told).not.toMatch(/^\s+at /m);
  expect(await endings(id)).toMatchObject([{ status: 'interrupted' }]);
});

test('an idempotent call whose worker is killed waits for the next one to start', async () => {
  const { name, module, service } = await tool(`${anything}, idempotent: true, ${waiting('again')}`);
  const id = await start([calls(name), done]);
  await began(module);
  await service.kill();
  // A call waits 15 seconds for an instance, and a process may need most of them to start on a busy machine.
  await serve(module);
  expect((await journalOf(fixture.bus, id)).of('call_ended')).toEqual([]);
  await module.open();
  expect(await endings(id)).toMatchObject([{ status: 'ok' }]);
  expect(await module.log()).toEqual(['began', 'began', 'ended']);
});

test('three instances share the calls of many sessions; one is killed and one drained meanwhile', async () => {
  const { name, module, service } = await tool(`${anything}, execute: async () => {
    note('began ' + process.pid);
    await new Promise((go) => setTimeout(go, 200));
    return 'x';
  }`);
  const [second] = [await serve(module), await serve(module)];
  const turns = Array.from({ length: 5 }, () => ({ calls: [1, 2, 3, 4].map(() => ({ tool: name, args: {} })) }));
  const ids = await Promise.all(Array.from({ length: 6 }, () => start([...turns, done])));
  await until('all three work', async () => new Set(await module.log()).size === 3);
  const drained = second?.terminate();
  await service.kill();
  expect(await drained).toEqual({ code: 0, signal: null });
  const all = (await Promise.all(ids.map(endings))).flat();
  expect(all).toHaveLength(6 * 20);
  // Calls of the killed instance are interrupted, if it ran any at that moment; no call fails, and none runs twice.
  expect(all.filter(({ status }) => status !== 'ok' && status !== 'interrupted')).toEqual([]);
  expect((await module.log()).length).toBeLessThanOrEqual(6 * 20);
});

test('a call whose worker dies of it before it has said so is in doubt, although others say that they do not know it', async () => {
  const name = fresh('tool');
  const { bare, publish } = fixture.bus;
  const traits = { idempotent: false, long_running: false, sequential: false, terminates: false };
  const announcement = {
    v: 1,
    since: new Date().toISOString(),
    name,
    description: 'x',
    input_schema: { type: 'object' },
  };
  let taken = 0;
  const said = (message: Msg, instance: string, type: 'ready' | 'unknown') => {
    const { key, hold } = message.json<{ key: string; hold?: number }>();
    bare.publish(
      message.reply ?? '',
      JSON.stringify({ v: 1, key, instance, type, ...(type === 'ready' ? { hold } : {}) }),
    );
  };
  bare.subscribe(subjects.tool('default', name), { callback: (_, message) => said(message, 'taker', 'ready') });
  // The instance that is ordered to begin is never heard of again.
  bare.subscribe(subjects.orderTo(subjects.tool('default', name), 'taker'), { max: 1, callback: () => void taken++ });
  bare.subscribe(subjects.orders(subjects.tool('default', name)), {
    callback(_, message) {
      if (message.reply) said(message, 'other', 'unknown');
    },
  });
  await publish(subjects.announcement('tools', 'default', name), JSON.stringify({ ...announcement, traits }));
  await fixture.host.says(new RegExp(`"tool":"${name}".*a tool is announced`));
  const id = await start([calls(name), done]);
  expect(await endings(id)).toMatchObject([{ status: 'interrupted' }]);
  expect(taken).toBe(1);
});
