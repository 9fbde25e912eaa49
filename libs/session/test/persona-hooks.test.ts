/**
 * Hooks of personas on running sessions: pinned with the definition, and called where it is served. Every journal of
 * these tests is replayed at its end, without a service.
 */
import { createMemoryPersonas } from '@coxswain/adapter-memory';
import { type AnyHandler, type JsonObject, Persona, TenantId } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { crewBed, delegate } from './crew-bed.ts';
import { hook, returns } from './fake-hooks.ts';
import { ask, call, say } from './fake-model.ts';
import { answer, taking } from './fake-tools.ts';
import { ALLOW, ASKING, type TestBed, testBed } from './test-bed.ts';

const DEFAULT = TenantId.parse('default');
const WRITER = { name: 'writer', prompt: 'You write.' };
type Hooks = NonNullable<Persona['hooks']>;

/** The called hooks by point, in order. */
const asked = async (bed: TestBed, session = 's1') =>
  (await bed.eventsOf('hook_call', session)).map((event) => `${event.point} ${event.hook}`);
/** The answers by hook. */
const verdicts = async (bed: TestBed, session = 's1') =>
  (await bed.eventsOf('hook_returned', session)).map(({ hook: id, verdict, failure, not_run }) => [
    id,
    verdict?.kind ?? failure?.code ?? (not_run && 'not_run'),
  ]);
const end = async (bed: TestBed, session = 's1') => (await bed.eventsOf('agent_end', session)).at(-1);
const start = (bed: TestBed, more: Partial<Persona>, settings: JsonObject = {}) =>
  bed.start({ persona: { ...WRITER, ...more } as unknown as JsonObject, ...settings });

/** A bed whose host knows a served persona with this code. */
async function served(hooks: Hooks, handlers: Readonly<Record<string, AnyHandler>>, more: Partial<Persona> = {}) {
  const bed = testBed();
  const personas = createMemoryPersonas();
  const definition = { ...Persona.parse({ ...WRITER, hooks, ...more, model: 'fake/model' }), version: 'v1' };
  const serve = (version = 'v1', code = handlers) =>
    personas.serve(DEFAULT, { ...definition, version }, bed.models, code);
  const instance = serve();
  const host = await bed.host({}, { served: personas });
  return {
    bed,
    host,
    instance,
    serve,
    personas,
    start: (settings: JsonObject = {}) => bed.start({ persona: 'writer', ...settings }),
  };
}

