/** The tools of a session's MCP servers. */
import type { ToolCall, ToolOutcome, ToolSource, Toolset, ToolsetSpec } from '@coxswain/ports';
import {
  BOUNDS,
  cutText,
  DEFAULT_TRAITS,
  type Failure,
  type HostRules,
  isAllowedOrigin,
  JsonObject,
  type McpServer,
  type SessionRef,
  secretInUrl,
  serverProblem,
  type ToolDefinition,
} from '@coxswain/protocol';
import type { LoggingLevel, Tool } from '@modelcontextprotocol/sdk/types.js';
import type { HostEnvironment } from './expand-variables.ts';
import { MCP_BOUNDS } from './mcp-bounds.ts';
import type { McpServerTools } from './mcp-server.ts';
import { nameTools } from './tool-names.ts';
import { unavailable } from './tool-outcome.ts';

/** A message of a server outside of a call, or a message about a server. */
export interface McpNotice {
  readonly ref: SessionRef;
  readonly server: string;
  /** The server's level; `warning` for a message of Coxswain about the server. */
  readonly level: LoggingLevel;
  /** At most 2,048 characters. */
  readonly text: string;
}

/** The tools of a session have changed while they are open. */
export interface McpToolsChange {
  readonly ref: SessionRef;
  /** All tools of the session's MCP servers, as the toolset lists them now. */
  readonly tools: readonly ToolDefinition[];
}

/** Settings of the MCP adapter. */
export interface McpToolsOptions {
  /** The time limit from the start of a server to its list of tools, in milliseconds; 30,000 by default. */
  readonly startTimeoutMs?: number;
  /**
   * The time limit of one call, in milliseconds; 3,600,000 by default. Each progress report of the server restarts it.
   */
  readonly callTimeoutMs?: number;
  /** Consecutive restarts of a server process without an answered call; 5 by default. */
  readonly restartsMax?: number;
  /** The values for `${VAR}` in `env` and `headers`; the host's environment by default. */
  readonly env?: HostEnvironment;
  /**
   * The `fetch` for servers whose origin the policy does not list. It must refuse addresses that are not public.
   * Without it, sessions under a policy cannot use such servers.
   */
  readonly publicFetch?: typeof globalThis.fetch;
  /** Called after the list of a toolset has changed. Must not throw. */
  readonly onChanged?: (change: McpToolsChange) => void;
  /**
   * Called for log messages of servers (`notifications/message`), and for each omitted tool with the reason. Must not
   * throw.
   */
  readonly onNotice?: (notice: McpNotice) => void;
}

/**
 * Creates a source of the tools of `spec.mcpServers`. Servers are started concurrently. Their tools are named
 * `<server>__<tool>` and keep the configured order of servers. If a server cannot be started, the others are closed,
 * and opening fails with `mcp_server_failed`, quoting the server. A tool that its server marks as idempotent or
 * read-only may run twice.
 */
export function createMcpTools(options: McpToolsOptions = {}): ToolSource {
  return {
    async open(spec, signal): Promise<Toolset | Failure> {
      const refused = refusedServer(spec, options);
      if (refused) return refused;
      const toolset = new McpToolset(spec, options);
      try {
        const failure = await toolset.open(signal);
        return failure ?? toolset;
      } catch (error) {
        await toolset.close();
        throw error;
      }
    },
  };
}

/**
 * The reason why the session may not use one of its servers. A server may have been admitted elsewhere, or under an
 * older policy.
 */
function refusedServer({ mcpServers, rules }: ToolsetSpec, { publicFetch }: McpToolsOptions): Failure | null {
  const servers = Object.entries(mcpServers);
  if (servers.length > MCP_BOUNDS.serversMax)
    return {
      code: 'mcp_server_failed',
      message: `mcp_servers: the persona and the start have ${servers.length} servers; the limit is ${MCP_BOUNDS.serversMax}`,
    };
  const ambiguous = ambiguousName(Object.keys(mcpServers));
  if (ambiguous) return { code: 'mcp_server_failed', message: `mcp_servers.${ambiguous}` };
  for (const [name, server] of servers) {
    const field = `mcp_servers.${name}`;
    const problem = rules ? serverProblem(rules, server, field) : null;
    if (problem) return { code: problem.code, message: problem.message };
    if (isUnlisted(rules, server) && !publicFetch) {
      const message = `${field}.url: this host connects only to origins of its policy; policy: add it to origins`;
      return { code: 'not_allowed_by_policy', message };
    }
    if ('url' in server && secretInUrl(server.url) !== null)
      return { code: 'mcp_server_failed', message: `${field}.url: the address has ${secretInUrl(server.url)}` };
  }
  return null;
}

