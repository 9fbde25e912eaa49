/** A handle on one session: its commands, events, state and result. The same over NATS and HTTP. */
import {
  BOUNDS,
  type CallCancellation,
  type CamelCased,
  type CancelOutcome,
  type ForkChangesInput,
  fromWire,
  hasEnded,
  type JournalRecord,
  type Json,
  type JsonObject,
  type OnTimeout,
  type SessionRef,
  type SessionStateName,
  SessionStatus,
  sessionRef,
  type Verb,
} from '@coxswain/protocol';
import { type Approval, type ApproveOptions, approvalsOf, type DenyOptions } from './approval.ts';
import { CommandRejectedError, InvalidOptionError, SessionNotFoundError } from './client-errors.ts';
import {
  type CommandInput,
  type CommandReceipt,
  commandReceipt,
  inCallersNames,
  refuseOthers,
  type SentCommand,
  type SessionSettings,
  sentCommand,
  splitOptions,
  wireBody,
} from './command-form.ts';
import { createEventTranslator } from './event-translator.ts';
import { newSessionId, sessionIdOfMessage } from './fresh-ids.ts';
import { GuardedTransport } from './guarded-transport.ts';
import { isPending } from './open-approvals.ts';
import { checkBoolean, checkOptions, checkRecordNumber, checkSignal } from './option-checks.ts';
import {
  type BodyInput,
  RECEIPT_TIMEOUT_MS,
  type SendOptions,
  type SendStage,
  type WaitStage,
  type WireSentCommand,
} from './outgoing-command.ts';
import { checkedResult, type OutputSource } from './output-schema.ts';
import { ResultCollector, type RunResult } from './run-result.ts';
import { type AwaitedCommand, isCommand, rejectionAt, runToShow } from './run-to-show.ts';
import { type SessionTree, treeFromWire } from './session-tree.ts';
import { TextPieces } from './text-pieces.ts';
import type { JournalEntry, JournalStart, Transport, WatchItem } from './transport.ts';
import type { UiEvent } from './ui-events.ts';
import { UnansweredStart } from './unanswered-start.ts';
import { SessionWire, type StateOptions } from './wire-access.ts';

/** When a message is injected. */
type InjectTiming =
  | {
      /** Default: `finish_step`. Unknown modes are rejected. */
      readonly mode?: CommandInput<'steer'>['mode'] | undefined;
      readonly preempt?: false | undefined;
    }
  | {
      readonly mode?: 'interrupt_immediate' | 'interrupt' | undefined;
      /** An immediate interrupt: it also ends the streaming answer and the running calls. */
      readonly preempt: true;
    };

/** Options for an injected message, which can be awaited until its delivery. */
export type InjectOptions = SendOptions<WaitStage> &
  InjectTiming & {
    /** Replaces a queued message of the same kind with the same key. */
    readonly dedupeKey?: string | undefined;
  };

/** Options for a reminder. */
export type RemindOptions = InjectOptions & {
  readonly tags?: readonly string[] | undefined;
  /** The number of turns that show it. Default: every turn until it is revoked or compacted away. */
  readonly ttlTurns?: number | undefined;
  readonly preserveOnCompact?: boolean | undefined;
  readonly propagate?: CommandInput<'remind'>['propagate'];
  readonly roleHint?: CommandInput<'remind'>['roleHint'];
};

/** The content of a prompt: a string, or messages with files, such as images. */
export type Prompted = string | NonNullable<CommandInput<'prompt'>['messages']>;

/** The state of a session, as its host reports it. */
export type SessionState = Omit<CamelCased<SessionStatus>, 'state'> & {
  /** The name of the state, or an object with its nested state. */
  readonly state: SessionStateName | { readonly [Name in SessionStateName]?: string };
};

/** Options for a prompt. Changed settings apply to its run and to later ones. */
export interface PromptOptions extends SendOptions {
  /** A different model, as `provider/name`. */
  readonly model?: string | undefined;
  /** The base URL of the model's provider. */
  readonly baseUrl?: string | undefined;
  /** A mode of the session's persona; null for none. */
  readonly mode?: string | null | undefined;
}

/** Options for waiting for the end of a run. */
export interface ResultOptions {
  /** Only an end in this record or a later one counts. */
  readonly after?: number;
  readonly signal?: AbortSignal;
}

