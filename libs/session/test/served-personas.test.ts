/**
 * Steps of personas in other processes: where they run, their waits, and their records.
 */
import { createMemoryPersonas } from '@coxswain/adapter-memory';
import { combineToolSources } from '@coxswain/adapter-tools';
import type { ToolSource } from '@coxswain/ports';
import {
  type Json,
  type JsonObject,
  PERSONA_TOOL_SOURCE,
  Persona,
  TenantId,
  type ToolDefinition,
} from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { crewBed, delegate } from './crew-bed.ts';
import { hook } from './fake-hooks.ts';
import { ask, call, FakeModels, say } from './fake-model.ts';
import { answer, definition, taking } from './fake-tools.ts';
import { recordOf, refOf, testBed } from './test-bed.ts';

const DEFAULT = TenantId.parse('default');
const REVIEWER = { ...Persona.parse({ name: 'reviewer', prompt: 'You review.', model: 'fake/model' }), version: 'v1' };
const ALL = { rules: [], default: 'allow' as const };
/** The persona in the form of a start. */
const WHOLE = REVIEWER as unknown as JsonObject;

function served() {
  const bed = testBed();
  const personas = createMemoryPersonas();
  const there = new FakeModels(bed.time.clock());
  there.answers = [say('from there')];
  bed.models.answers = [say('from the host')];
  const host = () => bed.host({}, { served: personas });
  return {
    bed,
    personas,
    there,
    host,
    serve: (version = 'v1') => personas.serve(DEFAULT, { ...REVIEWER, version }, there),
  };
}
const answersIn = async (bed: ReturnType<typeof testBed>) =>
  (await bed.eventsOf('message_complete')).map(({ message }) =>
    message.content.map((part) => 'text' in part && part.text),
  );

test('a served persona is found by its name, pinned with its version, and answers in its service', async () => {
  const { bed, there, host, serve } = served();
  serve();
  await host();
  await bed.start({ persona: 'reviewer' });
  const [pinned] = await bed.eventsOf('persona_changed');
  expect(pinned?.provision).toMatchObject({
    persona: { name: 'reviewer', version: 'v1' },
    served: true,
    system_prompt: 'You review.',
  });
  expect(await answersIn(bed)).toEqual([['from there']]);
  expect(there.requests).toHaveLength(1);
  expect(bed.models.requests).toEqual([]);
});

test('a whole definition is served by the host itself, or by an instance of exactly its version if there is one', async () => {
  const { bed, there, host, serve } = served();
  await host();
  await bed.start({ persona: WHOLE });
  expect([bed.models.requests.length, there.requests.length]).toEqual([1, 0]);
  serve('another');
  await bed.send('prompt', 'again');
  expect([bed.models.requests.length, there.requests.length]).toEqual([2, 0]);
  serve();
  await bed.send('prompt', 'again');
  expect([bed.models.requests.length, there.requests.length]).toEqual([2, 1]);
  expect(await bed.eventsOf('waiting_for_persona')).toEqual([]);
});

test('a session keeps the version that it started with, and waits for an instance of it', async () => {
  const { bed, personas, host, serve } = served();
  const first = serve();
  const one = await host();
  await bed.start({ persona: 'reviewer' });
  first.stop();
  serve('v2');
  await bed.send('prompt', 'again');
  expect(await bed.eventsOf('waiting_for_persona')).toMatchObject([
    { persona: 'reviewer', version: 'v1', why: 'unserved', wait_ms: 600_000 },
  ]);
  expect((await one.status(refOf()))?.waiting_for_persona).toMatchObject({ version: 'v1', why: 'unserved' });
  expect(personas.find(DEFAULT, 'reviewer')?.version).toBe('v2');
  serve('v1');
  await bed.time.settle();
  expect(await answersIn(bed)).toEqual([['from there'], ['from there']]);
  expect(await bed.eventsOf('persona_wait_ended')).toMatchObject([{ why: 'unserved' }]);
  expect((await one.status(refOf()))?.waiting_for_persona).toBeUndefined();
});

test('it waits up to the limit, also across a restart of its host, and then the run fails with a code', async () => {
  const { bed, host, serve } = served();
  const instance = serve();
  const one = await host();
  await bed.start({ persona: 'reviewer', limits: { wait_for_persona_ms: 60_000 } });
  instance.stop();
  await bed.send('prompt', 'again');
  await bed.time.advance(40_000);
  one.abandon();
  await host();
  await bed.time.advance(15_000);
  expect((await bed.eventsOf('agent_end')).length).toBe(1);
  await bed.time.advance(10_000);
  expect((await bed.eventsOf('agent_end')).at(-1), (await bed.lines()).join('\n')).toMatchObject({
    stop_reason: 'error',
    error: {
      code: 'persona_unavailable',
      message: expect.stringMatching(
        /^no instance of persona reviewer v1 was available for 1 min \(limits\.wait_for_persona_ms\): start one with cox serve personas/,
      ),
    },
  });
  expect(await bed.eventsOf('waiting_for_persona')).toHaveLength(1);
});

