/**
 * Provisioning: the settings of a run, and each way in which it can fail.
 */
import { BOUNDS, type ERROR_CATALOGUE, type JsonObject, type Persona } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import type { HostPorts } from '../src/mod.ts';
import { crewBed } from './crew-bed.ts';
import { hook } from './fake-hooks.ts';
import { ask, call, say } from './fake-model.ts';
import { taking } from './fake-tools.ts';
import { ALLOW, refOf, type TestBed, testBed } from './test-bed.ts';

const CODER: Persona = {
  name: 'coder',
  prompt: 'You write code.',
  model: { name: 'fake/coder' },
  modes: { careful: { prompt: 'Think twice.' } },
  tools: { allow: ['r*'], deny: ['remove'] },
  permissions: { rules: [{ tool: '*', action: 'allow' }], default: 'ask' },
};
const personas = { find: async (name: string) => (name === 'coder' ? CODER : null), names: async () => ['coder'] };

const REVIEW = { name: 'review', description: 'How to\n review.', body: 'Look closely.' };

async function started(bed: TestBed, body: Parameters<TestBed['start']>[0], other: Partial<HostPorts> = {}) {
  await bed.host({}, { personas, ...other });
  await bed.send('start', { prompt: 'hello', ...body });
}

describe('a start whose model cannot be asked is rejected, and leaves no session', () => {
  test.each([
    ['model_not_given', {}, null],
    ['provider_unknown', { model: 'fake/model' }, 'no fake'],
    ['model_key_missing', { persona: 'coder' }, 'no key'],
    ['script_invalid', { model: 'fake/model' }, 'no script'],
  ] as const)('%s', async (code, body, message) => {
    const bed = testBed();
    if (message !== null) bed.models.missing = { code, message };
    await bed.host({}, { personas });
    const id = await bed.send('start', { prompt: 'hello', ...body });
    expect(bed.told(id)).toEqual([`rejected ${code}`]);
    expect(bed.receipts.at(-1)).toMatchObject({
      field: 'model',
      message: message ?? expect.stringContaining('provider/name'),
    });
    expect(await bed.bytes()).toEqual([]);
    // The same id is free: with the missing settings the session starts.
    bed.models.missing = null;
    await bed.send('start', { prompt: 'hello', model: 'fake/model' });
    expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
  });

  test('a failure that may pass is left to the run', async () => {
    const bed = testBed();
    bed.models.missing = { code: 'model_unavailable', message: 'later', retryable: true };
    await bed.host({}, { personas });
    const id = await bed.send('start', { prompt: 'hello', model: 'fake/model' });
    expect(bed.told(id)).toEqual(['accepted']);
  });
});