/** Where reading starts, and a signal that ends it. */
export interface ReadFrom {
  /** The number of the first record; default 1. */
  readonly from?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Options for a stream of UI events. */
export interface StreamOptions extends ReadFrom {
  /** `true`: the stream continues with later runs, until the loop ends, the signal aborts or the client closes. */
  readonly follow?: boolean | undefined;
}

/** Where a stream of records and deltas starts: at a record number, or at the newest record. */
export interface WatchFrom {
  readonly from?: JournalStart | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Options for cancelling a call. */
export interface CancelCallOptions extends Omit<SendOptions, 'wait' | 'timeoutMs' | 'acceptedWithinMs'> {
  readonly reason?: string | undefined;
  /** Whether a reminder reports the cancellation to the model; default true. */
  readonly injectReminder?: boolean | undefined;
  /**
   * How long the tool may take to stop, in milliseconds; then the outcome is `timeout`. 0 to 600,000; default 5,000.
   */
  readonly timeoutMs?: number | undefined;
}

/** The outcome of cancelling a call, as the session recorded it. */
export interface CancelledCall {
  /**
   * `cancelled`: the call is stopped. `already_cancelled`: an earlier cancel stopped it, or is stopping it.
   * `not_found`: no call with this id is open; it has ended or never existed. `timeout`: the tool did not confirm
   * that it stopped, and the session continues without it.
   */
  readonly outcome: CancelOutcome;
  readonly callId: string;
  /** With `not_found`: the tool of a call of the newest answer that has ended; otherwise null. */
  readonly tool: string | null;
  /** The reason of the first cancel; null without one, or if that cancel is over. */
  readonly reason: string | null;
  /** The stored command, with its receipt. */
  readonly sent: SentCommand;
}

/** How a session is suspended, and what ends the suspension besides a resume. */
export type SuspendRequest = {
  readonly reason?: string | undefined;
  /** The name of the signal that resumes it. */
  readonly signal?: string | undefined;
  /** The action when the suspension expires. */
  readonly onTimeout?: OnTimeout | undefined;
  /** The message to the model with `onTimeout: 'resume_with_input'`. */
  readonly input?: string | undefined;
} & (
  | { /** The time of its end, ISO 8601. */ readonly until?: string | undefined; readonly forMs?: undefined }
  | { readonly until?: undefined /** Its length from the suspension on, in milliseconds. */; readonly forMs: number }
);

/** Options for forking a session. */
export interface ForkOptions extends SendOptions {
  /** The last record that the fork copies; changes apply to it. Default: the newest. */
  readonly at?: number | undefined;
  /** Changes to that record, or to what follows it. */
  readonly changes?: CamelCased<ForkChangesInput> | undefined;
  /** The id of the fork. Default: derived from `messageId`, or random without one. */
  readonly sessionId?: string | undefined;
  /**
   * Makes the fork idempotent, as `messageId` of a start does: repeating the same fork returns the first one. Also set
   * `at`, because its default changes with every record.
   */
  readonly messageId?: string | undefined;
  /** As `wait` of other commands. Default `accepted`, because only the host knows whether the record exists. */
  readonly wait?: 'stored' | 'accepted' | undefined;
}

/** A session that this program has started. */
export type StartedSession<S extends Session> = S & { readonly sent: SentCommand };

/** A session with a typed output. */
export interface TypedResult<Output> {
  /** The result of the run, as {@link Session.result} returns it. */
  result(options?: ResultOptions): Promise<RunResult<Output>>;
}

/** A fork that this program has started. */
export type ForkedSession<S extends Session> = StartedSession<S> & { readonly forkedAt: number };

/** The output schema of a session that this program has started. */
interface StartedSchema {
  readonly schema: OutputSource;
  /** Whether it is the schema of the persona: it does not apply after a hand-off. */
  readonly isPersonas: boolean;
}

/** The maximum number of decided calls that a handle remembers. */
const DECIDED_MAX = 1_000;

/** A handle on one session. Creating one sends no request. */
export class Session {
  readonly ref: SessionRef;
  /** Access to the session as wire documents, for programs that forward them, such as a gateway. */
  readonly wire: SessionWire;
  /** For handles on other sessions: each handle guards its own calls. */
  readonly #unguarded: Transport;
  readonly #transport: Transport;
  /** Whether this handle has sent a start: then the session will exist, even if it does not exist yet. */
  #isStarted = false;
  /** The command of this handle that starts a run, until its record was read: {@link stream} shows that run. */
  #awaited: AwaitedCommand | null = null;

