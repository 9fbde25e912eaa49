/** The receipts of one command that somebody waits for. */
import { BOUNDS, type CommandId, Receipt, type SessionRef } from '@coxswain/protocol';
import { deferred, type NatsConnection } from '@nats-io/nats-core';
import { ReceiptTimeoutError } from './client-errors.ts';
import type { WireSentCommand } from './outgoing-command.ts';
import { failureOfReceipt } from './receipt-failure.ts';
import { type OpenInbox, openInbox } from './receipt-inboxes.ts';

/** The receipts of one command, until the awaited stage or one that ends the waiting. */
export class AwaitedReceipt {
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
    // It may fail while the command is still being stored, when nobody awaits it yet.
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
