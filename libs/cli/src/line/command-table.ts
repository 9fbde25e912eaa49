/** All commands. A command's code is imported when it runs, so that `--help` is fast. */
import {
  ACP,
  APPROVE,
  AT,
  BUS,
  COMMAND,
  DEMO,
  DENY,
  DRY_RUN,
  FOLLOW,
  FOLLOWUP,
  FORK,
  FROM,
  GATEWAY,
  GATEWAY_PORT,
  JSON_LINES,
  LIMIT,
  MANIFEST,
  MCP_BUS,
  METRICS_PORT,
  PLAIN,
  POLICY,
  PORT,
  PRINT,
  QUIET,
  REASON,
  REMIND,
  RUN,
  SERVICE_BUS,
  SERVICE_DIR,
  STATE_DIR,
  STEER,
  STEERING_FILE,
  TAKE_PART,
  TENANT,
  TENANT_BUS,
  THREADS,
  TOKENS,
  YES,
} from './command-flags.ts';
import type { CommandSpec, Section } from './command-spec.ts';

const LIST_SESSIONS: Omit<CommandSpec, 'name' | 'examples'> = {
  args: [],
  help: 'List sessions, the newest first',
  flags: {
    ...TENANT_BUS,
    limit: { ...LIMIT, help: 'Print at most N sessions, the newest (100)' },
    after: { value: 'ID', help: 'Continue after this entry' },
    deleted: { help: 'Also print deleted sessions' },
  },
  load: () => import('../commands/session/list.ts'),
};
const STEER_SESSION: Omit<CommandSpec, 'name' | 'examples'> = {
  args: ['<session>', '<text>'],
  help: 'Send a message to a session while it works',
  flags: STEER,
  load: () => import('../commands/steer.ts'),
};
const ALLOW_CALL: Omit<CommandSpec, 'name' | 'examples'> = {
  args: ['<session>', '[call]'],
  help: 'Allow a tool call that waits for approval',
  flags: APPROVE,
  load: () => import('../commands/approve.ts'),
};
const DENY_CALL: Omit<CommandSpec, 'name' | 'examples'> = {
  args: ['<session>', '[call]'],
  help: 'Deny a tool call that waits for approval',
  flags: DENY,
  load: () => import('../commands/deny.ts'),
};

const RUN_AND_STEER: readonly CommandSpec[] = [
  {
    name: 'demo',
    args: [],
    help: 'Play the demo: a scripted agent, steered while it works',
    flags: DEMO,
    load: () => import('../commands/demo.ts'),
  },
  {
    name: 'run',
    args: ['[prompt]'],
    help: 'Start a session, follow it, steer it and approve calls',
    flags: RUN,
    examples: [
      'cox run "summarise the README" --model anthropic/claude-sonnet-4-5',
      'git diff | cox run - -m openai/gpt-5 --allow "read_*" --deny run_command',
      'cox run "and now the tests" --session k3f9',
    ],
    load: () => import('../commands/run.ts'),
  },
  {
    name: 'attach',
    args: ['<session>'],
    help: 'Join a session, follow it, steer it and approve calls',
    flags: { ...BUS, port: PORT, manifest: MANIFEST, ...TAKE_PART, from: FROM, 'steering-file': STEERING_FILE },
    load: () => import('../commands/attach.ts'),
  },
  {
    ...STEER_SESSION,
    name: 'steer',
    examples: [
      'cox steer k3f9 "try a different approach"',
      'cox steer k3f9 "stop, the other file" --mode interrupt_immediate',
      'cox steer k3f9 "stop talking, run the tests" --preempt',
    ],
  },
  {
    ...ALLOW_CALL,
    name: 'approve',
    examples: ['cox approve k3f9 --remember session', 'cox approve k3f9 c1_2 --args \'{"path": "draft.md"}\''],
  },
  { ...DENY_CALL, name: 'deny', examples: ['cox deny k3f9 --reason "not on production"'] },
  {
    name: 'cancel',
    args: ['<session>'],
    help: 'Cancel the run and keep the session',
    flags: { ...COMMAND, reason: REASON },
    load: () => import('../commands/cancel.ts'),
  },
  {
    name: 'cancel-call',
    args: ['<session>', '[call]'],
    help: 'Cancel one tool call and continue the run',
    flags: {
      ...COMMAND,
      reason: REASON,
      'no-reminder': { help: 'Do not send a reminder to the model' },
      'timeout-ms': { value: 'N', help: 'How long the call may take to stop (5000)' },
    },
    load: () => import('../commands/cancel-call.ts'),
  },
];