/**
 * A server name that begins with another one and the separator. The other server could name its tools like those of this
 * server, and so get its calls and its permission rules. @returns null if there is none.
 */
function ambiguousName(names: readonly string[]): string | null {
  for (const name of names) {
    const other = names.find((one) => one !== name && `${name}__`.startsWith(`${one}__`));
    if (other !== undefined)
      return `${name}: a tool of the server ${other} could have the name of one of its tools; rename one of the two servers`;
  }
  return null;
}

function isUnlisted(rules: HostRules | undefined, server: McpServer): boolean {
  return (
    rules !== undefined && rules.origins !== 'any' && 'url' in server && !isAllowedOrigin(rules.origins, server.url)
  );
}

/** Warning and above, RFC 5424 6.2.1. */
const FOR_THE_MODEL: ReadonlySet<LoggingLevel> = new Set(['warning', 'error', 'critical', 'alert', 'emergency']);

// A longer timer would fire immediately.
const TIMER_MAX_MS = 2 ** 31 - 1;

class McpToolset implements Toolset {
  readonly #spec: ToolsetSpec;
  readonly #ref: SessionRef;
  readonly #onFeedback: ToolsetSpec['onFeedback'];
  readonly #options: McpToolsOptions;
  readonly #saidLeftOut = new Set<string>();
  #servers: readonly McpServerTools[] = [];
  #open = false;
  #tools: readonly ToolDefinition[] = [];
  #byName: ReadonlyMap<string, { readonly server: McpServerTools; readonly tool: string }> = new Map();

  constructor(spec: ToolsetSpec, options: McpToolsOptions) {
    this.#spec = spec;
    this.#ref = spec.ref;
    this.#onFeedback = spec.onFeedback;
    this.#options = options;
  }

  get tools(): readonly ToolDefinition[] {
    return this.#tools;
  }

  async open(signal: AbortSignal): Promise<Failure | null> {
    this.#servers = await this.#configuredServers();
    const started = await Promise.allSettled(this.#servers.map((server) => server.open(signal)));
    const reasons = started.filter((one) => one.status === 'rejected').map(({ reason }) => (reason as Error).message);
    if (reasons.length === 0) {
      this.#list();
      this.#open = true;
      return null;
    }
    const notes = await this.close();
    const message = [...reasons, ...notes].join('\n');
    return signal.aborted ? { code: 'provision_failed', message } : { code: 'mcp_server_failed', message };
  }

  async #configuredServers(): Promise<McpServerTools[]> {
    const { root, mcpServers, rules } = this.#spec;
    const configured = Object.entries(mcpServers);
    if (configured.length === 0) return [];
    // The SDK takes 0.2 s to load, and most hosts have no sessions with MCP servers.
    const { McpServerTools } = await import('./mcp-server.ts');
    const options = this.#options;
    return configured.map(
      ([name, server]) =>
        new McpServerTools({
          name,
          server,
          root,
          hostEnv: options.env ?? process.env,
          fetch: isUnlisted(rules, server) ? options.publicFetch : undefined,
          listMaxBytes: Math.floor(MCP_BOUNDS.listMaxBytes / configured.length),
          startTimeoutMs: Math.min(options.startTimeoutMs ?? MCP_BOUNDS.startTimeoutMs, TIMER_MAX_MS),
          callTimeoutMs: Math.min(options.callTimeoutMs ?? MCP_BOUNDS.callTimeoutMs, TIMER_MAX_MS),
          restartsMax: options.restartsMax ?? MCP_BOUNDS.restartsMax,
          onToolsRead: () => this.#listAgain(),
          onNotice: (level, text) => this.#notice(name, level, text),
          onLog: (level, text) => this.#logged(name, level, text),
        }),
    );
  }

