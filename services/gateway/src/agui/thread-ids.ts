/** Ids derived from a client's ids. Gateways store no mapping, and a repeated request produces the same ids. */
import { createHash } from 'node:crypto';
import { canonicalJson } from '@coxswain/protocol';
import { isSessionId } from './run-input.ts';

/** The session of a thread. A thread id that is a valid session id is used unchanged. */
export function sessionOfThread(threadId: string): string {
  return isSessionId(threadId) ? threadId : `agui-${digest('thread', threadId)}`;
}

/** The id of the command that delivers a message. A repeated message has the same id, so it changes nothing. */
export function commandOfMessage(sessionId: string, messageId: string): string {
  return `agui-${digest('message', sessionId, messageId)}`;
}

/** A first command and the suffixes of the later ones. */
const LATER_COMMAND = /^(agui-[\w-]{32})(-f)?(-[pq])?$/;

/**
 * The id of the first command for the message that a command delivers. Later commands are sent if another run had
 * started, or a run had just ended. Other ids are returned unchanged.
 */
export function firstCommandOf(commandId: string): string {
  return LATER_COMMAND.exec(commandId)?.[1] ?? commandId;
}

/** The id of the command that answers an interrupt in a run. A different answer has a different id. */
export function commandOfAnswer(sessionId: string, runId: string, interruptId: string, body: unknown): string {
  return `agui-${digest('answer', sessionId, runId, interruptId, canonicalJson(body))}`;
}

/** The message id of a model's answer. */
export function answerId(sessionId: string, effectId: string): string {
  return `${sessionId}:${effectId}`;
}

/** The message id of a call's result. */
export function resultId(sessionId: string, callId: string): string {
  return `${sessionId}:result:${callId}`;
}

/** The message id of another client's command. */
export function userMessageId(sessionId: string, commandId: string): string {
  return `${sessionId}:said:${commandId}`;
}

function digest(...parts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url').slice(0, 32);
}