const LIFECYCLE: readonly CommandSpec[] = [
  {
    name: 'up',
    args: [],
    help: 'Run everything on this machine until stopped',
    flags: {
      ...SERVICE_BUS,
      quiet: QUIET,
      port: PORT,
      manifest: MANIFEST,
      policy: POLICY,
      'wait-for-folder': {
        value: 'TIME',
        help: 'How long to wait for another command to release the state directory (1m)',
      },
      'gateway-port': GATEWAY_PORT,
      'no-gateway': { help: 'Do not serve HTTP' },
      'metrics-port': METRICS_PORT,
    },
    load: () => import('../commands/up.ts'),
  },
  {
    name: 'down',
    args: [],
    help: 'Stop the services that cox up runs, and wait for their end',
    flags: { 'state-dir': STATE_DIR, ...PRINT },
    load: () => import('../commands/down.ts'),
  },
  {
    name: 'logs',
    args: [],
    help: 'Print the log that cox up writes to the state directory',
    flags: {
      'state-dir': STATE_DIR,
      ...PRINT,
      follow: { ...FOLLOW, help: 'Keep printing new lines, until Ctrl-C' },
      limit: { ...LIMIT, help: 'Print the last N lines (1000)' },
    },
    examples: ['cox logs -f', 'cox logs --json --limit 20'],
    load: () => import('../commands/logs.ts'),
  },
  { ...LIST_SESSIONS, name: 'ls', examples: ['cox ls --limit 20'] },
];

