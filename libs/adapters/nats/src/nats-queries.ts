/**
 * Answers queries about sessions. Any host may answer `get_state`, so hosts share one queue group. Every host receives
 * `get_answer`, but only the host that runs the session has the text of its running answer, and replies.
 */
import type { Log } from '@coxswain/ports';
import {
  type AnswerPieces,
  AnswerPlace,
  cutText,
  HEADERS,
  parseQuery,
  problemOf,
  readStrictly,
  type SessionRef,
  subjects,
} from '@coxswain/protocol';
import { headers, type Msg, type NatsConnection } from '@nats-io/nats-core';
import { answerAsHost } from './answer-as-host.ts';

/** Maximum number of concurrent `get_state` queries. Further ones are rejected with `too_many_queries`. */
const ANSWERING_MAX = 256;

/** Maximum bytes of one reply message. A longer answer is split. Servers accept 1 MiB by default. */
const PART_BYTES = 768 * 1024;

/** The sources of the answers. */
export interface QueryAnswers {
  /** The state of a session; null for an unknown session. */
  state(ref: SessionRef): Promise<object | null>;
  /**
   * The running answer of a session from a place on (null: from its start); null if this host does not run the session.
   */
  answer(ref: SessionRef, from: AnswerPlace | null): AnswerPieces | null;
}

/**
 * Answers queries until the returned function is called. An answer is JSON; an error is `{code, message}`. An answer of
 * more than 768 KiB is sent as several messages, in order: each but the last has the header `Cox-More`.
 */
export function serveQueries(nc: NatsConnection, log: Log, answers: QueryAnswers): () => void {
  const reply = async (message: Msg): Promise<object | null> => {
    const query = parseQuery(message.subject);
    if (!query) return { code: 'invalid_id', message: 'the subject names no session' };
    if (query.what === 'get_answer') return null;
    if (query.what !== 'get_state') {
      const known = 'there are get_state and get_answer';
      return { code: 'unknown_command', message: `there is no query ${cutText(query.what, 64)}; ${known}` };
    }
    const found = await answers.state(query.ref);
    return found ?? { code: 'session_not_found', message: `there is no session ${query.ref.sessionId}` };
  };
  const serve = async (message: Msg): Promise<void> => {
    try {
      const answer = await reply(message);
      if (answer) respond(message, answer, log);
    } catch (error) {
      const { code, message: why } = error as Error & { code?: unknown };
      if (code === 'session_deleted') return respond(message, { code, message: why }, log);
      log.warn({ subject: message.subject, error }, 'a query failed');
      respond(message, { code: 'query_failed', message: why }, log);
    }
  };
  const running = nc.subscribe(subjects.answerQueries, {
    callback: (error, message) => {
      if (error) return log.warn({ error }, 'queries for running answers are not served');
      const query = parseQuery(message.subject);
      const answer = query && pieces(message, query.ref, answers);
      if (answer) respond(message, answer, log);
    },
  });
  const stop = answerAsHost(nc, {
    subject: subjects.queries,
    atOnce: ANSWERING_MAX,
    answer: serve,
    full: (message) =>
      respond(message, { code: 'too_many_queries', message: 'too many queries are being answered' }, log),
    failed: (error) => log.warn({ error }, 'queries are not served'),
  });
  return () => {
    running.unsubscribe();
    stop();
  };
}

/**
 * The reply to `get_answer`; null if this host does not run the session. A query without a body asks for the whole
 * answer.
 */
function pieces(message: Msg, ref: SessionRef, { answer }: QueryAnswers): object | null {
  const whole = answer(ref, null);
  if (whole === null || message.data.length === 0) return whole;
  let body: unknown;
  try {
    body = message.json();
  } catch {
    return { code: 'invalid_json', message: 'the body of get_answer is invalid JSON' };
  }
  const from = readStrictly(AnswerPlace, body);
  return from.ok ? answer(ref, from.data) : problemOf(from.problems);
}

function respond(message: Msg, answer: object, log: Log): void {
  try {
    const bytes = Buffer.from(JSON.stringify(answer), 'utf8');
    let at = 0;
    for (; bytes.length - at > PART_BYTES; at += PART_BYTES) {
      const head = headers();
      head.set(HEADERS.more, '1');
      message.respond(bytes.subarray(at, at + PART_BYTES), { headers: head });
    }
    message.respond(bytes.subarray(at));
  } catch (error) {
    // The reply cannot be sent, for example because the connection is closed: the client's query times out.
    log.warn({ subject: message.subject, error }, 'an answer was not sent');
  }
}
