/**
 * Hand-offs on running sessions: the prompt, model and tools of a session, also after ends and restarts.
 */
import type { Persona } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { type CrewBed, crewBed } from './crew-bed.ts';
import { hook } from './fake-hooks.ts';
import { type Answer, ask, call, say } from './fake-model.ts';
import { refOf } from './test-bed.ts';

const handOff = (to: string, brief = 'go on', id = 'h1'): Answer => ask(call(id, 'handoff', { to, brief }));
const results = async (bed: CrewBed) =>
  (await bed.eventsOf('call_ended')).map(({ call_id, status, result }) =>
    [call_id, status, result.detail?.code].filter(Boolean).join(' '),
  );
const end = async (bed: CrewBed) => (await bed.eventsOf('agent_end')).at(-1)?.stop_reason;
const personas = async (bed: CrewBed) =>
  (await bed.eventsOf('persona_changed')).map(({ provision }) => provision.persona.name);
const pinned = async (bed: CrewBed) => (await bed.eventsOf('persona_changed')).at(-1)?.provision;
/** The system prompts of the model requests in order. */
const systems = (bed: CrewBed) => bed.models.requests.map(({ system }) => system);

/** Two personas that may hand off to each other. */
function pair(more: Readonly<Record<'desk' | 'clerk', Partial<Persona>>> = { desk: {}, clerk: {} }): CrewBed {
  const bed = crewBed();
  bed.personas = {
    desk: { handoffs: ['clerk', 'ghost'], ...more.desk },
    clerk: { handoffs: ['desk'], ...more.clerk },
  };
  return bed;
}