const SESSION: readonly CommandSpec[] = [
  {
    ...LIST_SESSIONS,
    name: 'session list',
    examples: ['cox session list --limit 20', 'NATS_NKEY=./auth/admin.nk cox session list --tenant red'],
  },
  {
    name: 'session show',
    args: ['<session>'],
    help: 'Show the state of a session, now or at a record',
    flags: { ...TENANT_BUS, at: AT },
    load: () => import('../commands/session/show.ts'),
  },
  {
    name: 'session watch',
    args: ['<session>'],
    help: 'Follow a session without taking part',
    flags: { ...TENANT_BUS, from: FROM, plain: PLAIN, follow: { ...FOLLOW, help: 'Stay after the run has ended' } },
    load: () => import('../commands/session/watch.ts'),
  },
  {
    name: 'session tree',
    args: ['<session>'],
    help: 'Show a session and its child sessions with their usage',
    flags: { ...TENANT_BUS, follow: { ...FOLLOW, help: 'Print it again at every change, until Ctrl-C' } },
    load: () => import('../commands/session/tree.ts'),
  },
  {
    name: 'session trace',
    args: ['<session|file>'],
    help: 'Show durations as a waterfall or as OTLP lines',
    flags: { ...TENANT_BUS, run: { value: 'N', help: 'Show only the run with this number' } },
    examples: [
      'cox session trace k3f9',
      'cox session trace k3f9 --run 2',
      'cox session trace k3f9 --json > k3f9.otlp.jsonl',
    ],
    load: () => import('../commands/session/trace.ts'),
  },
  {
    name: 'session inspect',
    args: ['<session|file>'],
    help: 'Show the statechart of a session, live or step by step',
    flags: {
      ...TENANT_BUS,
      from: FROM,
      follow: { ...FOLLOW, help: 'Stay after the run has ended' },
      'gateway-port': GATEWAY_PORT,
    },
    examples: [
      'cox session inspect k3f9',
      "cox session inspect k3f9 --json -f | jq -c '.snapshot.value // empty'",
      'cox session export k3f9 > k3f9.jsonl && cox session inspect k3f9.jsonl',
    ],
    load: () => import('../commands/session/inspect.ts'),
  },
  {
    name: 'session fork',
    args: ['<session>'],
    help: 'Start a session from the history of another',
    flags: FORK,
    examples: [
      'cox session fork k3f9 --at 7 --model openai/gpt-5',
      'cox session fork k3f9 --prompt "and in French?"',
      'cox session fork k3f9 --at 9 --verdict \'policy={"decision":"allow"}\'',
    ],
    load: () => import('../commands/session/fork.ts'),
  },
  {
    name: 'session diff',
    args: ['<session|file>', '<session|file>'],
    help: 'Compare two journals turn by turn, exit 1 if they differ',
    flags: TENANT_BUS,
    load: () => import('../commands/session/diff.ts'),
  },
  {
    name: 'session replay',
    args: ['<session|file>'],
    help: 'Run a journal again and compare it byte for byte',
    flags: TENANT_BUS,
    load: () => import('../commands/session/replay.ts'),
  },
  {
    name: 'session export',
    args: ['<session>'],
    help: 'Print the journal as stored, one record per line',
    flags: {
      ...SERVICE_BUS,
      quiet: QUIET,
      tenant: TENANT,
      'records-only': { help: 'Omit the object store: large fields, files' },
    },
    load: () => import('../commands/session/export.ts'),
  },
  {
    name: 'session import',
    args: ['<file>'],
    help: 'Create a session from an exported journal (- is stdin)',
    flags: { ...BUS, as: { value: 'ID', help: 'Id of the new session' }, tenant: TENANT },
    examples: ['cox session export k3f9 | cox session import - --as mine --tenant red'],
    load: () => import('../commands/session/import.ts'),
  },
  {
    name: 'session suspend',
    args: ['<session>'],
    help: 'Suspend a session at its next turn boundary',
    flags: {
      ...COMMAND,
      reason: REASON,
      until: { value: 'TIME', help: 'Wake it at this time: 2030-01-31T09:00:00Z' },
      for: { value: 'DURATION', help: 'Wake it after 90s, 15m, 2h, 30d' },
      signal: { value: 'NAME', help: 'Wake it when this signal arrives' },
      'on-timeout': {
        value: 'WHAT',
        help: 'After the time: resume_with_summary (default), resume_with_input, fail',
        words: ['resume_with_summary', 'resume_with_input', 'fail'],
      },
      input: { value: 'TEXT', help: 'Message of resume_with_input to the model' },
    },
    examples: [
      'cox session suspend 3f2a --for 2h --reason "the build takes a while"',
      'cox session suspend 3f2a --signal deployed --for 1d --on-timeout fail',
    ],
    load: () => import('../commands/session/suspend.ts'),
  },
  {
    name: 'session resume',
    args: ['<session>'],
    help: 'Resume a suspended session',
    flags: COMMAND,
    load: () => import('../commands/session/resume.ts'),
  },
  {
    name: 'session signal',
    args: ['<session>', '<name>'],
    help: 'Send a signal that a session waits for, or will wait for',
    flags: { ...COMMAND, data: { value: 'JSON', help: 'Data of the signal' } },
    examples: ['cox session signal 3f2a deployed --data \'{"version": "1.4.2"}\''],
    load: () => import('../commands/session/signal.ts'),
  },
  {
    name: 'session delete',
    args: ['<session…>'],
    help: 'Delete ended sessions: records, snapshots and files',
    flags: {
      ...BUS,
      tenant: TENANT,
      yes: YES,
      reason: { value: 'TEXT', help: 'Reason, recorded in the tombstone' },
      unreadable: { help: 'Also delete sessions whose newest record cannot be read' },
      'dry-run': DRY_RUN,
    },
    examples: ['cox session delete k3f9', 'NATS_NKEY=./auth/admin.nk cox session delete k3f9 m2x7 --tenant red --yes'],
    load: () => import('../commands/session/delete.ts'),
  },
  {
    name: 'session usage',
    args: ['<session>'],
    help: 'Show tokens and cost, run by run',
    flags: TENANT_BUS,
    load: () => import('../commands/session/usage.ts'),
  },
];

