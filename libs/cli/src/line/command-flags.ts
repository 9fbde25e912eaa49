/** The flags that several commands share. A name has one meaning and one kind in all commands. */
import type { FlagSpec } from './command-spec.ts';

type FlagTable = Record<string, FlagSpec>;

/** `--state-dir` */
export const STATE_DIR: FlagSpec = {
  value: 'DIR',
  help: 'State directory of cox up (COX_STATE_DIR; ~/.local/state/coxswain)',
};
/** The folder of a service: its log and its health socket. */
export const SERVICE_DIR: FlagSpec = {
  value: 'DIR',
  help: 'Log and health directory (COX_STATE_DIR; ~/.local/state/coxswain)',
};
/** `--json` */
export const JSON_LINES: FlagSpec = { help: 'Print one JSON object per line on stdout' };
/** `--gateway-port` */
export const GATEWAY_PORT: FlagSpec = { value: 'N', help: 'Port of the gateway on loopback (default: a free one)' };
/** `--metrics-port` */
export const METRICS_PORT: FlagSpec = {
  value: '[HOST:]PORT',
  help: 'Serve Prometheus metrics; loopback by default (COX_METRICS_PORT)',
};
/** `--threads` */
export const THREADS: FlagSpec = { value: 'N', help: 'Session hosts to run (COX_THREADS; cores - 1, at most 8)' };
/** `--port` */
export const PORT: FlagSpec = { value: 'N', help: 'Port for the embedded server, if cox starts one (default: free)' };
/** `--manifest` */
export const MANIFEST: FlagSpec = {
  value: 'FILE',
  help: 'Hooks and tools: a file, or none (COX_MANIFEST, trusted coxswain.yaml)',
};
/** `--policy` */
export const POLICY: FlagSpec = { value: 'FILE', help: 'Policy file in YAML that limits requests (COX_POLICY)' };
/** `--yes` */
export const YES: FlagSpec = { short: 'y', help: 'Do not ask for confirmation' };
/** `--follow` */
export const FOLLOW: FlagSpec = { short: 'f', help: 'Keep printing new lines, until Ctrl-C' };
/** `--limit` */
export const LIMIT: FlagSpec = { value: 'N', help: 'Print at most N entries' };
/** `--reason` */
export const REASON: FlagSpec = { value: 'TEXT', help: 'Reason, recorded in the journal' };
/** `--at` */
export const AT: FlagSpec = { value: 'N', help: 'State after record N instead of the newest' };
/** `--from` */
export const FROM: FlagSpec = { value: 'N', help: 'Start at record N' };
/** `--dry-run` */
export const DRY_RUN: FlagSpec = { help: 'Print what would be deleted, and delete nothing' };
/** `--tenant` */
export const TENANT: FlagSpec = { value: 'NAME', help: 'Tenant (that of the key, otherwise "default")' };
/** `--tokens` */
export const TOKENS: FlagSpec = { value: 'FILE', help: 'File of gateway tokens, which cox admin token writes' };

/** `--quiet` */
export const QUIET: FlagSpec = { short: 'q', help: 'Print no notices on stderr, only errors' };
/** The flags for the output of a command. */
export const PRINT = {
  json: JSON_LINES,
  output: {
    value: 'FORMAT',
    short: 'o',
    words: ['table', 'json', 'yaml'],
    help: 'Output format: table (default), json (lines) or yaml',
  },
  quiet: QUIET,
} satisfies FlagTable;

/** The flags that choose the bus of a service. Its output is a log. */
export const SERVICE_BUS = {
  nats: { value: 'URL', help: 'Bus to use: nats://[token@]host:port (NATS_URL)' },
  nkey: { value: 'FILE', help: 'Key file for the bus, from cox admin auth (NATS_NKEY)' },
  context: { value: 'NAME', help: 'Name of a context (default: the one set by cox context use)' },
  'state-dir': STATE_DIR,
  json: JSON_LINES,
} satisfies FlagTable;

/** The flags that choose a bus, and those for the output. */
export const BUS = { ...SERVICE_BUS, ...PRINT } satisfies FlagTable;

/** The flags of a command that reads or changes one tenant. The admin's key, and a bus without keys, reach any tenant. */
export const TENANT_BUS = { ...BUS, tenant: TENANT } satisfies FlagTable;

