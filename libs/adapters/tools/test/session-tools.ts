/** Tools opened on a fresh root folder, and calls to them. */
import { mkdir, mkdtemp, readFile, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ToolOutcome, ToolSource, Toolset } from '@coxswain/ports';
import { type JsonObject, sessionRef, ToolResult } from '@coxswain/protocol';
import { expect, onTestFinished } from 'vitest';
import { type BuiltInToolsOptions, createBuiltInTools, startCommandRunner } from '../src/mod.ts';

/** A root folder, and a folder beside it that must stay as it is. */
export interface Ground {
  readonly root: string;
  readonly outside: string;
}

/** Makes a root and an outside that are removed when the test is over. */
export async function freshGround(): Promise<Ground> {
  const base = await realpath(await mkdtemp(join(tmpdir(), 'coxswain-tools-')));
  onTestFinished(() => rm(base, { recursive: true, force: true }));
  const ground = { root: join(base, 'root'), outside: join(base, 'outside') };
  await mkdir(ground.root);
  await mkdir(ground.outside);
  return ground;
}

/** An opened toolset and the short way to call it. */
export interface SessionTools {
  readonly toolset: Toolset;
  /** What the tools told the model beside their results. */
  readonly feedback: readonly string[];
  call(tool: string, args: JsonObject, signal?: AbortSignal, onProgress?: (text: string) => void): Promise<ToolOutcome>;
}

/** Opens a source on a root; it is closed when the test is over, and must then leave nothing open. */
export async function openTools(source: ToolSource, root: string): Promise<SessionTools> {
  const spec = { ref: sessionRef('s1'), root, mcpServers: {} };
  const toolset = await source.open(spec, new AbortController().signal);
  if (!('call' in toolset)) throw new Error(`not opened: ${toolset.code} ${toolset.message}`);
  onTestFinished(async () => expect(await toolset.close()).toEqual([]));
  let calls = 0;
  const feedback: string[] = [];
  return {
    toolset,
    feedback,
    async call(tool, args, signal = new AbortController().signal, onProgress = () => {}) {
      const callId = `c${++calls}`;
      const identity = { idempotencyKey: `default.s1.${callId}`, ref: spec.ref, callId, epoch: 1 };
      const call = { ...identity, tool, args, onProgress, onFeedback: (text: string) => feedback.push(text) };
      const outcome = await toolset.call(call, signal);
      // Whatever a tool gives back goes into the journal, so it has to have the journal's shape.
      ToolResult.parse(outcome.result);
      return outcome;
    },
  };
}

/** The built-ins on a fresh root. */
export async function builtIns(options?: BuiltInToolsOptions): Promise<SessionTools & Ground> {
  const ground = await freshGround();
  return { ...(await openTools(createBuiltInTools(options), ground.root)), ...ground };
}

/** The built-ins on a fresh root, with a command runner of their own that stops when the test is over. */
export async function builtInsWithRunner(options: BuiltInToolsOptions = {}): Promise<SessionTools & Ground> {
  const ground = await freshGround();
  const socket = join(ground.outside, 'runner.sock');
  const runner = await startCommandRunner(socket);
  onTestFinished(() => runner.stop());
  const runCommand = { ...(options.runCommand || {}), socket };
  return { ...(await openTools(createBuiltInTools({ ...options, runCommand }), ground.root)), ...ground };
}

/** The texts of an outcome, joined by newlines. */
export function textOf(outcome: ToolOutcome): string {
  return outcome.result.content.map((part) => (part.type === 'text' ? part.text : `<${part.media_type}>`)).join('\n');
}

/** The code of an outcome that failed. */
export function codeOf(outcome: ToolOutcome): unknown {
  return outcome.result.detail?.code;
}

/** Waits until a condition holds; gives up after half a minute, which only a broken tool needs. */
export async function eventually(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
  for (let tries = 0; tries < 1_500; tries++) {
    if (await condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error(`never came true: ${what}`);
}

/** Whether a process exists; a zombie counts. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Whether a process has ended; a zombie has. */
export async function hasEnded(pid: number): Promise<boolean> {
  if (!isAlive(pid)) return true;
  const status = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => ') Z');
  return status.slice(status.lastIndexOf(')') + 2).startsWith('Z');
}

/** The process id that a command writes to a file, once it is there. */
export async function pidIn(file: string): Promise<number> {
  await eventually(async () => /\d+\n/.test(await readFile(file, 'utf8').catch(() => '')), `a process id in ${file}`);
  return Number((await readFile(file, 'utf8')).trim());
}