test('if the instance of a step disappears, the journal names it, the step runs elsewhere, and watchers restart', async () => {
  const { bed, there, host, serve } = served();
  there.answers = [say('from there', { delayMs: 1_000 })];
  const [first, second] = [serve(), serve()];
  await host();
  await bed.start({ persona: 'reviewer' });
  await bed.time.advance(500);
  first.kill();
  await bed.time.advance(2_000);
  expect(await bed.eventsOf('persona_step_lost')).toMatchObject([
    { persona: 'reviewer', version: 'v1', cause: 'gone', lost: 1 },
  ]);
  expect(await answersIn(bed)).toEqual([['from there']]);
  expect((await bed.eventsOf('agent_end'))[0]).toMatchObject({ stop_reason: 'end_turn', turns: 1 });
  second.stop();
});

test('an instance that disappears repeatedly ends the run, with a code', async () => {
  const { bed, there, host, serve } = served();
  there.answers = [say('never', { delayMs: 1_000 })];
  await host();
  let instance = serve();
  await bed.start({ persona: 'reviewer' });
  for (let i = 0; i < 10; i++) {
    const next = serve();
    instance.kill();
    instance = next;
    await bed.time.advance(10);
  }
  expect(await bed.eventsOf('persona_step_lost')).toHaveLength(10);
  expect((await bed.eventsOf('agent_end'))[0]).toMatchObject({ error: { code: 'persona_unavailable' } });
});

test('a new owner that finds all attempts lost makes no further one', async () => {
  const { bed, there, host, serve } = served();
  there.answers = [say('never', { delayMs: 1_000 })];
  const one = await host();
  let instance = serve();
  // The host ends when it has recorded the last loss, before the end of the step.
  bed.journal.always = async (append, { bytes }) => {
    if (recordOf(bytes).input.type !== 'model_outcome') return append();
    one.abandon();
    return { status: 'ambiguous', cause: 'gone' };
  };
  await bed.start({ persona: 'reviewer' });
  for (let i = 0; i < 10; i++) {
    const next = serve();
    instance.kill();
    instance = next;
    await bed.time.advance(10);
  }
  bed.journal.always = 'none';
  const attempts = there.requests.length;
  await host();
  await bed.time.advance(30_000);
  expect(await bed.eventsOf('persona_step_lost')).toHaveLength(10);
  expect(there.requests).toHaveLength(attempts);
  expect((await bed.eventsOf('agent_end'))[0]).toMatchObject({ error: { code: 'persona_unavailable' } });
});

test('a paused persona starts no step, in any process, while it is paused; hooks are notified', async () => {
  const { bed, personas, host } = served();
  bed.hooks.registrations = [hook('OnPersonaPaused', 'paused'), hook('OnPersonaResumed', 'resumed')];
  await host();
  personas.setPause(DEFAULT, 'reviewer', { reason: 'its prompt is changed' });
  await bed.start({ persona: WHOLE });
  await bed.time.advance(3_600_000);
  expect(bed.models.requests).toEqual([]);
  expect(await bed.eventsOf('waiting_for_persona')).toMatchObject([{ why: 'paused', reason: 'its prompt is changed' }]);
  personas.setPause(DEFAULT, 'reviewer', null);
  await bed.time.settle();
  expect(await answersIn(bed)).toEqual([['from the host']]);
  const told = (await bed.eventsOf('hook_call')).map(({ point, payload }) => [
    point,
    payload?.version,
    payload?.reason,
  ]);
  expect(told, (await bed.lines()).join('\n')).toEqual([
    ['OnPersonaPaused', 'v1', 'its prompt is changed'],
    ['OnPersonaResumed', 'v1', undefined],
  ]);
});

test('a session that waits can be cancelled', async () => {
  const { bed, personas, host } = served();
  await host();
  personas.setPause(DEFAULT, 'reviewer', {});
  await bed.start({ persona: WHOLE });
  await bed.send('cancel');
  await bed.time.settle();
  expect((await bed.eventsOf('agent_end'))[0]).toMatchObject({ stop_reason: 'cancelled' });
  expect(bed.models.requests).toEqual([]);
});

