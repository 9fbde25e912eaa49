/** Puts one command on the bus, durably, and waits for as much of its fate as the caller asks for. */
import {
  BOUNDS,
  type CommandId,
  formatTraceparent,
  HEADERS,
  parseTraceparent,
  Receipt,
  SessionDeletedError,
  type SessionRef,
  STREAMS,
  subjects,
  type Verb,
} from '@coxswain/protocol';
import { type JetStreamClient, jetstreamManager, type PubAck } from '@nats-io/jetstream';
import { deferred, headers, type NatsConnection } from '@nats-io/nats-core';
import { asTrouble, isNotPermitted, isStreamFull, isUnanswered, isUnheard, streamIsMissing } from './ask-store.ts';
import { awaitCancellation } from './await-cancellation.ts';
import { awaitFate } from './await-fate.ts';
import {
  BusNotPreparedError,
  CommandNotStoredError,
  CommandRejectedError,
  ReceiptTimeoutError,
  SessionNotFoundError,
} from './client-errors.ts';
import { newCommandId } from './fresh-ids.ts';
import {
  type BodyInput,
  checkedCommandId,
  checkedPayload,
  RECEIPT_TIMEOUT_MS,
  type SendOptions,
  type SendStage,
  STORED_WITHIN_MS,
  type WaitStage,
  type WireSentCommand,
} from './outgoing-command.ts';
import { followJournal, lastNumber } from './read-journal.ts';
import { failureOfReceipt } from './receipt-failure.ts';
import { type OpenInbox, openInbox } from './receipt-inboxes.ts';

const STORE_TIMEOUT_MS = 5_000;
const OFFERED_AGAIN_MS = 250;
/** A host that lives reports within milliseconds; after so long without a word the journal is asked whether the session was deleted. */
const LOOKED_AT_AFTER_MS = 1_000;

/** The bus as this module needs it. */
export interface CommandBus {
  readonly nc: NatsConnection;
  readonly js: JetStreamClient;
  readonly inboxPrefix: string | undefined;
  /** Who acts where a command does not say it. */
  readonly actor?: string | undefined;
}

/**
 * Sends one command.
 * @throws CommandRejectedError if the body is invalid or the session rejects it. While it waits for a receipt or an
 *   outcome: CommandBlockedError, CommandRevokedError, ReceiptTimeoutError, SessionDeletedError. CommandNotStoredError
 *   if the bus does not store it within fifteen seconds, BusNotPreparedError if the bus has no streams.
 */
export async function sendCommand<V extends Verb>(
  bus: CommandBus,
  ref: SessionRef,
  verb: V,
  body: BodyInput<V>,
  { wait, ...options }: SendOptions<SendStage> = {},
): Promise<WireSentCommand> {
  // An id in the body is the command's, whatever else is said.
  const { id = options.id, actor: said } = body as { readonly id?: string; readonly actor?: unknown };
  const actor = options.actor ?? (said === undefined ? bus.actor : undefined);
  const payload = checkedPayload(verb, body, actor);
  if (wait !== 'outcome') return sendPayload(bus, ref, verb, payload, { ...options, id, wait });
  const { timeoutMs = RECEIPT_TIMEOUT_MS, signal } = options;
  const untilMs = performance.now() + timeoutMs;
  const sent = await sendPayload(bus, ref, verb, payload, { ...options, id, wait: 'accepted' });
  const follow = (from: number, stop: AbortSignal) => followJournal(bus, ref, from, stop);
  return { ...sent, cancellation: await awaitCancellation(follow, ref, sent, { untilMs, timeoutMs, signal }) };
}

