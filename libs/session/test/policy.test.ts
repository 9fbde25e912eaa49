/**
 * The host's policy in a session: rejected commands leave nothing, and the rules apply wherever a setting is used.
 */
import { HEADERS, HostPolicy, type HostPolicyInput, type JsonObject, OPEN_RULES, rulesFor } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { type HostPorts, importJournal } from '../src/mod.ts';
import { crewBed, delegate } from './crew-bed.ts';
import { ask, call, say } from './fake-model.ts';
import { ALLOW, ASKING, testBed } from './test-bed.ts';

const RESTRICTED = { headers: { [HEADERS.restricted]: '1' } };
const EVIL = 'https://evil.example.org/v1';

/** A host that trusts its bus, unless the policy says otherwise. */
function ruled(policy: HostPolicyInput = {}): Partial<HostPorts> {
  const surroundings = { folder: '/work', origins: [], trustsBus: true };
  const read = HostPolicy.parse(policy);
  return { rulesFor: (tenant, restricted) => rulesFor(read, surroundings, tenant, restricted) };
}

const start = (body: JsonObject): JsonObject => ({ prompt: 'hello', model: 'fake/model', ...body });

test.each<[string, Parameters<typeof ruled>[0], typeof RESTRICTED | undefined]>([
  ['on a bus that is not trusted, of anyone', { trust_bus: false }, undefined],
  ['on a trusted bus, of a restricted sender', {}, RESTRICTED],
])('a start that names too much is rejected and logged: %s', async (_, policy, headers) => {
  const bed = testBed();
  await bed.host({}, ruled(policy));
  const id = await bed.send('start', start({ root: '/etc' }), headers);
  expect(bed.told(id)).toEqual(['rejected not_allowed_by_policy']);
  expect(await bed.records()).toEqual([]);
  const [line] = bed.log.filter(({ level }) => level === 'warn');
  expect(line?.fields).toMatchObject({
    tenant: 'default',
    session_id: 's1',
    code: 'not_allowed_by_policy',
    field: 'root',
  });
  expect(line?.message).toContain('policy.roots allows /work');
});

test('a start that the policy rejects at the lookup of its model is logged as well', async () => {
  const bed = testBed();
  await bed.host({}, ruled());
  const message = 'model: the script link.yaml leads out of the folders';
  bed.models.missing = { code: 'not_allowed_by_policy', message, retryable: false };
  const id = await bed.send('start', start({}), RESTRICTED);
  expect(bed.told(id)).toEqual(['rejected not_allowed_by_policy']);
  const [line] = bed.log.filter(({ level }) => level === 'warn');
  expect(line?.fields).toMatchObject({ session_id: 's1', code: 'not_allowed_by_policy', field: 'model' });
  expect(line?.message).toContain(message);
});

test('a start with a literal secret is rejected and logged on every bus, and no line or receipt has the value', async () => {
  const bed = testBed();
  await bed.host({}, ruled());
  const id = await bed.send('start', start({ base_url: 'https://user:hunter2@llm.example.org' }));
  expect(bed.told(id)).toEqual(['rejected secret_in_request']);
  const [line] = bed.log.filter(({ level }) => level === 'warn');
  expect(line?.fields).toMatchObject({
    tenant: 'default',
    session_id: 's1',
    code: 'secret_in_request',
    field: 'base_url',
  });
  expect(JSON.stringify([bed.log, bed.receipts, await bed.records()])).not.toContain('hunter2');
});

test('the policy applies neither to a trusted sender nor to its session', async () => {
  const bed = testBed();
  await bed.host({}, ruled({ run_command: 'deny' }));
  await bed.start({ root: '/etc' });
  expect(bed.toolSource.specs[0]).toMatchObject({ root: '/etc', rules: { ...OPEN_RULES, folder: '/work' } });
});

test('the record of a rejected prompt keeps nothing of its body', async () => {
  const bed = testBed();
  await bed.host({}, ruled());
  await bed.start();
  const id = await bed.send('prompt', { body: 'again', model: 'openai/x', base_url: EVIL }, RESTRICTED);
  expect(bed.told(id)).toEqual(['rejected not_allowed_by_policy']);
  const record = (await bed.records()).at(-1);
  expect(record?.input).toMatchObject({ verb: 'prompt', body: {} });
  expect(record?.events).toMatchObject([{ type: 'command_rejected', field: 'base_url' }]);
});

