/** Ids that follow from a client's: no gateway has to remember any, and the same request again means the same. */
import { createHash } from 'node:crypto';
import { canonicalJson } from '@coxswain/protocol';
import { isSessionId } from './run-input.ts';

/** The session of a thread: its id as it stands where it can be one. */
export function sessionOfThread(threadId: string): string {
  return isSessionId(threadId) ? threadId : `agui-${digest('thread', threadId)}`;
}

/** The command by which a message comes to a session: the same message again changes nothing. */
export function commandOfMessage(sessionId: string, messageId: string): string {
  return `agui-${digest('message', sessionId, messageId)}`;
}

/** All commands that may have brought a message: where another run had begun, or one had just ended, a later one has. */
export function commandsOfMessage(sessionId: string, messageId: string): readonly string[] {
  const first = commandOfMessage(sessionId, messageId);
  return [first, `${first}-f`].flatMap((id) => [id, `${id}-p`, `${id}-q`]);
}

/** The command by which an interrupt is answered, by a run: another answer is another command. */
export function commandOfAnswer(sessionId: string, runId: string, interruptId: string, body: unknown): string {
  return `agui-${digest('answer', sessionId, runId, interruptId, canonicalJson(body))}`;
}

/** The message that an effect's answer becomes. */
export function answerId(sessionId: string, effectId: string): string {
  return `${sessionId}:${effectId}`;
}

/** The message that a call's result becomes. */
export function resultId(sessionId: string, callId: string): string {
  return `${sessionId}:result:${callId}`;
}

/** The message that somebody else's command becomes. */
export function saidId(sessionId: string, commandId: string): string {
  return `${sessionId}:said:${commandId}`;
}

function digest(...parts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url').slice(0, 32);
}
