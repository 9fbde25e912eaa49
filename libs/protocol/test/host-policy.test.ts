/**
 * The policy of a host: what requests may name, and the rejections.
 */
import { expect, test } from 'vitest';
import { z } from 'zod';
import { DEFAULT_QUOTAS } from '../src/commands/quotas.ts';
import {
  COMMAND_BODIES,
  checkRequest,
  type FieldDecision,
  FORK_CHANGE_DECISIONS,
  FORK_DECISIONS,
  ForkChanges,
  ForkRequest,
  HostPolicy,
  type HostPolicyInput,
  isBelow,
  MODEL_DECISIONS,
  ModelSettings,
  mayHaveKey,
  OPEN_RULES,
  PERSONA_DECISIONS,
  Persona,
  PROMPT_DECISIONS,
  parseBody,
  rulesFor,
  START_DECISIONS,
  type Verb,
} from '../src/mod.ts';
import { MessageMode } from '../src/personas/crews.ts';

const SURROUNDINGS = {
  folder: '/srv/work',
  origins: [{ origin: 'https://api.openai.com', key_of: 'openai' as const }],
  trustsBus: false,
};

function rulesOf(policy: HostPolicyInput = {}, tenant = 'default', restricted = false) {
  return rulesFor(HostPolicy.parse(policy), SURROUNDINGS, tenant, restricted);
}

function refusal(body: object, policy: HostPolicyInput = {}, verb: Verb = 'start') {
  const written = verb === 'start' && !('fork' in body) ? { prompt: 'go', ...body } : body;
  const read = parseBody(verb, written);
  if (!read.ok) throw new Error(read.problem.message);
  return checkRequest(rulesOf(policy), verb, read.body);
}

const clerk = { name: 'clerk', prompt: 'You file.' };
// biome-ignore lint/suspicious/noTemplateCurlyInString: as a configuration says it
const KEY = 'Bearer ${OPENAI_API_KEY}';
const sea = { url: 'https://sea.example.org/mcp', headers: { Authorization: KEY } };
const fork = (changes: object) => ({ fork: { session: 's', n: 3, changes } });

test.each<[field: string, body: object, policy: HostPolicyInput, line: string]>([
  ['root', { root: '/' }, {}, 'policy.roots allows /srv/work'],
  ['root', { root: '/srv/work/../other' }, {}, 'policy.roots allows /srv/work'],
  ['root', { root: '/srv/workshop' }, { roots: ['/srv/work'] }, 'policy.roots allows /srv/work'],
  ['model', { model: 'google/x' }, { models: ['openai/*'] }, 'policy.models allows openai/*'],
  ['model', { model: 'scripted//etc/shadow' }, {}, 'policy.roots allows /srv/work'],
  ['model', { model: 'replay/../../etc/shadow' }, {}, 'policy.roots allows /srv/work'],
  ['model', { provider: 'scripted', model: '/dev/random' }, {}, 'policy.roots allows /srv/work'],
  ['base_url', { model: 'openai/x', base_url: 'https://evil.example.org/v1' }, {}, 'policy: add it to origins'],
  ['base_url', { model: 'openai-compatible/x', base_url: 'http://169.254.169.254/' }, {}, 'policy: add it to origins'],
  ['base_url', { model: 'openai-compatible/x', base_url: 'http://0x7f.1/' }, {}, 'policy: add it to origins'],
  ['base_url', { model: 'openai-compatible/x', base_url: 'http://[::1]/' }, {}, 'policy: add it to origins'],
  ['base_url', { model: 'openai-compatible/x', base_url: 'http://a.localhost/' }, {}, 'policy: add it to origins'],
  ['mcp_servers.sea', { mcp_servers: { sea } }, {}, 'policy.mcp_servers is "none"'],
  [
    'mcp_servers.sea.headers.Authorization',
    { mcp_servers: { sea } },
    { mcp_servers: 'http', variables: ['SEA_TOKEN'] },
    'policy.variables allows SEA_TOKEN; add OPENAI_API_KEY',
  ],
  // The host would send it to the sender's own server.
  [
    'mcp_servers.sea.url',
    { mcp_servers: { sea } },
    { mcp_servers: 'http', variables: ['OPENAI_API_KEY'] },
    'policy: add it to origins',
  ],
  ['mcp_servers.sh.command', { mcp_servers: { sh: { command: 'sh' } } }, { mcp_servers: 'http' }, 'is "http"'],
  [
    'mcp_servers.sh.env.A',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: as a configuration says it
    { mcp_servers: { sh: { command: 'sh', env: { A: '${NATS_NKEY:-x}' } } } },
    { mcp_servers: 'any' },
    'policy.variables allows none; add NATS_NKEY',
  ],
  [
    'mcp_servers.sea.url',
    { mcp_servers: { sea: { url: 'http://127.0.0.1:1/mcp' } } },
    { mcp_servers: 'http' },
    'policy: add it to origins',
  ],
  ['persona', { persona: clerk }, { personas: 'named' }, 'policy.personas is "named"'],
  ['personas.0', { personas: [clerk] }, { personas: 'named' }, 'policy.personas is "named"'],
  ['persona.mcp_servers.sea', { persona: { ...clerk, mcp_servers: { sea } } }, {}, 'policy.mcp_servers is "none"'],
  ['personas.0.model', { personas: [{ ...clerk, model: 'scripted//x' }] }, {}, 'policy.roots allows /srv/work'],
  [
    'persona.model.base_url',
    { persona: { ...clerk, model: { name: 'anthropic/x', base_url: 'https://evil.example.org' } } },
    {},
    'policy: add it to origins',
  ],
  [
    'permissions.rules.1.action',
    {
      permissions: {
        rules: [
          { tool: 'run_command', when: 'command == "ls"', action: 'ask' },
          { tool: '*', action: 'allow' },
        ],
      },
    },
    {},
    'policy.run_command is "ask"',
  ],
  [
    'persona.permissions.rules.0.action',
    { persona: { ...clerk, permissions: { rules: [{ tool: 'run_*', action: 'allow' }] } } },
    { run_command: 'deny' },
    'policy.run_command is "deny"',
  ],
  [
    'permissions.rules.0.action',
    { permissions: { rules: [{ tool: 'run_command', when: 'command == "ls"', action: 'ask' }] } },
    { run_command: 'deny' },
    'may not ask about run_command',
  ],
  ['stand_ins', { stand_ins: { read_file: 'deploy' } }, {}, 'policy.stand_ins is "none"'],
  [
    'fork.changes.base_url',
    fork({ model: 'openai-compatible/x', base_url: 'https://public.example.org' }),
    {},
    'policy: add it to origins',
  ],
  [
    'fork.changes.persona.mcp_servers.sea.url',
    fork({ persona: { ...clerk, mcp_servers: { sea: { url: 'https://public.example.org' } } } }),
    { mcp_servers: 'http' },
    'policy: add it to origins',
  ],
])('a start with a forbidden %s is rejected with the line of the policy', (field, body, policy, line) => {
  const found = refusal(body, policy);
  expect(found).toMatchObject({ code: 'not_allowed_by_policy', field });
  expect(found?.message).toMatch(new RegExp(`^${field.replaceAll('.', '\\.')}: `));
  expect(found?.message).toContain(line);
});