describe('hooks in a definition, without code', () => {
  test('refuse a call, truncate a result and remind, without a handler', async () => {
    const bed = testBed();
    bed.tools = { read: { run: async () => answer('x'.repeat(100)) }, exec: {} };
    bed.models.answers = [ask(call('c1', 'read'), call('c2', 'exec', { command: 'rm -rf /' })), say('done')];
    await bed.host();
    await start(bed, {
      hooks: [
        { event: 'session_start', returns: { body: 'Read AGENTS.md first.' } },
        { event: 'pre_tool_use', pattern: 'tool.args.command =~ "^rm"', deny: 'not here' },
        { event: 'PostToolUse', pattern: 'read', max_output: 10 },
      ],
    });
    expect(await verdicts(bed)).toEqual([
      ['writer:session_start-1', 'no_objection'],
      ['writer:pre_tool_use-2', 'deny'],
      ['writer:PostToolUse-3', 'rewrite_result'],
    ]);
    const ends = await bed.eventsOf('call_ended');
    expect(ends.find((one) => one.call_id === 'c2')).toMatchObject({
      status: 'denied',
      denial: { by: 'hook', hook: 'writer:pre_tool_use-2', reason: 'not here' },
    });
    const cut = ends.find((one) => one.call_id === 'c1')?.result.content[0];
    expect(cut?.type === 'text' && cut.text.length).toBeLessThan(100);
    expect(JSON.stringify(bed.models.requests[0]?.messages)).toContain('Read AGENTS.md first.');
    expect(bed.hooks.asked).toEqual([]);
  });

  test('veto a prompt by its content, and rewrite arguments', async () => {
    const bed = testBed();
    bed.tools = { exec: {} };
    bed.models.answers = [ask(call('c1', 'exec', { command: 'ls' })), say('done')];
    await bed.host();
    await start(bed, {
      hooks: [
        { event: 'user_prompt_submit', pattern: 'prompt =~ "sk-[a-z]+"', returns: { block: true, reason: 'a key' } },
        { event: 'PreToolUse', pattern: 'exec', returns: { args: { command: 'ls -l' } } },
      ],
    });
    expect(bed.toolSource.runs).toMatchObject([{ args: { command: 'ls -l' } }]);
    await bed.send('prompt', { body: 'use sk-abc' });
    expect(await end(bed)).toMatchObject({ stop_reason: 'user_prompt_submit_blocked' });
    await bed.send('prompt', { body: 'use none' });
    expect(await end(bed)).toMatchObject({ stop_reason: 'end_turn' });
  });

  test('apply to the steps that they name', async () => {
    const bed = testBed();
    bed.models.answers = [say('a list'), say('the notes')];
    await bed.host();
    await start(bed, {
      steps: [
        { name: 'collect', prompt: 'Collect.', error_boundary: 'fail' },
        { name: 'write', prompt: 'Write.', error_boundary: 'fail' },
      ],
      hooks: [
        { event: 'PreStep', step: 'write', returns: { args: { prompt: 'Write in verse.' } } },
        { event: 'PostStep', step: 'wr*', returns: { output: 'kept elsewhere' } },
      ],
    });
    expect(await asked(bed)).toEqual(['PreStep writer:PreStep-1', 'PostStep writer:PostStep-2']);
    expect(JSON.stringify(bed.models.requests[0]?.messages)).toContain('Collect.');
    expect(JSON.stringify(bed.models.requests[1]?.messages)).toContain('Write in verse.');
    expect((await bed.eventsOf('step_finished')).map(({ output }) => output)).toEqual([undefined, 'kept elsewhere']);
  });

  test('are part of the persona’s version: a session keeps the hooks that it started with', async () => {
    const bed = testBed();
    const host = await bed.host();
    const reminding = (body: string): Partial<Persona> => ({ hooks: [{ event: 'session_start', returns: { body } }] });
    await start(bed, reminding('one'));
    await bed.start({ persona: { ...WRITER, ...reminding('two') } as unknown as JsonObject }, { session: 's2' });
    const [one] = await bed.eventsOf('persona_changed');
    const [two] = await bed.eventsOf('persona_changed', 's2');
    expect(one?.provision.persona.version).not.toBe(two?.provision.persona.version);
    await host.stop();
    await bed.host();
    await bed.send('prompt', { body: 'again' });
    expect((await bed.eventsOf('reminder_injected')).map(({ body }) => body)).toEqual(['one', 'one']);
    expect(await bed.eventsOf('hooks_changed')).toHaveLength(1);
  });
});

