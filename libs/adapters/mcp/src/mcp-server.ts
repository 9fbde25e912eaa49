import { setTimeout as delay } from 'node:timers/promises';
import type { ToolCall, ToolOutcome } from '@coxswain/ports';
import { cutText } from '@coxswain/protocol';
import { StreamableHTTPError } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  CallToolResultSchema,
  ErrorCode,
  type LoggingMessageNotification,
  McpError,
  type Progress,
  type Tool,
} from '@modelcontextprotocol/sdk/types.js';
import { type Connection, type ConnectionSpec, connect, listTools, whileAsked } from './connection.ts';
import { AnswerLostError, IDEMPOTENCY_META_KEY } from './http-answers.ts';
import { MCP_BOUNDS } from './mcp-bounds.ts';
import { outcomeOf } from './mcp-result.ts';
import { causeOf, isNetworkError, NotSentError, neverConnected } from './network-error.ts';
import { ProgressRate } from './progress-rate.ts';
import { cancelled, failed, unavailable } from './tool-outcome.ts';

/** The specification of a server, and its event handlers. */
export interface McpServerSpec extends ConnectionSpec {
  readonly callTimeoutMs: number;
  readonly restartsMax: number;
  /** The list of tools was read again. It may be the same. */
  readonly onToolsRead: () => void;
  readonly onNotice: (level: LoggingMessageNotification['params']['level'], text: string) => void;
  /** A log message of the server. */
  readonly onLog: (level: LoggingMessageNotification['params']['level'], text: string) => void;
}

/** A call that certainly did not run, so it may be sent again. */
interface NeverRan {
  readonly neverRan: string;
}

/**
 * One MCP server of one session: its connection, which is opened again after a loss, and its tools.
 *
 * M1: A call is sent once. It is sent a second time only if the server rejected the first request with HTTP 404 or 400,
 * as for an unknown session. A rejected call did not run.
 * M2: A lost server is connected again at the next call, not earlier. The number of consecutive restarts of a process
 * is limited.
 * M3: Every wait ends: by its answer, its signal, its timeout, or the loss of the connection.
 * M4: A failure of one call does not end the others: a connection is closed after its last call.
 */
export class McpServerTools {
  readonly #spec: McpServerSpec;
  readonly #closing = new AbortController();
  #connection: Connection | null = null;
  /** The connections with running calls, and the number of these calls. */
  readonly #running = new Map<Connection, number>();
  #reconnecting: Promise<void> | null = null;
  #refreshing: Promise<void> | null = null;
  #refreshAgain = false;
  #restarts = 0;
  #tools: readonly Tool[] = [];

  constructor(spec: McpServerSpec) {
    this.#spec = spec;
  }

  get name(): string {
    return this.#spec.name;
  }

  /** The newest known list. */
  get tools(): readonly Tool[] {
    return this.#tools;
  }

  /** Connects for the first time. Throws {@link ServerStartError}. */
  async open(signal: AbortSignal): Promise<void> {
    await this.#connect(signal);
  }

  /** Runs one call of a tool, by the server's name for it. Never rejects. */
  async call(tool: string, call: ToolCall, signal: AbortSignal): Promise<ToolOutcome> {
    if (signal.aborted) return cancelled('cancelled before the tool ran');
    const first = await this.#attempt(tool, call, signal);
    if ('status' in first) return first;
    const second = await this.#attempt(tool, call, signal);
    if ('status' in second) return second;
    return unavailable(`the MCP server ${this.name} did not accept the call: ${second.neverRan}`);
  }

