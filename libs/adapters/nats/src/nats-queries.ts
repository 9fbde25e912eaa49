/** Answers queries about sessions: any host may, so hosts share one queue group. */
import type { Log } from '@coxswain/ports';
import { cutText, HEADERS, parseQuery, type SessionRef, subjects } from '@coxswain/protocol';
import { headers, type Msg, type NatsConnection } from '@nats-io/nats-core';
import { answerAsHost } from './answer-as-host.ts';

/** Queries that are being answered at once; whoever asks beyond it is told so and may ask again. */
const ANSWERING_MAX = 256;

/** Bytes of an answer that is one message, and of a part of a longer one. Servers take 1 MiB by default. */
const PART_BYTES = 768 * 1024;

/**
 * Answers queries until the returned function is called. An answer is JSON; a refusal is `{code, message}`. An answer of
 * more than 768 KiB comes in several messages, in order: each but the last has the header `Cox-More`.
 * @param answer the answer, or null where there is no such session.
 */
export function serveQueries(
  nc: NatsConnection,
  log: Log,
  answer: (ref: SessionRef) => Promise<object | null>,
): () => void {
  const reply = async (message: Msg): Promise<object> => {
    const query = parseQuery(message.subject);
    if (!query) return { code: 'invalid_id', message: 'the subject names no session' };
    if (query.what !== 'get_state') {
      return { code: 'unknown_command', message: `there is no query ${cutText(query.what, 64)}; there is get_state` };
    }
    const found = await answer(query.ref);
    return found ?? { code: 'session_not_found', message: `there is no session ${query.ref.sessionId}` };
  };
  const serve = async (message: Msg): Promise<void> => {
    try {
      respond(message, await reply(message), log);
    } catch (error) {
      const { code, message: why } = error as Error & { code?: unknown };
      if (code === 'session_deleted') return respond(message, { code, message: why }, log);
      log.warn({ subject: message.subject, error }, 'a query was not answered');
      respond(message, { code: 'query_failed', message: why }, log);
    }
  };
  return answerAsHost(nc, {
    subject: subjects.queries,
    atOnce: ANSWERING_MAX,
    answer: serve,
    full: (message) =>
      respond(message, { code: 'too_many_queries', message: 'too many queries are being answered' }, log),
    failed: (error) => log.warn({ error }, 'queries are not served'),
  });
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
    // The connection has gone: whoever asked sees that for itself.
    log.warn({ subject: message.subject, error }, 'an answer was not sent');
  }
}