  #sent: SentCommand | null = null;
  /** A start of this handle without an awaited receipt. */
  #unanswered: UnansweredStart | null = null;
  /** Whether that start has a message id and is the newest command: it may repeat the session's first start. */
  #mayRepeat = false;
  #forkedAt: number | null = null;
  #outputSchema: StartedSchema | null = null;
  /** Calls that this handle has decided, or is deciding. */
  readonly #decided = new Set<string>();

  /** Created by a client. */
  constructor(transport: Transport, ref: SessionRef) {
    this.#unguarded = transport;
    this.#transport = new GuardedTransport(transport);
    this.ref = ref;
    this.wire = new SessionWire(this.#transport, ref, {
      sending: (verb) => {
        if (verb === 'start') this.#isStarted = true;
      },
      sent: (verb, body, sent, options) => {
        this.#noteSent(verb, body, sentCommand(sent));
        if (verb === 'start') this.#unanswered = this.#unansweredStart(body as BodyInput<'start'>, sent, options);
      },
    });
  }

  /** The stored command that started the session; null if this handle did not send it. */
  get sent(): SentCommand | null {
    return this.#sent;
  }

  /** The record of the origin at which this fork starts; null if this handle did not fork it. */
  get forkedAt(): number | null {
    return this.#forkedAt;
  }

  get id(): string {
    return this.ref.sessionId;
  }

  /**
   * Forks the session: a new session starts with the history of this one up to a record. This session is not changed.
   * @returns the fork: `sent` is the stored command, `forkedAt` the record at which it starts.
   * @throws InvalidOptionError for an `at` that is not a record number. SessionNotFoundError without `at` if the
   *   session does not exist. CommandRejectedError `fork_record_not_found` with the field `at` if the session has fewer
   *   records: from this call, or with `wait: 'stored'` from the result of the fork.
   */
  async fork(options: ForkOptions = {}): Promise<ForkedSession<this>> {
    const { sending, others } = splitOptions(options);
    const { at, changes, sessionId, messageId, ...unknown } = others as ForkOptions;
    refuseOthers(unknown);
    checkRecordNumber('at', at);
    const changed = changes === undefined ? {} : { changes };
    // The default is resolved here, so that a repeated command forks at the same record.
    const n = at ?? (await this.lastNumber());
    if (n === 0) throw new SessionNotFoundError(this.id);
    const byMessage = messageId === undefined ? {} : { messageId };
    const id = sessionId ?? (messageId === undefined ? newSessionId() : await sessionIdOfMessage(messageId));
    const session = this.#handleOn(id);
    const body = { fork: { session: this.id, n, ...changed }, ...byMessage };
    await session.#send('start', body, { ...sending, wait: sending.wait ?? 'accepted' });
    return session as ForkedSession<this>;
  }

  /**
   * Starts this session.
   * @internal
   * @param output The schema that validates the output of results in this program.
   * @throws InvalidOptionError for an unknown setting.
   */
  async start(settings: SessionSettings<JsonObject>, options: SendOptions, output?: StartedSchema): Promise<void> {
    this.#outputSchema = output ?? null;
    await this.#send('start', settings, options);
  }

  /** Sends a command. @param options Sending options and members of the body. */
  async #send(verb: Verb, members: object, options: object): Promise<SentCommand> {
    const { sending, others } = splitOptions(options);
    const body = wireBody(verb, { ...others, ...members });
    return sentCommand(await this.#sendOnWire(verb, body, sending));
  }

  async #sendOnWire<V extends Verb>(
    verb: V,
    body: BodyInput<V>,
    options: SendOptions<SendStage>,
  ): Promise<WireSentCommand> {
    try {
      return await this.wire.send(verb, body, options);
    } catch (error) {
      throw inCallersNames(verb, error);
    }
  }