/** Sends a body that has been checked already. See {@link sendCommand}. */
export async function sendPayload(
  bus: CommandBus,
  ref: SessionRef,
  verb: string,
  payload: Uint8Array,
  options: SendOptions<WaitStage> = {},
): Promise<WireSentCommand> {
  const commandId = options.id === undefined ? newCommandId() : checkedCommandId(options.id);
  const wait = options.wait ?? 'stored';
  if (wait === 'stored') return store(bus, ref, verb, payload, commandId, options);

  const receipts = new AwaitedReceipt(bus, ref, commandId, wait);
  const leaving = new AbortController();
  let fate: Promise<Receipt | null> = Promise.resolve(null);
  try {
    const before = wait === 'delivered' ? await whereReadable(lastNumber(bus, ref)) : 0;
    const sent = await store(bus, ref, verb, payload, commandId, { ...options, receiptTo: receipts.subject });
    const told = Promise.race([
      receipts.settled(sent, options.timeoutMs ?? RECEIPT_TIMEOUT_MS, options.signal, options.acceptedWithinMs),
      deletedWhenSilent(bus, ref, leaving.signal),
    ]);
    told.catch(() => undefined);
    // A start makes the session itself: a rejected start that is sent again is rejected again, with its reason.
    if (verb !== 'start' && sent.duplicate && (await whereReadable(wasRefusedUnrecorded(bus, ref, sent.seq))))
      throw new SessionNotFoundError(ref.sessionId);
    // No host hears of what the bus drops as a repetition, and no receipt says that the run has ended in between.
    // Whoever may not read the journal has the receipts alone.
    if (before !== null && (sent.duplicate || wait === 'delivered')) {
      // Under an id of the caller's it may have come long ago.
      const from = sent.duplicate || options.id !== undefined ? 1 : before + 1;
      const onAccepted = () => receipts.accepted();
      fate = whereReadable(awaitFate(bus, ref, { commandId, awaited: wait, from, onAccepted, signal: leaving.signal }));
    }
    const found = fate.then((receipt) => (receipt ? settledReceipt(receipt, ref) : told));
    // Of a repetition the journal tells more than its receipt does.
    const repeated = () =>
      // The journal has a repeated start under the command id of the first only.
      told.then((receipt) => (receipt.duplicate ? receipt : found), unlessRepeated(found));
    const receipt = await Promise.race([sent.duplicate ? repeated() : told, found]);
    const duplicate = sent.duplicate || receipt.duplicate === true;
    return { ...sent, duplicate, receipt: sent.duplicate ? { ...receipt, message: REPEATED } : receipt };
  } finally {
    // A reason of its own: without one an error with its stack is made for it, each time.
    leaving.abort('answered');
    receipts.close();
    await fate.catch(() => undefined);
  }
}

/** No host may live that would say it: where no receipt comes, the journal is asked whether the session was deleted. Resolves never. */
async function deletedWhenSilent(bus: CommandBus, ref: SessionRef, answered: AbortSignal): Promise<never> {
  await new Promise((resolve) => {
    const timer = setTimeout(resolve, LOOKED_AT_AFTER_MS);
    answered.addEventListener('abort', () => clearTimeout(timer), { once: true });
  });
  await lastNumber(bus, ref).catch((error: unknown) => {
    if (error instanceof SessionDeletedError) throw error;
  });
  return new Promise<never>(() => undefined);
}

async function whereReadable<T>(read: Promise<T>): Promise<T | null> {
  return read.catch((error: unknown) => {
    if (isNotPermitted(error)) return null;
    throw error;
  });
}

/** A rejection that is only repeated stands in the journal, with its field. */
function unlessRepeated(found: Promise<Receipt>): (error: unknown) => Promise<Receipt> {
  return async (error) => {
    if (error instanceof CommandRejectedError && error.message === REPEATED) return found;
    throw error;
  };
}

/** What a host says of a repetition, too. */
const REPEATED = 'repeated: nothing changed';

function settledReceipt(receipt: Receipt, ref: SessionRef): Receipt {
  const failure = failureOfReceipt(receipt, ref);
  if (failure) throw failure;
  return receipt;
}

/** Whether a command was taken from the stream without leaving a record: there is no such session. */
async function wasRefusedUnrecorded(bus: CommandBus, ref: SessionRef, seq: number): Promise<boolean> {
  if ((await lastNumber(bus, ref)) > 0) return false;
  const manager = await jetstreamManager(bus.nc, { checkAPI: false });
  if ((await manager.streams.getMessage(STREAMS.commands, { seq })) !== null) return false;
  // It is deleted after its record is there; the record may have come between the two looks.
  return (await lastNumber(bus, ref)) === 0;
}