test.each<[string, object, HostPolicyInput]>([
  ['a root below an allowed folder', { root: '/srv/work/a' }, {}],
  ['a script below the working folder', { model: 'scripted/demo.yaml' }, {}],
  ['the provider’s own origin', { model: 'openai/x', base_url: 'https://api.openai.com/v1' }, {}],
  ['a listed origin', { model: 'openai/x', base_url: 'http://127.0.0.1:1/v1' }, { origins: ['http://127.0.0.1:1'] }],
  ['a public server without a key', { model: 'openai-compatible/x', base_url: 'https://llm.example.org/v1' }, {}],
  [
    'an allowed variable for a listed origin',
    { mcp_servers: { sea } },
    { mcp_servers: 'http', variables: ['OPENAI_API_KEY'], origins: ['https://sea.example.org'] },
  ],
  ['a public MCP server without a variable', { mcp_servers: { sea: { url: sea.url } } }, { mcp_servers: 'http' }],
  ['a persona of the request', { persona: clerk }, {}],
  [
    'a rule behind one that asks',
    {
      permissions: {
        rules: [
          { tool: 'run_command', action: 'ask' },
          { tool: '*', action: 'allow' },
        ],
      },
    },
    {},
  ],
  ['what the section of the tenant allows', { root: '/opt' }, { tenants: { default: { roots: ['/opt'] } } }],
])('%s is allowed', (_, body, policy) => {
  expect(refusal(body, policy)).toBeNull();
});

test('a rejection is short, even for long names in a request', () => {
  const long = 'a'.repeat(1_000_000);
  const headers = { [long]: `\${${long}}` };
  const servers = { mcp_servers: { sea: { url: `https://${long}.example.org`, headers } } };
  const found = refusal(servers, { mcp_servers: 'http' });
  expect(found?.code).toBe('not_allowed_by_policy');
  expect(JSON.stringify(found).length).toBeLessThan(2_000);
});

test('unterminated references are searched in linear time', () => {
  // A quadratic search would exceed the test's timeout.
  const headers = { a: `${'${A:-'.repeat(300_000)}\${HOME}` };
  const found = refusal({ mcp_servers: { sea: { url: 'https://sea.example.org', headers } } }, { mcp_servers: 'http' });
  expect(found?.code).toBe('not_allowed_by_policy');
});

test('a prompt may name listed origins only: its session may have been started with more rights', () => {
  const body = { body: 'go', model: 'openai-compatible/x', base_url: 'https://llm.example.org/v1' };
  expect(refusal(body, {}, 'prompt')).toMatchObject({ code: 'not_allowed_by_policy', field: 'base_url' });
  expect(refusal(body, { origins: ['https://llm.example.org'] }, 'prompt')).toBeNull();
});

