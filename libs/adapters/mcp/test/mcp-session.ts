/** MCP servers opened for a session, real peers among them, and calls to their tools. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, realpath, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { ToolOutcome, Toolset } from '@coxswain/ports';
import { type Failure, type JsonObject, McpServers, sessionRef, ToolDefinition, ToolResult } from '@coxswain/protocol';
import { onTestFinished } from 'vitest';
import { createMcpTools, type McpToolsOptions } from '../src/mod.ts';

const packageFolder = (name: string) => dirname(createRequire(import.meta.url).resolve(`${name}/package.json`));
const node = (...args: string[]) => ({ command: process.execPath, args });

/** The official servers, and the one that misbehaves on demand. */
export const PEERS = {
  everything: node(join(packageFolder('@modelcontextprotocol/server-everything'), 'dist/index.js'), 'stdio'),
  filesystem: (folder: string) =>
    node(join(packageFolder('@modelcontextprotocol/server-filesystem'), 'dist/index.js'), folder),
  raw: (...flags: string[]) => node(join(import.meta.dirname, 'raw-server.mjs'), ...flags),
};

/** A folder that is removed when the test is over. */
export async function freshFolder(): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'coxswain-mcp-')));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** An opened toolset and the short way to call it. */
export interface McpSession {
  readonly root: string;
  readonly toolset: Toolset;
  /** What the servers told the model beside results: who, and what. */
  readonly feedback: readonly (readonly [source: string, text: string])[];
  call(
    tool: string,
    args?: JsonObject,
    signal?: AbortSignal,
    onProgress?: (text: string) => void,
  ): Promise<ToolOutcome>;
}

/** Opens servers; whatever comes of it is closed when the test is over. */
export async function tryOpen(
  servers: JsonObject,
  options?: McpToolsOptions,
  signal: AbortSignal = new AbortController().signal,
): Promise<McpSession | Failure> {
  const root = await freshFolder();
  const ref = sessionRef('s1');
  const feedback: [string, string][] = [];
  const onFeedback = (source: string, text: string) => void feedback.push([source, text]);
  const spec = { ref, root, mcpServers: McpServers.parse(servers), onFeedback };
  const toolset = await createMcpTools(options).open(spec, signal);
  if (!('call' in toolset)) return toolset;
  onTestFinished(async () => {
    await toolset.close();
  });
  for (const tool of toolset.tools) ToolDefinition.parse(tool);
  let calls = 0;
  return {
    root,
    toolset,
    feedback,
    async call(tool, args = {}, callSignal = new AbortController().signal, onProgress = () => {}) {
      const callId = `c${++calls}`;
      const identity = { idempotencyKey: `default.s1.${callId}`, ref, callId, epoch: 1 };
      const call = { ...identity, tool, args, onProgress, onFeedback: () => {} };
      const outcome = await toolset.call(call, callSignal);
      // Whatever a server gives back goes into the journal, so it has to have the journal's shape.
      ToolResult.parse(outcome.result);
      return outcome;
    },
  };
}

/** Opens servers that must open. */
export async function opened(servers: JsonObject, options?: McpToolsOptions): Promise<McpSession> {
  const session = await tryOpen(servers, options);
  if ('code' in session) throw new Error(`not opened: ${session.code} ${session.message}`);
  return session;
}

/** The texts of an outcome, joined by newlines. */
export function textOf(outcome: ToolOutcome): string {
  return outcome.result.content.map((part) => (part.type === 'text' ? part.text : `<${part.media_type}>`)).join('\n');
}

/** The code of an outcome that failed. */
export function codeOf(outcome: ToolOutcome): unknown {
  return outcome.result.detail?.code;
}

/** Waits until a condition holds; gives up after half a minute, which only something broken needs. */
export async function eventually(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
  for (let tries = 0; tries < 1_500; tries++) {
    if (await condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error(`never came true: ${what}`);
}

/** What a file holds; empty while it is not there. */
export async function textIn(file: string): Promise<string> {
  return readFile(file, 'utf8').catch(() => '');
}

/** The process id that a server has written to a file. */
export async function pidIn(file: string): Promise<number> {
  await eventually(async () => (await textIn(file)).endsWith('\n'), `a process id in ${file}`);
  return Number((await textIn(file)).trim());
}

/** Whether a process has ended; a zombie has. */
export async function hasEnded(pid: number): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch {
    return true;
  }
  const status = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => null);
  return status?.slice(status.lastIndexOf(')') + 2).startsWith('Z') ?? false;
}

/** A process of this test, killed when it is over. */
export function started(command: string, args: readonly string[], env: Record<string, string> = {}): ChildProcess {
  const child = spawn(command, [...args], { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  onTestFinished(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  });
  return child;
}

/** A port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  return typeof address === 'object' && address !== null ? address.port : 0;
}

/** Starts server-everything on Streamable HTTP and waits until it listens. */
export async function everythingOverHttp(port: number): Promise<ChildProcess> {
  const [script] = PEERS.everything.args as [string];
  const child = started(process.execPath, [script, 'streamableHttp'], { PORT: String(port) });
  let said = '';
  child.stdout?.on('data', (chunk: Buffer) => {
    said += chunk;
  });
  child.stderr?.on('data', (chunk: Buffer) => {
    said += chunk;
  });
  await eventually(() => said.includes('listening on port'), 'server-everything listens');
  return child;
}