describe('a run that cannot be provisioned ends as failed, with its code', () => {
  const model = { model: 'fake/model' };
  const cases: readonly (readonly [
    code: keyof typeof ERROR_CATALOGUE,
    body: object,
    Partial<HostPorts>,
    (bed: TestBed) => void,
  ])[] = [
    ['persona_not_found', { persona: 'nobody', ...model }, {}, () => {}],
    ['mode_not_found', { persona: 'coder', mode: 'careless' }, {}, () => {}],
    ['mode_not_found', { mode: 'careful', ...model }, {}, () => {}],
    [
      'hooks_invalid',
      { persona: 'guarded' },
      { personas: { find: async () => ({ ...CODER, hooks: [{ event: 'post_turn' }] }), names: async () => [] } },
      () => {},
    ],
    [
      'provision_failed',
      { persona: 'coder' },
      { personas: { ...personas, find: async () => Promise.reject(new Error('no bus')) } },
      () => {},
    ],
    ['skills_unavailable', { persona: { name: 'a', skills: [REVIEW] }, ...model }, {}, () => {}],
    [
      'root_not_local',
      model,
      {},
      (bed) => {
        bed.toolSource.failure = { code: 'root_not_local', message: 'not here' };
      },
    ],
    [
      'mcp_server_failed',
      model,
      {},
      (bed) => {
        bed.toolSource.failure = { code: 'mcp_server_failed', message: 'exit 1' };
      },
    ],
  ];

  test.each(cases.map((one, index) => [`${one[0]} (${index + 1})`, one] as const))(
    '%s',
    async (_name, [code, body, other, prepare]) => {
      const bed = testBed();
      prepare(bed);
      await started(bed, body as never, other);
      const lines = await bed.lines();
      expect(lines).toContain(`run_failed provisioning ${code}`);
      expect(lines.at(-1)).toBe('agent_end error');
      expect(lines.filter((line) => /^agent_(start|end)/.test(line))).toHaveLength(2);
      expect(bed.models.requests).toEqual([]);
      expect(bed.toolSource.openNow).toBe(0);
      expect((await bed.eventsOf('agent_end'))[0]?.error?.message).not.toBe('');
    },
  );

  test('what does not depend on each other is asked for side by side', async () => {
    const bed = testBed();
    bed.toolSource.openMs = 3_000;
    let checks = 0;
    // The first check decides whether the start is accepted.
    const check = async () => {
      if (++checks > 1) await bed.time.clock().sleep(3_000);
      return null;
    };
    await bed.host({}, { models: { check, resolve: () => bed.models.resolve() } });
    await bed.start();
    await bed.time.advance(2_999);
    expect(await bed.lines()).not.toContain('agent_start run 1');
    await bed.time.advance(1);
    expect(await bed.lines()).toContain('agent_start run 1');
  });

  test('a model that cannot even be checked leaves no tool open', async () => {
    const bed = testBed();
    bed.models.check = () => Promise.reject(new Error('no file'));
    await started(bed, model);
    expect(await bed.lines()).toContain('run_failed provisioning provision_failed');
    expect(bed.toolSource.openNow).toBe(0);
  });

  test('names of personas for delegate that cannot be read leave no tool open', async () => {
    const bed = crewBed();
    const unreadable = { find: async () => null, names: () => Promise.reject(new Error('no folder')) };
    await bed.crewHost({}, { personas: unreadable });
    await bed.begin('lead');
    expect(bed.toolSource.specs).toHaveLength(1);
    expect(await bed.lines()).toContain('run_failed provisioning provision_failed');
    expect((await bed.eventsOf('run_failed'))[0]?.error.message).toBe('no folder');
    expect(bed.toolSource.openNow).toBe(0);
  });

  const nested = (depth: number): JsonObject => (depth === 1 ? {} : { items: nested(depth - 1) });

  test.each([
    ['nested too deep', nested(BOUNDS.jsonDepthMax + 1)],
    ['with an infinite number', { maximum: Number.POSITIVE_INFINITY }],
  ])(
    'a tool that cannot be recorded is named, and the session continues without it: its schema is %s',
    async (_name, schema) => {
      const bed = testBed();
      bed.tools = { read: {}, web__odd: { schema } };
      await started(bed, model);
      const { code, message } = (await bed.eventsOf('run_failed'))[0]?.error ?? {};
      expect(code).toBe('provision_failed');
      expect(message).toMatch(/^the tool web__odd \(test\) cannot be used: input_schema: must be a JSON object/);
      expect((await bed.lines()).at(-1)).toBe('agent_end error');
      expect(bed.toolSource.openNow).toBe(0);
      bed.tools = { read: {} };
      await bed.send('prompt', 'again');
      expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
    },
  );

  test('what cannot be recorded fails the provisioning, not the session, and closes the tools', async () => {
    const bed = testBed();
    await started(bed, model, { prices: [{ model: '*', input: -1, output: 1 }] });
    const { code, message } = (await bed.eventsOf('run_failed'))[0]?.error ?? {};
    expect(code).toBe('provision_failed');
    expect(message).toMatch(/^what was resolved cannot be recorded: provision\.price/);
    expect(bed.toolSource.openNow).toBe(0);
  });

  test('an MCP server of the start does not replace one of its persona', async () => {
    const bed = testBed();
    const find = async () => ({ ...CODER, mcp_servers: { files: { command: 'own', args: [] } } });
    const mcp_servers = { other: { command: 'other' }, files: { command: 'replaced' } };
    await started(bed, { persona: 'coder', mcp_servers }, { personas: { ...personas, find } });
    expect((await bed.eventsOf('run_failed'))[0]?.error).toMatchObject({
      code: 'mcp_server_failed',
      message: expect.stringMatching(/^mcp_servers\.files: the persona has a server of this name/),
    });
    expect(bed.toolSource.specs).toEqual([]);
  });

  test('a tool that cannot be recorded does not matter if the persona denies it', async () => {
    const bed = testBed();
    bed.tools = { read: {}, odd: { schema: nested(BOUNDS.jsonDepthMax + 1) } };
    await started(bed, { ...model, tools: { allow: ['*'], deny: ['odd'] } });
    expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
  });

  describe('but not because the bus is away: it waits, and continues when the bus is back', () => {
    const away = () =>
      Promise.reject(Object.assign(new Error('the connection was lost'), { code: 'nats_unreachable' }));
    /** Each call of these ports fails until the bus is back. */
    const ports = (bus: { isAway: boolean }): Partial<HostPorts> => ({
      personas: {
        find: (name) => (bus.isAway ? away() : personas.find(name)),
        names: () => (bus.isAway ? away() : personas.names()),
      },
      rememberedRules: { of: async () => (bus.isAway ? away() : []), keep: async () => undefined },
    });

    test.each([
      ['a persona by name', { persona: 'coder' }],
      ['what a persona remembers', model],
    ] as const)('%s', async (_name, body) => {
      const bed = testBed();
      const bus = { isAway: true };
      await started(bed, body as never, ports(bus));
      await bed.time.advance(60_000);
      expect(await bed.lines()).not.toContainEqual(expect.stringMatching(/^(run_failed|agent_end)/));
      bus.isAway = false;
      await bed.time.advance(5_000);
      expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
    });

    test('a run that waits for it can be cancelled', async () => {
      const bed = testBed();
      await started(bed, { persona: 'coder' }, ports({ isAway: true }));
      await bed.send('cancel', {});
      await bed.time.advance(1_000);
      expect((await bed.lines()).at(-1)).toBe('agent_end cancelled');
    });
  });

  test('the message names what there is', async () => {
    const bed = testBed();
    await started(bed, { persona: 'nobody' });
    expect((await bed.eventsOf('run_failed'))[0]?.error.message).toBe(
      'there is no persona nobody; known personas: coder',
    );
  });

  test('and no more than 64 of them: a tenant may have thousands of personas', async () => {
    const bed = testBed();
    const names = Array.from({ length: 1_000 }, (_, i) => `p${i}`);
    const personas = { find: async () => null, names: async () => names };
    await started(bed, { persona: 'absent' }, { personas });
    const message = (await bed.eventsOf('run_failed'))[0]?.error.message;
    expect(message).toMatch(/known personas: p0, (p\d+, ){62}p\d+ and 936 more$/);
  });

  test('and the session continues with the next prompt, once the cause is fixed', async () => {
    const bed = testBed();
    bed.toolSource.failure = { code: 'mcp_server_failed', message: 'exit 1' };
    await started(bed, model);
    bed.toolSource.failure = null;
    await bed.send('prompt', 'again');
    expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
  });
});