describe('with those of hosts', () => {
  test('they run first whatever their priority, and the host’s hooks see their result', async () => {
    const bed = testBed();
    bed.tools = { exec: {} };
    bed.hooks.registrations = [hook('PreToolUse', 'policy', { priority: -1_000 }), hook('PreToolUse', 'audit')];
    bed.models.answers = [ask(call('c1', 'exec', { command: 'ls' })), say('done')];
    await bed.host();
    await start(bed, {
      hooks: [{ event: 'PreToolUse', priority: 1_000, returns: { args: { command: 'rm -rf /' } } }],
    });
    expect(await asked(bed)).toEqual(['PreToolUse writer:PreToolUse-1', 'PreToolUse policy', 'PreToolUse audit']);
    expect(bed.hooks.asked[0]?.payload).toMatchObject({ tool: { args: { command: 'rm -rf /' } } });
  });

  test('their rewrite cannot evade a host hook’s condition, which is checked before and after', async () => {
    const bed = testBed();
    bed.tools = { exec: {} };
    const when = (pattern: string, id: string) => hook('PreToolUse', id, { pattern, deny: `${id} says no` });
    bed.hooks.registrations = [
      when('tool.args.command =~ "sudo"', 'no-root'),
      when('tool.args.command =~ "^rm"', 'no-rm'),
    ];
    bed.models.answers = [
      ask(
        call('c1', 'exec', { command: 'ls' }),
        call('c2', 'exec', { command: 'pwd' }),
        call('c3', 'exec', { command: 'sudo' }),
      ),
      say('done'),
    ];
    await bed.host();
    await start(bed, {
      hooks: [
        {
          event: 'PreToolUse',
          pattern: 'tool.args.command == "ls"',
          id: 'worse',
          returns: { args: { command: 'rm -rf /' } },
        },
        {
          event: 'PreToolUse',
          pattern: 'tool.args.command == "sudo"',
          id: 'hides',
          returns: { args: { command: 'ls' } },
        },
      ],
    });
    const denials = (await bed.eventsOf('call_ended')).map(({ call_id, denial }) => [call_id, denial?.hook]);
    expect(denials.sort()).toEqual([
      ['c1', 'no-rm'],
      ['c2', undefined],
      ['c3', 'no-root'],
    ]);
    expect(bed.toolSource.runs.map(({ callId }) => callId)).toEqual(['c2']);
    expect((await verdicts(bed)).filter(([id]) => id === 'no-root')).toEqual([
      ['no-root', 'not_run'],
      ['no-root', 'deny'],
    ]);
  });

  test('a change of the host’s table keeps them', async () => {
    const bed = testBed();
    bed.tools = { slow: { run: taking(1_000) } };
    bed.models.answers = [ask(call('c1', 'slow')), say('done')];
    await bed.host();
    await start(bed, { hooks: [{ event: 'post_turn', returns: { body: 'Go on.' } }] });
    bed.hooks.change([hook('post_turn', 'watch')]);
    await bed.time.advance(2_000);
    const tables = (await bed.eventsOf('hooks_changed')).map(({ table }) => table.map(({ id }) => id));
    expect(tables).toEqual([['writer:post_turn-1'], ['writer:post_turn-1', 'watch']]);
  });

  test('a host’s hook cannot pose as a persona’s hook', async () => {
    const bed = testBed();
    bed.hooks.registrations = [hook('post_turn', 'feigned', { persona: 'writer', persona_version: 'v1' })];
    await bed.host();
    await start(bed, {});
    expect(await asked(bed)).toEqual([]);
  });
});

