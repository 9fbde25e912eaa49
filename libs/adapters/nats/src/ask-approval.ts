import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { inboxPrefixOf } from '@coxswain/bus';
import type { ApprovalQuestion } from '@coxswain/ports';
import { type ApprovalCheck, ApprovalCheckAnswer } from '@coxswain/protocol';
import { createInbox, type Msg, type NatsConnection } from '@nats-io/nats-core';

/**
 * Asks bus tools whether a call needs a human-in-the-loop approval. Any instance of the tool may answer. The question
 * is repeated each second until one does.
 *
 * Q1: An answer of a worker is untrusted: it is validated strictly, and only the first valid one counts. It must arrive
 *     on the inbox of its question, and that subject cannot be derived from the subject of another question.
 */
export interface ApprovalQuestions {
  /**
   * Asks whether a call needs an approval. Contract: never rejects. The caller bounds the time.
   * @param subject the subject of the tool's calls.
   * @param member the tool's name, if several tools are served on that subject.
   * @returns the answer; true if the signal aborts, or `stop` is called, before an answer.
   */
  ask(subject: string, question: ApprovalQuestion, member: string | undefined, signal: AbortSignal): Promise<boolean>;
  /** Unsubscribes. Open questions resolve with true. */
  stop(): void;
}

const RETRY_PAUSE_MS = 1_000;
const ANSWER_MAX_BYTES = 1_024;

/** Creates the approval questions of this connection. */
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
      const asked: ApprovalCheck = {
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
          // A question that is published while the connection is lost is dropped; the next round sends it again.
          if (!nc.isClosed()) publish(nc, subject, asked, `${inbox}.${token}`);
          await sleep(RETRY_PAUSE_MS, null, { signal: either, ref: false }).catch(() => undefined);
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

function publish(nc: NatsConnection, subject: string, asked: ApprovalCheck, reply: string): void {
  try {
    nc.publish(subject, JSON.stringify(asked), { reply });
  } catch {
    // The payload is too large, or the connection closes. Without an answer, a person is asked.
  }
}

function answerIn(message: Msg): ApprovalCheckAnswer | null {
  if (message.data.length > ANSWER_MAX_BYTES) return null;
  try {
    return ApprovalCheckAnswer.safeParse(message.json()).data ?? null;
  } catch {
    // Not JSON: a "no responders" status (empty), or a malformed answer.
    return null;
  }
}
