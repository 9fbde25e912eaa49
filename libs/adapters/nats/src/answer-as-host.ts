/** Requests that any host may answer. Hosts share one queue group, and each limits its concurrent answers. */
import type { Msg, NatsConnection } from '@nats-io/nats-core';

/** Requests of one kind, and how a host answers them. */
export interface HostQuestions {
  readonly subject: string;
  /** Maximum number of requests that are answered at the same time. */
  readonly atOnce: number;
  /** Answers a request. Contract: does not reject. */
  answer(message: Msg): Promise<void>;
  /** Answers a request that exceeds {@link HostQuestions.atOnce}. */
  full(message: Msg): void;
  /** The subscription failed, for example for lack of permission. */
  failed(error: Error): void;
}

const QUEUE_GROUP = 'cox-hosts';

/** Answers requests until the returned function is called. */
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