describe('code of a persona', () => {
  test('runs where its version is served: it vetoes, rewrites, reminds, and reads the transcript', async () => {
    const seen: unknown[] = [];
    const { bed, start: begin } = await served(
      [
        { event: 'user_prompt_submit', handler: './a.ts#guard', id: 'guard' },
        { event: 'PreToolUse', pattern: 'exec', handler: './a.ts#quiet', id: 'quiet' },
        { event: 'post_turn', handler: './a.ts#note', id: 'note' },
      ],
      {
        guard: (payload) =>
          String((payload as { prompt?: unknown }).prompt).includes('secret') ? { block: true } : true,
        quiet: () => ({ args: { command: 'ls -q' } }),
        note: async (_payload, context) => {
          seen.push([context.hook, context.session.id, context.persona, (await context.transcript()).length > 0]);
          context.feedback('noted');
          return { body: 'Be brief.' };
        },
      },
    );
    bed.tools = { exec: {} };
    bed.models.answers = [ask(call('c1', 'exec', { command: 'ls' })), say('done')];
    await begin();
    expect(bed.toolSource.runs).toMatchObject([{ args: { command: 'ls -q' } }]);
    expect(seen[0]).toEqual(['writer:note', 's1', 'writer', true]);
    expect(JSON.stringify(bed.models.requests[1]?.messages)).toMatch(/Be brief.*|noted/);
    await bed.send('prompt', { body: 'the secret' });
    expect(await end(bed)).toMatchObject({ stop_reason: 'user_prompt_submit_blocked' });
  });

  test('that is unavailable is like an unavailable hook service: on_error decides, and no other version is asked', async () => {
    const { bed, instance, serve, personas } = await served(
      [
        { event: 'PreToolUse', pattern: 'exec', handler: './a.ts#a', id: 'closed' },
        { event: 'PreToolUse', pattern: 'read', handler: './a.ts#a', id: 'open', on_error: 'fail_open' },
      ],
      { closed: () => true, open: () => true },
    );
    bed.tools = { exec: {}, read: {} };
    const both = (n: number) => ask(call(`e${n}`, 'exec'), call(`r${n}`, 'read'));
    bed.models.answers = [both(1), say('done'), both(2), say('done'), both(3), say('done')];
    const ran = () => bed.toolSource.runs.map(({ callId }) => callId).sort();
    // A host serves a whole definition itself if no service does.
    await bed.start({ persona: personas.find(DEFAULT, 'writer')?.definition as unknown as JsonObject });
    expect(ran()).toEqual(['e1', 'r1']);
    instance.stop();
    serve('v2');
    await bed.send('prompt', { body: 'again' });
    expect(ran()).toEqual(['e1', 'r1', 'r2']);
    expect((await bed.eventsOf('call_ended')).find(({ call_id }) => call_id === 'e2')?.status).toBe('denied');
    serve();
    await bed.send('prompt', { body: 'again' });
    expect(ran()).toEqual(['e1', 'e3', 'r1', 'r2', 'r3']);
  });

  test('that disappears while it is asked has not answered', async () => {
    const {
      bed,
      instance,
      start: begin,
    } = await served(
      [
        { event: 'session_start', handler: './a.ts#a', id: 'a' },
        { event: 'user_prompt_submit', handler: './a.ts#b', id: 'b' },
      ],
      { a: () => true, b: () => new Promise(() => undefined) },
    );
    await begin();
    instance.kill();
    await bed.time.settle();
    expect(await verdicts(bed)).toEqual([
      ['writer:a', 'no_objection'],
      ['writer:b', 'hook_unavailable'],
    ]);
    expect(await end(bed)).toMatchObject({ stop_reason: 'user_prompt_submit_blocked' });
  });

  test('is asked of another instance, under the same key, if the first one disappeared', async () => {
    const keys: string[] = [];
    const hooks: Hooks = [{ event: 'user_prompt_submit', handler: './a.ts#b', id: 'b' }];
    const taking: AnyHandler = (_, { idempotencyKey }) => {
      keys.push(idempotencyKey);
      return keys.length === 1 ? new Promise(() => undefined) : true;
    };
    const { bed, instance, serve, start: begin } = await served(hooks, { b: taking });
    await begin();
    serve();
    instance.kill();
    await bed.time.settle();
    expect(await verdicts(bed)).toEqual([['writer:b', 'no_objection']]);
    expect(new Set(keys).size).toBe(1);
    expect(keys).toHaveLength(2);
    expect(await end(bed)).toMatchObject({ stop_reason: 'end_turn' });
  });

  test('has a key of its own at each question, and keeps it if the next host asks again', async () => {
    const keys: string[] = [];
    const noting: AnyHandler = (_, { idempotencyKey }) => void keys.push(idempotencyKey);
    const hooks: Hooks = [
      { event: 'user_prompt_submit', handler: './a.ts#a', id: 'a' },
      { event: 'user_prompt_submit', handler: './a.ts#b', id: 'b' },
      { event: 'post_turn', handler: './a.ts#a', id: 'a' },
    ];
    const taking: AnyHandler = (payload, context) => {
      noting(payload, context);
      return keys.length === 2 ? new Promise(() => undefined) : true;
    };
    const { bed, host, personas, start: begin } = await served(hooks, { a: noting, b: taking });
    await begin();
    host.abandon();
    await bed.host({}, { served: personas });
    await bed.time.advance(10_000);
    expect(await end(bed)).toMatchObject({ stop_reason: 'end_turn' });
    const twice = ['default.s1.2-0.writer:a', 'default.s1.2-0.writer:b'];
    expect(keys).toEqual([...twice, ...twice, 'default.s1.5-0.writer:a']);
  });

  test('that no process serves fails closed, also on a host without served personas, and names where it would run', async () => {
    const bed = testBed();
    await bed.host();
    await start(bed, { version: 'v1', hooks: [{ event: 'user_prompt_submit', handler: './a.ts#a' }] });
    expect(await end(bed)).toMatchObject({ stop_reason: 'user_prompt_submit_blocked' });
    const [returned] = await bed.eventsOf('hook_returned');
    expect(returned?.failure).toEqual({
      code: 'hook_unavailable',
      message: 'no instance of persona writer v1 is alive to run its handlers',
    });
  });

  test('is asked in sessions with a whole definition if a process serves that version', async () => {
    const { bed, personas } = await served([{ event: 'session_start', handler: 'x', id: 'a' }], {
      a: () => ({ body: 'seen' }),
    });
    const { definition } = personas.find(DEFAULT, 'writer') ?? {};
    await bed.start({ persona: definition as unknown as JsonObject });
    expect((await bed.eventsOf('reminder_injected')).map(({ body }) => body)).toEqual(['seen']);
  });

  test('cannot allow a call that a person must approve: the attempt is an invalid answer, and refuses', async () => {
    const { bed, start: begin } = await served(
      [{ event: 'permission_asked', handler: 'x', id: 'a', on_error: 'fail_open' }],
      {
        a: () => ({ decision: 'allow' }),
      },
    );
    bed.tools = { ask: {} };
    bed.models.answers = [ask(call('c1', 'ask')), say('done')];
    await begin({ permissions: ASKING });
    expect(await verdicts(bed)).toEqual([['writer:a', 'verdict_not_allowed']]);
    expect(bed.toolSource.runs).toEqual([]);
  });
});

