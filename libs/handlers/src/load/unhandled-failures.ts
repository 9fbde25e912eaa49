/**
 * Unhandled failures of user code: a rejected promise without a handler, a timer that throws, a child process that
 * could not be started. They belong to no question, and must not end a process that serves other sessions.
 *
 * LEFTOVER-1  Work that starts in user code, or in its module, stays attributed to it, however late it fails.
 * LEFTOVER-2  Host code that user code calls is not attributed to it.
 * LEFTOVER-3  An unattributed failure ends the process, unless the program has its own listener for such failures.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Log } from '@coxswain/ports';
import type { AnyHandler, HookQuestion, HookReply } from '@coxswain/protocol';
import { runHookHandler } from '../run-hook-handler.ts';

/** The user code that runs now. */
export type UserCode = { readonly hook: string } | { readonly tool: string } | { readonly module: string };

const running = new AsyncLocalStorage<UserCode>();
const logs = new Set<Log>();

/** Runs user code, and attributes its failures. */
export function runAs<T>(whose: UserCode, work: () => T): T {
  return running.run(whose, work);
}

/** Runs host code that user code calls. */
export function runAsOurs<T>(work: () => T): T {
  return running.exit(work);
}

/** Runs a handler. It takes ownership of the question's payload. Never rejects. */
export function runHandler(handler: AnyHandler, question: HookQuestion, signal: AbortSignal): Promise<HookReply> {
  return runHookHandler(handler, question, signal, {
    asTheirs: (hook, work) => runAs({ hook }, work),
    asOurs: runAsOurs,
  });
}

/** Logs unhandled failures of user code in this process, instead of ending it. @returns a function that ends this. */
export function watchUnhandledFailures(log: Log): () => void {
  if (logs.size === 0) process.on('unhandledRejection', rejected).on('uncaughtException', thrown);
  logs.add(log);
  return () => {
    if (logs.delete(log) && logs.size === 0) endWatching();
  };
}

function endWatching(): void {
  process.off('unhandledRejection', rejected).off('uncaughtException', thrown);
}

function logAttributed(error: unknown): boolean {
  const whose = running.getStore();
  if (!whose) return false;
  for (const log of logs) log.error({ ...whose, error: errorOf(error) }, 'unhandled failure in user code');
  return true;
}

function rejected(reason: unknown): void {
  if (logAttributed(reason) || process.listenerCount('unhandledRejection') > 1) return;
  throw errorOf(reason);
}

function thrown(error: unknown): void {
  if (logAttributed(error) || process.listenerCount('uncaughtException') > 1) return;
  endWatching();
  // An error that this listener throws would be reported as a failure of the listener.
  queueMicrotask(() => {
    throw error;
  });
}

// Code can throw any value, even one that cannot be converted to text.
function errorOf(reason: unknown): Error {
  if (reason instanceof Error) return reason;
  try {
    return new Error(String(reason));
  } catch {
    return new Error('a value that cannot be converted to text');
  }
}
