/** Stores one command in NATS and waits for the requested stage. */
import {
  type CommandHeaders,
  createStreamReader,
  type NatsUnavailableError,
  NoRespondersError,
  NotPermittedError,
  retryRequest,
  StreamFullError,
  StreamNotFoundError,
  storeCommand,
  streamInfo,
  wireOf,
} from '@coxswain/bus';
import {
  BOUNDS,
  type CommandId,
  formatTraceparent,
  parseTraceparent,
  Receipt,
  SessionDeletedError,
  type SessionRef,
  STREAMS,
  subjects,
  type Verb,
} from '@coxswain/protocol';
import { deferred, type NatsConnection } from '@nats-io/nats-core';
import { awaitCancellation } from './await-cancellation.ts';
import { awaitReceiptInJournal } from './await-receipt-in-journal.ts';
import {
  BusNotPreparedError,
  CommandNotStoredError,
  CommandRejectedError,
  ReceiptTimeoutError,
  SessionNotFoundError,
} from './client-errors.ts';
import { checkedPayload } from './command-form.ts';
import { newCommandId } from './fresh-ids.ts';
import {
  type BodyInput,
  checkedCommandId,
  RECEIPT_TIMEOUT_MS,
  type SendOptions,
  type SendStage,
  STORED_WITHIN_MS,
  type WaitStage,
  type WireSentCommand,
} from './outgoing-command.ts';
import { followJournal, type JournalPlace, lastNumber, lastPlace } from './read-journal.ts';
import { failureOfReceipt } from './receipt-failure.ts';
import { type OpenInbox, openInbox } from './receipt-inboxes.ts';

/** A live host reports within milliseconds. After this silence the journal is checked for a deletion of the session. */
const LOOKED_AT_AFTER_MS = 1_000;
/** The same for the deletion itself: a host waits up to two seconds for the retention job before it sends the receipt. */
const DELETION_LOOKED_AT_AFTER_MS = 4_000;

/** A connection and its actor. */
export interface CommandBus {
  readonly nc: NatsConnection;
  /** The actor of commands that name none. */
  readonly actor?: string | undefined;
}

/**
 * Sends one command.
 * @throws CommandRejectedError if the body is invalid or the session rejects it. While it waits for a receipt or an
 *   outcome: CommandBlockedError, CommandRevokedError, SessionNotFoundError, ReceiptTimeoutError, SessionDeletedError.
 *   CommandNotStoredError if NATS does not acknowledge it within fifteen seconds, BusNotPreparedError if the streams do
 *   not exist.
 */
export async function sendCommand<V extends Verb>(
  bus: CommandBus,
  ref: SessionRef,
  verb: V,
  body: BodyInput<V>,
  { wait, ...options }: SendOptions<SendStage> = {},
): Promise<WireSentCommand> {
  // An id in the body takes precedence over the option.
  const { id = options.id, actor: said } = body as { readonly id?: string; readonly actor?: unknown };
  const actor = options.actor ?? (said === undefined ? bus.actor : undefined);
  const payload = checkedPayload(verb, body, actor);
  if (wait !== 'outcome') return sendPayload(bus, ref, verb, payload, { ...options, id, wait });
  const { timeoutMs = RECEIPT_TIMEOUT_MS, signal } = options;
  const untilMs = performance.now() + timeoutMs;
  const sent = await sendPayload(bus, ref, verb, payload, { ...options, id, wait: 'accepted' });
  const follow = (from: number, stop: AbortSignal) => followJournal(bus.nc, ref, from, stop);
  return { ...sent, cancellation: await awaitCancellation(follow, ref, sent, { untilMs, timeoutMs, signal }) };
}