describe('on_finish', () => {
  const FINISH = { on_finish: { handler: 'x' } };

  test('is called at the end of every run, before other hooks of that point', async () => {
    const told: unknown[] = [];
    const { bed, start: begin } = await served(
      [{ event: 'post_finish', handler: 'x', id: 'later', priority: -1_000 }],
      { on_finish: (payload) => void told.push(payload), later: () => undefined },
      FINISH,
    );
    bed.hooks.registrations = [hook('pre_finish', 'before'), hook('post_finish', 'after')];
    await begin();
    expect(await asked(bed)).toEqual([
      'pre_finish before',
      'post_finish writer:on_finish',
      'post_finish writer:later',
      'post_finish after',
    ]);
    await bed.send('prompt', { body: 'again' });
    expect(told).toMatchObject([
      { event: 'post_finish', persona: 'writer', stopReason: 'end_turn', turn: 1 },
      { event: 'post_finish', persona: 'writer', stopReason: 'end_turn', turn: 1 },
    ]);
  });

  test('may set reminders for the next run in the definition, with a condition', async () => {
    const bed = testBed();
    bed.models.answers = [say('done')];
    await bed.host();
    await start(bed, {
      on_finish: { pattern: 'stop_reason == "cancelled"', returns: { body: 'The last run was broken off.' } },
    });
    expect(await asked(bed)).toEqual([]);
    bed.models.answers = [say('slowly', { delayMs: 1_000 })];
    await bed.send('prompt', { body: 'again' });
    await bed.send('cancel', {});
    await bed.time.advance(2_000);
    expect(await asked(bed)).toEqual(['post_finish writer:on_finish']);
    await bed.send('prompt', { body: 'and again' });
    await bed.time.advance(2_000);
    expect(JSON.stringify(bed.models.requests.at(-1)?.messages)).toContain('The last run was broken off.');
  });

  test('that is unavailable, throws or returns an invalid value does not delay the end', async () => {
    const { bed, start: begin } = await served([], { on_finish: () => Promise.reject(new Error('full')) }, FINISH);
    await begin();
    expect(await verdicts(bed)).toEqual([['writer:on_finish', 'hook_threw']]);
    expect(await end(bed)).toMatchObject({ stop_reason: 'end_turn' });
  });
});

