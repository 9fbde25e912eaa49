import {
  BOUNDS,
  DemoStart,
  decodeRecord,
  type JournalRecord,
  type SessionRef,
  SessionStatus,
  StartOptions,
  type TenantId,
  type Verb,
} from '@coxswain/protocol';
import { CallGuard } from '../call-guard.ts';
import { CoxswainError, JournalGapError } from '../client-errors.ts';
import type { BodyInput, SendOptions, SendStage, WireSentCommand } from '../outgoing-command.ts';
import type { WirePendingApproval } from '../pending-approvals.ts';
import type { ListQuery, WireSessionsPage } from '../session-listing.ts';
import type { WireSessionTree } from '../session-tree.ts';
import type { JournalEntry, JournalStart, Transport, WatchItem } from '../transport.ts';
import { sendOverHttp } from './command-requests.ts';
import { followSession } from './follow-session.ts';
import {
  type GatewayRequest,
  type GatewayRequests,
  linked,
  READ_WITHIN_MS,
  readPiece,
  unreached,
} from './gateway-requests.ts';
import type { Statechart, TokenHolder } from './http-client.ts';
import { linesOf } from './lines.ts';
import { errorOf, ProblemError } from './problem-errors.ts';
import { StartedSessions } from './started-sessions.ts';

const PAGE_RECORDS = 500;

/** The transport through a gateway: HTTP requests and event streams. */
export class HttpTransport implements Transport {
  readonly requests: GatewayRequests;
  readonly tenant: TenantId;
  readonly guard: CallGuard;
  readonly #started = new StartedSessions();

  constructor(requests: GatewayRequests, tenant: TenantId) {
    this.requests = requests;
    this.tenant = tenant;
    this.guard = new CallGuard(requests.closing);
  }