/** Sends a validated body. See {@link sendCommand}. */
export async function sendPayload(
  { nc }: CommandBus,
  ref: SessionRef,
  verb: string,
  payload: Uint8Array,
  options: SendOptions<WaitStage> = {},
): Promise<WireSentCommand> {
  const commandId = options.id === undefined ? newCommandId() : checkedCommandId(options.id);
  const wait = options.wait ?? 'stored';
  if (wait === 'stored') return store(nc, ref, verb, payload, commandId, options);

  const isDeletion = verb === 'delete';
  const receipts = new AwaitedReceipt(nc, ref, commandId, wait);
  const leaving = new AbortController();
  let journalReceipt: Promise<Receipt | null> = Promise.resolve(null);
  try {
    const before = wait === 'delivered' ? await nullIfNotPermitted(lastPlace(nc, ref)) : NO_RECORD;
    const sent = await store(nc, ref, verb, payload, commandId, { ...options, receiptTo: receipts.subject });
    const receipted = Promise.race([
      receipts.settled(sent, options.timeoutMs ?? RECEIPT_TIMEOUT_MS, options.signal, options.acceptedWithinMs),
      deletedWhenSilent(nc, ref, isDeletion ? DELETION_LOOKED_AT_AFTER_MS : LOOKED_AT_AFTER_MS, leaving.signal),
    ]);
    receipted.catch(() => undefined);
    // A start creates the session: a host rejects a repeated start again, with its reason. A deletion may have ended it.
    const needsSession = verb !== 'start' && !isDeletion;
    if (needsSession && sent.duplicate && (await nullIfNotPermitted(wasRefusedUnrecorded(nc, ref, sent.seq))))
      throw new SessionNotFoundError(ref.sessionId);
    // Hosts do not receive duplicates that NATS drops, and no receipt reports that the run has ended.
    // A user that may not read the journal depends on receipts alone.
    if (before !== null && (sent.duplicate || wait === 'delivered')) {
      const follow = (after: JournalPlace | null, signal: AbortSignal) => {
        const onAccepted = () => receipts.accepted();
        return awaitReceiptInJournal(nc, ref, { commandId, awaited: wait, after, onAccepted, signal });
      };
      const search = async () => {
        if (!sent.duplicate) {
          // A command with the caller's id may have been recorded long ago. Only a receipt that says so, or no receipt,
          // is a reason to read the whole journal: that takes longer with each record.
          if (options.id !== undefined) receipts.suspectRepetitionAfter(LOOKED_AT_AFTER_MS);
          const receipt = await follow(before, AbortSignal.any([leaving.signal, receipts.isRepeated]));
          if (receipt !== null || leaving.signal.aborted) return receipt;
        }
        return follow(null, leaving.signal);
      };
      journalReceipt = nullIfNotPermitted(search());
    }
    const found = journalReceipt.then(
      (receipt) => (receipt ? settledReceipt(receipt, ref) : receipted),
      (error: unknown) => {
        if (error instanceof SessionDeletedError && !isDeletion) throw error;
        // The journal cannot be read, or this command has ended it: a receipt may arrive.
        return receipted;
      },
    );
    // For a repetition, the journal has more details than the receipt.
    const repeated = () =>
      // The journal has a repeated start under the first command's id only.
      receipted.then((receipt) => (receipt.duplicate ? receipt : found), unlessRepeated(found));
    const receipt = await Promise.race([sent.duplicate ? repeated() : receipted.catch(unlessRepeated(found)), found]);
    const duplicate = sent.duplicate || receipt.duplicate === true;
    return { ...sent, duplicate, receipt: sent.duplicate ? { ...receipt, message: REPEATED } : receipt };
  } finally {
    // An explicit reason: without one, each abort creates an error with its stack.
    leaving.abort('answered');
    receipts.close();
    await journalReceipt.catch(() => undefined);
  }
}

/**
 * Without a receipt after this time, checks the journal for a deletion of the session: no host may be live to report
 * it. Never resolves.
 */
async function deletedWhenSilent(
  nc: NatsConnection,
  ref: SessionRef,
  afterMs: number,
  answered: AbortSignal,
): Promise<never> {
  await new Promise((resolve) => {
    const timer = setTimeout(resolve, afterMs);
    answered.addEventListener('abort', () => clearTimeout(timer), { once: true });
  });
  await lastNumber(nc, ref).catch((error: unknown) => {
    if (error instanceof SessionDeletedError) throw error;
  });
  return new Promise<never>(() => undefined);
}

async function nullIfNotPermitted<T>(read: Promise<T>): Promise<T | null> {
  return read.catch((error: unknown) => {
    if (error instanceof NotPermittedError) return null;
    throw error;
  });
}

