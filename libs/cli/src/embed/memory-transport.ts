import type { MemoryBus } from '@coxswain/adapter-memory';
import {
  type BodyInput,
  exportLines,
  type JournalStart,
  type ListQuery,
  newCommandId,
  pendingApprovals,
  ReceiptTimeoutError,
  readTree,
  type SendOptions,
  type SendStage,
  SessionNotFoundError,
  type Transport,
  type WatchItem,
  type WirePendingApproval,
  type WireSentCommand,
  type WireSessionsPage,
  type WireSessionTree,
} from '@coxswain/client';
import {
  awaitCancellation,
  CallGuard,
  Closing,
  checkedCommandId,
  checkedPayload,
  expectStart,
  failureOfReceipt,
  JournalReceipt,
  listingFrom,
  type PlacedSession,
  pageOf,
  RECEIPT_TIMEOUT_MS,
  watchRecords,
} from '@coxswain/client/transport';
import {
  blobRefsOf,
  type CommandId,
  decodeRecord,
  HEADERS,
  type JournalRecord,
  type Receipt,
  type SessionRef,
  type SessionStatus,
  sessionRef,
  subjects,
  type TenantId,
  type Verb,
} from '@coxswain/protocol';
import type { SessionHost } from '@coxswain/session';
import { coded } from './coded-errors.ts';

/** A record with its stored bytes. */
interface MemoryRecord {
  readonly record: JournalRecord;
  readonly bytes: Uint8Array;
}

/** A command to be stored. */
interface MemoryCommand {
  readonly ref: SessionRef;
  readonly verb: Verb;
  readonly payload: Uint8Array;
  readonly commandId: CommandId;
  readonly options: SendOptions<SendStage>;
}

/** The start of a session host's message for a repeated command. */
const REPEATED = /^repeated\b/;

/**
 * The transport to sessions on a memory bus, for the same client as over NATS and HTTP. A reader continues in the
 * journal whenever a record is added. So nothing is queued or missed, however slow the reader is. Closing the transport
 * ends its calls and loops. The owner of the bus and the host stops them.
 */
export class MemoryTransport implements Transport {
  readonly tenant: TenantId;
  readonly guard = new CallGuard(new Closing(), coded);
  readonly #bus: MemoryBus;
  readonly #host: Pick<SessionHost, 'status' | 'answer'>;
  #receipts = 0;

  constructor(bus: MemoryBus, host: Pick<SessionHost, 'status' | 'answer'>, tenant: TenantId) {
    this.#bus = bus;
    this.#host = host;
    this.tenant = tenant;
  }

  async send<V extends Verb>(
    ref: SessionRef,
    verb: V,
    body: BodyInput<V>,
    options: SendOptions<SendStage>,
  ): Promise<WireSentCommand> {
    // As on NATS, an id in the body is the id of the command.
    const { id = options.id } = body as { readonly id?: string };
    const payload = checkedPayload(verb, body, options.actor);
    const commandId = id === undefined ? newCommandId() : checkedCommandId(id);
    const command = { ref, verb, payload, commandId, options };
    const { wait = 'stored' } = options;
    if (wait === 'stored') return this.#store(command);
    if (wait !== 'outcome') return this.#storeAndWait(command, wait);
    const { timeoutMs = RECEIPT_TIMEOUT_MS, signal } = options;
    const untilMs = performance.now() + timeoutMs;
    const sent = await this.#storeAndWait(command, 'accepted');
    const follow = (from: number, stop: AbortSignal) => this.#records(ref, from, stop);
    return { ...sent, cancellation: await awaitCancellation(follow, ref, sent, { untilMs, timeoutMs, signal }) };
  }

