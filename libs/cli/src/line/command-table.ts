/** All commands. Their code is loaded when they run, so that `--help` starts at once. */
import type { CommandSpec, FlagSpec, HelpSpec } from './command-spec.ts';

const STATE_DIR: FlagSpec = {
  value: 'DIR',
  help: 'Where the embedded server keeps its state (COX_STATE_DIR; ~/.local/state/coxswain)',
};
const SERVED_DIR: FlagSpec = {
  value: 'DIR',
  help: 'A folder of this service’s own, for its log and for cox health (COX_STATE_DIR; ~/.local/state/coxswain)',
};
const JSON_LINES: FlagSpec = { help: 'One JSON object a line on stdout' };
const GATEWAY_PORT: FlagSpec = {
  value: 'N',
  help: 'Port of the gateway, which listens on this machine alone (a free one)',
};
const METRICS_PORT: FlagSpec = {
  value: '[HOST:]PORT',
  help: 'Serve metrics for Prometheus there, on this machine alone unless a host is named (COX_METRICS_PORT)',
};
const PORT: FlagSpec = { value: 'N', help: 'Port of the embedded server (a free one)' };

const MANIFEST: FlagSpec = {
  value: 'FILE',
  help: 'Hooks of a file, or none (COX_MANIFEST; a trusted coxswain.yaml of this folder)',
};

const POLICY: FlagSpec = { value: 'FILE', help: 'What requests may name: a policy in YAML (COX_POLICY)' };

const BUS = {
  nats: { value: 'URL', help: 'A bus to use: nats://[token@]host:port (NATS_URL)' },
  nkey: { value: 'FILE', help: 'The key that lets this user in, a file of cox auth (NATS_NKEY)' },
  'state-dir': STATE_DIR,
  json: JSON_LINES,
} satisfies Record<string, FlagSpec>;

const TENANT: FlagSpec = { value: 'NAME', help: 'Whose: a tenant (the key’s, else default)' };

/** What speaks of one tenant: the admin's key, and a bus without keys, go with any. */
const OF_TENANT = { ...BUS, tenant: TENANT } satisfies Record<string, FlagSpec>;

/** Standard output is the protocol's: no other lines are written there. */
const { json: _json, ...OF_MCP } = OF_TENANT;

const ASKING = {
  'on-ask': { value: 'deny|wait', help: 'What to do with an approval that nobody can answer (exit 6)' },
} satisfies Record<string, FlagSpec>;

const STEERING_FILE: FlagSpec = {
  value: 'PATH',
  help: 'Lines written to this file steer (AGENT_STEERING_FILE; STATE/steering/SESSION.steering)',
};

const RUNNING = {
  ...BUS,
  port: PORT,
  persona: { value: 'NAME|FILE', help: 'Who works: a name in personas/, or a YAML or JSON file, or a folder' },
  'persona-mode': { value: 'NAME', help: 'Which of the persona’s modes' },
  crew: {
    value: 'NAME|PATH',
    help: 'Who may be delegated or handed off to besides its own: a persona, or a folder',
    repeatable: true,
  },
  model: { value: 'PROVIDER/NAME', help: 'Which model (COX_MODEL)' },
  'base-url': { value: 'URL', help: 'Where the provider is reached' },
  id: { value: 'ID', help: 'The new session’s id (a random one)' },
  session: {
    value: 'ID',
    help: 'Go on with a session that has ended; with --model, --base-url and --persona-mode from here on',
  },
  root: { value: 'DIR', help: 'The folder that its tools may touch (the current one)' },
  mcp: { value: 'FILE', help: 'MCP servers: a JSON file with mcpServers' },
  allow: { value: 'GLOB', help: 'Tools that run without asking; rules hold in the order given', repeatable: true },
  ask: { value: 'GLOB', help: 'Tools that wait for an approval', repeatable: true },
  deny: { value: 'GLOB', help: 'Tools that are refused', repeatable: true },
  'max-turns': { value: 'N', help: 'At most so many turns (50)' },
  'max-tokens': { value: 'N', help: 'At most so many tokens, in and out; a limit that ends the run exits 4' },
  'max-usd': { value: 'SUM', help: 'At most so much money; the model’s price must be known' },
  'max-time': { value: 'TIME', help: 'At most so long, waiting included: 90s, 5m, 2h' },
  detach: { help: 'Start it and leave it running' },
  manifest: MANIFEST,
  'steering-file': STEERING_FILE,
  ...ASKING,
} satisfies Record<string, FlagSpec>;