/** The journal has the details of a rejection that the host only repeats. */
function unlessRepeated(found: Promise<Receipt>): (error: unknown) => Promise<Receipt> {
  return async (error) => {
    if (error instanceof CommandRejectedError && error.message === REPEATED) return found;
    throw error;
  };
}

/** The place before the first record of a journal. */
const NO_RECORD: JournalPlace = { n: 0, seq: 0 };

/** Hosts use the same message for a repetition. */
const REPEATED = 'repeated: nothing changed';

function settledReceipt(receipt: Receipt, ref: SessionRef): Receipt {
  const failure = failureOfReceipt(receipt, ref);
  if (failure) throw failure;
  return receipt;
}

/** Whether a command was removed from the stream without a record: then the session does not exist. */
async function wasRefusedUnrecorded(nc: NatsConnection, ref: SessionRef, seq: number): Promise<boolean> {
  if ((await lastNumber(nc, ref)) > 0) return false;
  const stored = await createStreamReader(wireOf(nc), STREAMS.commands).leaderNext(subjects.inbox(ref), seq);
  if (stored?.seq === seq) return false;
  // A host removes a command after writing its record, which may have happened between the two reads.
  return (await lastNumber(nc, ref)) === 0;
}

async function store(
  nc: NatsConnection,
  ref: SessionRef,
  verb: string,
  payload: Uint8Array,
  commandId: CommandId,
  given: Pick<CommandHeaders, 'traceparent' | 'restricted' | 'receiptTo'>,
): Promise<WireSentCommand> {
  const { receiptTo, restricted } = given;
  const traced = parseTraceparent(given.traceparent);
  const traceparent = traced ? formatTraceparent(traced) : undefined;
  const endsAtMs = performance.now() + STORED_WITHIN_MS;
  let mayBeStored = false;
  const publish = (repeat: boolean) =>
    retryRequest(
      () => storeCommand(nc, ref, verb, payload, { commandId, repeat, receiptTo, restricted, traceparent }),
      {
        withinMs: endsAtMs - performance.now(),
        retriesAfter(error) {
          mayBeStored ||= !(error instanceof StreamFullError || error instanceof NoRespondersError);
          return mayStoreLater(nc, error);
        },
      },
    );
  try {
    // The id makes the retries safe.
    const ack = await publish(false);
    // The acknowledgement does not say which command NATS remembers, and any client may have used the id. So the
    // command is stored again. The session applies a known command once.
    mayBeStored ||= ack.duplicate;
    if (ack.duplicate) await publish(true);
    return { commandId, ...ack };
  } catch (error) {
    if (error instanceof BusNotPreparedError) throw error;
    // A rejection says that the command changed nothing.
    if (mayBeStored) throw new CommandNotStoredError(commandId, error);
    if (error instanceof NotPermittedError) {
      const message = `this NATS user has no permission to send ${verb}`;
      throw new CommandRejectedError('not_permitted', message, { commandId });
    }
    if (error instanceof StreamFullError) {
      const message = `the command stream is full: ${error.message}`;
      throw new CommandRejectedError('quota_exceeded', message, { commandId });
    }
    throw new CommandNotStoredError(commandId, error);
  }
}

/** Whether NATS may store the command later. @throws BusNotPreparedError if the command stream does not exist. */
async function mayStoreLater(nc: NatsConnection, error: NatsUnavailableError): Promise<boolean> {
  // A closed connection does not reopen.
  if (error.isFinal || error instanceof StreamFullError || nc.isClosed()) return false;
  if (!(error instanceof NoRespondersError)) return true;
  if (nc.info?.jetstream === false) return false;
  await streamInfo(nc, STREAMS.commands).catch((failure: unknown) => {
    if (failure instanceof StreamNotFoundError) throw new BusNotPreparedError({ cause: failure });
  });
  return true;
}

/** Waits for the receipts of one command, up to the awaited stage or a final one. */
class AwaitedReceipt {
  readonly #settled: Promise<Receipt>;
  readonly #inbox: OpenInbox;
  readonly #ref: SessionRef;
  readonly #commandId: CommandId;
  readonly #awaited: 'accepted' | 'delivered';
  #timer: NodeJS.Timeout | undefined;
  #acceptedTimer: NodeJS.Timeout | undefined;
  #giveUp: (error: Error) => void = () => undefined;
  #release: () => void = () => undefined;
  #isAccepted = false;
  readonly #repeated = new AbortController();
  #suspicionTimer: NodeJS.Timeout | undefined;

