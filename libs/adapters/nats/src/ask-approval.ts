import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ApprovalQuestion } from '@coxswain/ports';
import { type ToolApprovalAsked, ToolApprovalSaid } from '@coxswain/protocol';
import { createInbox, type Msg, type NatsConnection } from '@nats-io/nats-core';
import { inboxPrefixOf } from './wire.ts';

/**
 * Asks tools on the bus whether a person must approve a call. Any instance of the tool answers. The question is sent
 * again each second until one does.
 *
 * Q1: An answer comes from a worker: it is read strictly, once, and only on the inbox of its question. That subject cannot
 *     be derived from the subject of another question.
 */
export interface ApprovalQuestions {
  /**
   * Contract: never rejects; true when the signal aborts before an answer. The caller bounds the time.
   * @param subject of the tool's calls.
   * @param member which of the tools that are served there.
   */
  ask(subject: string, question: ApprovalQuestion, member: string | undefined, signal: AbortSignal): Promise<boolean>;
  stop(): void;
}

const ASKED_AGAIN_MS = 1_000;
const ANSWER_MAX_BYTES = 1_024;

/** Questions on this connection. */
export function createApprovalQuestions(nc: NatsConnection): ApprovalQuestions {
  const inbox = `${createInbox(inboxPrefixOf(nc))}.p`;
  const open = new Map<string, (answer: boolean) => void>();
  const subscription = nc.subscribe(`${inbox}.*`, {
    callback(error, message) {
      const settle = error ? undefined : open.get(message.subject.slice(inbox.length + 1));
      const answer = settle && answerIn(message);
      if (answer) settle(answer.needs_approval);
    },
  });
  return {
    async ask(subject, { ref, callId, args }, member, signal) {
      const token = randomUUID();
      const asked: ToolApprovalAsked = {
        v: 1,
        want: 'approval',
        session_id: ref.sessionId,
        call_id: callId,
        ...(member === undefined ? {} : { tool: member }),
        args,
      };
      const settled = new AbortController();
      const answer = new Promise<boolean>((resolve) => open.set(token, resolve));
      const either = AbortSignal.any([signal, settled.signal]);
      const unanswered = async () => {
        while (!either.aborted) {
          // Without a connection nothing is sent, and the next round tries again.
          if (!nc.isClosed()) publish(nc, subject, asked, `${inbox}.${token}`);
          await sleep(ASKED_AGAIN_MS, null, { signal: either, ref: false }).catch(() => undefined);
        }
        return true;
      };
      try {
        return await Promise.race([answer, unanswered()]);
      } finally {
        settled.abort();
        open.delete(token);
      }
    },
    stop() {
      subscription.unsubscribe();
      for (const settle of [...open.values()]) settle(true);
    },
  };
}

function publish(nc: NatsConnection, subject: string, asked: ToolApprovalAsked, reply: string): void {
  try {
    nc.publish(subject, JSON.stringify(asked), { reply });
  } catch {
    // A payload that the server does not take, or a connection that closes: no answer, so a person is asked.
  }
}

function answerIn(message: Msg): ToolApprovalSaid | null {
  if (message.data.length > ANSWER_MAX_BYTES) return null;
  try {
    return ToolApprovalSaid.safeParse(message.json()).data ?? null;
  } catch {
    // Not JSON: the server reports that no process listens, or the answer is malformed.
    return null;
  }
}