test('a name that was never announced is not found, and the error lists the known names', async () => {
  const { bed, host, serve } = served();
  serve();
  await host();
  await bed.start({ persona: 'editor' });
  const [end] = await bed.eventsOf('agent_end');
  expect(end?.error).toMatchObject({ code: 'persona_not_found' });
  expect(end?.error?.message).toContain('coder, reviewer');
});

test('a session delegates to a served persona by name, also from a served persona to itself', async () => {
  const bed = crewBed();
  const personas = createMemoryPersonas();
  const there = new FakeModels(bed.time.clock());
  there.answers = [delegate(['reviewer', 'look']), say('looked')];
  bed.parts = { lead: [delegate(['reviewer', 'review']), say('done')] };
  await bed.crewHost({}, { served: personas });
  personas.serve(DEFAULT, { ...REVIEWER, permissions: { rules: [], default: 'allow' } }, there);
  await bed.begin('lead');
  await bed.time.settle();
  const [child = ''] = await bed.childrenOf();
  const [grandchild = ''] = await bed.childrenOf(child);
  for (const session of [child, grandchild])
    expect((await bed.eventsOf('persona_changed', session))[0]?.provision).toMatchObject({
      persona: { name: 'reviewer', version: 'v1' },
      served: true,
    });
  expect((await bed.eventsOf('call_ended')).map(({ result }) => result.content)).toEqual([
    [{ type: 'text', text: 'looked' }],
  ]);
  const [tools] = await bed.eventsOf('tools_changed');
  expect(tools?.tools.find(({ name }) => name === 'delegate')?.description).toContain('reviewer');
});

test('the host opens no MCP server of an announced persona: those run in its service', async () => {
  const { bed, personas, there, host } = served();
  const announced = { ...REVIEWER, mcp_servers: { sh: { command: 'sh', args: [] } } };
  personas.serve(DEFAULT, announced, there);
  await host();
  await bed.start({ persona: 'reviewer', mcp_servers: { own: { command: 'own' } } });
  expect(bed.toolSource.specs.map(({ mcpServers }) => Object.keys(mcpServers))).toEqual([['own']]);
});

test('the tools of a served persona are those of its announcement, also if a newer one follows at once', async () => {
  const { bed, personas, there } = served();
  const tool = { ...definition('look'), source: PERSONA_TOOL_SOURCE };
  personas.serve(DEFAULT, REVIEWER, there);
  const find: typeof personas.find = (tenant, name) => {
    const found = personas.find(tenant, name);
    return found && { ...found, tools: [tool] };
  };
  await bed.host({}, { served: { ...personas, find } });
  await bed.start({ persona: 'reviewer' });
  expect(bed.toolSource.specs[0]?.served).toEqual({ name: 'reviewer', version: 'v1', tools: [tool] });
});

test('a served persona that has the session again has the tools of its version, not those announced since', async () => {
  const bed = crewBed();
  const personas = createMemoryPersonas();
  const there = new FakeModels(bed.time.clock());
  there.answers = [ask(call('h1', 'handoff', { to: 'clerk', brief: 'x' })), say('done')];
  bed.personas = { clerk: { handoffs: ['reviewer'] } };
  // The answer of the service counts as the first one.
  const back = ask(call('h2', 'handoff', { to: 'reviewer', brief: 'y' }));
  bed.parts = { clerk: [say('never'), ask(call('w1', 'wait')), back] };
  const version = (name: string, tool: string) => {
    announced = [{ ...definition(tool), source: PERSONA_TOOL_SOURCE }];
    personas.serve(DEFAULT, { ...REVIEWER, handoffs: ['clerk'], permissions: ALL, version: name }, there);
  };
  let announced: readonly ToolDefinition[] = [];
  const ofPersonas: ToolSource = {
    async open({ served }) {
      const tools = served?.tools ?? (served ? announced : []);
      return {
        tools,
        call: async ({ tool }) => answer(`${tool} ran`),
        probe: async () => ({ state: 'unknown' }),
        close: async () => [],
      };
    },
  };
  bed.tools = { wait: { run: taking(1_000) } };
  const { tools, ...ports } = bed.crewPorts();
  await bed.host({}, { ...ports, tools: combineToolSources([tools as ToolSource, ofPersonas]), served: personas });
  version('v1', 'look');
  await bed.start({ persona: 'reviewer', personas: bed.crew() as unknown as Json });
  version('v2', 'peek');
  await bed.time.advance(2_000);
  const last = (await bed.eventsOf('tools_changed')).at(-1);
  const versions = (await bed.eventsOf('persona_changed')).map(({ provision }) => provision.persona.version);
  expect(versions).toEqual(['v1', expect.anything(), 'v1']);
  expect(last?.tools.filter(({ source }) => source === PERSONA_TOOL_SOURCE).map(({ name }) => name)).toEqual(['look']);
});
