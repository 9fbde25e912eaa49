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
import { HEADERS, parseTenantKeys, STREAMS, subjects, type TenantId } from '@coxswain/protocol';
import { headers, type Msg, type NatsConnection } from '@nats-io/nats-core';
import { answerAsHost } from './answer-as-host.ts';
import { readKeys, readRegistry } from './read-keys.ts';

/** Maximum number of lists that one host answers at the same time. */
const ANSWERING_MAX = 16;
const OPERATION = 'KV-Operation';

/** No session host answers, and this key may not read the bucket itself. */
export class NoHostRespondsError extends Error {
  override readonly name = 'NoHostRespondsError';
  readonly code = 'no_host';
  constructor(bucket: string, options?: ErrorOptions) {
    super(`no session host answers on this bus; a tenant's key lists ${bucket} through one`, options);
  }
}

/**
 * Reads a tenant's keys of one kind, including markers of removed keys. Keys of the registry are in the order of
 * writing.
 * @param kind one of the bucket's kinds in `TENANT_KEYS`.
 * @throws NoHostRespondsError for a tenant's key if no session host runs; NatsUnavailableError, NatsRefusedError,
 *   NotPermittedError; RecordNotServedError if no replica serves a key of the registry.
 */
export async function readTenantKeys(
  nc: NatsConnection,
  tenant: TenantId,
  bucket: typeof STREAMS.registry | typeof STREAMS.hosts,
  kind: string,
): Promise<readonly StoredMessage[]> {
  const subject = subjects.tenantKeys(tenant, bucket, kind);
  if (isTenantsKey(nc)) return askHost(nc, bucket, subject);
  return readAsHost(nc, subject);
}

/** Reads keys of the registry from its leader, and heartbeats from any replica. */
async function readAsHost(nc: NatsConnection, subject: string): Promise<readonly StoredMessage[]> {
  const asked = parseTenantKeys(subject);
  if (!asked) throw new TypeError(`${subject} lists no keys`);
  if (asked.bucket === STREAMS.registry) return readRegistry(nc, asked.filter);
  return [...(await readKeys(nc, asked.bucket, asked.filter)).values()];
}

async function askHost(nc: NatsConnection, bucket: string, subject: string): Promise<readonly StoredMessage[]> {
  const found: StoredMessage[] = [];
  let total = 0;
  try {
    await wireOf(nc).requestMany(subject, new Uint8Array(), (answer) => {
      const failure = answer.headers?.get(HEADERS.error);
      if (failure) throw new NatsUnavailableError(`a session host cannot list ${bucket}: ${failure}`);
      const end = answer.headers?.get(HEADERS.total);
      if (end) total = Number(end);
      else found.push(directMessage(answer));
      return end !== undefined && end !== '';
    });
  } catch (error) {
    if (error instanceof NoRespondersError) throw new NoHostRespondsError(bucket, { cause: error });
    throw error;
  }
  if (found.length !== total) throw new NatsUnavailableError(`a list of ${bucket} is incomplete: retry`);
  return found;
}

/**
 * Answers tenants' requests for lists of keys, until the returned function is called. Each key is one message with the
 * headers of a direct get. An empty message ends the list: the header `Cox-Total` contains the number of keys, or
 * `Cox-Error` an error code.
 */
export function serveTenantKeys(nc: NatsConnection, log: Log): () => void {
  const answer = async (message: Msg): Promise<void> => {
    if (!parseTenantKeys(message.subject)) return end(message, HEADERS.error, 'unknown_command');
    try {
      const found = await readAsHost(nc, message.subject);
      for (const stored of found) message.respond(stored.data, { headers: headersOf(stored) });
      end(message, HEADERS.total, String(found.length));
    } catch (error) {
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
