/**
 * Each field of each command has a decision, at any depth: it names nothing of the host, or the policy of the host can reject it.
 * The list comes from the schemas: a new field without a decision here fails.
 */
import {
  COMMAND_BODIES,
  checkRequest,
  type FieldDecision,
  FORK_CHANGE_DECISIONS,
  FORK_DECISIONS,
  HostPolicy,
  type HostPolicyInput,
  MODEL_DECISIONS,
  PERSONA_DECISIONS,
  PROMPT_DECISIONS,
  parseBody,
  rulesFor,
  START_DECISIONS,
  VERBS,
} from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { leavesOf } from './request-fields.ts';

/** An attack by one field: members of the object that has the field, and the rejected field relative to that object. */
interface Attack {
  readonly members: object;
  readonly field: string;
  /** What the host allows, if the attack needs more than the default of a shared host. */
  readonly policy?: HostPolicyInput;
}
type Decision = 'data' | Attack;

const server = (members: object) => ({ mcp_servers: { sea: members } });
const program = { members: server({ command: 'sh', args: ['-c', 'id'], cwd: '/' }), field: 'mcp_servers.sea.command' };
const runsCommands = {
  members: { permissions: { rules: [{ tool: 'run_*', when: 'command == "id"', action: 'allow' }] } },
  field: 'permissions.rules.0.action',
};
const http = { mcp_servers: 'http' } as const;
// biome-ignore lint/suspicious/noTemplateCurlyInString: as a configuration has it
const VARIABLE = '${OPENAI_API_KEY}';

/** Fields that any object with MCP servers and permissions has: a start and a persona. */
const SHARED: Readonly<Record<string, Decision>> = {
  '<mcp_servers>.NAME.args.*': { ...program, policy: http },
  '<mcp_servers>.NAME.command': { ...program, policy: http },
  '<mcp_servers>.NAME.cwd': { ...program, policy: http },
  '<mcp_servers>.NAME.env.NAME': {
    members: server({ command: 'sh', env: { A: VARIABLE } }),
    field: 'mcp_servers.sea.env.A',
    policy: { mcp_servers: 'any' },
  },
  '<mcp_servers>.NAME.headers.NAME': {
    members: server({ url: 'https://sea.example.org', headers: { A: VARIABLE } }),
    field: 'mcp_servers.sea.headers.A',
    policy: { ...http, origins: ['https://sea.example.org'] },
  },
  '<mcp_servers>.NAME.type': {
    members: server({ url: 'https://sea.example.org', type: 'http' }),
    field: 'mcp_servers.sea',
  },
  '<mcp_servers>.NAME.url': {
    members: server({ url: 'http://169.254.169.254/' }),
    field: 'mcp_servers.sea.url',
    policy: http,
  },
  // Whatever a default or a later rule says, the host adds the rule of the policy for run_command: commandCeiling().
  '<permissions>.default': 'data',
  '<permissions>.expire_after_ms': 'data',
  '<permissions>.rules.*.action': runsCommands,
  '<permissions>.rules.*.tool': runsCommands,
  '<permissions>.rules.*.when': runsCommands,
};

/** Fields of a persona that a request brings. */
const OF_PERSONA: Readonly<Record<string, Decision>> = {
  '<persona>.model': { members: { model: 'scripted//etc/shadow' }, field: 'model' },
  '<persona>.model.name': { members: { model: { name: 'replay/../../etc/shadow' } }, field: 'model' },
  '<persona>.model.base_url': {
    members: { model: { name: 'anthropic/x', base_url: 'https://evil.example.org' } },
    field: 'model.base_url',
  },
};

/** Fields of a start itself, of a fork's changes, and of a prompt. */
const OF_CHOICE: Readonly<Record<string, Decision>> = {
  base_url: { members: { model: 'openai/x', base_url: 'https://evil.example.org' }, field: 'base_url' },
  model: { members: { model: 'scripted//dev/zero' }, field: 'model' },
  provider: { members: { provider: 'scripted', model: '/proc/self/environ' }, field: 'model' },
};
const OF_START: Readonly<Record<string, Decision>> = {
  root: { members: { root: '/' }, field: 'root' },
  'stand_ins.NAME': { members: { stand_ins: { read_file: 'other' } }, field: 'stand_ins' },
};
const OF_CHANGES = Object.fromEntries(
  Object.entries(OF_CHOICE).map(([leaf, decision]) => [`fork.changes.${leaf}`, decision]),
);