test('a run is given its persona: prompt and mode, model, the tools it may have, its rules', async () => {
  const bed = testBed();
  bed.tools = { read: {}, remove: {}, write: {} };
  await started(bed, { persona: 'coder', mode: 'careful', permissions: { rules: [{ tool: 'read', action: 'deny' }] } });
  const [{ provision } = {} as never] = await bed.eventsOf('persona_changed');
  expect(provision).toMatchObject({
    persona: { name: 'coder' },
    model: { name: 'fake/coder' },
    system_prompt: 'You write code.\n\nThink twice.',
    root: '/work',
    max_turns: BOUNDS.maxTurnsDefault,
    permissions: {
      rules: [
        { tool: 'read', action: 'deny' },
        { tool: '*', action: 'allow' },
      ],
    },
  });
  expect((await bed.eventsOf('tools_changed'))[0]?.tools.map(({ name }) => name)).toEqual(['read']);
  expect(bed.models.requests[0]).toMatchObject({ system: 'You write code.\n\nThink twice.' });
});

describe('a prompt may say of its run, and of those after it', () => {
  const models = async (bed: TestBed) =>
    (await bed.eventsOf('persona_changed')).map(({ provision: { model, mode = null } }) => ({
      model: model.name,
      mode,
    }));

  test('another model and another mode, each alone and both', async () => {
    const bed = testBed();
    await started(bed, { persona: 'coder' });
    await bed.send('prompt', { body: 'go on', model: 'fake/other' });
    await bed.send('prompt', { body: 'go on', mode: 'careful' });
    await bed.send('prompt', { body: 'as before' });
    await bed.send('prompt', { body: 'go on', provider: 'fake', model: 'coder', mode: null });
    expect(await models(bed)).toEqual([
      { model: 'fake/coder', mode: null },
      { model: 'fake/other', mode: null },
      { model: 'fake/other', mode: 'careful' },
      { model: 'fake/coder', mode: null },
    ]);
    expect(bed.models.requests.map(({ model, system }) => [model.name, system])).toEqual([
      ['fake/coder', 'You write code.'],
      ['fake/other', 'You write code.'],
      ['fake/other', 'You write code.\n\nThink twice.'],
      ['fake/other', 'You write code.\n\nThink twice.'],
      ['fake/coder', 'You write code.'],
    ]);
    expect((await bed.eventsOf('prompt_received')).length).toBe(5);
  });

  test('a mode that its persona does not have is rejected: nothing starts', async () => {
    const bed = testBed();
    await started(bed, { persona: 'coder' });
    const id = await bed.send('prompt', { body: 'go on', mode: 'careless' });
    expect(bed.told(id)).toEqual(['rejected invalid_field']);
    expect((await bed.eventsOf('command_rejected'))[0]).toMatchObject({ code: 'invalid_field', field: 'mode' });
    await bed.send('prompt', 'go on');
    expect(await models(bed)).toEqual([{ model: 'fake/coder', mode: null }]);
  });

  test('a model that cannot be asked: the run fails, and the next may name another', async () => {
    const bed = testBed();
    await started(bed, { persona: 'coder' });
    bed.models.missing = { code: 'provider_unknown', message: 'no such provider' };
    await bed.send('prompt', { body: 'go on', model: 'nobody/knows' });
    bed.models.missing = null;
    await bed.send('prompt', { body: 'go on', model: 'fake/other' });
    expect((await bed.eventsOf('agent_end')).map(({ stop_reason }) => stop_reason)).toEqual([
      'end_turn',
      'error',
      'end_turn',
    ]);
    expect((await models(bed)).at(-1)).toEqual({ model: 'fake/other', mode: null });
  });

  test('messages with files, instead of a text', async () => {
    const bed = testBed();
    await started(bed, { persona: 'coder' });
    const message = {
      role: 'user' as const,
      content: [
        { type: 'text' as const, text: 'Look: ' },
        { type: 'file' as const, media_type: 'image/png', data: 'iVBORw0KGgo=' },
      ],
    };
    await bed.send('prompt', { messages: [message] });
    expect((await bed.eventsOf('prompt_received')).at(-1)?.messages).toEqual([message]);
    expect(bed.models.requests.at(-1)?.messages.at(-1)).toEqual(message);
  });
});

