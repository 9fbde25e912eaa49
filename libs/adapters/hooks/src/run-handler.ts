/** Runs handlers in this process: what one leaves behind is known as its own. */
import type { HookQuestion, HookReply } from '@coxswain/ports';
import { type AnyHandler, runHookHandler } from '@coxswain/protocol';
import { runAs, runAsOurs } from './left-behind.ts';

export type { AnyHandler };

/** Asks a handler. Takes the question's payload for its own. Never rejects. */
export function runHandler(handler: AnyHandler, question: HookQuestion, signal: AbortSignal): Promise<HookReply> {
  return runHookHandler(handler, question, signal, {
    asTheirs: (hook, work) => runAs({ hook }, work),
    asOurs: runAsOurs,
  });
}