  async call(call: ToolCall, signal: AbortSignal): Promise<ToolOutcome> {
    const found = this.#byName.get(call.tool);
    if (found === undefined) return unavailable(`no MCP server has the tool ${call.tool} any longer`);
    return found.server.call(found.tool, call, signal);
  }

  /** MCP has no request for the outcome of an earlier call. */
  async probe(): Promise<{ readonly state: 'unknown' }> {
    return { state: 'unknown' };
  }

  async close(): Promise<readonly string[]> {
    return (await Promise.all(this.#servers.map((server) => server.close()))).flat();
  }

  #listAgain(): void {
    // While the servers are starting, no list has been published that could change.
    if (!this.#open) return;
    const before = JSON.stringify(this.#tools);
    this.#list();
    if (JSON.stringify(this.#tools) !== before) this.#options.onChanged?.({ ref: this.#ref, tools: this.#tools });
  }

  #list(): void {
    const all = this.#servers.flatMap((server) =>
      server.tools.filter((tool) => this.#canBeUsed(server.name, tool)).map((tool) => ({ server, tool })),
    );
    const names = nameTools(all.map(({ server, tool }) => ({ server: server.name, tool: tool.name })));
    const named = all.map(({ server, tool }, index) => ({ server, tool, name: names[index] as string }));
    this.#tools = named.map(({ server, tool, name }) => definitionOf(name, server.name, tool));
    this.#byName = new Map(named.map(({ server, tool, name }) => [name, { server, tool: tool.name }]));
  }

  #canBeUsed(server: string, tool: Tool): boolean {
    const why = whyLeftOut(tool);
    if (why === null) return true;
    const said = `${server}\0${tool.name}\0${why}`;
    if (!this.#saidLeftOut.has(said) && this.#saidLeftOut.size < MCP_BOUNDS.serverToolsMax) {
      this.#saidLeftOut.add(said);
      this.#notice(server, 'warning', `the tool ${tool.name} is omitted: ${why}`);
    }
    return false;
  }

  /** Warnings and errors reach the model as well. Other log messages are for people only. */
  #logged(server: string, level: LoggingLevel, text: string): void {
    this.#notice(server, level, text);
    if (FOR_THE_MODEL.has(level)) this.#onFeedback?.(`mcp:${server}`, `${level}: ${text}`);
  }

  #notice(server: string, level: LoggingLevel, text: string): void {
    this.#options.onNotice?.({ ref: this.#ref, server, level, text: cutText(text, MCP_BOUNDS.noticeMaxChars) });
  }
}

function whyLeftOut(tool: Tool): string | null {
  if (tool.execution?.taskSupport === 'required') return 'it runs only as an MCP task, which Coxswain does not support';
  // Checked first: `JSON.stringify` is recursive. JSON parsers read 1e999 as Infinity.
  if (!JsonObject.safeParse(tool.inputSchema).success)
    return `its schema is nested more than ${BOUNDS.jsonDepthMax} deep, or has a number that is too large`;
  const bytes = Buffer.byteLength(JSON.stringify(tool.inputSchema));
  return bytes > MCP_BOUNDS.schemaMaxBytes
    ? `its schema has ${bytes} bytes; the limit is ${MCP_BOUNDS.schemaMaxBytes}`
    : null;
}

function definitionOf(name: string, server: string, tool: Tool): ToolDefinition {
  const { readOnlyHint, idempotentHint } = tool.annotations ?? {};
  return {
    name,
    description: cutText(tool.description ?? tool.title ?? '', MCP_BOUNDS.descriptionMaxChars),
    // `whyLeftOut` has checked it.
    input_schema: tool.inputSchema as JsonObject,
    source: `mcp:${server}`,
    traits: { ...DEFAULT_TRAITS, idempotent: readOnlyHint === true || idempotentHint === true },
  };
}