const { json: _json, ...withoutJson } = { ...SERVICE_BUS, tenant: TENANT };
/** The flags of `cox mcp`: its standard output carries the protocol. */
export const MCP_BUS = withoutJson satisfies FlagTable;

/** `--on-ask` */
export const ON_ASK = {
  'on-ask': {
    value: 'deny|wait',
    words: ['deny', 'wait'],
    help: 'Without a terminal: deny calls that ask, or wait (default: exit 6)',
  },
} satisfies FlagTable;

/** `--steering-file` */
export const STEERING_FILE: FlagSpec = {
  value: 'PATH',
  help: 'Steer with lines of this file (AGENT_STEERING_FILE, or in state dir)',
};

/** `--plain` */
export const PLAIN: FlagSpec = { help: 'Print lines instead of the interactive view' };
/** The flags of a command that a person can join at a terminal. */
export const TAKE_PART = {
  ...ON_ASK,
  plain: PLAIN,
  follow: { ...FOLLOW, help: 'Stay for the next prompt after the run has ended' },
} satisfies FlagTable;

/** The flags of `cox run`. */
export const RUN = {
  ...BUS,
  port: PORT,
  persona: { value: 'NAME|FILE', short: 'p', help: 'Persona: a name in personas/ or on the host, a file, or a folder' },
  'persona-mode': { value: 'NAME', help: 'Prompt addition to use: a name under modes of the persona' },
  crew: {
    value: 'NAME|PATH',
    help: 'Persona, or folder of personas, for delegation and hand-offs',
    repeatable: true,
  },
  model: { value: 'PROVIDER/NAME', short: 'm', help: 'Model (COX_MODEL)' },
  'base-url': { value: 'URL', help: 'Address of the model provider' },
  id: { value: 'ID', help: 'Id of the new session (a random one)' },
  session: {
    value: 'ID',
    help: 'Continue a session; --model, --base-url, --persona-mode may change',
  },
  root: { value: 'DIR', help: 'Folder that tools may access (the current folder)' },
  mcp: { value: 'FILE', help: 'MCP servers: a JSON file with mcpServers' },
  allow: { value: 'GLOB', help: 'Tools that run without approval; rules apply in the given order', repeatable: true },
  ask: { value: 'GLOB', help: 'Tools that need an approval', repeatable: true },
  deny: { value: 'GLOB', help: 'Tools that are denied', repeatable: true },
  'output-schema': { value: 'FILE', help: 'JSON Schema of the answer; stdout has only the validated JSON' },
  'max-turns': { value: 'N', help: 'Limit of turns (50)' },
  'max-tokens': { value: 'N', help: 'Limit of input and output tokens; a reached limit exits 4' },
  'max-usd': { value: 'SUM', help: 'Limit of cost; requires a known price of the model' },
  'max-time': { value: 'TIME', help: 'Limit of time, including waiting: 90s, 5m, 2h' },
  detach: { help: 'Start the session and leave it running' },
  manifest: MANIFEST,
  'steering-file': STEERING_FILE,
  ...TAKE_PART,
} satisfies FlagTable;

/** The flags of `cox demo`. */
export const DEMO = {
  nats: BUS.nats,
  nkey: BUS.nkey,
  context: BUS.context,
  'state-dir': BUS['state-dir'],
  port: PORT,
  'steering-file': STEERING_FILE,
} satisfies FlagTable;

/** The flags of `cox acp`. The editor sends the other settings. */
export const ACP = {
  nats: BUS.nats,
  nkey: BUS.nkey,
  context: BUS.context,
  'state-dir': BUS['state-dir'],
  port: RUN.port,
  persona: RUN.persona,
  'persona-mode': RUN['persona-mode'],
  crew: RUN.crew,
  model: RUN.model,
  'offer-model': { value: 'PROVIDER/NAME', help: 'Another model that the editor may choose', repeatable: true },
  'base-url': RUN['base-url'],
  mcp: RUN.mcp,
  allow: RUN.allow,
  ask: RUN.ask,
  deny: RUN.deny,
  'max-turns': RUN['max-turns'],
  'max-tokens': RUN['max-tokens'],
  'max-usd': RUN['max-usd'],
  'max-time': RUN['max-time'],
  manifest: MANIFEST,
} satisfies FlagTable;