/** Fields that name nothing of a host: texts, numbers, names within the tenant, bytes that travel in the message. */
const DATA: readonly string[] = [
  ...[
    ...['children', 'depth', 'max_turns', 'output_repairs', 'parallel_calls', 'tokens', 'usd', 'wait_for_persona_ms'],
    'wall_time_ms',
  ].map((limit) => `<limits>.${limit}`),
  ...[
    'budget_thresholds.*',
    'compaction.keep_turns',
    'compaction.reserve',
    'compaction.strategy',
    'daemon.wake_interval_ms',
    'description',
    'handoffs.*',
    'model.context_window',
    'model.max_output_tokens',
    // Options of the provider's API: the host opens no address and no file for them.
    'model.provider_options.NAME',
    'model.temperature',
    'modes.NAME.prompt',
    'name',
    'on_unknown_outcome',
    // References to other documents are refused, and patterns run in linear time.
    'output',
    'prompt',
    'skills.*.body',
    'skills.*.description',
    'skills.*.files.*.base64',
    // Within the skill, which travels in the request.
    'skills.*.files.*.path',
    'skills.*.files.*.text',
    'skills.*.name',
    'steering.followups',
    'steering.steering',
    'stop_when.*.predicate',
    'stop_when.*.text',
    'stop_when.*.tool',
    'transform_context.drop_reasoning',
    'transform_context.last_n_turns',
    'transform_context.max_tool_result_chars',
    'version',
    // A persona's own hooks can deny, and not allow. A host loads no handler of a request's persona.
    ...['deny', 'event', 'handler', 'id', 'kinds', 'kinds.*', 'max_output', 'on_error', 'pattern', 'priority'].map(
      (member) => `hooks.*.${member}`,
    ),
    ...['returns', 'step', 'timeout_ms'].map((member) => `hooks.*.${member}`),
    ...['', '.handler', '.id', '.on_error', '.pattern', '.returns', '.timeout_ms'].map(
      (member) => `on_finish${member}`,
    ),
    ...['error_boundary', 'max_tokens', 'max_usd', 'name', 'prompt'].map((member) => `steps.*.${member}`),
    // Names of tools that the session has.
    ...['tools', 'steps.*.tools'].flatMap((at) => [at, `${at}.*`, `${at}.allow.*`, `${at}.deny.*`]),
    ...['idempotent', 'max_output', 'sequential', 'terminates', 'tool'].map((member) => `tool_settings.*.${member}`),
  ].map((member) => `<persona>.${member}`),
  'actor',
  'actor.name',
  'actor.verified',
  'args',
  'body',
  'call_id',
  'command_id',
  'data',
  'decision',
  'dedupe_key',
  'for_ms',
  // The name of a persona that the host or a worker has: what it brings was not said by the request.
  'fork.changes.persona',
  'fork.changes.prompt',
  'fork.changes.result',
  'fork.changes.result.is_error',
  'fork.changes.result.text',
  // Needs the scope approve: allowanceOf().
  'fork.changes.verdicts',
  'fork.changes.verdicts.NAME',
  'fork.n',
  // Of the tenant that the subject names.
  'fork.session',
  'id',
  'if_running',
  'inject_reminder',
  'input',
  'max_turns',
  'message_id',
  'messages.*.content.*.data',
  'messages.*.content.*.data.bytes',
  'messages.*.content.*.data.sha256',
  'messages.*.content.*.filename',
  'messages.*.content.*.media_type',
  'messages.*.content.*.provider_metadata.NAME',
  'messages.*.content.*.text',
  'messages.*.content.*.type',
  'messages.*.role',
  'metadata',
  'mode',
  'name',
  'on_timeout',
  'output',
  'persona',
  'preempt',
  'preserve_on_compact',
  'prompt',
  'propagate',
  'reason',
  'remember',
  // Only narrows.
  'restricted',
  'role_hint',
  'signal',
  'tags.*',
  'timeout_ms',
  'tools.allow.*',
  'tools.deny.*',
  'trace',
  'ttl_turns',
  'until',
];

const DECISIONS: Readonly<Record<string, Decision>> = {
  ...Object.fromEntries(DATA.map((leaf) => [leaf, 'data'])),
  ...SHARED,
  ...OF_PERSONA,
  ...OF_CHOICE,
  ...OF_START,
  ...OF_CHANGES,
};