describe('a persona with skills', () => {
  const tools = { read: {}, write: {}, load_skill: {} };
  const prompts = async (persona: object, settings: object = {}) => {
    const bed = testBed();
    bed.tools = tools;
    const whole = { name: 'a', prompt: 'You review.', skills: [REVIEW], modes: { strict: { prompt: 'Be strict.' } } };
    await started(bed, { persona: { ...whole, ...persona }, model: 'fake/model', ...settings } as never);
    const [request] = bed.models.requests;
    return { bed, system: request?.system, tools: request?.tools.map(({ name }) => name) };
  };

  test('has their index between its prompt and its mode, each skill in one line', async () => {
    const { system, bed } = await prompts({}, { mode: 'strict' });
    expect(system).toBe(
      [
        'You review.',
        'You have skills: instructions for particular kinds of work. If one fits the task, load it with load_skill before you start.\n- review: How to review.',
        'Be strict.',
      ].join('\n\n'),
    );
    expect((await bed.eventsOf('persona_changed'))[0]?.provision.mode).toBe('strict');
  });

  test('may load them with any allowed tools, unless they are denied', async () => {
    expect((await prompts({ tools: ['read'] })).tools).toEqual(['read', 'load_skill']);
    const denied = await prompts({ tools: { allow: ['*'], deny: ['load_*'] } });
    expect(denied).toMatchObject({ tools: ['read', 'write'], system: 'You review.' });
  });

  test('gives them to its tools whole, and has another version when one of them changes', async () => {
    const { bed } = await prompts({});
    expect(bed.toolSource.specs[0]?.skills).toEqual([REVIEW]);
    const other = await prompts({ skills: [{ ...REVIEW, body: 'Look away.' }] });
    const version = async (one: TestBed) => (await one.eventsOf('persona_changed'))[0]?.provision.persona.version;
    expect(await version(bed)).not.toBe(await version(other.bed));
  });

  test('has them after its host has died, with nothing but its journal', async () => {
    const { bed } = await prompts({});
    const second = await bed.host();
    await bed.send('prompt', 'again');
    expect(second).toBeDefined();
    expect(bed.toolSource.specs.at(-1)?.skills).toEqual([REVIEW]);
  });
});