  #store({ ref, verb, payload, commandId, options }: MemoryCommand, receiptTo?: string): WireSentCommand {
    const { traceparent, restricted } = options;
    const seq = this.#bus.publish(subjects.command(ref, verb), payload, {
      [HEADERS.commandId]: commandId,
      ...(receiptTo === undefined ? {} : { [HEADERS.receiptTo]: receiptTo }),
      ...(traceparent === undefined ? {} : { [HEADERS.traceparent]: traceparent }),
      ...(restricted === true ? { [HEADERS.restricted]: '1' } : {}),
    });
    if (seq === null) throw new Error(`${verb} has no subject of a command`);
    return { commandId, seq, duplicate: false };
  }

  async #storeAndWait(command: MemoryCommand, wait: 'accepted' | 'delivered'): Promise<WireSentCommand> {
    const { ref, commandId, options } = command;
    const { timeoutMs = RECEIPT_TIMEOUT_MS, signal } = options;
    const receiptTo = `_INBOX.memory.${++this.#receipts}`;
    const leaving = new AbortController();
    const endings: (() => void)[] = [() => leaving.abort()];
    const before = await this.lastNumber(ref);
    try {
      let sent: WireSentCommand | null = null;
      const received = new Promise<Receipt>((resolve, reject) => {
        const take = (receipt: Receipt) => {
          if (receipt.command_id !== commandId || receipt.session_id !== ref.sessionId) return;
          const failure = failureOfReceipt(receipt, ref);
          if (failure) reject(failure);
          else if (receipt.stage === wait || receipt.stage === 'delivered') resolve(receipt);
        };
        const late = () =>
          reject(
            new ReceiptTimeoutError({
              commandId,
              sessionId: ref.sessionId,
              awaited: wait,
              waitedMs: timeoutMs,
              sent: sent ?? undefined,
            }),
          );
        const aborted = () => reject(signal?.reason);
        const timer = setTimeout(late, timeoutMs);
        signal?.addEventListener('abort', aborted, { once: true });
        endings.push(this.#bus.subscribeReceipts(receiptTo, take), () => clearTimeout(timer));
        endings.push(() => signal?.removeEventListener('abort', aborted));
        if (signal?.aborted) aborted();
      });
      received.catch(() => undefined);
      sent = this.#store(command, receiptTo);
      // Only the journal shows that the run ended before the message was delivered.
      const from = options.id === undefined ? before + 1 : 1;
      const receipt = await Promise.race(
        wait === 'delivered' ? [received, this.#deliveredIn(command, from, before, leaving.signal)] : [received],
      );
      return { ...sent, duplicate: receipt.duplicate === true || REPEATED.test(receipt.message ?? ''), receipt };
    } finally {
      for (const end of endings) end();
    }
  }

  /** The receipt of a command that was delivered or waits for the next run. Never resolves after the signal aborts. */
  async #deliveredIn(
    { ref, commandId }: MemoryCommand,
    from: number,
    before: number,
    signal: AbortSignal,
  ): Promise<Receipt> {
    const journalReceipt = new JournalReceipt(commandId);
    for await (const { record } of this.#records(ref, from, signal)) {
      const receipt = journalReceipt.add(record);
      if (receipt === null || receipt.stage === 'rejected') continue;
      const failure = failureOfReceipt(receipt, ref);
      if (failure) throw failure;
      if (receipt.stage === 'delivered' || (receipt.pending_for_next_run && record.n >= before)) return receipt;
    }
    return new Promise<never>(() => undefined);
  }

  async *follow(
    ref: SessionRef,
    from: JournalStart,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<JournalRecord, void, undefined> {
    await expectStart(from, () => this.lastNumber(ref), 0);
    for await (const { record } of this.#records(ref, from, signal)) yield record;
  }

  async *watch(
    ref: SessionRef,
    from: JournalStart,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<WatchItem, void, undefined> {
    const session = {
      records: (stop: AbortSignal) => this.#records(ref, from, stop),
      onDeltas: (handle: Parameters<MemoryBus['subscribeDeltas']>[1]) => this.#bus.subscribeDeltas(ref, handle),
      // A memory bus has no connection that could be lost.
      onConnectionChange: () => () => undefined,
      answer: async (place: Parameters<SessionHost['answer']>[1]) => this.#host.answer(ref, place),
    };
    await expectStart(from, () => this.lastNumber(ref), 0);
    yield* watchRecords(session, signal);
  }

  async *journal(ref: SessionRef, from: number): AsyncGenerator<MemoryRecord, void, undefined> {
    for await (const { bytes } of this.#bus.journal.read(ref)) {
      const record = await this.#decoded(bytes);
      if (record.n >= from) yield { record, bytes };
    }
  }

  exportLines(ref: SessionRef, recordsOnly: boolean): AsyncGenerator<Uint8Array, void, undefined> {
    return exportLines(this.journal(ref, 1), async (sha256) => (recordsOnly ? null : this.#bus.blobs.get(sha256)));
  }

  async newest(ref: SessionRef): Promise<JournalRecord | null> {
    const last = await this.#bus.journal.last(ref);
    return last && this.#decoded(last.bytes);
  }

  async lastNumber(ref: SessionRef): Promise<number> {
    return (await this.newest(ref))?.n ?? 0;
  }

  async state(ref: SessionRef): Promise<SessionStatus> {
    const status = await this.#host.status(ref);
    if (status === null) throw new SessionNotFoundError(ref.sessionId);
    return status;
  }

  tree({ sessionId }: SessionRef): Promise<WireSessionTree> {
    return readTree((id) => this.journal(sessionRef(id, this.tenant), 1), sessionId);
  }

  async listSessions(query: ListQuery): Promise<WireSessionsPage> {
    const source = {
      list: async () => this.#newestFirst(),
      since: async (seq: number) => (await this.#places()).filter((one) => one.seq > seq),
    };
    return pageOf(source, query, (id) => this.state(sessionRef(id, this.tenant)));
  }

  async approvals(): Promise<WirePendingApproval[]> {
    return pendingApprovals(this.#newestFirst(), (id) => this.#host.status(sessionRef(id, this.tenant)));
  }

  async roundTripMs(): Promise<number> {
    return 0;
  }

  async close(): Promise<void> {
    this.guard.closing.close();
  }

  closed(): Promise<null> {
    return new Promise((resolve) => this.guard.closing.onClose(() => resolve(null)));
  }

  /** Sessions in the order of their newest records, the newest first. */
  async *#newestFirst(): AsyncGenerator<PlacedSession, void, undefined> {
    yield* (await this.#places()).sort((one, other) => other.seq - one.seq);
  }

  async #places(): Promise<PlacedSession[]> {
    const found: PlacedSession[] = [];
    for await (const ref of this.#bus.journal.sessions(this.tenant)) {
      const last = await this.#bus.journal.last(ref);
      if (last === null) continue;
      const { sessionId } = ref;
      found.push({
        sessionId,
        seq: last.fence,
        listing: async () => listingFrom(sessionId, last.bytes),
      });
    }
    return found;
  }

  /** Stored records from a start on, then new ones. Ends when the signal aborts. */
  async *#records(
    ref: SessionRef,
    from: JournalStart,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<MemoryRecord, void, undefined> {
    const { journal } = this.#bus;
    let isBehind = true;
    let wake: () => void = () => undefined;
    const stop = this.#bus.subscribeEvents(ref, () => {
      isBehind = true;
      wake();
    });
    const aborted = () => wake();
    signal?.addEventListener('abort', aborted, { once: true });
    try {
      let fence = from === 'newest' ? Math.max(0, ((await journal.last(ref))?.fence ?? 0) - 1) : 0;
      while (!signal?.aborted) {
        isBehind = false;
        for await (const stored of journal.read(ref, fence)) {
          fence = stored.fence;
          const record = await this.#decoded(stored.bytes);
          if (from === 'newest' || record.n >= from) yield { record, bytes: stored.bytes };
          if (signal?.aborted) return;
        }
        await new Promise<void>((resolve) => {
          wake = resolve;
          if (isBehind || signal?.aborted) resolve();
        });
      }
    } finally {
      stop();
      signal?.removeEventListener('abort', aborted);
    }
  }

  /** @throws SessionDeletedError; RecordUnreadableError. */
  async #decoded(bytes: Uint8Array): Promise<JournalRecord> {
    const texts = new Map<string, string>();
    for (const { sha256 } of blobRefsOf(bytes)) {
      const found = await this.#bus.blobs.get(sha256);
      if (found) texts.set(sha256, new TextDecoder().decode(found));
    }
    return decodeRecord(bytes, ({ sha256 }) => texts.get(sha256));
  }
}