test('each field of each command has a decision, and there is no decision about a field that no command has', () => {
  const leaves = new Set(VERBS.flatMap((verb) => leavesOf(verb)));
  expect([...leaves].sort()).toEqual(Object.keys(DECISIONS).sort());
});

test('a new field is seen, at any depth and behind any wrapper', () => {
  const before = leavesOf('cancel');
  const { cancel } = COMMAND_BODIES;
  const added = z.strictObject({
    deep: z.array(z.record(z.string(), z.union([z.string(), z.object({ path: z.string() })]))),
  });
  Object.assign(COMMAND_BODIES, { cancel: cancel.extend({ added: added.optional() }) });
  try {
    const found = leavesOf('cancel').filter((leaf) => !before.includes(leaf));
    expect(found).toEqual(['added.deep.*.NAME', 'added.deep.*.NAME.path']);
  } finally {
    Object.assign(COMMAND_BODIES, { cancel });
  }
});

test('a field that is data here is data for the host, and the others have a section of the policy', () => {
  const deciding: readonly (readonly [at: string, table: Readonly<Record<string, FieldDecision>>])[] = [
    ['<persona>.model.', MODEL_DECISIONS],
    ['<persona>.', PERSONA_DECISIONS],
    ['fork.changes.', FORK_CHANGE_DECISIONS],
    ['fork.', FORK_DECISIONS],
    ['', { ...PROMPT_DECISIONS, ...START_DECISIONS }],
  ];
  for (const [leaf, decision] of Object.entries(DECISIONS)) {
    const [at, table] = deciding.find(([prefix]) => leaf.startsWith(prefix)) ?? ['', {}];
    const member = leaf.slice(at.length).split('.', 1)[0]?.replace(/^<|>$/g, '') ?? '';
    const section = Object.hasOwn(table, member) ? table[member] : 'data';
    if (decision !== 'data') expect(section, leaf).not.toBe('data');
    else if (!/^<permissions>|(^|\.)persona$/.test(leaf)) expect(section, leaf).toBe('data');
  }
});

const PERSONA = { name: 'clerk', prompt: 'You file.' };
const inFork = (changes: object) => ({ fork: { session: 's', n: 1, changes } });

/** Each place where an object with these members may stand in a start, and the path of the object. */
const IN_PERSONA: readonly (readonly [at: string, body: (members: object) => object])[] = [
  ['persona.', (members) => ({ prompt: 'go', persona: { ...PERSONA, ...members } })],
  [
    'personas.1.',
    (members) => ({
      prompt: 'go',
      personas: [
        { ...PERSONA, name: 'first' },
        { ...PERSONA, ...members },
      ],
    }),
  ],
  ['fork.changes.persona.', (members) => inFork({ persona: { ...PERSONA, ...members } })],
];
const IN_START = ['', (members: object) => ({ prompt: 'go', ...members })] as const;
const IN_CHANGES = ['fork.changes.', inFork] as const;

const attacks = [
  ...Object.entries(SHARED).flatMap((entry) => [IN_START, ...IN_PERSONA].map((place) => ({ entry, place }))),
  ...Object.entries(OF_PERSONA).flatMap((entry) => IN_PERSONA.map((place) => ({ entry, place }))),
  ...Object.entries(OF_CHOICE).flatMap((entry) => [IN_START, IN_CHANGES].map((place) => ({ entry, place }))),
  ...Object.entries(OF_START).map((entry) => ({ entry, place: IN_START })),
].flatMap(({ entry: [leaf, attack], place: [at, body] }) =>
  attack === 'data'
    ? []
    : [{ leaf, at, body: body(attack.members), field: `${at}${attack.field}`, policy: attack.policy }],
);

test.each(attacks)('an attack by $leaf is refused by the field $field', ({ body, field, policy = {} }) => {
  const read = parseBody('start', body);
  if (!read.ok) throw new Error(read.problem.message);
  const surroundings = { folder: '/srv/work', origins: [], trustsBus: true };
  const rules = rulesFor(HostPolicy.parse(policy), surroundings, 'default', true);
  expect(checkRequest(rules, 'start', read.body)).toMatchObject({ code: 'not_allowed_by_policy', field });
});