describe('the new persona', () => {
  test('answers with its own prompt, model and tools, and sees the whole conversation', async () => {
    const bed = pair({
      desk: { tools: { allow: ['read'], deny: [] } },
      clerk: { tools: { allow: ['write'], deny: [] }, model: { name: 'fake/large' } },
    });
    bed.tools = { read: {}, write: {} };
    bed.parts = { desk: [handOff('clerk', 'find order 7')], clerk: [ask(call('w1', 'write')), say('found')] };
    await bed.crewHost();
    await bed.begin('desk');
    expect(systems(bed)).toEqual(['desk', 'clerk', 'clerk']);
    const [first, second] = bed.models.requests;
    expect(first?.tools.map(({ name }) => name)).toEqual(['handoff', 'read']);
    expect(first?.tools[0]?.description).toMatch(/Personas: clerk, ghost\.$/);
    expect(second?.tools.map(({ name }) => name)).toEqual(['handoff', 'write']);
    expect(second?.model.name).toBe('fake/large');
    expect(second?.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'user']);
    expect(JSON.stringify(second?.messages.at(-1))).toContain('Handed off to you by desk:\\nfind order 7');
    expect(await results(bed)).toEqual(['h1 ok', 'w1 ok']);
    expect(await end(bed)).toBe('end_turn');
  });

  test('keeps the session in later runs, also on other hosts', async () => {
    const bed = pair();
    bed.parts = { desk: [handOff('clerk')], clerk: [say('here')] };
    const host = await bed.crewHost();
    await bed.begin('desk');
    await host.stop();
    await bed.crewHost();
    await bed.send('prompt', { body: 'and now?' });
    expect(systems(bed)).toEqual(['desk', 'clerk', 'clerk']);
    expect(await end(bed)).toBe('end_turn');
    const records = await bed.records();
    expect(records.at(-1)?.events.at(-1)).toMatchObject({ type: 'agent_end' });
  });

  test('uses the previous persona’s model if it names none, and none of its modes', async () => {
    const bed = pair({ desk: { modes: { terse: { prompt: ' Be brief.' } } }, clerk: {} });
    bed.parts = { desk: [handOff('clerk')], clerk: [say('here')] };
    await bed.crewHost();
    await bed.begin('desk', { mode: 'terse', model: 'fake/chosen' });
    expect(await pinned(bed)).toMatchObject({ persona: { name: 'clerk' }, model: { name: 'fake/chosen' } });
    expect((await pinned(bed))?.mode).toBeUndefined();
    // A run later the mode of the start does not matter.
    await bed.send('prompt', { body: 'more' });
    expect(await end(bed)).toBe('end_turn');
  });

  test('is unchanged when it has the session again, with its mode', async () => {
    const bed = pair({ desk: { modes: { terse: { prompt: ' Be brief.' } } }, clerk: {} });
    bed.parts = { desk: [handOff('clerk'), say('done')], clerk: [handOff('desk', 'back', 'h2')] };
    await bed.crewHost();
    await bed.begin('desk', { mode: 'terse' });
    expect(await personas(bed)).toEqual(['desk', 'clerk', 'desk']);
    expect(await pinned(bed)).toMatchObject({ mode: 'terse' });
  });

  test('idles between jobs if the session does, whether or not it is a daemon itself', async () => {
    const bed = pair({ desk: { daemon: { wake_interval_ms: 60_000 } }, clerk: {} });
    bed.parts = { desk: [handOff('clerk')], clerk: [say('here')] };
    await bed.crewHost();
    await bed.begin('desk');
    expect(await end(bed)).toBeUndefined();
    await bed.send('followup', { body: 'the next job' });
    expect(systems(bed)).toEqual(['desk', 'clerk', 'clerk']);
    const other = pair({ desk: {}, clerk: { daemon: {} } });
    other.parts = { desk: [handOff('clerk')], clerk: [say('here')] };
    await other.crewHost();
    await other.begin('desk');
    expect(await end(other)).toBe('end_turn');
  });

  test('without limits of its own has those of the start, for itself and for the whole run', async () => {
    const bed = pair({ desk: { limits: { wall_time_ms: 60_000 } as never }, clerk: {} });
    bed.parts = { desk: [handOff('clerk')], clerk: [say('here')] };
    await bed.crewHost();
    await bed.begin('desk', { limits: { tokens: 900 } });
    expect(await pinned(bed)).toMatchObject({ persona: { name: 'clerk' }, run_limits: { tokens: 900 } });
    expect((await pinned(bed))?.budgets?.limits).toEqual({ tokens: 900 });
    expect(await end(bed)).toBe('end_turn');
  });

  test('has its own remembered rules, and none of the previous persona', async () => {
    const bed = pair({
      desk: { permissions: { default: 'ask', rules: [{ tool: 'handoff', action: 'allow' }] } as never },
      clerk: { permissions: { default: 'ask', rules: [] } as never },
    });
    bed.parts = {
      desk: [ask(call('r1', 'read')), handOff('clerk')],
      clerk: [ask(call('r2', 'read')), say('done')],
    };
    await bed.crewHost();
    await bed.begin('desk');
    await bed.send('approve', { call_id: 'r1', decision: 'allow', remember: 'persona' });
    expect((await bed.eventsOf('approval_requested')).map(({ call_id }) => call_id)).toEqual(['r1', 'r2']);
  });
});

