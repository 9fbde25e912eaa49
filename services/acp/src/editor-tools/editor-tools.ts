import { resolve } from 'node:path';
import type { AgentContext, ClientCapabilities, ToolCallContent } from '@agentclientprotocol/sdk';
import { createBuiltInTools, TOOL_BOUNDS } from '@coxswain/adapter-tools';
import type { ServedTool, ToolCallContext } from '@coxswain/client';
import {
  fromWire,
  type JsonObject,
  type StandIns,
  sessionRef,
  type ToolDefinition,
  ToolResult,
} from '@coxswain/protocol';
import type { CurrentBus } from '../current-bus.ts';
import { writeDiagnostic } from '../diagnostics.ts';
import { EditorFiles } from './editor-files.ts';
import { runInTerminal } from './editor-terminal.ts';

/** The session and the editor that the tools belong to. */
export interface EditorToolsOptions {
  readonly bus: CurrentBus;
  readonly client: AgentContext;
  readonly sessionId: string;
  readonly root: string;
  /** Adds content to the view of a call. */
  show(callId: string, content: ToolCallContent): Promise<void>;
}

type Run = (args: JsonObject, context: ToolCallContext) => Promise<ToolResult>;
/** Running calls end when the editor disconnects, so they get almost no time to finish. */
const DRAIN_MS = 1;

/** The bus names of an editor's tools, keyed by the built-in tool that each one replaces. */
export function editorToolNames(sessionId: string, { fs, terminal }: ClientCapabilities): StandIns {
  const named = (tool: string) => `editor_${sessionId}_${tool}`;
  const { readTextFile: reads, writeTextFile: writes } = fs ?? {};
  return {
    ...(reads ? { read_file: named('read_file') } : {}),
    ...(writes ? { write_file: named('write_file') } : {}),
    ...(reads && writes ? { edit_file: named('edit_file'), append_file: named('append_file') } : {}),
    ...(terminal ? { run_command: named('run_command') } : {}),
  };
}

/**
 * Built-in tools that an editor runs itself if it offers files or terminals. They are served on the bus for its session
 * only. They replace the host's tools while the editor is connected.
 */
export class EditorTools {
  readonly #options: EditorToolsOptions;
  readonly #files: EditorFiles;
  readonly #leaving = new AbortController();
  #served: ServedTool[] = [];

  constructor(options: EditorToolsOptions) {
    this.#options = options;
    this.#files = new EditorFiles(options.client, options.sessionId, options.root);
  }

  /**
   * Serves the tools, and serves them again on each new bus.
   * @param succession `claims`: receive the calls at once. `waits`: stand by for another editor of the session.
   * @returns false if the tools cannot be served; the host then runs its own.
   */
  async serve(standIns: StandIns, succession: 'claims' | 'waits'): Promise<boolean> {
    if (Object.keys(standIns).length === 0) return false;
    try {
      await this.#serveNow(standIns, succession);
      return true;
    } catch (error) {
      const { message } = error as Error;
      writeDiagnostic(`the host's own files and commands are used, not the editor's: ${message}`);
      await this.close();
      return false;
    }
  }

  /** Claims the session's calls from another editor, so that the editor that prompts sees the results. */
  async claim(): Promise<void> {
    await Promise.all(this.#served.map((tool) => tool.claim()));
  }

  /** Stops serving the tools. */
  async close(): Promise<void> {
    this.#leaving.abort(new Error('the editor has disconnected'));
    await Promise.all(this.#served.splice(0).map((tool) => tool.stop().catch(() => undefined)));
  }

  async #serveNow(standIns: StandIns, succession: 'claims' | 'waits'): Promise<void> {
    const { bus, sessionId, root } = this.#options;
    const { client, gone } = await bus.open(this.#leaving.signal);
    const ref = sessionRef(sessionId, client.tenant);
    const opened = await createBuiltInTools().open({ ref, root, mcpServers: {} }, this.#leaving.signal);
    if (!('tools' in opened)) throw Object.assign(new Error(opened.message), { code: opened.code });
    const serving = opened.tools.flatMap((tool) => {
      const name = standIns[tool.name as keyof StandIns];
      const run = this.#runs[tool.name as keyof StandIns];
      return name && run
        ? [client.serveTool(this.#definition(tool, name, run), { drainMs: DRAIN_MS, succession })]
        : [];
    });
    const settled = await Promise.allSettled(serving);
    this.#served = settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    await opened.close();
    // After an error the served ones are stopped, also if the session was closed meanwhile.
    this.#leaving.signal.throwIfAborted();
    for (const one of settled) if (one.status === 'rejected') throw one.reason;
    gone.addEventListener(
      'abort',
      () => {
        if (!this.#leaving.signal.aborted) void this.serve(standIns, succession);
      },
      { once: true },
    );
  }

  #definition({ description, input_schema: inputSchema, traits }: ToolDefinition, name: string, run: Run) {
    const { sessionId } = this.#options;
    return {
      name,
      description,
      inputSchema,
      idempotent: traits.idempotent,
      sequential: traits.sequential,
      forSession: sessionId,
      execute: async (args: JsonObject, context: ToolCallContext) => {
        if (context.ref.sessionId !== sessionId) throw new Error(`this is the editor of another session`);
        return fromWire(ToolResult, await run(args, context));
      },
    };
  }

  /** Reports a file that the editor changed to the session's hooks, as the host does for its own tools. */
  async #edit(path: string, { edited }: ToolCallContext, done: Promise<ToolResult>): Promise<ToolResult> {
    const result = await done;
    edited(this.#files.shown(path));
    return result;
  }

  readonly #runs: Readonly<Record<keyof StandIns, Run>> = {
    read_file: ({ path, offset, limit }, { abortSignal }) =>
      this.#files.read(String(path), abortSignal, offset as number | undefined, limit as number | undefined),
    write_file: ({ path, content, encoding }, context) => {
      if (encoding === 'base64') throw new Error('the editor writes text alone; leave encoding out');
      return this.#edit(String(path), context, this.#files.write(String(path), String(content), context.abortSignal));
    },
    append_file: ({ path, content }, context) =>
      this.#edit(String(path), context, this.#files.append(String(path), String(content), context.abortSignal)),
    edit_file: ({ path, old_text, new_text, replace_all }, context) => {
      const change = { oldText: String(old_text), newText: String(new_text), all: replace_all === true };
      return this.#edit(String(path), context, this.#files.edit(String(path), change, context.abortSignal));
    },
    run_command: ({ command, cwd, timeout_ms }, { abortSignal, toolCallId }) =>
      runInTerminal(this.#options.client, {
        sessionId: this.#options.sessionId,
        command: String(command),
        cwd: resolve(this.#options.root, typeof cwd === 'string' ? cwd : '.'),
        timeoutMs: typeof timeout_ms === 'number' ? timeout_ms : TOOL_BOUNDS.commandTimeoutDefaultMs,
        signal: abortSignal,
        show: (content) => this.#options.show(toolCallId, content),
      }),
  };
}