test('a mode that an inline persona has not is refused with the command, by field', async () => {
  const bed = testBed();
  await started(bed, { persona: { name: 'a', modes: { calm: { prompt: '' } } }, mode: 'clam', model: 'm/x' } as never);
  expect(bed.receipts.at(-1)).toMatchObject({
    stage: 'rejected',
    code: 'invalid_field',
    field: 'mode',
    message: expect.stringContaining('the persona a has no mode clam; it has: calm; did you mean "calm"?'),
  });
});

describe('the default of a start', () => {
  const cases: [said: string | undefined, persona: object | undefined, holds: string][] = [
    ['ask', { default: 'allow' }, 'ask'],
    ['deny', { default: 'allow' }, 'deny'],
    ['deny', { default: 'ask' }, 'deny'],
    ['allow', { default: 'ask' }, 'ask'],
    ['allow', { default: 'deny' }, 'deny'],
    ['ask', { default: 'deny' }, 'deny'],
    // Absent permissions restrict nothing, and do not loosen the persona's.
    [undefined, { default: 'allow' }, 'allow'],
    [undefined, { default: 'deny' }, 'deny'],
    ['allow', { rules: [{ tool: 'read', action: 'deny' }] }, 'allow'],
    ['allow', undefined, 'allow'],
    ['deny', undefined, 'deny'],
    [undefined, {}, 'ask'],
    [undefined, undefined, 'ask'],
  ];
  test.each(cases)('of %s under a persona with %j is %s', async (said, permissions, holds) => {
    const bed = testBed();
    bed.tools = { haul: {} };
    bed.models.answers = [ask(call('c1', 'haul')), say('done')];
    await started(bed, {
      model: 'fake/model',
      persona: { name: 'mate', ...(permissions ? { permissions } : {}) },
      permissions: { rules: [{ tool: 'other', action: 'allow' }], ...(said ? { default: said } : {}) },
    } as never);
    const [{ provision } = {} as never] = await bed.eventsOf('persona_changed');
    expect(provision?.permissions.default).toBe(holds);
    const became = { allow: /^call_started c1/, ask: /^approval_requested c1/, deny: /^call_ended c1 denied/ }[holds];
    expect((await bed.lines()).filter((line) => became?.test(line))).toHaveLength(1);
  });
});

