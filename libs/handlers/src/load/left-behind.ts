/**
 * What handlers leave behind: a promise that nobody awaits and that fails, a timer that throws, a child process that
 * could not be started. It is no question's any more, and must not end the process for all that runs in it.
 *
 * L1: What begins in a handler, or in the module that it came from, is known as theirs however much later it fails.
 * L2: What a handler sets going in us is not.
 * L3: A failure that is nobody's ends the process, as it would without all this.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Log } from '@coxswain/ports';
import type { AnyHandler, HookQuestion, HookReply } from '@coxswain/protocol';
import { runHookHandler } from '../run-hook-handler.ts';

/** Whose code runs. */
export type LeftBy = { readonly hook: string } | { readonly tool: string } | { readonly module: string };

const running = new AsyncLocalStorage<LeftBy>();
const logs = new Set<Log>();

/** Runs code that people have written. */
export function runAs<T>(whose: LeftBy, work: () => T): T {
  return running.run(whose, work);
}

/** Runs code of ours that such code calls. */
export function runAsOurs<T>(work: () => T): T {
  return running.exit(work);
}

/** Asks a handler. Takes the question's payload for its own. Never rejects. */
export function runHandler(handler: AnyHandler, question: HookQuestion, signal: AbortSignal): Promise<HookReply> {
  return runHookHandler(handler, question, signal, {
    asTheirs: (hook, work) => runAs({ hook }, work),
    asOurs: runAsOurs,
  });
}

/** Logs what handlers leave behind in this process from now on, instead of ending it. @returns ends that. */
export function watchLeftBehind(log: Log): () => void {
  if (logs.size === 0) process.on('unhandledRejection', rejected).on('uncaughtException', thrown);
  logs.add(log);
  return () => {
    if (logs.delete(log) && logs.size === 0) endWatching();
  };
}

function endWatching(): void {
  process.off('unhandledRejection', rejected).off('uncaughtException', thrown);
}

function isTold(error: unknown): boolean {
  const whose = running.getStore();
  if (!whose) return false;
  for (const log of logs) log.error({ ...whose, error: errorOf(error) }, 'unhandled rejection in a hook handler');
  return true;
}

function rejected(reason: unknown): void {
  if (isTold(reason) || process.listenerCount('unhandledRejection') > 1) return;
  throw errorOf(reason);
}

function thrown(error: unknown): void {
  if (isTold(error) || process.listenerCount('uncaughtException') > 1) return;
  endWatching();
  // Thrown in here it would be told as a failure of this listener.
  queueMicrotask(() => {
    throw error;
  });
}

// Anything can be thrown, also what cannot be told.
function errorOf(reason: unknown): Error {
  if (reason instanceof Error) return reason;
  try {
    return new Error(String(reason));
  } catch {
    return new Error('something that cannot be told');
  }
}