const MESSAGE: readonly CommandSpec[] = [
  { ...STEER_SESSION, name: 'message steer' },
  {
    name: 'message remind',
    args: ['<session>', '<text>'],
    help: 'Add a reminder to the prompts of a session',
    flags: REMIND,
    examples: ['cox message remind k3f9 "the build is frozen" --dedupe-key build'],
    load: () => import('../commands/message/remind.ts'),
  },
  {
    name: 'message followup',
    args: ['<session>', '<text>'],
    help: 'Queue a prompt for the end of the current work',
    flags: FOLLOWUP,
    load: () => import('../commands/message/followup.ts'),
  },
  {
    name: 'message list',
    args: ['<session>'],
    help: 'List queued messages and the reminders in force',
    flags: TENANT_BUS,
    load: () => import('../commands/message/list.ts'),
  },
  {
    name: 'message edit',
    args: ['<session>', '<message>', '<text>'],
    help: 'Change the text of a queued message, not its place',
    flags: COMMAND,
    examples: ['cox message edit k3f9 0197c2a1-5b "the other file first"'],
    load: () => import('../commands/message/edit.ts'),
  },
  {
    name: 'message withdraw',
    args: ['<session>', '<message>'],
    help: 'Withdraw a queued message or a reminder',
    flags: COMMAND,
    examples: ['cox message withdraw k3f9 0197c2a1-5b'],
    load: () => import('../commands/message/withdraw.ts'),
  },
];

const APPROVAL: readonly CommandSpec[] = [
  {
    name: 'approval list',
    args: [],
    help: 'List the open approvals of all sessions',
    flags: {
      ...TENANT_BUS,
      follow: { ...FOLLOW, help: 'Keep printing new and decided approvals, until Ctrl-C' },
      limit: { ...LIMIT, help: 'Print at most N, the oldest first (200)' },
      after: { value: 'SESSION/CALL', help: 'Continue after this entry' },
    },
    examples: ['cox approval list --follow', 'cox approval list --json --limit 20'],
    load: () => import('../commands/approval/list.ts'),
  },
  { ...ALLOW_CALL, name: 'approval allow' },
  { ...DENY_CALL, name: 'approval deny' },
  {
    name: 'approval rules',
    args: ['[session]'],
    help: 'List remembered decisions, or remove one',
    flags: {
      ...TENANT_BUS,
      persona: RUN.persona,
      remove: { value: 'RULE', help: 'Remove this rule: it decides no further call' },
    },
    examples: ['cox approval rules k3f9', 'cox approval rules --persona editor --remove 0197c2'],
    load: () => import('../commands/approval/rules.ts'),
  },
];

