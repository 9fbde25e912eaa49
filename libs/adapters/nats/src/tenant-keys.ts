/**
 * Keys of one tenant in the buckets that all tenants share.
 *
 * T1  A JetStream request that lists keys names them in its body, where no permission can restrict it. This applies to
 *     `STREAM.INFO` with a `subjects_filter`, `STREAM.MSG.GET` and a batched `DIRECT.GET`. A tenant's key may use none.
 * T2  So a session host reads for it. The subject of the request contains the tenant, and a permission restricts it.
 */
import {
  directMessage,
  isTenantsKey,
  NatsUnavailableError,
  NoRespondersError,
  type StoredMessage,
  wireOf,
} from '@coxswain/bus';
import type { Log } from '@coxswain/ports';
import {
  CoxswainError,
  type ErrorCode,
  HEADERS,
  parseTenantKeys,
  SERVED_BOUNDS,
  STREAMS,
  subjects,
  type TenantId,
} from '@coxswain/protocol';
import { headers, type Msg, type NatsConnection } from '@nats-io/nats-core';
import { answerAsHost } from './answer-as-host.ts';
import { readKeys, readRegistry } from './read-keys.ts';

/** Maximum number of lists that one host answers at the same time: their reads share one connection. */
const ANSWERING_MAX = 8;
/** Maximum size of the values of one list. */
const LIST_MAX_BYTES = 64 * 1024 * 1024;
const OPERATION = 'KV-Operation';

/** No session host answers, and this key may not read the bucket itself. */
export class NoHostRespondsError extends Error {
  override readonly name = 'NoHostRespondsError';
  readonly code = 'no_host';
  constructor(bucket: string, options?: ErrorOptions) {
    super(`no session host answers on this bus; a tenant's key lists ${bucket} through one`, options);
  }
}

/** A tenant has too many keys of a kind, or too large ones: no list contains them all. */
export class TooManyKeysError extends CoxswainError {
  constructor(what: string) {
    const { keysReadMax } = SERVED_BOUNDS;
    super('too_many_keys', `${what} has at least ${keysReadMax} keys, or more than ${LIST_MAX_BYTES} bytes`);
  }
}

/**
 * Reads a tenant's keys of one kind, including markers of removed keys.
 * @param kind one of the bucket's kinds in `TENANT_KEYS`.
 * @throws NoHostRespondsError for a tenant's key if no session host runs; TooManyKeysError, NatsUnavailableError,
 *   NatsRefusedError, NotPermittedError; RecordNotServedError if no replica serves a key of the registry.
 */
export async function readTenantKeys(
  nc: NatsConnection,
  tenant: TenantId,
  bucket: typeof STREAMS.registry | typeof STREAMS.hosts,
  kind: string,
): Promise<readonly StoredMessage[]> {
  const subject = subjects.tenantKeys(tenant, bucket, kind);
  const found = new Map<string, StoredMessage>();
  if (isTenantsKey(nc)) await askHost(nc, bucket, subject, (stored) => void found.set(stored.subject, stored));
  else for await (const stored of readAsHost(nc, subject)) found.set(stored.subject, stored);
  return [...found.values()];
}

/**
 * Reads keys of the registry from its leader, and heartbeats from any replica. The newer value of a heartbeat may follow.
 * @throws TooManyKeysError after the first keys.
 */
async function* readAsHost(nc: NatsConnection, subject: string): AsyncGenerator<StoredMessage, void, undefined> {
  const asked = parseTenantKeys(subject);
  if (!asked) throw new TypeError(`${subject} lists no keys`);
  const { bucket, filter } = asked;
  let count = 0;
  let bytes = 0;
  for await (const stored of bucket === STREAMS.registry ? readRegistry(nc, filter) : readKeys(nc, bucket, filter)) {
    count++;
    bytes += stored.data.length;
    // Beyond this number no keys are read, so at this number some may be missing.
    if (count >= SERVED_BOUNDS.keysReadMax || bytes > LIST_MAX_BYTES) throw new TooManyKeysError(filter);
    yield stored;
  }
}

async function askHost(
  nc: NatsConnection,
  bucket: string,
  subject: string,
  take: (stored: StoredMessage) => void,
): Promise<void> {
  // Each key counts once. An accounts.conf of an earlier build has two imports for a list of hooks: the server
  // delivers such a request twice, and both answers arrive here.
  const taken = new Set<string>();
  let total = 0;
  try {
    await wireOf(nc).requestMany(subject, new Uint8Array(), (answer) => {
      const failure = answer.headers?.get(HEADERS.error);
      if (failure === ('too_many_keys' satisfies ErrorCode)) throw new TooManyKeysError(bucket);
      if (failure) throw new NatsUnavailableError(`a session host cannot list ${bucket}: ${failure}`);
      const end = answer.headers?.get(HEADERS.total);
      if (end) total = Number(end);
      else {
        const stored = directMessage(answer);
        taken.add(`${stored.subject} ${stored.seq}`);
        take(stored);
      }
      return end !== undefined && end !== '';
    });
  } catch (error) {
    if (error instanceof NoRespondersError) throw new NoHostRespondsError(bucket, { cause: error });
    throw error;
  }
  if (taken.size < total) throw new NatsUnavailableError(`a list of ${bucket} is incomplete: retry`);
}

/**
 * Answers tenants' requests for lists of keys, until the returned function is called. Each key is one message with the
 * headers of a direct get. It is sent when it is read: lists may not fit in memory. An empty message ends the list: the
 * header `Cox-Total` contains the number of sent keys, or `Cox-Error` an error code.
 */
export function serveTenantKeys(nc: NatsConnection, log: Log): () => void {
  const answer = async (message: Msg): Promise<void> => {
    if (!parseTenantKeys(message.subject)) return end(message, HEADERS.error, 'unknown_command');
    try {
      let sent = 0;
      for await (const stored of readAsHost(nc, message.subject)) {
        message.respond(stored.data, { headers: headersOf(stored) });
        sent++;
      }
      end(message, HEADERS.total, String(sent));
    } catch (error) {
      // No log line: each request of a tenant would write one.
      if (error instanceof TooManyKeysError) return end(message, HEADERS.error, error.code);
      log.warn({ subject: message.subject, error: (error as Error).message }, 'a list of keys was not sent');
      if (!nc.isClosed()) end(message, HEADERS.error, 'query_failed');
    }
  };
  return answerAsHost(nc, {
    subject: subjects.allTenantKeys,
    atOnce: ANSWERING_MAX,
    answer,
    full: (message) => end(message, HEADERS.error, 'too_many_queries'),
    failed: (error) => log.warn({ error }, 'lists of keys are not served'),
  });
}

/**
 * The headers that a reader needs. The publisher's other headers are dropped: they could imitate the end of the list.
 */
function headersOf({ subject, seq, timeMs, headers: stored }: StoredMessage) {
  const head = headers();
  const operation = stored.get(OPERATION);
  if (operation) head.set(OPERATION, operation);
  head.set('Nats-Subject', subject);
  head.set('Nats-Sequence', String(seq));
  head.set('Nats-Time-Stamp', new Date(timeMs).toISOString());
  return head;
}

function end(message: Msg, name: string, value: string): void {
  const head = headers();
  head.set(name, value);
  message.respond(new Uint8Array(), { headers: head });
}
