/** Coxswain within a program, in memory: what `run` and `startCoxswain` add to the client and to the session host. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as z from 'zod';
import { allow, definePersona, defineTool, deny, run, startCoxswain } from '../src/mod.ts';

const env = {};
const models = {
  'test/greeter': { turns: [{ text: 'Ahoy!' }, { text: 'Ahoy again.' }] },
  'test/payer': { turns: [{ calls: [{ tool: 'pay', args: { amount: 5 } }] }, { text: 'Done.' }] },
};
const greeter = definePersona({ name: 'greeter', model: 'test/greeter' });
const payer = definePersona({
  name: 'payer',
  model: 'test/payer',
  permissions: { rules: [{ tool: 'pay', action: 'ask' }] },
});
const paid: number[] = [];
const pay = defineTool({
  name: 'pay',
  description: 'Pays an amount.',
  inputSchema: { type: 'object', properties: { amount: { type: 'number' } }, required: ['amount'] },
  execute: ({ amount }) => {
    paid.push(amount as number);
    return `paid ${amount}`;
  },
});

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cox-embed-'));
});
afterAll(() => rm(folder, { recursive: true }));

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const one of items) all.push(one);
  return all;
}

describe('run() in memory', () => {
  test('returns the result of the run', async () => {
    expect(await run(greeter, 'Say hello.', { models, env })).toMatchObject({
      run: 1,
      stopReason: 'end_turn',
      text: 'Ahoy!',
    });
  });

  test('returns the value of an output schema, typed by Zod', async () => {
    const answers = [{ text: 'Five.' }, { text: '```json\n{"amount": 5}\n```' }];
    const output = z.object({ amount: z.number() });
    const settings = { models: { 'test/clerk': { turns: answers } }, env };
    const byStart = await run(definePersona({ name: 'clerk', model: 'test/clerk' }), 'How much?', {
      ...settings,
      output,
    });
    expect(byStart).toMatchObject({ output: { amount: 5 }, turns: 2 });
    const byPersona = await run(definePersona({ name: 'clerk', model: 'test/clerk', output }), 'How much?', settings);
    expect(byPersona.output?.amount.toFixed(2)).toBe('5.00');
  });

  test('denies calls that need an approval, unless onApproval decides them', async () => {
    const settings = { models, tools: [pay], env };
    await run(payer, 'Pay five.', settings);
    expect(paid).toEqual([]);
    await run(payer, 'Pay five.', { ...settings, onApproval: (approval) => approval.allow({ args: { amount: 3 } }) });
    expect(paid).toEqual([3]);
  });

  test('runs the code of a persona: its hooks, and the tools of its module', async () => {
    const refused = definePersona({
      name: 'refused',
      model: 'test/payer',
      permissions: { default: 'allow' },
      hooks: [{ event: 'PreToolUse', handler: () => deny('not today') }],
    });
    paid.length = 0;
    await run(refused, 'Pay five.', { models, tools: [pay], env });
    expect(paid).toEqual([]);

    const module = join(folder, 'clerk.mjs');
    await writeFile(
      module,
      `export default { name: 'clerk', model: 'test/payer', permissions: { default: 'allow' } };
       export const tools = [{ name: 'pay', description: 'Pays.', inputSchema: { type: 'object' }, execute: () => 'paid by the module' }];`,
    );
    await using coxswain = await startCoxswain({ bus: 'memory', models, env });
    await coxswain.run(module, 'Pay five.', { sessionId: 'clerk' });
    const events = (await collect(coxswain.session('clerk').journal())).flatMap(({ record }) => record.events);
    expect(events.find(({ type }) => type === 'call_ended')).toMatchObject({
      status: 'ok',
      result: { content: [{ text: 'paid by the module' }] },
    });
  });

  test('cancels the run, and rejects, where onApproval throws or the signal aborts', async () => {
    const reason = new Error('the caller has left');
    const settings = { models, tools: [pay], env };
    await expect(
      run(payer, 'Pay five.', {
        ...settings,
        onApproval: () => {
          throw reason;
        },
      }),
    ).rejects.toBe(reason);
    const stop = new AbortController();
    const aborted = run(payer, 'Pay five.', {
      ...settings,
      signal: stop.signal,
      onApproval: () => stop.abort(),
    });
    await expect(aborted).rejects.toMatchObject({ code: 'aborted' });
  });
});

describe('startCoxswain() in memory', () => {
  test('has the sessions of a client: streams, approvals, messages, lists', async () => {
    await using coxswain = await startCoxswain({
      bus: 'memory',
      models,
      env,
      tools: [pay],
      personas: [greeter, payer],
      hooks: { PreToolUse: { pattern: 'pay', handler: () => allow() } },
    });
    const session = await coxswain.startSession({ persona: 'greeter', prompt: 'Hello.' });
    expect((await collect(session.textStream())).join('')).toBe('Ahoy!');
    const { receipt } = await session.say('Hello again.', { wait: 'accepted' });
    expect(receipt).toMatchObject({ became: 'prompt' });
    expect(await session.result()).toMatchObject({ run: 2, text: 'Ahoy again.' });
    const followup = await session.steer('For the next run.', { wait: 'delivered' });
    expect(followup.receipt).toMatchObject({ stage: 'accepted', pendingForNextRun: true });
    await expect(session.resume({ wait: 'accepted' })).rejects.toMatchObject({ code: 'not_running' });
    expect(await session.cancelCall('c9')).toMatchObject({ outcome: 'not_found', callId: 'c9' });

    const listed = await collect(coxswain.sessions({ details: true }));
    expect(listed).toMatchObject([{ sessionId: session.id, details: { persona: 'greeter' } }]);
    expect((await collect(session.export())).length).toBeGreaterThan(2);
    await expect(coxswain.session('nobody').state()).rejects.toMatchObject({ code: 'session_not_found' });
  });

  test('close() ends what is pending, and a repetition waits for the first', async () => {
    const coxswain = await startCoxswain({ bus: 'memory', models, env, tools: [pay] });
    const session = await coxswain.startSession({ persona: payer, prompt: 'Pay five.' }, { wait: 'accepted' });
    const pending = session.result();
    for await (const { callId } of session.approvals()) {
      expect(await collect(coxswain.pendingApprovals())).toMatchObject([{ session: { id: session.id }, callId }]);
      break;
    }
    await Promise.all([expect(pending).rejects.toMatchObject({ code: 'client_closed' }), coxswain.close()]);
    await coxswain.close();
    await expect(session.state()).rejects.toMatchObject({ code: 'client_closed' });
  });
});

test.each([
  [{ tool: [] }, 'tool', /there is no option tool; did you mean tools\?/],
  [{ bus: 7 }, 'bus', /bus: must be "embedded", "memory" or the address/],
  [{ bus: 'memory', stateDir: 'here' }, 'stateDir', /stores nothing/],
  [{ nkey: 'a.nk' }, 'nkey', /needs the address/],
  [{ bus: 'memory', tools: [7] }, 'tools', /tools: \[0\] must be what defineTool\(\) returns/],
  [{ bus: 'memory', models: { 'test/a': {} } }, 'models', /test\/a: must be a language model/],
  [{ bus: 'memory', model: 'gpt' }, 'model', /model: must be provider\/name/],
])('%j is refused by the name of the option', async (options, option, message) => {
  const starting = startCoxswain(options as never);
  await expect(starting).rejects.toMatchObject({ code: 'invalid_option', option });
  await expect(starting).rejects.toThrow(message);
});