  send<V extends Verb>(
    ref: SessionRef,
    verb: V,
    body: BodyInput<V>,
    options: SendOptions<SendStage>,
  ): Promise<WireSentCommand> {
    return sendOverHttp({ requests: this.requests, started: this.#started }, ref, verb, body, options);
  }

  async *follow(
    ref: SessionRef,
    from: JournalStart,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<JournalRecord, void, undefined> {
    for await (const { record } of followSession(this.requests, ref, { from, deltas: false, signal }))
      if (record) yield record;
  }

  watch(
    ref: SessionRef,
    from: JournalStart,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<WatchItem, void, undefined> {
    return followSession(this.requests, ref, { from, deltas: true, signal });
  }

  async *journal(ref: SessionRef, from: number): AsyncGenerator<JournalEntry, void, undefined> {
    let next = from;
    for (;;) {
      const page = await this.#page(ref, { from: next, limit: PAGE_RECORDS });
      for (const record of page?.records ?? []) {
        if (record.n !== next) throw new JournalGapError(ref.sessionId, next, record.n);
        next++;
        yield { record };
      }
      if (page?.more !== true) return;
    }
  }

  async *exportLines(ref: SessionRef, recordsOnly: boolean): AsyncGenerator<Uint8Array, void, undefined> {
    const path = `/v1/sessions/${ref.sessionId}/export`;
    const request = { path, query: recordsOnly ? { records_only: 'true' } : {} };
    let connection = new AbortController();
    let unlink = () => {};
    // A timeout aborts the connection of its attempt.
    const attempt = () => {
      unlink();
      connection = new AbortController();
      unlink = linked(connection, undefined, this.requests.closing);
      return this.requests.open(request, connection);
    };
    try {
      const answer = await this.requests.persist(undefined, READ_WITHIN_MS, attempt).catch(nullWhereNone);
      if (!answer?.body) return;
      yield* linesOf(answer.body, BOUNDS.exportLineMaxBytes, (reader) => readPiece(reader, connection));
    } finally {
      unlink();
      connection.abort();
    }
  }

  async newest(ref: SessionRef): Promise<JournalRecord | null> {
    return (await this.#page(ref, { from: 'newest' }))?.records.at(-1) ?? null;
  }

  async lastNumber(ref: SessionRef): Promise<number> {
    return (await this.newest(ref))?.n ?? 0;
  }

  async state(ref: SessionRef, timeoutMs: number | undefined): Promise<SessionStatus> {
    const signal = timeoutMs === undefined ? undefined : AbortSignal.timeout(Math.ceil(timeoutMs));
    const answer = await this.#read({ path: `/v1/sessions/${ref.sessionId}`, signal }).catch((error: unknown) => {
      throw signal?.aborted ? unreached(error, timeoutMs) : error;
    });
    const status = SessionStatus.safeParse(answer);
    if (status.success) return status.data;
    throw unreadable('a session state');
  }

  async tree(ref: SessionRef): Promise<WireSessionTree> {
    const tree = (await this.#read({ path: `/v1/sessions/${ref.sessionId}/tree` })) as WireSessionTree | null;
    if (typeof tree?.top?.session_id === 'string') return tree;
    throw unreadable('a session tree');
  }

  async approvals(): Promise<WirePendingApproval[]> {
    const found: WirePendingApproval[] = [];
    await everyPage(async (cursor) => {
      const page = (await this.#read({ path: '/v1/approvals', query: { cursor } })) as ApprovalsPage | null;
      if (!Array.isArray(page?.approvals)) throw unreadable('a page of approvals');
      found.push(...page.approvals);
      return page.next_cursor;
    });
    return found;
  }

  async listSessions({ state, persona, details, limit, cursor }: ListQuery): Promise<WireSessionsPage> {
    const query = { state, persona, limit, cursor, ...(details === true ? { details: 'true' } : {}) };
    const page = (await this.#read({ path: '/v1/sessions', query })) as WireSessionsPage | null;
    if (Array.isArray(page?.sessions)) return page;
    throw unreadable('a page of sessions');
  }

  async roundTripMs(): Promise<number> {
    const startedAtMs = performance.now();
    await this.whoami();
    return performance.now() - startedAtMs;
  }

  /** The holder of the token. */
  whoami(): Promise<TokenHolder> {
    return readHolder(this.requests);
  }

  /** The personas and the demo that this gateway offers for a start. */
  async startOptions(): Promise<StartOptions> {
    const read = StartOptions.safeParse(await this.#read({ path: '/v1/start-options' }));
    if (!read.success) throw unreadable('start options');
    return read.data;
  }

  /** Requests the gateway to prepare the demo. @returns its start. */
  async prepareDemo(): Promise<DemoStart> {
    const read = DemoStart.safeParse(await this.requests.json({ path: '/v1/demo', method: 'POST' }));
    if (!read.success) throw unreadable('a demo');
    return read.data;
  }

  async statechart(ref: SessionRef): Promise<Statechart> {
    const chart = (await this.#read({ path: `/v1/sessions/${ref.sessionId}/statechart` })) as Statechart | null;
    if (typeof chart?.machine?.root?.path === 'string') return chart;
    throw unreadable('a statechart');
  }

  async close(): Promise<void> {
    this.requests.closing.close();
  }

  /** A failed request does not end the connection: only closing the client does. */
  closed(): Promise<Error | null> {
    return new Promise((resolve) => this.requests.closing.onClose(() => resolve(null)));
  }

  #read(request: GatewayRequest): Promise<unknown> {
    return read(this.requests, request);
  }

  async #page(ref: SessionRef, query: { from: JournalStart; limit?: number }): Promise<RecordsPage | null> {
    const path = `/v1/sessions/${ref.sessionId}/events`;
    const answer = await this.requests.json({ path, query }).catch(nullWhereNone);
    if (answer === null) return null;
    const { records, more } = answer as { readonly records?: unknown; readonly more?: unknown };
    if (!Array.isArray(records) || typeof more !== 'boolean') throw unreadable('a page of records');
    const encoder = new TextEncoder();
    return { records: records.map((record) => decodeRecord(encoder.encode(JSON.stringify(record)))), more };
  }
}

/** Reads the holder of the token. @param withinMs The time limit including retries, in milliseconds. */
export async function readHolder(requests: GatewayRequests, withinMs?: number): Promise<TokenHolder> {
  const late = withinMs === undefined ? undefined : AbortSignal.timeout(Math.ceil(withinMs));
  const request = { path: '/v1/whoami', signal: late };
  // The cause of the previous failed attempt is more useful than the timeout.
  let trouble: unknown;
  const attempt = () =>
    requests.once(request).catch((error: unknown) => {
      if (!late?.aborted) trouble = error;
      throw error;
    });
  const holder = (await requests.persist(late, READ_WITHIN_MS, attempt).catch((error: unknown) => {
    if (late?.aborted) throw unreached(trouble ?? error, withinMs);
    throw error instanceof ProblemError ? errorOf(error.problem) : error;
  })) as (Omit<TokenHolder, 'expiresAt'> & { readonly expires_at?: string | null }) | null;
  if (typeof holder?.tenant === 'string' && Array.isArray(holder.scopes)) {
    const { name, tenant, scopes, expires_at: expiresAt = null } = holder;
    return { name, tenant, scopes, expiresAt };
  }
  throw unreadable('the holder of a token');
}

/** Requests JSON. @throws the error of a problem document. */
async function read(requests: GatewayRequests, request: GatewayRequest): Promise<unknown> {
  return requests.json(request).catch((error: unknown) => {
    throw error instanceof ProblemError ? errorOf(error.problem) : error;
  });
}

interface ApprovalsPage {
  readonly approvals: readonly WirePendingApproval[];
  readonly next_cursor: string | null;
}

/** Reads all pages. @param read Returns the cursor of the next page; null on the last. */
async function everyPage(read: (cursor: string | undefined) => Promise<string | null>): Promise<void> {
  let cursor: string | undefined;
  do cursor = (await read(cursor)) ?? undefined;
  while (cursor !== undefined);
}

interface RecordsPage {
  readonly records: readonly JournalRecord[];
  readonly more: boolean;
}

/** Null if the session does not exist, as over NATS. */
function nullWhereNone(error: unknown): null {
  if (!(error instanceof ProblemError)) throw error;
  if (error.problem.code === 'session_not_found') return null;
  throw errorOf(error.problem);
}

function unreadable(expected: string): CoxswainError {
  return new CoxswainError(
    'answer_unreadable',
    `the response is not from a gateway of this version: expected ${expected}`,
  );
}