/** What `cox acp` starts sessions with; the rest the editor says. */
const EDITING = {
  nats: BUS.nats,
  nkey: BUS.nkey,
  'state-dir': BUS['state-dir'],
  port: RUNNING.port,
  persona: RUNNING.persona,
  'persona-mode': RUNNING['persona-mode'],
  crew: RUNNING.crew,
  model: RUNNING.model,
  'offer-model': { value: 'PROVIDER/NAME', help: 'Another model that the editor may choose', repeatable: true },
  'base-url': RUNNING['base-url'],
  mcp: RUNNING.mcp,
  allow: RUNNING.allow,
  ask: RUNNING.ask,
  deny: RUNNING.deny,
  'max-turns': RUNNING['max-turns'],
  'max-tokens': RUNNING['max-tokens'],
  'max-usd': RUNNING['max-usd'],
  'max-time': RUNNING['max-time'],
  manifest: MANIFEST,
} satisfies Record<string, FlagSpec>;

const INJECTING = {
  ...BUS,
  mode: {
    value: 'MODE',
    help: 'finish_step (default), interrupt_immediate or audit_only',
    words: ['finish_step', 'interrupt_immediate', 'audit_only'],
  },
  preempt: { help: 'An interrupt that does not wait: also ends the answer that streams and the calls that run' },
  'dedupe-key': { value: 'KEY', help: 'What waits under the same key makes way for this' },
  wait: {
    value: 'STAGE',
    help: 'stored, accepted (default) or delivered',
    words: ['stored', 'accepted', 'delivered'],
  },
  'command-id': { value: 'ID', help: 'The command’s id; sending the same again changes nothing' },
} satisfies Record<string, FlagSpec>;
const { mode: _mode, preempt: _preempt, ...FOLLOWING_UP } = INJECTING;

const REMINDING = {
  ...INJECTING,
  tag: { value: 'WORD', help: 'A word to sort it by', repeatable: true },
  'ttl-turns': { value: 'N', help: 'Shown in so many turns (until it is revoked)' },
  'preserve-on-compact': { help: 'It outlives a compaction' },
  propagate: {
    value: 'WHOM',
    help: 'Child sessions that are born with it: session (direct ones; default), all, none',
    words: ['session', 'all', 'none'],
  },
  'role-hint': {
    value: 'VOICE',
    help: 'system (default), developer, user_block or ephemeral_cache',
    words: ['system', 'developer', 'user_block', 'ephemeral_cache'],
  },
} satisfies Record<string, FlagSpec>;

const DRY_RUN: FlagSpec = { help: 'Say what would be deleted, and delete nothing' };

const COMMANDING = { ...BUS, 'command-id': INJECTING['command-id'] } satisfies Record<string, FlagSpec>;
const AT: FlagSpec = { value: 'N', help: 'After this record instead of the newest' };
const REASON: FlagSpec = { value: 'TEXT', help: 'Why; it is recorded' };

const REMEMBER: FlagSpec = {
  value: 'session|persona',
  help: 'Decide later calls like it the same way: in this session, or wherever its persona works',
};

const FORKING = {
  ...BUS,
  port: PORT,
  at: AT,
  id: RUNNING.id,
  prompt: { value: 'TEXT', help: 'Another text in that record; where the session has ended, its next prompt' },
  persona: RUNNING.persona,
  model: RUNNING.model,
  'base-url': RUNNING['base-url'],
  verdict: { value: '[HOOK=]JSON', help: 'What the hooks of that record return instead', repeatable: true },
  result: { value: 'TEXT', help: 'What the call of that record returned instead' },
  'result-error': { value: 'TEXT', help: 'The same, as an error' },
  detach: RUNNING.detach,
  'steering-file': STEERING_FILE,
  ...ASKING,
} satisfies Record<string, FlagSpec>;

const TOKENS: FlagSpec = { value: 'FILE', help: 'Who is let in by a gateway: a file of cox auth token' };