  /** Closes the connection. Never rejects. Returns a sentence for each part that could not be closed. */
  async close(): Promise<readonly string[]> {
    this.#closing.abort(new Error('the tools of this session are closed'));
    const open = new Set(this.#running.keys());
    if (this.#connection !== null) open.add(this.#connection);
    const notes = (await Promise.all([...open].map((connection) => connection.close()))).flat();
    // The signal ends both soon. A connection that was established before that is closed as well.
    await Promise.allSettled([this.#reconnecting, this.#refreshing]);
    if (this.#connection !== null && !open.has(this.#connection)) notes.push(...(await this.#connection.close()));
    return notes;
  }

  async #attempt(tool: string, call: ToolCall, signal: AbortSignal): Promise<ToolOutcome | NeverRan> {
    const connection = await this.#openConnection(signal);
    if (!('client' in connection)) return connection;
    const watch = connection.watch(call.idempotencyKey);
    const shown = new ProgressRate(call.onProgress);
    this.#running.set(connection, (this.#running.get(connection) ?? 0) + 1);
    try {
      const answer = whileAsked(signal, (own) =>
        connection.client.request(
          {
            method: 'tools/call',
            params: { name: tool, arguments: call.args, _meta: { [IDEMPOTENCY_META_KEY]: call.idempotencyKey } },
          },
          CallToolResultSchema,
          {
            signal: own,
            timeout: this.#spec.callTimeoutMs,
            resetTimeoutOnProgress: true,
            onprogress: (progress) => shown.add(progressInWords(progress)),
          },
        ),
      );
      const result = await Promise.race([answer, watch.lost]);
      this.#restarts = 0;
      return outcomeOf(result);
    } catch (error) {
      return redacted(await this.#outcomeOfError(error, connection, signal), connection);
    } finally {
      shown.stop();
      watch.done();
      await this.#callEnded(connection);
    }
  }

  async #outcomeOfError(error: unknown, connection: Connection, signal: AbortSignal): Promise<ToolOutcome | NeverRan> {
    const { name } = this;
    if (signal.aborted) return cancelled(`cancelled; the host asked the MCP server ${name} to stop`);
    if (this.#closing.signal.aborted)
      return failed('tool_failed', 'the tools of this session were closed while it ran');

    const lost = connection.lost();
    if (lost !== null)
      return failed('tool_failed', `the MCP server ${name} ${lost} while the call ran${quoted(connection)}`);
    if (error instanceof StreamableHTTPError && (error.code === 404 || error.code === 400)) {
      // The server does not know the session, for example after its restart. A rejected call did not run. (M1)
      this.#drop(connection);
      return { neverRan: error.message };
    }
    if (isNetworkError(error)) {
      this.#drop(connection);
      // Its other requests are those that the server leaves open.
      if ((error as TypeError).cause instanceof NotSentError) await this.#end(connection);
      if (neverConnected(error)) return unavailable(`the MCP server ${name} cannot be reached: ${causeOf(error)}`);
      return failed(
        'tool_failed',
        `the connection to the MCP server ${name} broke while the call ran: ${causeOf(error)}`,
      );
    }
    if (error instanceof AnswerLostError) {
      this.#drop(connection);
      return failed('tool_failed', `the MCP server ${name}: ${error.message}; the outcome of the call is unknown`);
    }
    if (error instanceof McpError && error.code === ErrorCode.RequestTimeout) {
      return failed('tool_failed', `the MCP server ${name} did not answer within ${this.#spec.callTimeoutMs} ms`);
    }
    this.#restarts = 0;
    const { message } = error as Error;
    if (error instanceof McpError || error instanceof StreamableHTTPError) {
      return failed('tool_failed', `the MCP server ${name} failed the call: ${message}`);
    }
    // Redacted before it is cut: a part of a value would not be found.
    const why = cutText(connection.redact(message), MCP_BOUNDS.invalidResultMaxChars);
    return failed('tool_failed', `the MCP server ${name} returned an invalid result: ${why}`);
  }

  /** An open connection, established again if necessary; or the reason why there is none. */
  async #openConnection(signal: AbortSignal): Promise<Connection | ToolOutcome> {
    const { name } = this;
    if (this.#closing.signal.aborted) return unavailable('the tools of this session are closed');
    if (this.#connection !== null && this.#connection.lost() === null) return this.#connection;

    if (this.#reconnecting === null) {
      // Only restarts of processes are limited. One request per call to a silent address costs little. (M2)
      if ('command' in this.#spec.server && this.#restarts >= this.#spec.restartsMax) {
        const end = this.#connection?.lost();
        const words = this.#connection === null ? '' : this.#connection.redact(quoted(this.#connection));
        return unavailable(
          `the MCP server ${name} ${end ?? 'could not be started'} and was restarted ${this.#restarts} times; it is not restarted again${words}`,
        );
      }
      this.#restarts += 1;
      this.#reconnecting = this.#reconnect().finally(() => {
        this.#reconnecting = null;
      });
    }
    try {
      await orAborted(this.#reconnecting, signal);
    } catch (error) {
      if (signal.aborted) return cancelled('cancelled before the tool ran');
      return unavailable((error as Error).message);
    }
    return this.#connection ?? unavailable(`the MCP server ${name} ended again immediately`);
  }

  async #reconnect(): Promise<void> {
    await this.#connection?.close();
    await this.#connect(this.#closing.signal);
    this.#spec.onToolsRead();
  }

  async #connect(signal: AbortSignal): Promise<void> {
    const { onLog } = this.#spec;
    let hasChanged = false;
    const onToolsChanged = () => {
      hasChanged = true;
      this.#refresh();
    };
    const until = AbortSignal.any([signal, this.#closing.signal]);
    const { connection, tools } = await connect(this.#spec, { onToolsChanged, onLog }, until);
    this.#connection = connection;
    this.#tools = tools;
    // The list may have changed after its first pages were read.
    if (hasChanged) this.#refresh();
  }

  /** The next call opens another connection. Running calls can still get their answers on this one. (M4) */
  #drop(connection: Connection): void {
    if (this.#connection === connection) this.#connection = null;
  }

  /** After the last call of a dropped connection, closes it. */
  async #callEnded(connection: Connection): Promise<void> {
    const left = (this.#running.get(connection) ?? 1) - 1;
    if (left > 0) {
      this.#running.set(connection, left);
      return;
    }
    this.#running.delete(connection);
    if (this.#connection !== connection && !this.#closing.signal.aborted) await this.#end(connection);
  }

  async #end(connection: Connection): Promise<void> {
    for (const note of await connection.close()) this.#spec.onNotice('warning', note);
  }

  /** Fetches the list again. Several changes during a fetch lead to one more fetch. */
  #refresh(): void {
    this.#refreshAgain = true;
    this.#refreshing ??= this.#fetchLists();
  }

  async #fetchLists(): Promise<void> {
    try {
      while (this.#refreshAgain && !this.#closing.signal.aborted) {
        this.#refreshAgain = false;
        // Servers report each of many changes. A server that reports a change after every list must not keep the host
        // busy.
        await delay(REFRESH_PAUSE_MS);
        const connection = this.#connection;
        if (connection === null || connection.lost() !== null) return;
        await this.#fetchList(connection);
      }
    } finally {
      // Reset here and not after the promise has settled: a change in between would be missed.
      this.#refreshing = null;
    }
  }

  async #fetchList({ client, redact }: Connection): Promise<void> {
    try {
      this.#tools = await listTools(client, this.#closing.signal, this.#spec);
      this.#spec.onToolsRead();
    } catch (error) {
      if (this.#closing.signal.aborted) return;
      const why = redact((error as Error).message);
      this.#spec.onNotice('warning', `its changed list of tools could not be read: ${why}`);
    }
  }
}

const REFRESH_PAUSE_MS = 50;

function quoted(connection: Connection): string {
  const words = connection.lastOutput();
  return words === '' ? '' : `; ${words}`;
}

function redacted(ended: ToolOutcome | NeverRan, connection: Connection): ToolOutcome | NeverRan {
  if ('neverRan' in ended) return { neverRan: connection.redact(ended.neverRan) };
  const content = ended.result.content.map((part) =>
    part.type === 'text' ? { ...part, text: connection.redact(part.text) } : part,
  );
  return { ...ended, result: { ...ended.result, content } };
}

function progressInWords({ progress, total, message }: Progress): string {
  const count = total === undefined ? String(progress) : `${progress}/${total}`;
  return cutText(message === undefined ? count : `${message} (${count})`, MCP_BOUNDS.progressMaxChars);
}

async function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const settled = new AbortController();
  const aborted = new Promise<never>((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener('abort', () => reject(signal.reason), { once: true, signal: settled.signal });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    settled.abort();
  }
}