const SERVE: readonly CommandSpec[] = [
  {
    name: 'serve sessions',
    aliases: ['serve session'],
    args: [],
    help: 'Host sessions of all tenants, shared with other hosts',
    flags: {
      ...SERVICE_BUS,
      'state-dir': SERVICE_DIR,
      manifest: MANIFEST,
      policy: POLICY,
      threads: THREADS,
      'metrics-port': METRICS_PORT,
    },
    examples: [
      'cox serve sessions',
      'COX_HOST_NAME=two cox serve sessions --nats nats://bus:4222',
      'cox serve sessions --threads 4 --metrics-port 9464',
    ],
    load: async () => ({ run: (await import('../commands/serve/serve.ts')).serveSessions }),
  },
  {
    name: 'serve gateway',
    args: [],
    help: 'Serve sessions over HTTP, SSE and WebSocket',
    flags: GATEWAY,
    examples: [
      'cox serve gateway --tokens ./tokens.json',
      'cox serve gateway --tokens ./tokens.json --allow-origin https://example.com',
    ],
    load: async () => ({ run: (await import('../commands/serve/gateway.ts')).serveGateway }),
  },
  {
    name: 'serve hooks',
    aliases: ['serve hook'],
    args: ['<file>'],
    help: 'Serve the hooks of a module or of a manifest',
    flags: {
      ...SERVICE_BUS,
      tenant: TENANT,
      'state-dir': SERVICE_DIR,
      'metrics-port': METRICS_PORT,
      name: { value: 'NAME', help: 'Name of the hook service (the file’s); its instances share the work' },
    },
    examples: ['cox serve hooks ./policy.ts', 'cox serve hooks coxswain.yaml --name policy'],
    load: async () => ({ run: (await import('../commands/serve/serve.ts')).serveHooks }),
  },
  {
    name: 'serve tools',
    aliases: ['serve tool'],
    args: ['<file>'],
    help: 'Serve the tools of a module or of a manifest',
    flags: { ...SERVICE_BUS, tenant: TENANT, 'state-dir': SERVICE_DIR, 'metrics-port': METRICS_PORT },
    examples: [
      'cox serve tools ./my-tool.ts',
      'NATS_NKEY=./auth/tenants/default/workers/stock.nk cox serve tools ./stock.ts',
    ],
    load: async () => ({ run: (await import('../commands/serve/serve.ts')).serveTools }),
  },
  {
    name: 'serve personas',
    aliases: ['serve persona'],
    args: ['<path…>'],
    help: 'Serve the models and tools of personas',
    flags: {
      ...SERVICE_BUS,
      tenant: TENANT,
      'state-dir': SERVICE_DIR,
      'metrics-port': METRICS_PORT,
      'at-once': { value: 'N', help: 'Concurrent model requests of each persona (16)' },
    },
    examples: ['cox serve personas ./personas/reviewer.yaml', 'cox serve personas ./reviewer ./writer.ts --at-once 4'],
    load: async () => ({ run: (await import('../commands/serve/serve.ts')).servePersonas }),
  },
  {
    name: 'serve retention',
    args: [],
    help: 'Purge deleted sessions',
    flags: { ...SERVICE_BUS, 'state-dir': SERVICE_DIR },
    examples: ['NATS_NKEY=./auth/retention.nk cox serve retention --nats nats://bus:4222'],
    load: async () => ({ run: (await import('../commands/serve/serve.ts')).serveRetention }),
  },
  {
    name: 'serve commands',
    aliases: ['serve command'],
    args: [],
    help: 'Run the shell commands of session hosts in a sandbox',
    flags: {
      'state-dir': SERVICE_DIR,
      json: JSON_LINES,
      socket: { value: 'PATH', help: 'Unix socket to listen on (COX_COMMAND_SOCKET)' },
    },
    examples: ['cox serve commands --socket /run/commands/runner.sock'],
    load: async () => ({ run: (await import('../commands/serve/serve.ts')).serveCommands }),
  },
];

const PERSONA: readonly CommandSpec[] = [
  {
    name: 'persona list',
    args: ['[file…]'],
    help: 'List personas: of personas/, of files, or served on the bus',
    flags: { ...TENANT_BUS, served: { help: 'List the personas that are served on the bus' } },
    examples: ['cox persona list', 'cox persona list --served'],
    load: async () => ({ run: (await import('../commands/persona/files.ts')).list }),
  },
  {
    name: 'persona check',
    args: ['[file…]'],
    help: 'Check persona files, exit 1 if one is invalid',
    flags: PRINT,
    examples: ['cox persona check personas/reviewer'],
    load: async () => ({ run: (await import('../commands/persona/files.ts')).check }),
  },
  {
    name: 'persona show',
    args: ['<name|file>'],
    help: 'Show a persona as a session pins it',
    flags: PRINT,
    examples: ['cox persona show reviewer'],
    load: async () => ({ run: (await import('../commands/persona/files.ts')).show }),
  },
  {
    name: 'persona pause',
    args: ['<name>'],
    help: 'Pause a persona: start no new model request',
    flags: { ...TENANT_BUS, reason: REASON },
    examples: ['cox persona pause reviewer --reason "prompt is being changed"'],
    load: async () => ({ run: (await import('../commands/persona/served.ts')).pause }),
  },
  {
    name: 'persona resume',
    args: ['<name>'],
    help: 'Resume a paused persona',
    flags: TENANT_BUS,
    examples: ['cox persona resume reviewer'],
    load: async () => ({ run: (await import('../commands/persona/served.ts')).resume }),
  },
  {
    name: 'persona remove',
    args: ['<name>'],
    help: 'Remove a persona without instances from the registry',
    flags: TENANT_BUS,
    load: async () => ({ run: (await import('../commands/persona/served.ts')).remove }),
  },
];

