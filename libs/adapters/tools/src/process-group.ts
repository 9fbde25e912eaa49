/**
 * Runs a command in its own process group.
 *
 * G1: When the call ends, its group has ended: leftover processes are terminated. Exceptions are processes that left
 * the group (setsid), and processes that hang in the kernel.
 * G2: A group gets SIGTERM first, and SIGKILL after a grace period.
 * G3: The end is reported once the group has ended, not only the command's own process. The grace periods and the time
 * for the remaining output limit the wait.
 * G4: If this process exits, its groups are killed: nothing would end them later. Exceptions are exits by a signal
 * without a handler, such as SIGKILL.
 */

import { type ChildProcess, type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { type BackOff, delayAfter } from '@coxswain/protocol';
import { groupIsAlive, signalGroup } from './living-group.ts';
import { TOOL_BOUNDS } from './tool-bounds.ts';

/** A command to run. */
export interface GroupCommand {
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** Receives output. While a returned promise is pending, no more output is read. The promise must not reject. */
  readonly onOutput: (chunk: Buffer) => Promise<void> | undefined;
}

/** The end of a command. `leftovers`: other processes were still running when the command's own process ended. */
export interface GroupEnd {
  readonly why: 'exited' | 'timeout' | 'aborted';
  /** Null if a signal ended it. */
  readonly exitCode: number | null;
  readonly exitSignal: string | null;
  readonly leftovers: boolean;
}

/** Runs a command until it and its group have ended. Rejects only if it cannot be started. */
export async function runInGroup(command: GroupCommand, signal: AbortSignal): Promise<GroupEnd> {
  const child = spawn(command.file, command.args, {
    cwd: command.cwd,
    env: { ...command.env },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const group = child.pid;
  if (group === undefined) {
    // It could not be started. Without free file descriptors, it has no streams either.
    const [error] = await once(child, 'error');
    throw error;
  }
  if (!process.listeners('exit').includes(killRunning)) process.on('exit', killRunning);
  running.add(group);
  try {
    return await ended(child, group, command, signal);
  } finally {
    running.delete(group);
  }
}

async function ended(
  child: ChildProcessByStdio<null, Readable, Readable>,
  group: number,
  command: GroupCommand,
  signal: AbortSignal,
): Promise<GroupEnd> {
  const exited = exitOf(child);
  let held = 0;
  const streams = [child.stdout, child.stderr];
  for (const stream of streams) {
    stream.on('data', (chunk: Buffer) => {
      const taken = command.onOutput(chunk);
      if (!taken) return;
      held++;
      stream.pause();
      void taken.then(() => {
        if (--held === 0) for (const waiting of streams) waiting.resume();
      });
    });
  }
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()));

  const why = await firstOf(exited, command.timeoutMs, signal);
  let leftovers = false;
  if (why !== 'exited') await endGroup(group);
  else if (!(await groupEndsWithin(group, TOOL_BOUNDS.commandLeftoverGraceMs))) {
    leftovers = true;
    await endGroup(group);
  }
  const { exitCode, exitSignal } = await exited;
  // The system may give its id to another group.
  running.delete(group);

  // A process outside of the group may hold the pipes open. Its output does not belong to this command.
  for (let waitedMs = 0; waitedMs < OUTPUT_HELD_MAX_MS; waitedMs += OUTPUT_DRAIN_MS) {
    const isClosed = closed.then(() => true);
    if (await Promise.race([isClosed, delay(OUTPUT_DRAIN_MS, false, { ref: false })])) break;
    if (held === 0) break;
  }
  child.stdout.destroy();
  child.stderr.destroy();
  return { why, exitCode, exitSignal, leftovers };
}

/** The groups of running commands, which are killed at the exit of this process (G4). */
const running = new Set<number>();

function killRunning(): void {
  for (const group of running) signalGroup(group, 'SIGKILL');
}

const OUTPUT_DRAIN_MS = 1_000;
/** The maximum time for which the end of a command waits for the reader of its output. */
const OUTPUT_HELD_MAX_MS = 30_000;
const POLLS: BackOff = { firstMs: 5, maxMs: 80 };

function exitOf(child: ChildProcess): Promise<{ exitCode: number | null; exitSignal: string | null }> {
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (exitCode, exitSignal) => resolve({ exitCode, exitSignal }));
  });
}

async function firstOf(exited: Promise<unknown>, timeoutMs: number, signal: AbortSignal): Promise<GroupEnd['why']> {
  const settled = new AbortController();
  try {
    return await Promise.race([
      exited.then(() => 'exited' as const),
      delay(timeoutMs, 'timeout' as const, { signal: settled.signal }),
      new Promise<'aborted'>((resolve) => {
        if (signal.aborted) resolve('aborted');
        signal.addEventListener('abort', () => resolve('aborted'), { once: true, signal: settled.signal });
      }),
    ]);
  } finally {
    settled.abort();
  }
}

/** Ends a group with SIGTERM, then with SIGKILL. (G2) */
async function endGroup(group: number): Promise<void> {
  signalGroup(group, 'SIGTERM');
  if (await groupEndsWithin(group, TOOL_BOUNDS.commandKillGraceMs)) return;
  signalGroup(group, 'SIGKILL');
  // Only a process that hangs in the kernel outlives SIGKILL.
  await groupEndsWithin(group, TOOL_BOUNDS.commandKillGraceMs);
}

async function groupEndsWithin(group: number, milliseconds: number): Promise<boolean> {
  let waitedMs = 0;
  for (let polls = 1; await groupIsAlive(group); polls++) {
    if (waitedMs >= milliseconds) return false;
    const pauseMs = delayAfter(polls, POLLS);
    await delay(pauseMs);
    waitedMs += pauseMs;
  }
  return true;
}