describe('a hand-off', () => {
  test('to an unknown persona leaves the session with the old one, which gets the list of known ones', async () => {
    const bed = pair();
    bed.parts = { desk: [handOff('ghost'), say('then I do it')], clerk: [] };
    await bed.crewHost();
    await bed.begin('desk');
    expect(await results(bed)).toEqual(['h1 error persona_not_found']);
    const [ended] = await bed.eventsOf('call_ended');
    expect(JSON.stringify(ended?.result.content)).toContain(
      'there is no persona ghost; known personas: clerk, coder, desk',
    );
    expect(await personas(bed)).toEqual(['desk']);
    expect(await end(bed)).toBe('end_turn');
  });

  test.each<[string, string, Partial<Persona>]>([
    ['whose model has no price for its budget', 'price_unknown', { limits: { usd: 1 } }],
    ['whose predicate nobody has', 'predicate_unknown', { stop_when: [{ predicate: 'odd' }] }],
  ])('to one %s is an error result', async (_, code, clerk) => {
    const bed = pair({ desk: {}, clerk });
    bed.parts = { desk: [handOff('clerk'), say('alone')], clerk: [] };
    await bed.crewHost();
    await bed.begin('desk');
    expect(await results(bed)).toEqual([`h1 error ${code}`]);
    expect(await end(bed)).toBe('end_turn');
  });

  test('opens the tools of the other persona and closes those of the one before', async () => {
    const bed = pair();
    bed.parts = { desk: [ask(call('r1', 'read')), handOff('clerk')], clerk: [ask(call('r2', 'read')), say('ok')] };
    await bed.crewHost();
    await bed.begin('desk');
    expect(bed.toolSource.openNow).toBe(0);
    expect(bed.toolSource.runs).toHaveLength(2);
  });

  test('keeps a hook that the host got meanwhile: it guards the calls of the other persona', async () => {
    const bed = pair();
    bed.parts = { desk: [handOff('clerk')], clerk: [ask(call('r1', 'read')), say('ok')] };
    bed.toolSource.openMs = 1_000;
    await bed.crewHost();
    await bed.begin('desk');
    await bed.time.advance(1_500);
    bed.hooks.change([hook('PreToolUse', 'guard', { deny: 'not now' })]);
    await bed.time.advance(1_500);
    expect(await results(bed)).toEqual(['h1 ok', 'r1 denied']);
    expect(bed.toolSource.runs).toEqual([]);
  });

  test('that a host left unfinished is completed by the next host', async () => {
    const bed = pair();
    bed.parts = { desk: [handOff('clerk')], clerk: [ask(call('r1', 'read')), say('ok')] };
    let stall = true;
    const slow = async (name: string) => (stall && name === 'clerk' ? new Promise<never>(() => {}) : null);
    const host = await bed.crewHost({}, { personas: { find: slow, names: async () => [] } });
    await bed.start({
      persona: { name: 'desk', prompt: 'desk', handoffs: ['clerk'], permissions: { default: 'allow' } },
    });
    expect((await bed.eventsOf('handoff_emitted')).length).toBe(1);
    stall = false;
    host.abandon();
    await bed.crewHost(
      {},
      {
        personas: {
          find: async () => ({ name: 'clerk', prompt: 'clerk', permissions: { default: 'allow' } }) as never,
          names: async () => ['clerk'],
        },
      },
    );
    await bed.time.advance(60_000);
    expect(await results(bed)).toEqual(['h1 ok', 'r1 ok']);
    expect(await end(bed)).toBe('end_turn');
  });

  test('in a fork belongs to the fork: a fork before it continues with the first persona, one after it with the other', async () => {
    const bed = pair();
    bed.parts = { desk: [handOff('clerk')], clerk: [say('here')] };
    await bed.crewHost();
    await bed.begin('desk');
    const records = await bed.records();
    const handed = records.find(({ events }) => events.some(({ type }) => type === 'handoff_emitted'))?.n as number;
    bed.models.requests.length = 0;
    await bed.send('start', { fork: { session: 's1', n: handed } }, { session: 'before' });
    expect(systems(bed)).toEqual(['clerk']);
    await bed.send('start', { fork: { session: 's1', n: handed - 1 } }, { session: 'earlier' });
    expect(systems(bed)).toEqual(['clerk', 'desk', 'clerk']);
    await bed.send('start', { fork: { session: 's1', n: records.length } }, { session: 'after' });
    await bed.send('prompt', { body: 'more' }, { session: 'after' });
    expect(systems(bed)).toEqual(['clerk', 'desk', 'clerk', 'clerk']);
  });
});

describe('the persona that has a session', () => {
  test('is in its status', async () => {
    const bed = pair();
    bed.parts = { desk: [handOff('clerk')], clerk: [say('here')] };
    const host = await bed.crewHost();
    await bed.begin('desk');
    expect(await host.status(refOf())).toMatchObject({ persona: 'clerk' });
  });
});