const HOOK: readonly CommandSpec[] = [
  {
    name: 'hook list',
    args: [],
    help: 'List the registered hook services and their hooks',
    flags: TENANT_BUS,
    load: async () => ({ run: (await import('../commands/hook.ts')).list }),
  },
  {
    name: 'hook remove',
    args: ['<name>'],
    help: 'Remove the registrations of a service without instances',
    flags: TENANT_BUS,
    examples: ['cox hook remove policy'],
    load: async () => ({ run: (await import('../commands/hook.ts')).remove }),
  },
];

const TOOL: readonly CommandSpec[] = [
  {
    name: 'tool list',
    args: [],
    help: 'List the tools on the bus and their instances',
    flags: TENANT_BUS,
    load: async () => ({ run: (await import('../commands/tool.ts')).list }),
  },
  {
    name: 'tool remove',
    args: ['<name>'],
    help: 'Remove a tool without instances from the registry',
    flags: TENANT_BUS,
    examples: ['cox tool remove stock_level'],
    load: async () => ({ run: (await import('../commands/tool.ts')).remove }),
  },
];

const TENANTS = { ...TENANT, repeatable: true } as const;

const ADMIN: readonly CommandSpec[] = [
  {
    name: 'admin auth',
    args: [],
    help: 'Write the accounts and keys of a NATS server',
    flags: {
      out: {
        value: 'DIR',
        help: 'Folder to write; new, except with --add, --remove and --renew',
      },
      tenant: { ...TENANTS, help: 'Tenant with an account of its own (default)' },
      add: {
        value: '[TENANT/]ROLE=NAME',
        help: 'Add a key, a worker (worker=NAME=TOOL,…) or a tenant (tenant=NAME)',
        repeatable: true,
      },
      remove: {
        value: '[TENANT/]ROLE[=NAME]',
        help: 'Remove a key, a worker (worker=NAME) or a tenant (tenant=NAME)',
        repeatable: true,
      },
      renew: { help: 'Rewrite the permissions of existing keys for this version' },
      worker: {
        value: 'NAME=TOOL,…',
        help: 'Tool worker with a key for these tools only ([TENANT/]NAME=…)',
        repeatable: true,
      },
      'gateway-approves': { help: 'Let all gateway keys approve calls, also keys added later' },
      'print-seeds': { help: 'Also print the seeds, which are secrets' },
      ...PRINT,
    },
    examples: [
      'cox admin auth --out ./auth',
      'cox admin auth --out ./auth --tenant red --tenant blue',
      'cox admin auth --out ./auth --worker stock=stock_level,reserve',
      'cox admin auth --out ./auth --add operator=alice --add host=second',
      'cox admin auth --out ./auth --add tenant=green',
      'cox admin auth --out ./auth --renew',
      'cox admin auth --out ./auth --remove host',
      'cox admin auth --out ./auth --remove worker=stock --add worker=stock=level',
    ],
    load: () => import('../commands/admin/auth.ts'),
  },
  {
    name: 'admin token',
    args: ['<add|list|remove>', '[name]'],
    help: 'Add, list or remove gateway tokens',
    flags: {
      tokens: TOKENS,
      scope: {
        value: 'SCOPE',
        help: 'Rights: read, run, steer, approve, admin; separate several with commas',
        words: ['read', 'run', 'steer', 'approve', 'admin'],
        repeatable: true,
      },
      tenant: { value: 'NAME', help: 'Tenant of the token (add: default "default"; list and remove: any)' },
      expires: { value: 'TIME', help: 'Lifetime: 12h, 90d (until it is removed)' },
      ...PRINT,
    },
    examples: [
      'cox admin token add alice --tokens ./tokens.json --scope read,steer,approve',
      'cox admin token remove alice --tokens ./tokens.json --tenant red',
    ],
    load: () => import('../commands/admin/token.ts'),
  },
  {
    name: 'admin streams',
    args: [],
    help: 'Create missing streams, check and change existing ones',
    flags: {
      ...BUS,
      replicas: { value: 'N', help: 'Replicas of every stream, 1 to 5 (unchanged; 1 for new ones)' },
      'max-bytes': { value: 'NAME=SIZE,…', help: 'Limit commands, journals, snapshots, files or registry; 0: none' },
      yes: YES,
      rewrite: { help: 'Rewrite blocks that earlier versions compressed, replica by replica' },
    },
    examples: [
      'NATS_NKEY=./auth/admin.nk cox admin streams --replicas 3',
      'cox admin streams --max-bytes journals=40GiB',
      'cox admin streams --rewrite',
    ],
    load: () => import('../commands/admin/streams.ts'),
  },
  {
    name: 'admin retention',
    args: [],
    help: 'Delete expired sessions and unused files',
    flags: {
      ...BUS,
      keep: {
        value: '[TENANT=]TIME',
        help: 'Retention after the last record: 12h, 90d, 12w (until deleted)',
        repeatable: true,
      },
      max: { value: 'N', help: 'Delete at most N sessions (1000)' },
      yes: YES,
      'dry-run': DRY_RUN,
    },
    examples: [
      'cox admin retention --keep 90d --keep red=365d --dry-run',
      'NATS_NKEY=./auth/admin.nk cox admin retention --keep 90d',
    ],
    load: () => import('../commands/admin/retention.ts'),
  },
];