test.each([
  [{ session_messages: 'followup' }, ['followup', 'prompt']],
  [{}, ['steer', 'followup', 'prompt']],
  [{ session_messages: 'interrupt' }, ['steer', 'interrupt', 'followup', 'prompt']],
] as const)('a message from another session has at most the mode that the policy allows: %j', (policy, modes) => {
  for (const trust_bus of [false, true]) {
    const rules = rulesOf({ ...policy, trust_bus });
    expect(MessageMode.options.filter((mode) => checkRequest(rules, 'message', { mode }) === null)).toEqual(modes);
  }
});

test('a trusted bus lifts the sections, but not for a restricted sender', () => {
  const trusted = { trust_bus: true, session_messages: 'followup' } as const;
  expect(rulesOf(trusted)).toEqual({ ...OPEN_RULES, folder: '/srv/work', session_messages: 'followup' });
  expect(rulesOf(trusted, 'default', true)).toEqual(rulesOf({ session_messages: 'followup' }));
});

test('the section of a tenant replaces the shared one and keeps the others', () => {
  const policy = { roots: ['/a'], run_command: 'deny', tenants: { red: { roots: ['/b'] } } } as const;
  const input = { ...policy, roots: [...policy.roots], tenants: { red: { roots: ['/b'] } } };
  expect(rulesOf(input, 'red')).toMatchObject({ roots: ['/b'], run_command: 'deny' });
  expect(rulesOf(input, 'blue')).toMatchObject({ roots: ['/a'] });
});

test('quotas are those of the tenant, with defaults, and apply on a trusted bus too', () => {
  const policy = { trust_bus: true, quotas: { sessions: 10 }, tenants: { red: { quotas: { stored_bytes: 1_000 } } } };
  expect(rulesOf().quotas).toEqual(DEFAULT_QUOTAS);
  expect(rulesOf(policy).quotas).toEqual({ ...DEFAULT_QUOTAS, sessions: 10 });
  expect(rulesOf(policy, 'red').quotas).toEqual({ ...DEFAULT_QUOTAS, stored_bytes: 1_000 });
});

test('a key is sent only to an origin that is listed for it', () => {
  const rules = rulesOf({ origins: ['https://a.example.org', { origin: 'https://b.example.org/', key_of: 'google' }] });
  expect(mayHaveKey(rules, 'https://api.openai.com/v1', 'openai')).toBe(true);
  expect(mayHaveKey(rules, 'http://api.openai.com/v1', 'openai')).toBe(false);
  expect(mayHaveKey(rules, 'https://api.openai.com/v1', 'anthropic')).toBe(false);
  expect(mayHaveKey(rules, 'https://a.example.org/v1', 'openai')).toBe(false);
  expect(mayHaveKey(rules, 'https://b.example.org/x', 'google')).toBe(true);
});

test.each([
  [{ roots: ['work'] }, 'roots'],
  [{ origins: ['https://a.example.org/v1'] }, 'origins'],
  [{ origins: ['https://u:p@a.example.org'] }, 'origins'],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the mistake
  [{ variables: ['${A}'] }, 'variables'],
  [{ mcp_servers: 'all' }, 'mcp_servers'],
  [{ root: ['/a'] }, undefined],
])('a policy of %j is rejected', (policy, at) => {
  const read = HostPolicy.safeParse(policy);
  expect(read.error?.issues[0]?.path[0]).toBe(at);
});

test.each([
  ['/srv/work', '/srv/work', true],
  ['/', '/anything', true],
  ['/srv/work/', '/srv/work/./a/../b', true],
  ['/srv/work', '/srv', false],
  ['/srv/work', 'a', false],
  ['/', 'C:\\work', false],
  ['/srv/work', '/srv/work\0', false],
  ['C:\\work', 'C:\\work\\a', true],
  ['C:\\work', 'C:\\work\\..\\other', false],
])('%s contains %s: %s', (folder, path, contains) => {
  expect(isBelow(folder, path)).toBe(contains);
});

/** The names of all members of a schema, without its optional wrapper and refinements. */
function membersOf(schema: z.ZodType): string[] {
  const { properties } = z.toJSONSchema(schema, { io: 'output', unrepresentable: 'any' }) as { properties: object };
  return Object.keys(properties).sort();
}

test.each<[string, z.ZodType, Readonly<Record<string, FieldDecision>>]>([
  ['start', COMMAND_BODIES.start, START_DECISIONS],
  ['prompt', COMMAND_BODIES.prompt, PROMPT_DECISIONS],
  ['fork', ForkRequest, FORK_DECISIONS],
  ['fork.changes', ForkChanges, FORK_CHANGE_DECISIONS],
  ['persona', Persona, PERSONA_DECISIONS],
  ['persona.model', ModelSettings, MODEL_DECISIONS],
])('each member of %s has a decision', (_, schema, decisions) => {
  expect(Object.keys(decisions).sort()).toEqual(membersOf(schema));
});
