/**
 * An MCP server as a child process that communicates over standard input and output.
 *
 * P1: The server has its own process group. A Ctrl-C in the host's terminal does not reach it. The processes of its
 * group end with it.
 * P2: Its input is a pipe from the host, so that it reads the end of its input when the host ends for any reason.
 * P3: The transport is closed when the process has ended, even if a child process still holds its output open.
 * P4: A line that is not a message is kept for error messages and otherwise ignored.
 */

import { type ChildProcess, type ChildProcessByStdio, spawn } from 'node:child_process';
import { stat } from 'node:fs/promises';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { cutTextToEnd } from '@coxswain/protocol';
import { getDefaultEnvironment } from '@modelcontextprotocol/sdk/client/stdio.js';
import { deserializeMessage, serializeMessage } from '@modelcontextprotocol/sdk/shared/stdio.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { ErrorCode, type JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import { MCP_BOUNDS } from './mcp-bounds.ts';
import { MessageLines } from './message-lines.ts';

/** How to start a server. */
export interface StdioCommand {
  readonly command: string;
  readonly args: readonly string[];
  /** An absolute path. */
  readonly cwd: string;
  /** Added to the few variables that the SDK considers safe. */
  readonly env: Readonly<Record<string, string>>;
  /** Redacts the kept output. */
  readonly redact: (text: string) => string;
}