const CONTEXT: readonly CommandSpec[] = [
  {
    name: 'context add',
    args: ['<name>'],
    help: 'Add a context: an address, a key file and a tenant',
    flags: {
      nats: { value: 'URL', help: 'Address of the bus, without credentials: tls://host:port' },
      nkey: { value: 'FILE', help: 'Key file for the bus; its path is stored, not the key' },
      tenant: TENANT,
      force: { help: 'Replace a context of this name' },
      ...PRINT,
    },
    examples: ['cox context add prod --nats tls://nats.example.com:4222 --nkey operator.nk'],
    load: async () => ({ run: (await import('../commands/context.ts')).add }),
  },
  {
    name: 'context use',
    args: ['<name>'],
    help: 'Use a context from now on (none: use no context)',
    flags: PRINT,
    examples: ['cox context use prod', 'cox context use none'],
    load: async () => ({ run: (await import('../commands/context.ts')).use }),
  },
  {
    name: 'context list',
    args: [],
    help: 'List the contexts, and mark the one in use',
    flags: PRINT,
    load: async () => ({ run: (await import('../commands/context.ts')).list }),
  },
  {
    name: 'context remove',
    args: ['<name>'],
    help: 'Remove a context',
    flags: PRINT,
    load: async () => ({ run: (await import('../commands/context.ts')).remove }),
  },
];