test('a rule of the start does not loosen one of its persona, in the next run neither', async () => {
  const bed = testBed();
  bed.tools = { haul: {} };
  bed.models.answers = [ask(call('c1', 'haul')), say('done'), ask(call('c2', 'haul')), say('done')];
  await started(bed, {
    model: 'fake/model',
    persona: { name: 'mate', permissions: { rules: [{ tool: 'haul', action: 'deny' }] } },
    permissions: { rules: [{ tool: '*', action: 'allow' }] },
  } as never);
  await bed.send('prompt', 'again');
  expect((await bed.eventsOf('call_ended')).map(({ denial }) => denial?.rule)).toEqual(['rules[1]', 'rules[1]']);
  expect(await bed.eventsOf('call_started')).toEqual([]);
  expect(await bed.eventsOf('persona_changed')).toHaveLength(1);
});

test('what the start says goes before what the persona says', async () => {
  const bed = testBed();
  await started(bed, {
    persona: 'coder',
    model: 'other/model',
    base_url: 'http://localhost:1',
    max_turns: 3,
    limits: { max_turns: 9, parallel_calls: 2 },
    root: '/elsewhere',
    tools: { allow: ['*'], deny: ['read'] },
  });
  const [{ provision } = {} as never] = await bed.eventsOf('persona_changed');
  expect(provision).toMatchObject({
    model: { name: 'other/model', base_url: 'http://localhost:1' },
    max_turns: 3,
    parallel_calls: 2,
    root: '/elsewhere',
  });
  expect((await bed.eventsOf('tools_changed'))[0]?.tools).toEqual([]);
});

test('a host has a model for sessions that name none', async () => {
  const bed = testBed();
  await started(bed, {}, { defaultModel: 'fake/default' });
  expect(bed.models.requests[0]?.model).toEqual({ name: 'fake/default' });
});

test('a session keeps the persona, the model and the root that it began with, on whichever host its next run is', async () => {
  const bed = testBed();
  await started(bed, { persona: 'coder' });
  const changed = { ...CODER, prompt: 'You write poems.', model: { name: 'fake/poet' } };
  await bed.host({}, { personas: { ...personas, find: async () => changed }, defaultRoot: '/other' });
  bed.models.answers = [say('done')];
  await bed.send('prompt', 'again');
  expect(await bed.eventsOf('persona_changed')).toHaveLength(1);
  expect(await bed.eventsOf('tools_changed')).toHaveLength(1);
  expect(bed.toolSource.specs.map(({ root }) => root)).toEqual(['/work', '/work']);
  expect(await bed.eventsOf('agent_start')).toHaveLength(2);
});

test('what has changed since the last run is said, and only that', async () => {
  const bed = testBed();
  await started(bed, { persona: 'coder' });
  bed.tools = { read: {}, ripgrep: {} };
  bed.hooks.registrations = [hook('post_turn', 'watch')];
  await bed.send('prompt', 'again');
  const changes = (await bed.lines()).filter((line) => line.endsWith('_changed'));
  expect(changes).toEqual(['persona_changed', 'tools_changed', 'hooks_changed', 'tools_changed', 'hooks_changed']);
});

