/**
 * An MCP server as a child process that speaks on its standard input and output.
 *
 * P1: The server stands in a process group of its own: a Ctrl-C in the host's terminal does not reach it, and what it
 *     has started ends with it.
 * P2: Its input is a pipe from the host, so that it sees the end of its input when the host is gone, however it went.
 * P3: The transport is closed when the process has ended, even if a child of it still holds its output open.
 * P4: A line that is no message is kept to be quoted and otherwise passed over.
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
  /** Absolute. */
  readonly cwd: string;
  /** Besides the few variables that the SDK takes to be safe. */
  readonly env: Readonly<Record<string, string>>;
}

/** One process of a server, from its start to its end. */
export class StdioServer implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;

  readonly #command: StdioCommand;
  readonly #stderr = new TextTail();
  readonly #garbage = new TextTail();
  readonly #lines = new MessageLines(MCP_BOUNDS.messageMaxBytes);
  #child: ChildProcessByStdio<Writable, Readable, Readable> | null = null;
  #ended: Promise<void> = Promise.resolve();
  #delivery: Promise<void> = Promise.resolve();
  #end: string | null = null;

  constructor(command: StdioCommand) {
    this.#command = command;
  }

  /** Starts the process. Rejects where it cannot be started. */
  async start(): Promise<void> {
    const { command, args, cwd, env } = this.#command;
    // A missing folder and a missing command give the same error; only one of them is the command's fault.
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

  /** Writes one message. Rejects where the process does not take it any more, and then by its end where it has one. */
  async send(message: JSONRPCMessage): Promise<void> {
    const input = this.#child?.stdin;
    if (!input?.writable) throw new Error('the server has closed its input');
    const problem = await new Promise<Error | null | undefined>((resolve) => {
      input.write(serializeMessage(message), resolve);
    });
    if (!problem) return;
    // Who has closed its input is about to end, and how says more than this error.
    await this.#hasEndedWithin(MCP_BOUNDS.drainMs);
    throw problem;
  }

  /**
   * Ends the process and its group: first its input is closed, then it is asked, then it is made to. Where even that
   * does not end it, `end` stays null.
   */
  async close(): Promise<void> {
    const child = this.#child;
    // A process that has ended has given its id back, and another may have it by now.
    if (child === null || this.#end !== null) return;
    child.stdin.end();
    if (await this.#hasEndedWithin(MCP_BOUNDS.stopGraceMs)) return;
    signalGroup(child.pid, 'SIGTERM');
    if (await this.#hasEndedWithin(MCP_BOUNDS.stopGraceMs)) return;
    signalGroup(child.pid, 'SIGKILL');
    await this.#hasEndedWithin(MCP_BOUNDS.stopGraceMs);
  }

  /** How the process ended, or null while it runs. */
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

  /** What the process said last outside of messages; empty if nothing. */
  get lastWords(): string {
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
      // The rest of that message would be read as garbage, and its answer would never come.
      this.#garbage.add((error as RangeError).message);
      this.#child?.stdout.removeAllListeners('data').resume();
      signalGroup(this.#child?.pid, 'SIGKILL');
      return;
    }
    for (const line of lines) {
      const message = messageIn(line);
      if (message === null) this.#garbage.add(`${line}\n`);
      // The SDK takes notifications up a moment later and answers at once: delivered together, the last progress of a
      // call would come after its answer and be dropped.
      else this.#delivery = this.#delivery.then(() => this.onmessage?.(message));
    }
  }

  /** Settles when the process has ended and what it wrote has been read. (P3) */
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
    // What it had started and left behind; to an empty group this says nothing. (P1)
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

/** A line that is meant as an answer and is none: whoever waits for it is told, as no other answer will come. */
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
    // No JSON, or null.
    return null;
  }
}

function signalGroup(leader: number | undefined, signal: NodeJS.Signals): void {
  if (leader === undefined) return;
  try {
    process.kill(-leader, signal);
  } catch (error) {
    // ESRCH: the group is empty. EPERM: only zombies on macOS, or processes of someone else.
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ESRCH' && code !== 'EPERM') throw error;
  }
}

/** Keeps the end of a text that goes on and on. */
export class TextTail {
  readonly #decoder = new TextDecoder('utf-8');
  #text = '';

  add(chunk: Uint8Array | string): void {
    const text = typeof chunk === 'string' ? chunk : this.#decoder.decode(chunk, { stream: true });
    this.#text = cutTextToEnd(this.#text + text, MCP_BOUNDS.stderrTailMaxChars);
  }

  get text(): string {
    return this.#text.trim();
  }
}
