/** Coxswain within a program, in memory: `run` and `startCoxswain`. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as z from 'zod';
import {
  allow,
  CoxswainError,
  type CoxswainOptions,
  createHookRegistry,
  definePersona,
  defineTool,
  deny,
  run,
  startCoxswain,
} from '../src/mod.ts';

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

  test('cancels the run, and rejects, if onApproval throws or the signal aborts', async () => {
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

describe('run() checks the output by its Zod schema', () => {
  const output = z.object({
    total: z.number().refine((n) => n > 100, 'must be more than 100'),
    currency: z.string().default('EUR'),
  });
  const models = {
    'test/small': { turns: [{ text: '{"total": 5}' }] },
    'test/large': { turns: [{ text: '{"total": 500}' }] },
  };

  test('rejects a value that does not pass a refinement, by its path', async () => {
    const clerk = definePersona({ name: 'clerk', model: 'test/small' });
    const rejection = { code: 'output_invalid', message: expect.stringContaining('total: must be more than 100') };
    await expect(run(clerk, 'How much?', { models, env, output })).rejects.toMatchObject(rejection);
    const typed = definePersona({ name: 'clerk', model: 'test/small', output });
    await expect(run(typed, 'How much?', { models, env })).rejects.toMatchObject(rejection);
    await using coxswain = await startCoxswain({ bus: 'memory', models, env });
    const session = await coxswain.startSession({ persona: typed, prompt: 'How much?' });
    await expect(session.result()).rejects.toMatchObject(rejection);
  });

  test('fills in defaults, which the model may leave out', async () => {
    const persona = definePersona({
      name: 'clerk',
      model: 'test/large',
      output,
      hooks: [{ event: 'PreToolUse', handler: () => allow() }],
    });
    expect(await run(persona, 'How much?', { models, env })).toMatchObject({
      turns: 1,
      output: { total: 500, currency: 'EUR' },
    });
  });
});

describe('run() names the argument that is invalid', () => {
  const settings = { models, tools: [pay], env };
  test.each<[string, unknown[], string, RegExp]>([
    ['no persona', [undefined, 'Hello.', settings], 'persona', /must be a name/],
    ['no prompt', [greeter], 'prompt', /must be a string or a list of messages/],
    ['a number as prompt', [greeter, 5, settings], 'prompt', /must be a string/],
    ['options that are no object', [greeter, 'Hello.', 'fast'], 'options', /must be an object/],
    ['onApproval: true', [greeter, 'Hello.', { ...settings, onApproval: true }], 'onApproval', /must be a function/],
    [
      'a misspelt option',
      [greeter, 'Hello.', { ...settings, onAproval() {} }],
      'onAproval',
      /did you mean onApproval\?/,
    ],
    ['no client', [greeter, 'Hello.', { client: {} }], 'client', /must be a client: await connect\(\)/],
    ['null as client', [greeter, 'Hello.', { client: null }], 'client', /must be a client: await connect\(\)/],
  ])('%s', async (_name, given, option, message) => {
    const error = await (run as (...all: unknown[]) => Promise<unknown>)(...given).catch((thrown) => thrown);
    expect(error).toMatchObject({ code: 'invalid_option', option, message: expect.stringMatching(message) });
  });
});

test('run() rejects a promise of a client, whose failure does not end the program', async () => {
  const client = Promise.reject(new Error('no bus'));
  await expect(run('greeter', 'Hello.', { client } as never)).rejects.toMatchObject({
    code: 'invalid_option',
    option: 'client',
    message: expect.stringContaining('not a promise of one: await connect()'),
  });
});

describe('onApproval', () => {
  const settings = { models, tools: [pay], env };

  test('that returns without a decision cancels the run and rejects', async () => {
    paid.length = 0;
    const running = run(payer, 'Pay five.', { ...settings, onApproval: () => undefined });
    await expect(running).rejects.toMatchObject({
      code: 'invalid_option',
      option: 'onApproval',
      message: expect.stringMatching(/without a decision on the call c1_1 of pay; .*approval\.allow\(\)/),
    });
    expect(paid).toEqual([]);
  });

  test('may decide by the session, and without waiting for its decision', async () => {
    paid.length = 0;
    await run(payer, 'Pay five.', {
      ...settings,
      onApproval: ({ session, callId }) => {
        void session.approve(callId);
      },
    });
    expect(paid).toEqual([5]);
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
    const from = (await session.lastNumber()) + 2;
    for (const records of [session.records({ from }), session.records({ from, deltas: true })])
      await expect(collect<unknown>(records)).rejects.toMatchObject({ code: 'record_not_there', field: 'from' });
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
  [{ bus: 'mem' }, 'bus', /bus: must be "embedded", "memory" or the address/],
  [{ bus: 'http://host:4222' }, 'bus', /bus: must be .*nats:\/\/host:4222/],
  [{ bus: 'memory', stateDir: 'here' }, 'stateDir', /stores nothing/],
  [{ nkey: 'a.nk' }, 'nkey', /needs the address/],
  [{ bus: 'memory', tools: [7] }, 'tools', /tools: \[0\] must be a result of defineTool\(\)/],
  [{ bus: 'memory', models: { 'test/a': {} } }, 'models', /test\/a: must be a language model/],
  [{ bus: 'memory', model: 'gpt' }, 'model', /model: must be provider\/name/],
])('%j is rejected with the name of the option', async (options, option, message) => {
  const starting = startCoxswain(options as never);
  await expect(starting).rejects.toMatchObject({ code: 'invalid_option', option });
  await expect(starting).rejects.toThrow(message);
});

describe('every rejection is a CoxswainError that keeps code, message and cause', () => {
  test.each<[string, string, string, () => Promise<unknown>]>([
    ['a missing persona', 'PersonaFileError', 'persona_invalid', () => run('./nope.yaml', 'x', { env })],
    ['a missing module of hooks', 'HookModuleError', 'hook_module_invalid', () => startWith({ hooks: './nope.mjs' })],
  ])('%s', async (_name, name, code, failing) => {
    const error = await failing().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(CoxswainError);
    expect(error).toMatchObject({ code, cause: { name, message: (error as Error).message } });
  });

  test('an unreachable bus', async () => {
    const error = await startWith({ bus: 'nats://127.0.0.1:1' }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(CoxswainError);
    expect(error).toMatchObject({ code: 'nats_unreachable', cause: { message: 'connection refused' } });
  });

  test('the registration of an invalid hook', async () => {
    const registering = async () => createHookRegistry().registerSessionHook('Nope' as never, (() => allow()) as never);
    await expect(registering()).rejects.toBeInstanceOf(CoxswainError);
    await expect(startWith({ hooks: { Nope() {} } as never })).rejects.toBeInstanceOf(CoxswainError);
  });

  test('options that contradict their bus do not compile, and are rejected', async () => {
    // @ts-expect-error -- nothing is stored in memory
    await expect(startCoxswain({ bus: 'memory', stateDir: folder })).rejects.toMatchObject({ option: 'stateDir' });
    // @ts-expect-error -- the server of this program has no keys
    await expect(startCoxswain({ nkey: 'host.nk' })).rejects.toMatchObject({ option: 'nkey' });
  });

  const startWith = (options: CoxswainOptions) => {
    const whole: CoxswainOptions = {
      bus: 'memory',
      env,
      root: folder,
      ...(options.bus ? { stateDir: folder } : {}),
      ...options,
    };
    return startCoxswain(whole);
  };
});