/** One process of a server, from start to end. */
export class StdioServer implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;

  readonly #command: StdioCommand;
  readonly #stderr: TextTail;
  readonly #garbage: TextTail;
  readonly #lines = new MessageLines(MCP_BOUNDS.messageMaxBytes);
  #child: ChildProcessByStdio<Writable, Readable, Readable> | null = null;
  #ended: Promise<void> = Promise.resolve();
  #delivery: Promise<void> = Promise.resolve();
  #end: string | null = null;
  /** Answers to requests of the server that it has not read yet. */
  #unreadAnswers = 0;
  #unreadAnswerBytes = 0;

  constructor(command: StdioCommand) {
    this.#command = command;
    this.#stderr = new TextTail(command.redact);
    this.#garbage = new TextTail(command.redact);
  }

  /** Starts the process. Rejects if it cannot be started. */
  async start(): Promise<void> {
    const { command, args, cwd, env } = this.#command;
    // A missing folder and a missing command give the same error, so the folder is checked first.
    const folder = await stat(cwd).catch(() => null);
    if (folder === null || !folder.isDirectory()) throw new Error(`its folder ${cwd} does not exist`);

    const child = spawn(command, [...args], {
      cwd,
      env: { ...getDefaultEnvironment(), ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: true,
      windowsHide: true,
    });
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve);
      child.once('error', (error: NodeJS.ErrnoException) => {
        reject(error.code === 'ENOENT' ? new Error(`the command ${JSON.stringify(command)} was not found`) : error);
      });
    });
    this.#child = child;
    child.on('error', (error) => this.onerror?.(error));
    child.stdin.on('error', (error) => this.onerror?.(error));
    child.stderr.on('data', (chunk: Buffer) => this.#stderr.add(chunk));
    child.stdout.on('data', (chunk: Buffer) => this.#read(chunk));
    this.#ended = this.#untilEnd(child);
  }

  /**
   * Writes one message. Rejects if the process does not accept it. In this case it waits a short time for the end of
   * the process, whose status is then in {@link end}. Also rejects an answer if the server does not read its answers.
   */
  async send(message: JSONRPCMessage): Promise<void> {
    const text = serializeMessage(message);
    if ('method' in message) return this.#write(text);
    // A server that sends pings and never reads its input must not fill the memory of the host.
    const bytes = Buffer.byteLength(text);
    if (
      this.#unreadAnswers >= MCP_BOUNDS.unreadAnswersMax ||
      this.#unreadAnswerBytes + bytes > MCP_BOUNDS.unreadAnswersMaxBytes
    )
      throw new Error('the server does not read its answers');
    this.#unreadAnswers += 1;
    this.#unreadAnswerBytes += bytes;
    try {
      await this.#write(text);
    } finally {
      this.#unreadAnswers -= 1;
      this.#unreadAnswerBytes -= bytes;
    }
  }

  async #write(text: string): Promise<void> {
    const input = this.#child?.stdin;
    if (!input?.writable) throw new Error('the server has closed its input');
    const problem = await new Promise<Error | null | undefined>((resolve) => {
      input.write(text, resolve);
    });
    if (!problem) return;
    // A process that has closed its input is about to end, and its exit status says more than this error.
    await this.#hasEndedWithin(MCP_BOUNDS.drainMs);
    throw problem;
  }

  /**
   * Ends the process and its group: closes its input, then sends SIGTERM, then SIGKILL. If even that fails, `end` stays
   * null.
   */
  async close(): Promise<void> {
    const child = this.#child;
    // The system may have given the id of an ended process to another one.
    if (child === null || this.#end !== null) return;
    child.stdin.end();
    if (await this.#hasEndedWithin(MCP_BOUNDS.stopGraceMs)) return;
    signalGroup(child.pid, 'SIGTERM');
    if (await this.#hasEndedWithin(MCP_BOUNDS.stopGraceMs)) return;
    signalGroup(child.pid, 'SIGKILL');
    await this.#hasEndedWithin(MCP_BOUNDS.stopGraceMs);
  }

  /** How the process ended; null while it runs. */
  get end(): string | null {
    return this.#end;
  }

  /** Whether a process was started and has not ended. */
  get isRunning(): boolean {
    return this.#child !== null && this.#end === null;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** The last output of the process besides messages; empty without output. */
  get lastOutput(): string {
    const words: string[] = [];
    if (this.#stderr.text !== '') words.push(`its stderr ended with: ${this.#stderr.text}`);
    if (this.#garbage.text !== '') words.push(`on stdout it wrote an invalid message: ${this.#garbage.text}`);
    return words.join('; ');
  }

  #read(chunk: Buffer): void {
    let lines: string[];
    try {
      lines = this.#lines.add(chunk);
    } catch (error) {
      // The rest of the message would be read as garbage, and its answer would never arrive.
      this.#garbage.add((error as RangeError).message);
      this.#child?.stdout.removeAllListeners('data').resume();
      signalGroup(this.#child?.pid, 'SIGKILL');
      return;
    }
    for (const line of lines) {
      const message = messageIn(line);
      if (message === null) this.#garbage.add(`${line}\n`);
      // The SDK processes notifications a moment later and answers at once. If both were delivered together, the last
      // progress of a call would arrive after its answer and be dropped.
      else this.#delivery = this.#delivery.then(() => this.onmessage?.(message));
    }
  }

  /** Settles once the process has ended and its output has been read. (P3) */
  async #untilEnd(child: ChildProcess): Promise<void> {
    const closed = new Promise<void>((resolve) => child.once('close', () => resolve()));
    const how = await new Promise<string>((resolve) => {
      child.once('exit', (code, signal) =>
        resolve(code === null ? `was ended by ${signal}` : `exited with code ${code}`),
      );
    });
    await Promise.race([closed, delay(MCP_BOUNDS.drainMs, undefined, { ref: false })]);
    child.stdin?.destroy();
    child.stdout?.destroy();
    child.stderr?.destroy();
    // Ends leftover processes of its group. For an empty group this has no effect. (P1)
    signalGroup(child.pid, 'SIGKILL');
    await this.#delivery;
    this.#end = how;
    this.onclose?.();
  }

  async #hasEndedWithin(milliseconds: number): Promise<boolean> {
    await Promise.race([this.#ended, delay(milliseconds, undefined, { ref: false })]);
    return this.#end !== null;
  }
}

function messageIn(line: string): JSONRPCMessage | null {
  try {
    return deserializeMessage(line);
  } catch {
    return brokenAnswerIn(line);
  }
}

/** An invalid answer, converted to an error for the pending request, which will get no other answer. */
function brokenAnswerIn(line: string): JSONRPCMessage | null {
  try {
    const { id, method, result, error } = JSON.parse(line) as Record<string, unknown>;
    if (typeof id !== 'number' || method !== undefined || (result === undefined && error === undefined)) return null;
    return {
      jsonrpc: '2.0',
      id,
      error: { code: ErrorCode.InternalError, message: 'the answer is not a JSON-RPC message' },
    };
  } catch {
    // The line is not JSON, or is null.
    return null;
  }
}

function signalGroup(leader: number | undefined, signal: NodeJS.Signals): void {
  if (leader === undefined) return;
  try {
    process.kill(-leader, signal);
  } catch (error) {
    // ESRCH: the group is empty. EPERM: it has only zombies on macOS, or processes of another user.
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ESRCH' && code !== 'EPERM') throw error;
  }
}

/** Keeps the end of a text of any length. Redacts it before cutting it: a part of a value would not be found. */
class TextTail {
  readonly #redact: (text: string) => string;
  readonly #decoder = new TextDecoder('utf-8');
  #text = '';

  constructor(redact: (text: string) => string) {
    this.#redact = redact;
  }

  add(chunk: Uint8Array | string): void {
    const text = typeof chunk === 'string' ? chunk : this.#decoder.decode(chunk, { stream: true });
    this.#text = cutTextToEnd(this.#redact(this.#text + text), MCP_BOUNDS.stderrTailMaxChars);
  }

  get text(): string {
    return this.#text.trim();
  }
}