/** The flags of `cox steer`. */
export const STEER = {
  ...BUS,
  mode: {
    value: 'MODE',
    help: 'Delivery: finish_step (default), interrupt_immediate or audit_only',
    words: ['finish_step', 'interrupt_immediate', 'audit_only'],
  },
  preempt: { help: 'Interrupt at once: end the streaming answer and the running calls' },
  'dedupe-key': { value: 'KEY', help: 'Replace the queued message that has the same key' },
  wait: {
    value: 'STAGE',
    help: 'Wait until it is stored, accepted (default) or delivered',
    words: ['stored', 'accepted', 'delivered'],
  },
  'command-id': { value: 'ID', help: 'Id of the command; a repeated id changes nothing' },
} satisfies FlagTable;

const { mode: _mode, preempt: _preempt, ...withoutMode } = STEER;
/** The flags of `cox message followup`. */
export const FOLLOWUP = withoutMode satisfies FlagTable;

/** The flags of `cox message remind`. */
export const REMIND = {
  ...STEER,
  tag: { value: 'WORD', help: 'Tag of the reminder', repeatable: true },
  'ttl-turns': { value: 'N', help: 'Turns that include it (until it is withdrawn)' },
  'preserve-on-compact': { help: 'Keep it after a compaction' },
  propagate: {
    value: 'WHOM',
    help: 'Child sessions that inherit it: session (direct; default), all, none',
    words: ['session', 'all', 'none'],
  },
  'role-hint': {
    value: 'ROLE',
    help: 'Provider role: system (default), developer, user_block, ephemeral_cache',
    words: ['system', 'developer', 'user_block', 'ephemeral_cache'],
  },
} satisfies FlagTable;

/** The flags of a command that is sent to a session. */
export const COMMAND = { ...BUS, 'command-id': STEER['command-id'] } satisfies FlagTable;

const REMEMBER: FlagSpec = {
  value: 'session|persona',
  words: ['session', 'persona'],
  help: 'Remember the decision for similar calls of the session or persona',
};
/** The flags of `cox approve`. */
export const APPROVE = {
  ...COMMAND,
  reason: REASON,
  args: { value: 'JSON', help: 'Replace the arguments of the call' },
  remember: REMEMBER,
} satisfies FlagTable;
/** The flags of `cox deny`. */
export const DENY = {
  ...COMMAND,
  reason: { ...REASON, help: 'Reason: the model reads it, the journal keeps it' },
  remember: REMEMBER,
} satisfies FlagTable;

/** The flags of `cox session fork`. */
export const FORK = {
  ...BUS,
  port: PORT,
  at: { ...AT, help: 'Fork at record N instead of the newest' },
  id: RUN.id,
  prompt: { value: 'TEXT', help: 'New text of the message in record N, or the next prompt after a run' },
  persona: { ...RUN.persona, help: 'Persona after record N: a name, a file or a folder' },
  model: { ...RUN.model, help: 'Model after record N (default: unchanged)' },
  'base-url': RUN['base-url'],
  verdict: { value: '[HOOK=]JSON', help: 'New return value of the hooks in record N', repeatable: true },
  result: { value: 'TEXT', help: 'New result of the tool call in record N' },
  'result-error': { value: 'TEXT', help: 'New error result of the tool call in record N' },
  detach: RUN.detach,
  'steering-file': STEERING_FILE,
  ...TAKE_PART,
} satisfies FlagTable;

/** The flags of `cox serve gateway`. */
export const GATEWAY = {
  ...SERVICE_BUS,
  'state-dir': SERVICE_DIR,
  listen: { value: 'HOST:PORT', help: 'Address to listen on (127.0.0.1:7707)' },
  'public-url': {
    value: 'URL',
    help: 'Address for other machines; required unless it listens on loopback',
    repeatable: true,
  },
  'allow-origin': { value: 'ORIGIN', help: 'Site whose pages may use the gateway', repeatable: true },
  tokens: TOKENS,
  jwks: { value: 'FILE|URL', help: 'JWK Set that verifies JSON Web Tokens' },
  issuer: { value: 'TEXT', help: 'Required issuer of JSON Web Tokens' },
  audience: { value: 'TEXT', help: 'Required audience of JSON Web Tokens' },
  'tenant-claim': { value: 'NAME', help: 'Claim that names the tenant (tenant)' },
} satisfies FlagTable;
