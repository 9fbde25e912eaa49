/** What is asked of hosts, and any of them may answer: they share one queue group, and each answers so many questions at once. */
import type { Msg, NatsConnection } from '@nats-io/nats-core';

/** Questions of one kind. */
export interface HostQuestions {
  readonly subject: string;
  /** Questions that are being answered at once. */
  readonly atOnce: number;
  /** Contract: does not reject. */
  answer(message: Msg): Promise<void>;
  /** Answers one that comes beyond that. */
  full(message: Msg): void;
  /** The server does not let this host hear them. */
  failed(error: Error): void;
}

const QUEUE_GROUP = 'cox-hosts';

/** Answers until the returned function is called. */
export function answerAsHost(nc: NatsConnection, questions: HostQuestions): () => void {
  let answering = 0;
  const subscription = nc.subscribe(questions.subject, {
    queue: QUEUE_GROUP,
    callback: (error, message) => {
      if (error) questions.failed(error);
      else if (answering >= questions.atOnce) questions.full(message);
      else {
        answering++;
        void questions.answer(message).finally(() => {
          answering--;
        });
      }
    },
  });
  return () => subscription.unsubscribe();
}