test('a fork whose changes name too much is rejected before anything is copied', async () => {
  const bed = testBed();
  await bed.host({}, ruled());
  await bed.start();
  const body = { fork: { session: 's1', n: 2, changes: { model: 'openai/x', base_url: EVIL } } };
  const id = await bed.send('start', body, { ...RESTRICTED, session: 'f1' });
  expect(bed.told(id)).toEqual(['rejected not_allowed_by_policy']);
  expect(await bed.records('f1')).toEqual([]);
});

test('a session of a restricted sender stays restricted: its tools, its fork and its next run on another host', async () => {
  const bed = testBed();
  await bed.host({}, ruled());
  await bed.start({ permissions: {} }, RESTRICTED);
  await bed.host({}, ruled());
  await bed.send('prompt', 'again');
  await bed.send('start', { fork: { session: 's1', n: 1 } }, { session: 'f1' });
  expect(bed.toolSource.specs.length).toBeGreaterThan(2);
  for (const { rules } of bed.toolSource.specs) expect(rules).toMatchObject({ roots: ['/work'], variables: [] });
});

test('a child of a restricted session is restricted', async () => {
  const bed = crewBed();
  bed.parts = { lead: [delegate(['mate', 'work']), say('done')], mate: [say('worked')] };
  await bed.crewHost({}, ruled());
  await bed.begin('lead', { restricted: true, permissions: { default: 'allow' } });
  const specs = bed.toolSource.specs.filter(({ ref }) => ref.sessionId !== 's1');
  expect(specs.length).toBeGreaterThan(0);
  for (const { rules } of specs) expect(rules).toMatchObject({ roots: ['/work'], mcp_servers: 'none' });
});

test('an imported journal gets the policy of the host that runs it, whatever root it names', async () => {
  const from = testBed();
  await from.host({}, ruled());
  await from.start({ root: '/' });
  const lines = await from.bytes();
  const bed = testBed();
  const read = async function* () {
    yield* lines;
  };
  await importJournal(
    { journal: bed.journal, blobs: bed.bus.blobs, clock: bed.time.clock() },
    { lines: read, tenant: 'default' },
  );
  await bed.host({}, ruled({ trust_bus: false }));
  await bed.send('prompt', 'again');
  // The tools check the root themselves: they open no folder outside these rules.
  expect(bed.toolSource.specs.at(-1)).toMatchObject({ root: '/', rules: { roots: ['/work'] } });
});

test('run_command waits for a decision, whatever rules the persona and the start have', async () => {
  const bed = testBed();
  bed.tools = { run_command: {}, read: {} };
  bed.models.answers = [ask(call('c1', 'run_command'), call('c2', 'read')), say('done')];
  const personas = {
    find: async () => ({ name: 'coder', prompt: '', permissions: ALLOW as never }),
    names: async () => [],
  };
  await bed.host({}, { ...ruled({ trust_bus: false }), personas });
  await bed.send('start', start({ persona: 'coder' }));
  expect(await bed.eventsOf('approval_requested')).toMatchObject([{ call_id: 'c1' }]);
});

test('a session without a root gets the first folder of the policy if the working folder is not allowed', async () => {
  const bed = testBed();
  await bed.host({}, ruled({ trust_bus: false, roots: ['/srv/a', '/srv/b'] }));
  await bed.start({ permissions: {} });
  expect(bed.toolSource.specs[0]?.root).toBe('/srv/a');
});

test('a session that was started with stand-ins does not run on a host that allows none', async () => {
  const bed = testBed();
  await bed.host({}, ruled());
  await bed.start({ stand_ins: { read_file: 'editor_read' } });
  await bed.host({}, ruled({ trust_bus: false }));
  await bed.send('prompt', 'again');
  expect((await bed.lines()).at(-1)).toContain('error');
  expect(await bed.eventsOf('run_failed')).toMatchObject([{ error: { code: 'not_allowed_by_policy' } }]);
});

test('nor does a call that an earlier host has left for it', async () => {
  const bed = testBed();
  bed.tools = { ask: {} };
  bed.models.answers = [ask(call('c1', 'ask')), say('done')];
  const first = await bed.host({}, ruled());
  await bed.start({ stand_ins: { read_file: 'editor_read' }, permissions: ASKING });
  first.abandon();
  await bed.host({}, ruled({ trust_bus: false }));
  await bed.time.advance(30_000);
  await bed.send('approve', { call_id: 'c1', decision: 'allow' });
  await bed.time.advance(30_000);
  expect(bed.toolSource.runs).toEqual([]);
  expect((await bed.eventsOf('call_ended'))[0]?.result.detail?.code).toBe('tool_unavailable');
});