  #noteSent(verb: Verb, body: object, sent: SentCommand): void {
    if (verb === 'start') {
      this.#sent = sent;
      this.#forkedAt = (body as { readonly fork?: { readonly n: number } }).fork?.n ?? null;
    }
    if (verb !== 'start' && verb !== 'prompt') return;
    this.#awaited = awaitedOf(verb, sent, body as RunStart);
    const { message_id } = body as RunStart;
    this.#mayRepeat = verb === 'start' && message_id !== undefined && sent.receipt === undefined;
    if (this.#mayRepeat) this.#awaited = null;
  }

  /** Null if a receipt has answered the start. */
  #unansweredStart(
    body: BodyInput<'start'>,
    { commandId, receipt }: WireSentCommand,
    options: SendOptions<SendStage>,
  ): UnansweredStart | null {
    if (receipt !== undefined) return null;
    return new UnansweredStart(async (asked) => {
      const again = { ...options, ...asked, id: commandId, wait: 'accepted' } as const;
      try {
        return sentCommand(await this.#transport.send(this.ref, 'start', body, again)).receipt;
      } catch (error) {
        throw inCallersNames('start', error);
      }
    });
  }

  /**
   * Starts the next run of a session whose run has ended.
   * @throws CommandRejectedError `session_busy` during a run, if `wait` awaits the receipt.
   */
  prompt(said: Prompted, options: PromptOptions = {}): Promise<SentCommand> {
    return this.#send('prompt', typeof said === 'string' ? { body: said } : { messages: said }, options);
  }

  /**
   * Sends a message in any state of the session: a steer during a run, otherwise the prompt of the next run. The
   * session decides when it takes the command; `became` of the receipt reports the decision.
   */
  async say(text: string, options: SendOptions = {}): Promise<SentCommand> {
    refuseOthers(splitOptions(options).others);
    return this.#send('prompt', { body: text, ifRunning: 'steer' }, options);
  }

  /**
   * Steers: sends a message into the running session. After the end of a run it is queued for the next one; see
   * {@link say}.
   */
  steer(body: string, options: InjectOptions = {}): Promise<SentCommand> {
    return this.#send('steer', { body }, options);
  }

  /** Sends a reminder to the model, without a user's voice. */
  remind(body: string, options: RemindOptions = {}): Promise<SentCommand> {
    return this.#send('remind', { body }, options);
  }

  /** Queues a message that is delivered when the run would otherwise end. */
  followup(
    body: string,
    options: SendOptions<WaitStage> & Pick<InjectOptions, 'dedupeKey'> = {},
  ): Promise<SentCommand> {
    return this.#send('followup', { body }, options);
  }

  /** Withdraws a queued steer, reminder or follow-up by its command id; also removes a shown reminder. */
  revoke(commandId: string, options: SendOptions = {}): Promise<SentCommand> {
    return this.#send('revoke', { commandId }, options);
  }

  /** Replaces the text of a queued message; its place in the queue stays. */
  replace(commandId: string, body: string, options: SendOptions = {}): Promise<SentCommand> {
    return this.#send('replace', { commandId, body }, options);
  }

  /** The queued messages: accepted and not delivered yet, in order. Queries a session host. */
  async pending(options: StateOptions = {}): Promise<SessionState['pending']> {
    return (await this.state(options)).pending;
  }

  /**
   * Allows a call that waits for an approval. The first decision counts.
   * @param callId Default: the only pending call.
   * @returns after the session has accepted the decision; with `wait: 'stored'` after the command is stored.
   * @throws CommandRejectedError `already_decided`, `call_unknown`, `invalid_arguments`, or `not_pending` without a
   *   pending call. InvalidOptionError if several calls are pending and none is named. Without a host:
   *   NoHostError if no call is named, otherwise ReceiptTimeoutError.
   */
  async approve(callId?: string, options: ApproveOptions = {}): Promise<SentCommand> {
    return this.#decide('allow', callId, options);
  }

  /** Denies a call that waits for an approval. Otherwise as {@link approve}. */
  async deny(callId?: string, options: DenyOptions = {}): Promise<SentCommand> {
    return this.#decide('deny', callId, options);
  }

  async #decide(decision: 'allow' | 'deny', named: string | undefined, options: ApproveOptions): Promise<SentCommand> {
    checkOptions(options);
    const callId = named ?? (await this.#onlyPendingCall());
    // Noted before it is sent: a failed decision is an error of this call.
    this.#noteDecided(callId);
    return this.#send('approve', { callId, decision }, { ...options, wait: options.wait ?? 'accepted' });
  }

  #noteDecided(callId: string): void {
    this.#decided.add(callId);
    const [oldest] = this.#decided;
    if (this.#decided.size > DECIDED_MAX && oldest !== undefined) this.#decided.delete(oldest);
  }

  /**
   * Whether a call still waits for a decision, and this handle has not sent one. Queries a session host only if this
   * handle has not sent one.
   * @internal
   */
  async isUndecided(callId: string): Promise<boolean> {
    return !this.#decided.has(callId) && (await isPending(this, callId));
  }

  async #onlyPendingCall(): Promise<string> {
    const { approvals } = await this.state();
    const [first, ...others] = approvals.map(({ callId }) => callId);
    if (first === undefined) throw new CommandRejectedError('not_pending', 'no approval is pending');
    if (others.length === 0) return first;
    throw new InvalidOptionError(
      `several approvals are pending: name one of ${[first, ...others].join(', ')}`,
      'callId',
    );
  }

  /**
   * The approvals of a run: first the pending ones, then each later one when it is requested. Ends with the run, which
   * is selected as by {@link stream}.
   * @throws SessionNotFoundError if the session does not exist, unless this handle has sent its start. Only
   *   {@link stream} and {@link records} wait for a session. SessionDeletedError, and errors of reading the journal.
   */
  approvals(options: Pick<ReadFrom, 'signal'> = {}): AsyncGenerator<Approval, void, undefined> {
    checkOptions(options);
    const { signal, ...others } = options;
    refuseOthers(others);
    checkSignal(signal);
    return this.#transport.guard.follow((stop) => this.#approvals(stop), signal);
  }

  async *#approvals(signal: AbortSignal): AsyncGenerator<Approval, void, undefined> {
    const present = await this.lastNumber();
    if (present === 0 && !this.#isStarted) throw new SessionNotFoundError(this.id);
    const { first, end, follow } = await this.#runToShow(undefined, signal);
    const isEnd = (record: JournalRecord) => {
      follow(record);
      return end.isAt(record);
    };
    yield* approvalsOf(this, this.records({ from: first, signal }), { present, isEnd });
  }

  /** Cancels the run. The session remains. */
  cancel(reason?: string, options: SendOptions = {}): Promise<SentCommand> {
    return this.#send('cancel', { reason }, options);
  }

  /**
   * Deletes a session whose run has ended. It can no longer be read, and its id cannot be used again. An administrator
   * purges its data with `cox admin retention`. Requires the admin's key.
   */
  delete(reason?: string, options: SendOptions = {}): Promise<SentCommand> {
    return this.#send('delete', { reason }, options);
  }

  /**
   * Cancels one call and waits for the recorded outcome; the session continues. If the host fails, the next host
   * records the outcome.
   * @throws ReceiptTimeoutError if nothing is recorded within `timeoutMs` and 30 s more, such as without a running
   *   host. The command is stored then and may still take effect. The errors of sending a command.
   */
  async cancelCall(callId: string, given: CancelCallOptions = {}): Promise<CancelledCall> {
    checkOptions(given);
    const { timeoutMs, ...options } = given;
    const { sending, others } = splitOptions(options);
    const body = wireBody('cancel_call', { ...others, callId, timeoutMs });
    const waitMs = (timeoutMs ?? BOUNDS.abortGraceMs) + RECEIPT_TIMEOUT_MS;
    const stored = await this.#sendOnWire('cancel_call', body, { ...sending, wait: 'outcome', timeoutMs: waitMs });
    const { cancellation, ...sent } = stored;
    const { outcome, tool, reason } = cancellation as CallCancellation;
    return { outcome, callId, tool, reason, sent: sentCommand(sent) };
  }

  /** Suspends the session at its next turn boundary, until it is resumed, until a time, or until a signal. */
  async suspend(request: SuspendRequest = {}, options: SendOptions = {}): Promise<SentCommand> {
    checkOptions(request);
    return this.#send('suspend', request, options);
  }

  /** Sends a signal: it resumes a session that waits for it, and is kept for a later wait. */
  signal(name: string, data?: Json, options: SendOptions = {}): Promise<SentCommand> {
    return this.#send('signal', { name, data }, options);
  }

  /** Resumes a suspended session. */
  resume(options: SendOptions = {}): Promise<SentCommand> {
    return this.#send('resume', {}, options);
  }

  /**
   * The records of the session from `from` on, stored and then live, without gaps or repetitions. Ends when the signal
   * aborts, the caller stops or the client closes. Waits for a session that does not exist yet.
   * @throws CommandRejectedError if this handle has sent the start and the host has rejected it. ReadRefusedError
   *   `record_not_there` for a `from` beyond the next record. Errors of reading the journal.
   * @param options `deltas: true`, for a program with its own event translator: records, deltas of running answers and
   *   changes of the connection in one sequence. With `from: 'newest'` older records are skipped.
   */
  records(options?: ReadFrom & { readonly deltas?: false | undefined }): AsyncGenerator<JournalRecord, void, undefined>;
  records(options: WatchFrom & { readonly deltas: true }): AsyncGenerator<WatchItem, void, undefined>;
  records(
    options: WatchFrom & { readonly deltas?: boolean | undefined } = {},
  ): AsyncGenerator<JournalRecord | WatchItem, void, undefined> {
    checkOptions(options);
    const { from = 1, signal, deltas = false, ...others } = options;
    refuseOthers(others);
    checkBoolean('deltas', deltas);
    if (from !== 'newest' || !deltas) checkRecordNumber('from', from);
    checkSignal(signal);
    const read = (stop: AbortSignal | undefined): AsyncGenerator<JournalRecord | WatchItem, void, undefined> =>
      deltas ? this.#transport.watch(this.ref, from, stop) : this.#transport.follow(this.ref, from, stop);
    const startId = this.#sent?.commandId;
    const isStart = (item: JournalRecord | WatchItem) => {
      const record = 'n' in item ? item : item.record;
      return record !== undefined && isStartOf(record, startId);
    };
    return this.#unanswered ? this.#unanswered.untilRejected(read, isStart, signal) : read(signal);
  }

  /**
   * The events of a run for a user interface: text as it streams, calls, approvals, the end. Ends with the run. The run
   * is the one that this handle has started or prompted last, otherwise the newest. A reader that joins in the middle
   * of an answer first receives the answer so far. Waits for a session that does not exist yet.
   * @param options `from`: the number of the first record to show; default: the first of the run. `signal` ends the
   *   loop earlier. `follow: true` continues with later runs.
   * @throws CommandRejectedError if the host has rejected the start or the prompt of the run; with `follow: true` a
   *   rejected prompt is the event `command_rejected` instead. ReadRefusedError `record_not_there` for a `from` beyond
   *   the next record. SessionDeletedError, and errors of reading the journal.
   */
  stream(options: StreamOptions = {}): AsyncGenerator<UiEvent, void, undefined> {
    checkOptions(options);
    const { from, signal, follow = false, ...others } = options;
    refuseOthers(others);
    checkBoolean('follow', follow);
    checkRecordNumber('from', from);
    checkSignal(signal);
    // The search for the run is part of the loop: closing the client ends the loop without an error.
    return this.#transport.guard.follow((stop) => this.#stream(from, follow, stop), signal);
  }

  async *#stream(
    from: number | undefined,
    follow: boolean,
    signal: AbortSignal,
  ): AsyncGenerator<UiEvent, void, undefined> {
    const shown = await this.#runToShow(from, signal, { promptsThrow: !follow });
    const { first, end } = shown;
    const translator = createEventTranslator({ after: first - 1 });
    let isConnected = true;
    for await (const { record, delta, connected } of this.records({ from: first, signal, deltas: true })) {
      if (record) {
        shown.follow(record);
        yield* translator.record(record);
        if (end.isAt(record) && !follow) return;
      } else if (delta) yield* translator.delta(delta);
      else if (connected !== isConnected) {
        isConnected = connected;
        yield { type: connected ? 'connection_restored' : 'connection_lost' };
      }
    }
  }

  /**
   * The text of the run's answers as it streams: {@link stream} with its text only. An empty line separates two
   * answers. An answer that restarts, such as after a failover, continues after the text that was yielded. If its new
   * text differs, the whole new text follows after an empty line.
   */
  textStream(options: StreamOptions = {}): AsyncGenerator<string, void, undefined> {
    return textOf(this.stream(options));
  }

  /**
   * The stored records.
   * @throws SessionNotFoundError if the session does not exist, unless this handle has sent its start.
   */
  journal(options: Pick<ReadFrom, 'from'> = {}): AsyncGenerator<JournalEntry, void, undefined> {
    checkOptions(options);
    const { from = 1, ...others } = options;
    refuseOthers(others);
    checkRecordNumber('from', from);
    return this.existing(this.#transport.journal(this.ref, from));
  }

  /**
   * Stored records, of a session that must exist.
   * @internal
   * @throws SessionNotFoundError if there are no records and this handle has not sent its start.
   */
  protected async *existing<Entry>(stored: AsyncGenerator<Entry, void, undefined>): typeof stored {
    let isEmpty = true;
    for await (const entry of stored) {
      isEmpty = false;
      yield entry;
    }
    if (isEmpty && !this.#isStarted && (await this.lastNumber()) === 0) throw new SessionNotFoundError(this.id);
  }

  /**
   * The lines of an export, without line breaks: the records as stored, and large fields before the record that refers
   * to them.
   * @param options `recordsOnly` leaves out the large fields.
   * @throws SessionNotFoundError if the session does not exist, unless this handle has sent its start.
   */
  export(options: { readonly recordsOnly?: boolean | undefined } = {}): AsyncGenerator<Uint8Array, void, undefined> {
    checkOptions(options);
    const { recordsOnly = false, ...others } = options;
    refuseOthers(others);
    checkBoolean('recordsOnly', recordsOnly);
    return this.existing(this.#transport.exportLines(this.ref, recordsOnly));
  }

  /** The receipt of a command, derived from the stored records; null if no record contains the command. */
  async receiptOf(commandId: string): Promise<CommandReceipt | null> {
    const receipt = await this.wire.receiptOf(commandId);
    return receipt && commandReceipt(receipt);
  }

  /** The newest record, or null if the session does not exist. For programs that check whether it exists. */
  newest(): Promise<JournalRecord | null> {
    return this.#transport.newest(this.ref);
  }

  /**
   * The number of the newest record; 0 if the session does not exist. Over NATS it includes a record that this release
   * cannot read.
   * @throws SessionDeletedError if the session is deleted.
   */
  lastNumber(): Promise<number> {
    return this.#transport.lastNumber(this.ref);
  }

  /** The state of the session. Queries a session host. @throws NoHostError, SessionNotFoundError. */
  async state(options: StateOptions = {}): Promise<SessionState> {
    // The wire type does not list state names: a newer host may have more.
    return fromWire(SessionStatus, await this.wire.state(options)) as SessionState;
  }

  /** The session and its descendants, read from their journals. */
  async tree(): Promise<SessionTree> {
    return treeFromWire(await this.wire.tree());
  }

  /**
   * Waits for the end of the run, without a time limit; set a `signal` to bound it.
   * @param options `after`: only an end in this record or later counts, such as `n` of a prompt's receipt. By default
   *   the run is the one that this handle has started or prompted last, otherwise the newest, even if it has ended.
   * @throws SessionNotFoundError if the session does not exist, unless this handle has sent its start: then it waits.
   *   CommandRejectedError if the host has rejected the start or the prompt of the run. CoxswainError `output_invalid`
   *   if the Zod schema of the start or its persona rejects the output. CoxswainError `aborted` if the signal aborts;
   *   ClientClosedError.
   */
  async result(options: ResultOptions = {}): Promise<RunResult> {
    checkOptions(options);
    const { after, signal, ...others } = options;
    refuseOthers(others);
    checkRecordNumber('after', after);
    checkSignal(signal);
    if ((await this.newest()) === null && !this.#isStarted) throw new SessionNotFoundError(this.id);
    const { end, follow } = await this.#runToShow(1, signal, { promptsThrow: after === undefined });
    const results = new ResultCollector();
    let schema = this.#outputSchema;
    for await (const record of this.records({ signal })) {
      results.add(record);
      follow(record);
      if (schema?.isPersonas && record.events.some(isHandOff)) schema = null;
      const { newest } = results;
      const isOver =
        after === undefined ? end.isAt(record) : hasEnded(record.state) && newest !== null && newest.n >= after;
      if (isOver && newest !== null) return checkedResult(schema?.schema, newest);
    }
    // The loop ends only by the signal or by closing the client.
    throw this.#transport.guard.errorOf(options.signal?.reason, options.signal);
  }

  /**
   * The run that a loop shows. The loop passes each record to `follow`.
   * @param promptsThrow Whether a rejected prompt ends the loop, too. A rejected start always does.
   * @throws CommandRejectedError, also from `follow`, if the command of the run is rejected: the loop does not show
   *   another run.
   */
  async #runToShow(
    from: number | undefined,
    signal: AbortSignal | undefined,
    { promptsThrow = true } = {},
  ): Promise<Omit<Awaited<ReturnType<typeof runToShow>>, 'command'> & { follow(record: JournalRecord): void }> {
    if (this.#mayRepeat) await this.#findRepeatedStart(signal);
    const awaited = this.#awaited;
    const follow = (record: JournalRecord) => {
      if (awaited === null) return;
      const rejection = promptsThrow || awaited.verb === 'start' ? rejectionAt(record, awaited, this.ref) : null;
      if (rejection !== null) throw rejection;
      if (this.#awaited === awaited && isCommand(record, awaited.commandId)) this.#awaited = null;
    };
    const journal = {
      lastNumber: () => this.lastNumber(),
      journal: () => this.#transport.journal(this.ref, 1),
    };
    const { command, ...shown } = await runToShow(journal, from, awaited);
    if (command !== null && rejectionAt(command, awaited as AwaitedCommand, this.ref) !== null) follow(command);
    return { ...shown, follow };
  }

  /**
   * Finds the command of the run for a start with a message id and without a receipt. It is the start itself, or the
   * one that it repeats. A repetition leaves no record.
   */
  async #findRepeatedStart(signal: AbortSignal | undefined): Promise<void> {
    const { commandId } = this.#sent as SentCommand;
    const unanswered = this.#unanswered as UnansweredStart;
    const last = await this.lastNumber();
    let awaited: AwaitedCommand | null = null;
    for await (const record of this.records({ signal })) {
      if (isStartOf(record, commandId)) awaited = { commandId, verb: 'start', n: record.n };
      if (awaited !== null || record.n >= last) break;
    }
    if (awaited === null && !signal?.aborted) {
      const receipt = await unanswered.receipt(signal);
      awaited = awaitedOf('start', { commandId, receipt } as SentCommand, {});
    }
    if (!this.#mayRepeat || awaited === null) return;
    // A fork does not start a run: the newest run continues.
    this.#awaited = this.#forkedAt === null ? awaited : null;
    this.#mayRepeat = false;
  }

  /** Creates a handle of the same class on another session. */
  #handleOn(id: string): this {
    const Handle = this.constructor as new (transport: Transport, ref: SessionRef) => this;
    return new Handle(this.#unguarded, sessionRef(id, this.ref.tenant));
  }
}

/** Extracts the text of answers from UI events. */
async function* textOf(events: AsyncIterable<UiEvent>): AsyncGenerator<string, void, undefined> {
  const text = new TextPieces();
  for await (const event of events) yield* text.of(event);
}

/** The members of a start or prompt that decide which run it belongs to. */
type RunStart = Pick<BodyInput<'start'>, 'message_id'> & Pick<BodyInput<'prompt'>, 'if_running'>;

/** Whether a record contains a start. The first record of a fork is a copy that names the start of the fork. */
function isStartOf({ input }: JournalRecord, commandId: string | undefined): boolean {
  if (input.type !== 'command') return false;
  return input.command_id === commandId || input.copied_from?.command_id === commandId;
}

/**
 * The command that starts the run of a sent start or prompt. A start with a message id may repeat an earlier one, which
 * its receipt names.
 */
function awaitedOf(
  verb: 'start' | 'prompt',
  { commandId, receipt }: SentCommand,
  { if_running }: RunStart,
): AwaitedCommand {
  const { detail, duplicate, n = null } = receipt ?? {};
  const first = duplicate ? detail?.commandId : undefined;
  return { commandId: typeof first === 'string' ? first : commandId, verb, n, maySteer: if_running === 'steer' };
}

function isHandOff(event: JournalRecord['events'][number]): boolean {
  return event.type === 'persona_changed' && event.handoff !== undefined;
}