test('a persona puts the traits of its tools right: of several entries the first that matches holds', async () => {
  const bed = testBed();
  bed.tools = { look: { traits: { idempotent: true } }, land: {} };
  const tool_settings = [
    { tool: 'la*', terminates: true, max_output: 2_048 },
    { tool: '*', sequential: true, idempotent: false },
  ];
  await started(bed, { persona: { name: 'p', tool_settings }, model: 'fake/model' });
  const tools = (await bed.eventsOf('tools_changed'))[0]?.tools ?? [];
  const traits = { idempotent: false, long_running: false, sequential: false, terminates: false };
  expect(tools.map(({ name, traits: said, max_output }) => [name, said, max_output])).toEqual([
    ['look', { ...traits, sequential: true }, undefined],
    ['land', { ...traits, terminates: true }, 2_048],
  ]);
});

test.each([
  [{ tool: '*', long_running: true }, 'long_running'],
  [{ tool: '*', max_output: 1_023 }, 'max_output'],
  [{ tool: '*', max_output: 65_537 }, 'max_output'],
  [{ terminates: true }, 'tool'],
])('a persona whose tool settings cannot be is refused, naming the field: %j', async (settings, field) => {
  const bed = testBed();
  await bed.host();
  const id = await bed.send('start', {
    prompt: 'go',
    model: 'fake/model',
    persona: { name: 'p', tool_settings: [settings] },
  });
  expect(bed.told(id)).toEqual([expect.stringMatching(/^rejected (unknown|invalid)_field$/)]);
  expect(bed.receipts.at(-1)?.field).toContain(`persona.tool_settings.0.${field}`);
});

test('RUNNER-8: a session sees a stated number of tools', async () => {
  const bed = testBed();
  bed.tools = Object.fromEntries(Array.from({ length: BOUNDS.toolsMax + 9 }, (_, i) => [`t${i}`, {}]));
  await started(bed, { model: 'fake/model' });
  expect((await bed.eventsOf('tools_changed'))[0]?.tools).toHaveLength(BOUNDS.toolsMax);
});

test('a run that is cancelled while its tools are opened ends, and closes them', async () => {
  const bed = testBed();
  bed.toolSource.openMs = 3_000;
  await started(bed, { model: 'fake/model' });
  await bed.send('cancel');
  await bed.time.advance(10_000);
  expect((await bed.lines()).slice(-3)).toEqual([
    'control_outcome cancel cancelled',
    'agent_start run 1',
    'agent_end cancelled',
  ]);
  expect(bed.toolSource.openNow).toBe(0);
});

test('a provisioning that ends after it was given up does not close the tools of the next run', async () => {
  const bed = testBed();
  bed.tools = { slow: { run: taking(60_000) } };
  bed.models.answers = [ask(call('c1', 'slow')), say('done')];
  bed.toolSource.openMs = 20_000;
  await started(bed, { model: 'fake/model', permissions: ALLOW });
  await bed.send('cancel');
  await bed.time.advance(BOUNDS.abortGraceMs);
  expect((await bed.lines()).at(-1)).toBe('agent_end cancelled');
  bed.toolSource.openMs = 0;
  await bed.send('prompt', 'again');
  await bed.time.advance(20_000);
  expect(bed.toolSource.runs).toMatchObject([{ ended: false }]);
  expect(bed.toolSource.openNow).toBe(1);
  await bed.time.advance(60_000);
  expect(bed.toolSource.openNow).toBe(0);
});

test('provisioning that a crash cut short is done again', async () => {
  const bed = testBed();
  bed.toolSource.openMs = 3_000;
  bed.models.answers = [ask(call('c1', 'read')), say('done')];
  const first = await bed.host();
  await bed.start();
  first.abandon();
  const second = await bed.host();
  await bed.time.advance(10_000);
  expect((await second.status(refOf()))?.state).toBe('stopped');
  expect(await bed.eventsOf('agent_start')).toHaveLength(1);
  expect(bed.toolSource.openNow).toBe(0);
});