  /** Subscribes at once: a receipt may arrive before the acknowledgement of NATS. */
  constructor(nc: NatsConnection, ref: SessionRef, commandId: CommandId, awaited: 'accepted' | 'delivered') {
    this.#ref = ref;
    this.#commandId = commandId;
    this.#awaited = awaited;
    const settled = deferred<Receipt>();
    const { resolve, reject } = settled;
    this.#settled = settled;
    this.#giveUp = reject;
    // It may reject while the command is being stored, before it is awaited.
    settled.catch(() => undefined);
    this.#inbox = openInbox(nc, {
      onError: reject,
      onMessage: ({ data }) => {
        // Any client that learns the inbox can write to it: other messages are ignored.
        const receipt = readReceipt(data);
        if (!receipt || receipt.command_id !== commandId || receipt.session_id !== ref.sessionId) return;
        if (receipt.message === REPEATED) this.#repeated.abort(REPEATED);
        const failure = failureOfReceipt(receipt, ref);
        if (failure) reject(failure);
        else if (receipt.stage === awaited || receipt.stage === 'delivered') resolve(receipt);
        else this.accepted();
      },
    });
  }

  /** The subject for the receipts. */
  get subject(): string {
    return this.#inbox.subject;
  }

  /** Aborts when a receipt says that the session has recorded the command before. */
  get isRepeated(): AbortSignal {
    return this.#repeated.signal;
  }

  /** Without an acceptance after this time, {@link isRepeated} aborts as well: no host may be live to answer. */
  suspectRepetitionAfter(ms: number): void {
    if (!this.#isAccepted) this.#suspicionTimer = setTimeout(() => this.#repeated.abort(REPEATED), ms);
  }

  /** Notes the acceptance: only the delivery is awaited from now on. */
  accepted(): void {
    clearTimeout(this.#acceptedTimer);
    clearTimeout(this.#suspicionTimer);
    this.#isAccepted = true;
  }

  /**
   * Waits for the final receipt.
   * @param sent The stored command; part of the error if no receipt arrives in time.
   * @throws ReceiptTimeoutError; the signal's reason; the errors of {@link failureOfReceipt}.
   */
  settled(
    sent: WireSentCommand,
    timeoutMs: number,
    signal: AbortSignal | undefined,
    acceptedWithinMs?: number,
  ): Promise<Receipt> {
    const aborted = () => this.#giveUp(signal?.reason as Error);
    if (signal?.aborted) aborted();
    signal?.addEventListener('abort', aborted, { once: true });
    this.#release = () => signal?.removeEventListener('abort', aborted);
    this.#timer = setTimeout(() => this.#giveUp(this.#unanswered(sent, this.#awaited, timeoutMs)), timeoutMs);
    if (acceptedWithinMs !== undefined && !this.#isAccepted) {
      const late = () => this.#giveUp(this.#unanswered(sent, 'accepted', acceptedWithinMs));
      this.#acceptedTimer = setTimeout(late, acceptedWithinMs);
    }
    return this.#settled;
  }

  #unanswered(sent: WireSentCommand, awaited: 'accepted' | 'delivered', waitedMs: number): ReceiptTimeoutError {
    return new ReceiptTimeoutError({
      commandId: this.#commandId,
      sessionId: this.#ref.sessionId,
      awaited,
      waitedMs,
      sent,
    });
  }

  /** Stops waiting. */
  close(): void {
    clearTimeout(this.#timer);
    clearTimeout(this.#acceptedTimer);
    clearTimeout(this.#suspicionTimer);
    this.#release();
    this.#inbox.close();
  }
}

function readReceipt(bytes: Uint8Array): Receipt | null {
  if (bytes.length > BOUNDS.recordMaxBytes) return null;
  try {
    return Receipt.parse(JSON.parse(new TextDecoder().decode(bytes)));
  } catch {
    // Not a receipt: the caller ignores it.
    return null;
  }
}