/** What `cox serve` serves. */
const SERVICES: readonly HelpSpec[] = [
  {
    name: 'hooks',
    args: ['<file>'],
    help: 'Answer the hooks of sessions with a module of handlers, or with a manifest',
    flags: {
      ...OF_TENANT,
      'state-dir': SERVED_DIR,
      'metrics-port': METRICS_PORT,
      name: { value: 'NAME', help: 'The hook service’s name (the file’s); instances of one name share the work' },
    },
    examples: ['cox serve hooks ./policy.ts', 'cox serve hooks coxswain.yaml --name policy'],
  },
  {
    name: 'persona',
    args: ['<path…>'],
    help: 'Answer with the models of personas and run their tools; any number of processes share them',
    flags: {
      ...OF_TENANT,
      'state-dir': SERVED_DIR,
      'metrics-port': METRICS_PORT,
      'at-once': { value: 'N', help: 'Steps of one persona that run at once (16)' },
    },
    examples: ['cox serve persona ./personas/reviewer.yaml', 'cox serve persona ./reviewer ./writer.ts --at-once 4'],
  },
  {
    name: 'tool',
    args: ['<file>'],
    help: 'Take the calls of the tools that a module defines; any number of processes share them',
    flags: { ...OF_TENANT, 'state-dir': SERVED_DIR, 'metrics-port': METRICS_PORT },
    examples: [
      'cox serve tool ./my-tool.ts',
      'NATS_NKEY=./auth/tenants/default/workers/stock.nk cox serve tool ./stock.ts',
    ],
  },
  {
    name: 'sessions',
    args: [],
    help: 'Host sessions, of all tenants; any number of hosts share them (COX_HOST_NAME names this one)',
    flags: { ...BUS, 'state-dir': SERVED_DIR, manifest: MANIFEST, policy: POLICY, 'metrics-port': METRICS_PORT },
    examples: ['cox serve sessions', 'COX_HOST_NAME=two cox serve sessions --nats nats://bus:4222'],
  },
  {
    name: 'retention',
    args: [],
    help: 'Purge what is left of deleted sessions',
    flags: { ...BUS, 'state-dir': SERVED_DIR },
    examples: ['NATS_NKEY=./auth/retention.nk cox serve retention --nats nats://bus:4222'],
  },
  {
    name: 'commands',
    args: [],
    help: 'Run the commands of session hosts, away from their keys',
    flags: {
      'state-dir': SERVED_DIR,
      json: JSON_LINES,
      socket: { value: 'PATH', help: 'The Unix socket to listen on (COX_COMMAND_SOCKET)' },
    },
    examples: ['cox serve commands --socket /run/commands/runner.sock'],
  },
  {
    name: 'gateway',
    args: [],
    help: 'Serve sessions over HTTP: commands, events as they come, WebSockets; any number of them share a bus',
    flags: {
      ...BUS,
      'state-dir': SERVED_DIR,
      listen: { value: 'HOST:PORT', help: 'Where it listens (127.0.0.1:7707)' },
      'public-url': {
        value: 'URL',
        help: 'What it is called from other machines; needed where it does not listen on loopback',
        repeatable: true,
      },
      'allow-origin': { value: 'ORIGIN', help: 'Another site whose pages may use it', repeatable: true },
      tokens: TOKENS,
      jwks: { value: 'FILE|URL', help: 'Keys by which JSON Web Tokens are checked: a JWK Set' },
      issuer: { value: 'TEXT', help: 'Who must have issued them' },
      audience: { value: 'TEXT', help: 'For whom they must have been issued' },
      'tenant-claim': { value: 'NAME', help: 'Their claim that names the tenant (tenant)' },
    },
    examples: [
      'cox serve gateway --tokens ./tokens.json',
      'NATS_NKEY=./auth/tenants/default/gateway.nk cox serve gateway --listen 0.0.0.0:7707 --public-url https://cox.example.com --tokens ./tokens.json',
    ],
  },
];

const AUTH_TENANT: FlagSpec = {
  value: 'NAME',
  help: 'A tenant: with an account of its own, or whose the token is (default)',
  repeatable: true,
};

/** Who is let in by a gateway. */
const AUTH_TOKEN: HelpSpec = {
  name: 'token',
  args: ['<add|list|remove>', '[name]'],
  help: 'Make a token that a gateway takes, list those of a file, or take one back; a token is shown once',
  flags: {
    tokens: TOKENS,
    scope: {
      value: 'SCOPE',
      help: 'What it may: read, run, steer, approve, admin; several with commas',
      words: ['read', 'run', 'steer', 'approve', 'admin'],
      repeatable: true,
    },
    tenant: AUTH_TENANT,
    expires: { value: 'TIME', help: 'How long it is good for: 12h, 90d (until it is removed)' },
    json: JSON_LINES,
  },
  examples: [
    'cox auth token add alice --tokens ./tokens.json --scope read,steer,approve',
    'cox auth token remove alice --tokens ./tokens.json',
  ],
};