const TOOLS: readonly CommandSpec[] = [
  {
    name: 'init',
    args: ['[folder]'],
    help: 'Create a project: persona, tool, hook and test',
    flags: {
      force: { help: 'Overwrite existing files' },
      link: { help: 'Depend on this checkout, not on published packages' },
      ...PRINT,
    },
    examples: ['cox init my-agents', 'cox init my-agents && cd my-agents && npm install && npm test'],
    load: () => import('../commands/init.ts'),
  },
  {
    name: 'doctor',
    args: [],
    help: 'Check this machine and the bus',
    flags: { ...BUS, port: { ...PORT, help: 'Also check that cox up could use this port' } },
    load: () => import('../commands/doctor.ts'),
  },
  {
    name: 'health',
    args: [],
    help: 'Check the health of services that use a state directory',
    flags: {
      'state-dir': {
        value: 'DIR',
        help: 'State directory of the services (COX_STATE_DIR; ~/.local/state/coxswain)',
      },
      ...PRINT,
    },
    load: () => import('../commands/health.ts'),
  },
  {
    name: 'env',
    args: [],
    help: 'Print shell variables of the bus: eval "$(cox env)"',
    flags: BUS,
    load: () => import('../commands/env.ts'),
  },
  {
    name: 'completions',
    args: ['<bash|zsh|fish>'],
    help: 'Print a completion script for a shell',
    flags: {},
    examples: [
      'source <(cox completions bash)',
      'source <(cox completions zsh)',
      'cox completions fish > ~/.config/fish/completions/cox.fish',
    ],
    load: () => import('../commands/completions.ts'),
  },
  {
    name: 'acp',
    args: [],
    help: 'Serve an editor over the Agent Client Protocol',
    flags: ACP,
    examples: [
      'cox acp --model anthropic/claude-sonnet-4-5 --offer-model openai/gpt-5',
      'cox acp --persona ./personas/reviewer',
    ],
    load: () => import('../commands/acp.ts'),
  },
  {
    name: 'mcp',
    args: [],
    help: 'Serve sessions as tools of an MCP server on stdio',
    flags: {
      ...MCP_BUS,
      port: PORT,
      manifest: MANIFEST,
      model: RUN.model,
      'base-url': RUN['base-url'],
      root: { value: 'DIR', help: 'Root folder of the sessions (the current folder)' },
      scope: {
        value: 'SCOPE',
        help: 'Rights: read, run, steer, approve (all); separate several with commas',
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
    name: 'trust',
    args: [],
    help: 'Trust the code and permissions of the current folder',
    flags: {
      yes: YES,
      forget: { help: 'Stop trusting the folder' },
      ...PRINT,
    },
    examples: ['cox trust', 'cox trust --forget'],
    load: () => import('../commands/trust.ts'),
  },
  {
    name: 'help',
    args: ['[command]', '[subcommand]'],
    help: 'Print the help of a command, or a man page',
    flags: { man: { help: 'Print a man page' } },
    examples: ['cox help run', 'cox help session fork', 'cox help --man | man -l -', 'cox help run --man | man -l -'],
    load: () => import('../commands/help.ts'),
  },
];

/** The commands in the order of the help. In a section with a topic, every name starts with the topic. */
export const SECTIONS: readonly Section[] = [
  { title: 'Run and steer', commands: RUN_AND_STEER },
  { title: 'Lifecycle', commands: LIFECYCLE },
  { topic: 'session', help: 'List, read, fork, move, suspend and delete sessions', commands: SESSION },
  { topic: 'message', help: 'Send, list, edit and withdraw messages', commands: MESSAGE },
  { topic: 'approval', help: 'List and decide open approvals', commands: APPROVAL },
  { topic: 'serve', help: 'Run one service until stopped', commands: SERVE },
  { topic: 'persona', help: 'Check persona files, manage served personas', commands: PERSONA },
  { topic: 'hook', help: 'List and remove hook services', commands: HOOK },
  { topic: 'tool', help: 'List and remove tools on the bus', commands: TOOL },
  { topic: 'admin', help: 'Manage keys, tokens, streams and retention', commands: ADMIN },
  { topic: 'context', help: 'Store addresses and key files under a name', commands: CONTEXT },
  { title: 'Setup and integration', commands: TOOLS },
];

/** All commands. */
export const COMMANDS: readonly CommandSpec[] = SECTIONS.flatMap(({ commands }) => commands);