async function store(
  bus: CommandBus,
  ref: SessionRef,
  verb: string,
  payload: Uint8Array,
  commandId: CommandId,
  {
    receiptTo,
    traceparent,
    restricted,
  }: Pick<SendOptions, 'traceparent' | 'restricted'> & { readonly receiptTo?: string | undefined },
): Promise<WireSentCommand> {
  const traced = parseTraceparent(traceparent);
  const giveUpAtMs = performance.now() + STORED_WITHIN_MS;
  try {
    const publish = (msgID?: string) =>
      offered(bus, giveUpAtMs, (timeout) => {
        // Each its own: the library writes into them.
        const head = headers();
        head.set(HEADERS.commandId, commandId);
        if (receiptTo !== undefined) head.set(HEADERS.receiptTo, receiptTo);
        if (restricted) head.set(HEADERS.restricted, '1');
        if (traced) head.set(HEADERS.traceparent, formatTraceparent(traced));
        const options = { headers: head, timeout, ...(msgID === undefined ? {} : { msgID }) };
        return bus.js.publish(subjects.command(ref, verb), payload, options);
      });
    // The store's own memory of ids is stream-wide, so the session stands in it too. It makes the attempts safe.
    const ack = await publish(subjects.commandMessageId(ref, commandId));
    // It does not say whose command it remembers, and anybody may have used the id. The session knows its own commands: one
    // that it has is not taken again.
    if (ack.duplicate) await publish();
    return { commandId, seq: ack.seq, duplicate: ack.duplicate };
  } catch (error) {
    if (isNotPermitted(error)) {
      const message = `this NATS user has no permission to send ${verb}`;
      throw new CommandRejectedError('not_permitted', message, { commandId });
    }
    if (error instanceof BusNotPreparedError) throw error;
    if (isStreamFull(error)) {
      const message = `the command stream is full: ${error.message}`;
      throw new CommandRejectedError('quota_exceeded', message, { commandId });
    }
    throw new CommandNotStoredError(commandId, asTrouble(error) ?? error);
  }
}

/** Publishes, and again while the store does not answer: a cluster that chooses a leader takes it a moment later. */
async function offered(
  bus: CommandBus,
  giveUpAtMs: number,
  publish: (timeoutMs: number) => Promise<PubAck>,
): Promise<PubAck> {
  for (;;) {
    try {
      return await publish(Math.max(1, Math.min(STORE_TIMEOUT_MS, giveUpAtMs - performance.now())));
    } catch (error) {
      // A closed connection never opens again.
      if (!isUnanswered(error) || isStreamFull(error) || bus.nc.isClosed()) throw error;
      if (isUnheard(error)) {
        if (bus.nc.info?.jetstream === false) throw error;
        if (await streamIsMissing(bus, STREAMS.commands)) throw new BusNotPreparedError({ cause: error });
      }
      if (performance.now() + OFFERED_AGAIN_MS >= giveUpAtMs) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, OFFERED_AGAIN_MS));
  }
}

/** The receipts of one command, until the awaited stage or one that ends the waiting. */
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

  /** Listens from now on: a receipt may be quicker than the store's acknowledgement. */
  constructor(
    { nc, inboxPrefix }: { readonly nc: NatsConnection; readonly inboxPrefix: string | undefined },
    ref: SessionRef,
    commandId: CommandId,
    awaited: 'accepted' | 'delivered',
  ) {
    this.#ref = ref;
    this.#commandId = commandId;
    this.#awaited = awaited;
    const settled = deferred<Receipt>();
    const { resolve, reject } = settled;
    this.#settled = settled;
    this.#giveUp = reject;
    // It may reject while the command is still being stored, before anything awaits it.
    settled.catch(() => undefined);
    this.#inbox = openInbox(nc, inboxPrefix, {
      failed: reject,
      heard: ({ data }) => {
        // Anyone who learns the inbox may write to it: what is no receipt of this command is passed over.
        const receipt = readReceipt(data);
        if (!receipt || receipt.command_id !== commandId || receipt.session_id !== ref.sessionId) return;
        const failure = failureOfReceipt(receipt, ref);
        if (failure) reject(failure);
        else if (receipt.stage === awaited || receipt.stage === 'delivered') resolve(receipt);
        else this.accepted();
      },
    });
  }

  /** Where the receipts are to be sent. */
  get subject(): string {
    return this.#inbox.subject;
  }

  /** The session has it: what is waited for now is its delivery. */
  accepted(): void {
    clearTimeout(this.#acceptedTimer);
    this.#isAccepted = true;
  }

  /**
   * The receipt that ends the waiting.
   * @param sent the stored command; part of the error where no receipt comes in time.
   * @throws ReceiptTimeoutError; the signal's reason; what {@link failureOfReceipt} returns.
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

  /** Listens no more. */
  close(): void {
    clearTimeout(this.#timer);
    clearTimeout(this.#acceptedTimer);
    this.#release();
    this.#inbox.close();
  }
}

function readReceipt(bytes: Uint8Array): Receipt | null {
  if (bytes.length > BOUNDS.recordMaxBytes) return null;
  try {
    return Receipt.parse(JSON.parse(new TextDecoder().decode(bytes)));
  } catch {
    // Not a receipt; see the caller.
    return null;
  }
}