describe('crews', () => {
  const reminding = (name: string): Partial<Persona> => ({
    hooks: [
      { event: 'post_turn', id: 'turn', returns: { body: `${name} had a turn` } },
      { event: 'PostToolUse', id: 'result', returns: true },
    ],
    on_finish: { returns: { body: `${name} has finished` } },
  });

  test('a hand-off changes the hooks: the rest of the turn belongs to the persona that started it', async () => {
    const bed = crewBed();
    bed.tools = { read: {} };
    bed.personas = { desk: { handoffs: ['clerk'], ...reminding('desk') }, clerk: { ...reminding('clerk') } };
    bed.parts = {
      desk: [ask(call('h1', 'handoff', { to: 'clerk', brief: 'go on' }))],
      clerk: [ask(call('c1', 'read')), say('found')],
    };
    await bed.crewHost();
    await bed.begin('desk');
    expect(await asked(bed)).toEqual([
      'PostToolUse desk:result',
      'post_turn desk:turn',
      'PostToolUse clerk:result',
      'post_turn clerk:turn',
      'post_turn clerk:turn',
      'post_finish clerk:on_finish',
    ]);
    await bed.send('prompt', { body: 'again' });
    const tables = (await bed.eventsOf('hooks_changed')).map(({ table }) => table.map(({ id }) => id));
    expect(tables.at(-1)).toEqual(['clerk:on_finish', 'clerk:turn', 'clerk:result']);
  });

  test('a fork with another model in the rest of that turn keeps the hooks of both personas', async () => {
    const bed = crewBed();
    bed.tools = { read: {} };
    bed.personas = { desk: { handoffs: ['clerk'], ...reminding('desk') }, clerk: { ...reminding('clerk') } };
    bed.parts = { desk: [ask(call('h1', 'handoff', { to: 'clerk', brief: 'go on' }))], clerk: [say('done')] };
    await bed.crewHost();
    await bed.begin('desk');
    const records = await bed.records();
    const n = records.find(({ events }) =>
      events.some((event) => event.type === 'persona_changed' && event.handoff),
    )?.n;
    await bed.send('start', { fork: { session: 's1', n, changes: { model: 'fake/other' } } } as JsonObject, {
      session: 'f1',
    });
    expect(await asked(bed, 'f1')).toContain('post_turn desk:turn');
    expect(await asked(bed, 'f1')).toEqual(await asked(bed));
    expect(await verdicts(bed, 'f1')).toEqual(await verdicts(bed));
  });

  test('a child has the hooks of its own persona, and those of the host as before', async () => {
    const bed = crewBed();
    bed.hooks.registrations = [hook('post_turn', 'of-host')];
    bed.personas = { lead: reminding('lead'), mate: reminding('mate') };
    bed.parts = { lead: [delegate(['mate', 'do it']), say('all done')], mate: [say('done')] };
    await bed.crewHost();
    await bed.begin('lead');
    const [child = ''] = await bed.childrenOf();
    expect(await asked(bed, child)).toEqual(['post_turn mate:turn', 'post_turn of-host', 'post_finish mate:on_finish']);
    expect((await asked(bed)).filter((line) => line.includes('mate'))).toEqual([]);
    expect(await asked(bed)).toContain('post_finish lead:on_finish');
  });
});

test('a fork keeps the hooks of its origin’s persona; with another persona it has that persona’s hooks', async () => {
  const bed = testBed();
  bed.tools = { read: {} };
  bed.models.answers = [ask(call('c1', 'read')), say('done')];
  await bed.host();
  await start(bed, { hooks: [{ event: 'post_turn', id: 'turn', returns: { body: 'Go on.' } }] });
  const records = await bed.records();
  const n = records.find(({ events }) => events.some(({ type }) => type === 'call_started'))?.n ?? 0;
  const fork = (session: string, changes?: JsonObject) =>
    bed.send('start', { fork: { session: 's1', n, ...(changes ? { changes } : {}) } }, { session });
  await fork('f1');
  expect((await asked(bed, 'f1')).length).toBe(2);
  const other = { ...WRITER, hooks: [{ event: 'post_turn', id: 'other', returns: { body: 'Stop.' } }] };
  await fork('f2', { persona: other as unknown as JsonObject });
  expect(new Set(await asked(bed, 'f2'))).toEqual(new Set(['post_turn writer:other']));
});

test('more hooks than the bound fail the run with a code, like too many hooks of a host', async () => {
  const bed = testBed();
  bed.hooks.registrations = Array.from({ length: 256 }, (_, index) => hook('post_turn', `h${index}`));
  bed.hooks.handlers = { h0: returns(true) };
  await bed.host();
  await start(bed, { on_finish: { returns: true } }, { permissions: ALLOW });
  expect(await end(bed)).toMatchObject({ stop_reason: 'error', error: { code: 'hooks_invalid' } });
});