/** The commands, in the order of the help. */
export const COMMANDS: readonly CommandSpec[] = [
  {
    name: 'run',
    args: ['[prompt]'],
    help: 'Start a session and stay with it: read, steer, approve',
    flags: RUNNING,
    examples: [
      'cox run "summarise the README" --model anthropic/claude-sonnet-4-5',
      'git diff | cox run - --model openai/gpt-5 --allow "read_*" --deny run_command',
      'cox run "and now the tests" --session k3f9',
    ],
    load: () => import('../commands/run.ts'),
  },
  {
    name: 'attach',
    args: ['<session>'],
    help: 'Join a session: what has been, what comes, steering and approvals',
    flags: {
      ...BUS,
      port: PORT,
      manifest: MANIFEST,
      ...ASKING,
      from: { value: 'N', help: 'Begin at this record' },
      'steering-file': STEERING_FILE,
    },
    load: () => import('../commands/attach.ts'),
  },
  {
    name: 'watch',
    args: ['<session>'],
    help: 'Follow a session without taking part',
    flags: {
      ...OF_TENANT,
      from: { value: 'N', help: 'Begin at this record' },
      follow: { help: 'Stay on after the session has ended' },
    },
    load: () => import('../commands/watch.ts'),
  },
  {
    name: 'show',
    args: ['<session>'],
    help: 'What a session is doing, or was doing at a record',
    flags: { ...OF_TENANT, at: AT },
    load: () => import('../commands/show.ts'),
  },
  {
    name: 'steer',
    args: ['<session>', '<text>'],
    help: 'Say something to a session while it works',
    flags: INJECTING,
    examples: [
      'cox steer k3f9 "try a different approach"',
      'cox steer k3f9 "stop, the other file" --mode interrupt_immediate',
      'cox steer k3f9 "stop talking, run the tests" --preempt',
    ],
    load: () => import('../commands/steer.ts'),
  },
  {
    name: 'remind',
    args: ['<session>', '<text>'],
    help: 'Remind a session of something',
    flags: REMINDING,
    examples: ['cox remind k3f9 "the build is frozen" --ttl-turns 3 --dedupe-key build'],
    load: () => import('../commands/remind.ts'),
  },
  {
    name: 'followup',
    args: ['<session>', '<text>'],
    help: 'Queue what is to be done after the present work',
    flags: FOLLOWING_UP,
    load: () => import('../commands/followup.ts'),
  },
  {
    name: 'revoke',
    args: ['<session>', '<command>'],
    help: 'Take back what waits, or clear a reminder, by its id: cox pending lists them',
    flags: COMMANDING,
    load: () => import('../commands/revoke.ts'),
  },
  {
    name: 'replace',
    args: ['<session>', '<command>', '<text>'],
    help: 'Give what waits another text; it keeps its place',
    flags: COMMANDING,
    load: () => import('../commands/replace.ts'),
  },
  {
    name: 'approve',
    args: ['<session>', '[call]'],
    help: 'Let a waiting call run; without a call id when only one waits',
    flags: {
      ...COMMANDING,
      reason: REASON,
      args: { value: 'JSON', help: 'Run it with these arguments instead' },
      remember: REMEMBER,
    },
    examples: ['cox approve k3f9 --remember session', 'cox approve k3f9 c1_2 --args \'{"path": "draft.md"}\''],
    load: () => import('../commands/approve.ts'),
  },
  {
    name: 'deny',
    args: ['<session>', '[call]'],
    help: 'Refuse a waiting call',
    flags: { ...COMMANDING, reason: REASON, remember: REMEMBER },
    load: () => import('../commands/deny.ts'),
  },
  {
    name: 'cancel',
    args: ['<session>'],
    help: 'End the run; the session stays',
    flags: { ...COMMANDING, reason: REASON },
    load: () => import('../commands/cancel.ts'),
  },
  {
    name: 'cancel-call',
    args: ['<session>', '[call]'],
    help: 'End one call; the session goes on',
    flags: {
      ...COMMANDING,
      reason: REASON,
      'no-reminder': { help: 'Do not tell the model with a reminder' },
      'timeout-ms': { value: 'N', help: 'How long the call may take to stop (5000)' },
    },
    load: () => import('../commands/cancel-call.ts'),
  },
  {
    name: 'suspend',
    args: ['<session>'],
    help: 'Park a session at its next turn boundary, until it is resumed, until a time, or until a signal',
    flags: {
      ...COMMANDING,
      reason: REASON,
      until: { value: 'TIME', help: 'Wake it then: 2030-01-31T09:00:00Z' },
      for: { value: 'DURATION', help: 'Wake it after so long: 90s, 15m, 2h, 30d' },
      signal: { value: 'NAME', help: 'Wake it when this signal comes' },
      'on-timeout': {
        value: 'WHAT',
        help: 'When the time has come: resume_with_summary (the default), resume_with_input, fail',
        words: ['resume_with_summary', 'resume_with_input', 'fail'],
      },
      input: { value: 'TEXT', help: 'What resume_with_input tells the model' },
    },
    examples: [
      'cox suspend 3f2a --for 2h --reason "the build takes a while"',
      'cox suspend 3f2a --signal deployed --for 1d --on-timeout fail',
    ],
    load: () => import('../commands/suspend.ts'),
  },
  {
    name: 'resume',
    args: ['<session>'],
    help: 'Let a suspended session go on',
    flags: COMMANDING,
    load: () => import('../commands/resume.ts'),
  },
  {
    name: 'signal',
    args: ['<session>', '<name>'],
    help: 'Give a session a signal that it waits for, or will wait for',
    flags: { ...COMMANDING, data: { value: 'JSON', help: 'Data that goes with it' } },
    examples: ['cox signal 3f2a deployed --data \'{"version": "1.4.2"}\''],
    load: () => import('../commands/signal.ts'),
  },
  {
    name: 'sessions',
    args: [],
    help: 'List sessions, the newest first',
    flags: {
      ...OF_TENANT,
      limit: { value: 'N', help: 'At most so many, the newest (100)' },
      after: { value: 'ID', help: 'Go on behind this one' },
      deleted: { help: 'Also those that are deleted' },
    },
    examples: ['cox sessions --limit 20', 'NATS_NKEY=./auth/admin.nk cox sessions --tenant red'],
    load: () => import('../commands/sessions.ts'),
  },
  {
    name: 'approvals',
    args: [],
    help: 'List what waits for an approval, in all sessions',
    flags: {
      ...OF_TENANT,
      watch: { help: 'Go on to tell what comes and goes' },
      limit: { value: 'N', help: 'At most so many, those that have waited longest (200)' },
      after: { value: 'SESSION/CALL', help: 'Go on behind this one' },
    },
    examples: ['cox approvals --watch', 'cox approvals --json --limit 20'],
    load: () => import('../commands/approvals.ts'),
  },
  {
    name: 'permissions',
    args: ['[session]'],
    help: 'List what people have had a session, or a persona, remember of calls; or take it back',
    flags: {
      ...OF_TENANT,
      persona: RUNNING.persona,
      revoke: { value: 'RULE', help: 'Take this rule back: the next call like it is asked about again' },
    },
    examples: ['cox permissions k3f9', 'cox permissions --persona editor --revoke 0197c2'],
    load: () => import('../commands/permissions.ts'),
  },
  {
    name: 'pending',
    args: ['<session>'],
    help: 'List what waits to be delivered to a session, and the reminders that it is shown',
    flags: OF_TENANT,
    load: () => import('../commands/pending.ts'),
  },
  {
    name: 'usage',
    args: ['<session>'],
    help: 'What a session has used: tokens and money, run by run',
    flags: OF_TENANT,
    load: () => import('../commands/usage.ts'),
  },
  {
    name: 'tree',
    args: ['<session>'],
    help: 'A session and all that it has started: state, persona, tokens and money',
    flags: { ...OF_TENANT, watch: { help: 'Show it again whenever it changes, until Ctrl-C' } },
    load: () => import('../commands/tree.ts'),
  },
  {
    name: 'replay',
    args: ['<session|file>'],
    help: 'Run a journal again and compare it byte for byte',
    flags: OF_TENANT,
    load: () => import('../commands/replay.ts'),
  },
  {
    name: 'inspect',
    args: ['<session|file>'],
    help: 'See a session’s machine at work, or go through the steps of a journal; without a terminal, as JSON lines',
    flags: {
      ...OF_TENANT,
      from: { value: 'N', help: 'Begin at this record' },
      follow: { help: 'Stay on after the session has ended' },
      'gateway-port': GATEWAY_PORT,
    },
    examples: [
      'cox inspect k3f9',
      'cox inspect k3f9 --json --follow | jq -c \'select(.type == "@xstate.snapshot") | .snapshot.value\'',
      'cox export k3f9 > k3f9.jsonl && cox inspect k3f9.jsonl',
    ],
    load: () => import('../commands/inspect.ts'),
  },
  {
    name: 'trace',
    args: ['<session|file>'],
    help: 'Where the time of a session went: its turns, answers, calls and child sessions as a waterfall; with --json as OTLP lines',
    flags: { ...OF_TENANT, run: { value: 'N', help: 'This run alone' } },
    examples: [
      'cox trace k3f9',
      'cox trace k3f9 --run 2',
      'cox trace k3f9 --json | while read -r line; do curl -s -d "$line" -H "content-type: application/json" http://127.0.0.1:4318/v1/traces; done',
    ],
    load: () => import('../commands/trace.ts'),
  },
  {
    name: 'fork',
    args: ['<session>'],
    help: 'Start a session with the past of another, and stay with it; --at N is where it begins',
    flags: FORKING,
    examples: [
      'cox fork k3f9 --at 7 --model openai/gpt-5',
      'cox fork k3f9 --prompt "and in French?"',
      'cox fork k3f9 --at 9 --verdict \'policy={"decision":"allow"}\'',
    ],
    load: () => import('../commands/fork.ts'),
  },
  {
    name: 'diff',
    args: ['<session|file>', '<session|file>'],
    help: 'Compare two journals: where they part, and what differs in each turn; exits 1 where they do',
    flags: OF_TENANT,
    load: () => import('../commands/diff.ts'),
  },
  {
    name: 'export',
    args: ['<session>'],
    help: 'Print a session’s journal, one record a line, as stored',
    flags: { ...OF_TENANT, 'records-only': { help: 'Leave out what lies in the object store: large fields, files' } },
    load: () => import('../commands/export.ts'),
  },
  {
    name: 'import',
    args: ['<file>'],
    help: 'Make a session of an exported journal; - for standard input',
    flags: { ...BUS, as: { value: 'ID', help: 'As another session, under this id' }, tenant: TENANT },
    examples: ['cox export k3f9 | cox import - --as mine --nats nats://elsewhere:4222'],
    load: () => import('../commands/import.ts'),
  },
  {
    name: 'delete',
    args: ['<session…>'],
    help: 'Delete sessions that have ended, for good: their records, snapshots and files',
    flags: {
      ...BUS,
      tenant: TENANT,
      yes: { help: 'Do not ask' },
      reason: { value: 'TEXT', help: 'Why; it stands in what is left of the session' },
      unreadable: { help: 'Also one whose newest record cannot be read' },
      'dry-run': DRY_RUN,
    },
    examples: ['cox delete k3f9', 'NATS_NKEY=./auth/admin.nk cox delete k3f9 m2x7 --tenant red --yes'],
    load: () => import('../commands/delete.ts'),
  },
  {
    name: 'sweep',
    args: [],
    help: 'Delete what is not kept any more: sessions past their time, deletions broken off, files nobody uses',
    flags: {
      ...BUS,
      keep: {
        value: '[TENANT=]TIME',
        help: 'How long sessions are kept after their last record: 12h, 90d, 12w; without it, until they are deleted',
        repeatable: true,
      },
      max: { value: 'N', help: 'Delete at most so many sessions in this sweep (1000)' },
      yes: { help: 'Ask nothing; needed where nobody can be asked and --keep says 0h' },
      'dry-run': DRY_RUN,
    },
    examples: ['cox sweep --keep 90d --keep red=365d --dry-run', 'NATS_NKEY=./auth/admin.nk cox sweep --keep 90d'],
    load: () => import('../commands/sweep.ts'),
  },
  {
    name: 'acp',
    args: [],
    help: 'Answer an editor on standard input and output, as an agent of the Agent Client Protocol',
    flags: EDITING,
    examples: [
      'cox acp --model anthropic/claude-sonnet-4-5 --offer-model openai/gpt-5',
      'cox acp --persona ./personas/reviewer',
    ],
    load: () => import('../commands/acp.ts'),
  },
  {
    name: 'up',
    args: [],
    help: 'Run everything on this machine until stopped',
    flags: {
      ...BUS,
      port: PORT,
      manifest: MANIFEST,
      policy: POLICY,
      'wait-for-folder': { value: 'TIME', help: 'How long to wait for a command that runs on the state folder (1m)' },
      'gateway-port': GATEWAY_PORT,
      'no-gateway': { help: 'Do not serve HTTP' },
      'metrics-port': METRICS_PORT,
    },
    load: () => import('../commands/up.ts'),
  },
  {
    name: 'serve',
    args: ['<what>', '[file…]'],
    help: 'Run one service until stopped: hooks FILE, persona PATH…, tool FILE, sessions, retention, commands, or gateway',
    flags: Object.fromEntries(SERVICES.flatMap(({ flags }) => Object.entries(flags))),
    parts: SERVICES,
    load: () => import('../commands/serve.ts'),
  },
  {
    name: 'mcp',
    args: [],
    help: 'Serve sessions as tools of an MCP server, on standard input and output: another agent starts, watches and steers them',
    flags: {
      ...OF_MCP,
      port: PORT,
      manifest: MANIFEST,
      model: RUNNING.model,
      'base-url': RUNNING['base-url'],
      root: { value: 'DIR', help: 'The folder in which sessions have their roots (the current one)' },
      scope: {
        value: 'SCOPE',
        help: 'What the client may do: read, run, steer, approve (all of it); several with commas',
        words: ['read', 'run', 'steer', 'approve'],
        repeatable: true,
      },
    },
    examples: [
      'cox mcp --model anthropic/claude-sonnet-4-5',
      'cox mcp --scope read,steer',
      'NATS_NKEY=./auth/tenants/default/operator.nk cox mcp --nats nats://bus:4222',
    ],
    load: () => import('../commands/mcp.ts'),
  },
  {
    name: 'hooks',
    args: ['[list|remove]', '[name]'],
    help: 'List the hook services that are registered, or take the registrations of one back',
    flags: OF_TENANT,
    examples: ['cox hooks', 'cox hooks remove policy'],
    load: () => import('../commands/hooks.ts'),
  },
  {
    name: 'persona',
    args: ['[list|pause|resume|remove]', '[name]'],
    help: 'List the personas that are served, pause or resume one, or take the announcement of one back',
    flags: { ...OF_TENANT, reason: REASON },
    examples: [
      'cox persona',
      'cox persona pause reviewer --reason "prompt is being changed"',
      'cox persona resume reviewer',
    ],
    load: () => import('../commands/persona.ts'),
  },
  {
    name: 'tools',
    args: ['[list|remove]', '[name]'],
    help: 'List the tools that are announced on the bus and who serves them, or take one back',
    flags: OF_TENANT,
    examples: ['cox tools', 'cox tools remove stock_level'],
    load: () => import('../commands/tools.ts'),
  },
  {
    name: 'personas',
    args: ['[list|check|show]', '[file…]'],
    help: 'List the personas of a folder, say what is wrong with files, or show one as a session pins it',
    flags: { ...OF_TENANT, served: { help: 'List those that processes of their own serve on a bus instead' } },
    examples: [
      'cox personas',
      'cox personas --served',
      'cox personas check personas/reviewer',
      'cox personas show reviewer',
    ],
    load: () => import('../commands/personas.ts'),
  },
  {
    name: 'trust',
    args: [],
    help: 'Trust the code and permissions that the current folder brings',
    flags: {
      yes: { help: 'Trust them without a question' },
      forget: { help: 'Trust the folder no longer' },
      json: JSON_LINES,
    },
    examples: ['cox trust', 'cox trust --forget'],
    load: () => import('../commands/trust.ts'),
  },
  {
    name: 'auth',
    args: ['[token]', '[add|list|remove]', '[name]'],
    help: 'Write a nats-server’s accounts and the keys of every role: who may do what on a bus; token: who is let in by a gateway',
    flags: {
      ...AUTH_TOKEN.flags,
      out: {
        value: 'DIR',
        help: 'The folder to write; it must not be there yet, but with --add, --remove and --renew',
      },
      add: {
        value: '[TENANT/]ROLE=NAME',
        help: 'Add one more key to a folder that is there, of a role or, with worker=NAME=TOOL,…, of a worker; or, with tenant=NAME, a tenant with all its keys',
        repeatable: true,
      },
      remove: {
        value: '[TENANT/]ROLE[=NAME]',
        help: 'Take a key (worker=NAME: a worker’s; tenant=NAME: all of a tenant’s) out of a folder: servers let it in no more once they have read it again',
        repeatable: true,
      },
      renew: { help: 'Give the keys of a folder the rights of this version: after an upgrade' },
      worker: {
        value: 'NAME=TOOL,…',
        help: 'A tool worker with a key of its own, for these tools alone (TENANT/NAME=… where there are several)',
        repeatable: true,
      },
      'gateway-approves': { help: 'Let gateways approve calls' },
      'print-seeds': { help: 'Also print the seeds; they are secrets' },
      json: JSON_LINES,
    },
    examples: [
      'cox auth --out ./auth',
      'cox auth --out ./auth --tenant red --tenant blue',
      'cox auth --out ./auth --worker stock=stock_level,reserve',
      'cox auth --out ./auth --add operator=alice --add host=second',
      'cox auth --out ./auth --add tenant=green',
      'cox auth --out ./auth --renew',
      'cox auth --out ./auth --remove host',
      'cox auth --out ./auth --remove worker=stock --add worker=stock=stock_level',
    ],
    parts: [AUTH_TOKEN],
    load: () => import('../commands/auth.ts'),
  },
  {
    name: 'streams',
    args: [],
    help: 'Make the streams of a bus where they are missing, and check those that are there',
    flags: {
      ...BUS,
      replicas: {
        value: 'N',
        help: 'Copies of every stream, 1 to 5; without it they stay as they are, and new ones get 1',
      },
      'max-bytes': {
        value: 'NAME=SIZE,…',
        help: 'Limit commands, journals, snapshots or files, 0: no limit',
      },
      yes: { help: 'Do not ask before copies are taken away' },
      rewrite: { help: 'Rewrite blocks that earlier versions compressed, copy by copy' },
    },
    examples: [
      'NATS_NKEY=./auth/admin.nk cox streams --replicas 3',
      'cox streams --max-bytes journals=40GiB',
      'cox streams --rewrite',
    ],
    load: () => import('../commands/streams.ts'),
  },
  {
    name: 'env',
    args: [],
    help: 'Print what the shell needs to reach the bus: eval "$(cox env)"',
    flags: BUS,
    load: () => import('../commands/env.ts'),
  },
  {
    name: 'init',
    args: ['[folder]'],
    help: 'Write a project to start from: a persona, a tool, a hook and a test that runs',
    flags: {
      force: { help: 'Write over files that are there' },
      json: JSON_LINES,
    },
    examples: ['cox init my-agents', 'cox init my-agents && cd my-agents && npm install && npm test'],
    load: () => import('../commands/init.ts'),
  },
  {
    name: 'doctor',
    args: [],
    help: 'Check this machine and the bus',
    flags: { ...BUS, port: PORT },
    load: () => import('../commands/doctor.ts'),
  },
  {
    name: 'health',
    args: [],
    help: 'Ask what serves from a state folder whether it can do its work; exits 1 where it cannot, or nothing does',
    flags: {
      'state-dir': {
        value: 'DIR',
        help: 'The folder of the services that are asked (COX_STATE_DIR; ~/.local/state/coxswain)',
      },
      json: JSON_LINES,
    },
    load: () => import('../commands/health.ts'),
  },
  {
    name: 'completions',
    args: ['<bash|zsh|fish>'],
    help: 'Print what a shell completes commands and flags by',
    flags: {},
    examples: [
      'source <(cox completions bash)',
      'source <(cox completions zsh)',
      'cox completions fish > ~/.config/fish/completions/cox.fish',
    ],
    load: () => import('../commands/completions.ts'),
  },
  {
    name: 'help',
    args: ['[command]', '[part]'],
    help: 'What there is, or what a command takes',
    flags: { man: { help: 'As a page for man' } },
    examples: ['cox help run', 'cox help --man | man -l -', 'cox help run --man | man -l -'],
    load: () => import('../commands/help.ts'),
  },
  {
    name: 'start',
    args: ['[prompt]'],
    help: 'What npm start does: the demo, or a run when a prompt and a model are given',
    flags: RUNNING,
    load: () => import('../commands/start.ts'),
  },
];
