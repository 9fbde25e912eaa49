/** One session, as a client holds it: its commands, its events, its state and its result. The same over the bus and over HTTP. */
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

/** When an injection may be delivered. */
type InjectTiming =
  | {
      /** Default `finish_step`; unknown modes are refused. */
      readonly mode?: CommandInput<'steer'>['mode'] | undefined;
      readonly preempt?: false | undefined;
    }
  | {
      readonly mode?: 'interrupt_immediate' | 'interrupt' | undefined;
      /** An interrupt that does not wait: it also ends the answer that streams and the calls that run. */
      readonly preempt: true;
    };

/** How an injection is sent: it can be followed until it is delivered. */
export type InjectOptions = SendOptions<WaitStage> &
  InjectTiming & {
    /** What waits under the same key, of its kind, makes way for this. */
    readonly dedupeKey?: string | undefined;
  };

/** How a reminder is sent: its fields next to the text. */
export type RemindOptions = InjectOptions & {
  readonly tags?: readonly string[] | undefined;
  /** How many turns show it; without it, every turn until it is revoked or compacted away. */
  readonly ttlTurns?: number | undefined;
  readonly preserveOnCompact?: boolean | undefined;
  readonly propagate?: CommandInput<'remind'>['propagate'];
  readonly roleHint?: CommandInput<'remind'>['roleHint'];
};

/** What a prompt says: a text, or messages with files, such as images. */
export type Prompted = string | NonNullable<CommandInput<'prompt'>['messages']>;

/** What a session is doing. */
export type SessionState = Omit<CamelCased<SessionStatus>, 'state'> & {
  /** The name of the state, or of the state with its child. */
  readonly state: SessionStateName | { readonly [Name in SessionStateName]?: string };
};

/** How a prompt is sent. What it changes holds for its run and for those after it. */
export interface PromptOptions extends SendOptions {
  /** Another model, as `provider/name`. */
  readonly model?: string | undefined;
  /** Where its provider is reached. */
  readonly baseUrl?: string | undefined;
  /** A mode of the persona that has the session; null for none. */
  readonly mode?: string | null | undefined;
}

/** Which end of a run is waited for. */
export interface ResultOptions {
  /** Only an end in this record or a later one counts. */
  readonly after?: number;
  readonly signal?: AbortSignal;
}

/** From where a session is read. */
export interface ReadFrom {
  /** The first record, by its number; default 1. */
  readonly from?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** What a stream of UI events shows. */
export interface StreamOptions extends ReadFrom {
  /** `true`: the stream continues with every later run, until the loop is left, the signal aborts or the client closes. */
  readonly follow?: boolean | undefined;
}

/** From where records are read with deltas: by number, or from the newest record. */
export interface WatchFrom {
  readonly from?: JournalStart | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** How a call is cancelled. */
export interface CancelCallOptions extends Omit<SendOptions, 'wait' | 'timeoutMs' | 'acceptedWithinMs'> {
  readonly reason?: string | undefined;
  /** Whether the model is reminded that the call was cancelled; default true. */
  readonly injectReminder?: boolean | undefined;
  /** How long the tool may take to stop, milliseconds; then the outcome is `timeout`. 0 to 600,000; default 5,000. */
  readonly timeoutMs?: number | undefined;
}

/** A call that this program has asked to cancel, after the session has recorded the outcome. */
export interface CancelledCall {
  /**
   * `cancelled`: the call is stopped. `already_cancelled`: an earlier cancel stopped it, or is stopping it. `not_found`: no such
   * call is open, because it has ended or never was. `timeout`: the tool did not stop in time; the session continues without it.
   */
  readonly outcome: CancelOutcome;
  readonly callId: string;
  /** With `not_found`: the tool of a call of the newest answer, which has ended; else null. */
  readonly tool: string | null;
  /** Why it was cancelled: the reason of the first cancel; null without one, or where that cancel is over. */
  readonly reason: string | null;
  /** The command, with its receipt. */
  readonly sent: SentCommand;
}

/** How a session is suspended: what ends the suspension, apart from a resume. */
export type SuspendRequest = {
  readonly reason?: string | undefined;
  /** The name of the signal that ends it. */
  readonly signal?: string | undefined;
  /** What happens when its time has come. */
  readonly onTimeout?: OnTimeout | undefined;
  /** The message to the model with `onTimeout: 'resume_with_input'`. */
  readonly input?: string | undefined;
} & (
  | { /** When it ends, ISO 8601. */ readonly until?: string | undefined; readonly forMs?: undefined }
  | { readonly until?: undefined /** How long it lasts from the moment of parking. */; readonly forMs: number }
);

/** How a session is forked. */
export interface ForkOptions extends SendOptions {
  /** The record up to which its past is the fork's, and at which changes are made. Default: the newest. */
  readonly at?: number | undefined;
  /** What is to be otherwise: in that record, or from there on. */
  readonly changes?: CamelCased<ForkChangesInput> | undefined;
  /** The fork's id. Default: a random one, or one that follows from `messageId`. */
  readonly sessionId?: string | undefined;
  /**
   * Makes the fork idempotent, as `messageId` of a start does: the same fork sent again returns the first one. Give `at` with it, because the
   * default changes with every record.
   */
  readonly messageId?: string | undefined;
  /** Like `wait` of every command, but the default is `accepted`: only the host knows whether the record exists. */
  readonly wait?: 'stored' | 'accepted' | undefined;
}

/** A session that this program has started. */
export type StartedSession<S extends Session> = S & { readonly sent: SentCommand };

/** A session whose output has a type. */
export interface TypedResult<Output> {
  /** The result of the run, as {@link Session.result} returns it. */
  result(options?: ResultOptions): Promise<RunResult<Output>>;
}

/** A fork that this program has started. */
export type ForkedSession<S extends Session> = StartedSession<S> & { readonly forkedAt: number };

/** The schema of the output of a session that this program has started. */
interface StartedSchema {
  readonly schema: OutputSource;
  /** Whether the persona of the start has it: it does not apply after a hand-off. */
  readonly isPersonas: boolean;
}

/** The maximum number of decided calls that a handle remembers. */
const DECIDED_MAX = 1_000;

/** A handle on one session. Making one asks nothing of anybody. */
export class Session {
  readonly ref: SessionRef;
  /** The session in the form of the wire: for programs that pass documents on, such as a gateway. */
  readonly wire: SessionWire;
  /** For handles on other sessions: each guards its own calls. */
  readonly #unguarded: Transport;
  readonly #transport: Transport;
  /** A start was sent with this handle: the session comes, even where it is not there yet. */
  #isStarted = false;
  /** The command of this handle that starts a run, until its record was seen here: {@link stream} shows that run. */
  #awaited: AwaitedCommand | null = null;

  #sent: SentCommand | null = null;
  /** The start that this handle has sent without waiting for its receipt. */
  #unanswered: UnansweredStart | null = null;
  /** Whether that start has a message id, and is the newest command: it may repeat the session's first start. */
  #mayRepeat = false;
  #forkedAt: number | null = null;
  #outputSchema: StartedSchema | null = null;
  /** Calls that this handle has decided, or is deciding. */
  readonly #decided = new Set<string>();

  /** Made by a client. */
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

  /** The stored command that started the session; null where another handle has sent it. */
  get sent(): SentCommand | null {
    return this.#sent;
  }

  /** The record of the origin at which this fork starts; null for a session that this handle has not forked. */
  get forkedAt(): number | null {
    return this.#forkedAt;
  }

  get id(): string {
    return this.ref.sessionId;
  }

  /**
   * Starts a new session with this one's past up to a record. This one is left as it is.
   * @returns the fork: `sent` is the stored command, `forkedAt` the record at which it begins.
   * @throws InvalidOptionError for an `at` that is not the number of a record. CommandRejectedError `fork_record_not_found` with the field
   *   `at` if the session has fewer records: from this call, or with `wait: 'stored'` from the fork's result.
   */
  async fork(options: ForkOptions = {}): Promise<ForkedSession<this>> {
    const { sending, others } = splitOptions(options);
    const { at, changes, sessionId, messageId, ...unknown } = others as ForkOptions;
    refuseOthers(unknown);
    checkRecordNumber('at', at);
    const changed = changes === undefined ? {} : { changes };
    // The record is named here: sent twice, the fork begins at the same one.
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
   * Starts this session. @internal
   * @param output the schema that checks the output of results in this program.
   * @throws InvalidOptionError for a setting that a start does not have.
   */
  async start(settings: SessionSettings<JsonObject>, options: SendOptions, output?: StartedSchema): Promise<void> {
    this.#outputSchema = output ?? null;
    await this.#send('start', settings, options);
  }

  /** Sends a command. @param options how it is sent, and members of its body. */
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

  /** Null where a receipt has answered the start. */
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

  /** Starts the next run of a session that has ended. */
  prompt(said: Prompted, options: PromptOptions = {}): Promise<SentCommand> {
    return this.#send('prompt', typeof said === 'string' ? { body: said } : { messages: said }, options);
  }

  /**
   * Says something to the session, whatever it does: a steer during a run, else the prompt of the next run. The session decides
   * when it takes the command; the receipt says what it became (`became`).
   */
  async say(text: string, options: SendOptions = {}): Promise<SentCommand> {
    refuseOthers(splitOptions(options).others);
    return this.#send('prompt', { body: text, ifRunning: 'steer' }, options);
  }

  /** Sends a message into the run. To a session that has ended it waits for the next one; see {@link say}. */
  steer(body: string, options: InjectOptions = {}): Promise<SentCommand> {
    return this.#send('steer', { body }, options);
  }

  /** Reminds the session of something, not in a user's voice. */
  remind(body: string, options: RemindOptions = {}): Promise<SentCommand> {
    return this.#send('remind', { body }, options);
  }

  /** Queues what is to be done once the session would otherwise end its run. */
  followup(
    body: string,
    options: SendOptions<WaitStage> & Pick<InjectOptions, 'dedupeKey'> = {},
  ): Promise<SentCommand> {
    return this.#send('followup', { body }, options);
  }

  /** Takes back a steer, a reminder or a follow-up that waits, by its command id; clears a reminder that is shown. */
  revoke(commandId: string, options: SendOptions = {}): Promise<SentCommand> {
    return this.#send('revoke', { commandId }, options);
  }

  /** Gives what waits another text; it keeps its place. */
  replace(commandId: string, body: string, options: SendOptions = {}): Promise<SentCommand> {
    return this.#send('replace', { commandId, body }, options);
  }

  /** What the session has accepted and not delivered yet, in order. Answered by a host. */
  async pending(options: StateOptions = {}): Promise<SessionState['pending']> {
    return (await this.state(options)).pending;
  }

  /**
   * Lets a call run that waits for a decision. The first decision stands.
   * @param callId default: the only one that waits.
   * @returns once the session has accepted the decision; with `wait: 'stored'` once the command is stored.
   * @throws CommandRejectedError `already_decided`, `call_unknown`, `invalid_arguments`, and `not_pending` where none waits;
   *   InvalidOptionError where several wait and none is named; ReceiptTimeoutError without a host that answers.
   */
  async approve(callId?: string, options: ApproveOptions = {}): Promise<SentCommand> {
    return this.#decide('allow', callId, options);
  }

  /** Refuses such a call. Otherwise as {@link approve}. */
  async deny(callId?: string, options: DenyOptions = {}): Promise<SentCommand> {
    return this.#decide('deny', callId, options);
  }

  async #decide(decision: 'allow' | 'deny', named: string | undefined, options: ApproveOptions): Promise<SentCommand> {
    checkOptions(options);
    const callId = named ?? (await this.#onlyPendingCall());
    // Noted before it is sent: a decision that fails is an error of this call.
    this.#noteDecided(callId);
    return this.#send('approve', { callId, decision }, { ...options, wait: options.wait ?? 'accepted' });
  }

  #noteDecided(callId: string): void {
    this.#decided.add(callId);
    const [oldest] = this.#decided;
    if (this.#decided.size > DECIDED_MAX && oldest !== undefined) this.#decided.delete(oldest);
  }

  /**
   * Whether a call still waits for a decision, and this handle has not sent one. The host is asked only where this handle has not.
   * @internal
   */
  async isUndecided(callId: string): Promise<boolean> {
    if (this.#decided.has(callId)) return false;
    return (await this.state()).approvals.some((approval) => approval.callId === callId);
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
   * The approvals of a run: those that wait now, and then each as it is requested. Ends with the run, which is chosen as by
   * {@link stream}.
   * @throws SessionNotFoundError where there is no such session, unless this handle has sent its start; only {@link stream} and
   *   {@link records} wait for a session that does not exist yet. SessionDeletedError, and what reading the journal throws.
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

  /** Ends the run; the session stays. */
  cancel(reason?: string, options: SendOptions = {}): Promise<SentCommand> {
    return this.#send('cancel', { reason }, options);
  }

  /**
   * Deletes an ended session. It can no longer be read, and its id is never used again. An administrator purges its
   * data with `cox admin retention`. Requires the key of the admin.
   */
  delete(reason?: string, options: SendOptions = {}): Promise<SentCommand> {
    return this.#send('delete', { reason }, options);
  }

  /**
   * Stops one call, and waits for the outcome that the session records; the session continues. The outcome survives the end of a
   * host: the next host records it.
   * @throws ReceiptTimeoutError where nothing is recorded within `timeoutMs` and 30 s more, such as without a running host: the command
   *   is stored and may still take effect. What sending a command throws.
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

  /** Parks the session at its next turn boundary: until it is resumed, until a time, or until a signal. */
  async suspend(request: SuspendRequest = {}, options: SendOptions = {}): Promise<SentCommand> {
    checkOptions(request);
    return this.#send('suspend', request, options);
  }

  /** Gives a session a signal: it wakes one that waits for it, and is kept for one that has yet to wait. */
  signal(name: string, data?: Json, options: SendOptions = {}): Promise<SentCommand> {
    return this.#send('signal', { name, data }, options);
  }

  /** Lets a suspended session go on. */
  resume(options: SendOptions = {}): Promise<SentCommand> {
    return this.#send('resume', {}, options);
  }

  /**
   * The session's records, from `from` on and then live: no gap, no repeat. Ends when the signal aborts or the loop is
   * left; a session that does not exist yet is waited for.
   * @throws CommandRejectedError where this handle has sent the start, and the host has rejected it.
   * @param options `deltas: true` for a program with its own event translator: records, deltas of running answers and changes of the
   *   connection in one sequence. With `from: 'newest'` nothing older than the newest record is read.
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
   * What a user interface shows of a run, as it happens: text as it streams, calls, approvals, the end. Ends with the run. The run is the one
   * that this handle has started or prompted last, else the newest. A reader that joins in the middle of an answer gets the answer so far
   * first; a session that does not exist yet is waited for.
   * @param options `from`: the first record to show, by its number; default the first of the run. `signal` ends the loop earlier.
   *   `follow: true` does not end with the run, and shows later runs too.
   * @throws CommandRejectedError where the host has rejected the start or the prompt whose run is shown; with `follow: true` a rejected prompt
   *   is the event `command_rejected` instead. SessionDeletedError, and what reading the journal throws.
   */
  stream(options: StreamOptions = {}): AsyncGenerator<UiEvent, void, undefined> {
    checkOptions(options);
    const { from, signal, follow = false, ...others } = options;
    refuseOthers(others);
    checkBoolean('follow', follow);
    checkRecordNumber('from', from);
    checkSignal(signal);
    // The search for the run belongs to the loop: a client that closes meanwhile ends the loop, and does not reject it.
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
   * The text of the run's answers as it streams: {@link stream} without the rest. An empty line separates one answer from the next. An
   * answer that starts again, such as after the end of a host, continues after the text that was yielded. If its new text differs, the
   * whole new text follows after an empty line.
   */
  textStream(options: StreamOptions = {}): AsyncGenerator<string, void, undefined> {
    return textOf(this.stream(options));
  }

  /**
   * The records that are stored now.
   * @throws SessionNotFoundError where there is no such session, unless this handle has sent its start.
   */
  journal(options: Pick<ReadFrom, 'from'> = {}): AsyncGenerator<JournalEntry, void, undefined> {
    checkOptions(options);
    const { from = 1, ...others } = options;
    refuseOthers(others);
    checkRecordNumber('from', from);
    return this.existing(this.#transport.journal(this.ref, from));
  }

  /**
   * Stored records, which a session that exists has. @internal
   * @throws SessionNotFoundError where there are none, there is no such session, and this handle has not sent its start.
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
   * The lines of an export: the records as stored, and before them what lies apart of them. Without line breaks.
   * @param recordsOnly leaves out what lies apart.
   * @throws SessionNotFoundError where there is no such session, unless this handle has sent its start.
   */
  export(options: { readonly recordsOnly?: boolean | undefined } = {}): AsyncGenerator<Uint8Array, void, undefined> {
    checkOptions(options);
    const { recordsOnly = false, ...others } = options;
    refuseOthers(others);
    checkBoolean('recordsOnly', recordsOnly);
    return this.existing(this.#transport.exportLines(this.ref, recordsOnly));
  }

  /** What became of a command, by the records that are stored now; null where none of them holds it. */
  async receiptOf(commandId: string): Promise<CommandReceipt | null> {
    const receipt = await this.wire.receiptOf(commandId);
    return receipt && commandReceipt(receipt);
  }

  /** The newest record, or null where there is no such session: for programs that ask whether it exists. */
  newest(): Promise<JournalRecord | null> {
    return this.#transport.newest(this.ref);
  }

  /**
   * The number of the newest record; 0 where there is no such session. Over the bus also of a record that this release cannot read.
   * @throws SessionDeletedError where it is deleted.
   */
  lastNumber(): Promise<number> {
    return this.#transport.lastNumber(this.ref);
  }

  /** What the session is doing. Answered by a host. */
  async state(options: StateOptions = {}): Promise<SessionState> {
    // The type of the wire has no names of states: a newer host may have one more.
    return fromWire(SessionStatus, await this.wire.state(options)) as SessionState;
  }

  /** The session and all that were started below it, read from their journals. */
  async tree(): Promise<SessionTree> {
    return treeFromWire(await this.wire.tree());
  }

  /**
   * Waits for the end of the run, as long as that takes; bound it with a signal.
   * @param after count only ends in this record or later ones: give the `n` of a prompt's receipt. By default the run is the one that this
   *   handle has started or prompted last, else the newest, also when it has ended already.
   * @throws SessionNotFoundError where there is no such session, unless this handle has sent its start: that one is waited for.
   *   CommandRejectedError where the host has rejected the start or the prompt whose run is waited for.
   *   CoxswainError `aborted` where the signal aborts; ClientClosedError.
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
    // The loop ends only by the signal or with the client.
    throw this.#transport.guard.errorOf(options.signal?.reason, options.signal);
  }

  /**
   * The run that a loop shows. The loop gives each of its records to `follow`.
   * @param promptsThrow whether a rejected prompt ends the loop, too. A rejected start always does.
   * @throws CommandRejectedError, also from `follow`, where the command of the run is rejected: no other run takes its place.
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
   * Finds the command whose run belongs to a start under a message id without a receipt: the start itself, or the one that it repeats.
   * A repetition leaves no record.
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
    // A fork starts no run: the newest one continues.
    this.#awaited = this.#forkedAt === null ? awaited : null;
    this.#mayRepeat = false;
  }

  /** A handle of the same kind on another session. */
  #handleOn(id: string): this {
    const Handle = this.constructor as new (transport: Transport, ref: SessionRef) => this;
    return new Handle(this.#unguarded, sessionRef(id, this.ref.tenant));
  }
}

/** The text of answers from the events of a stream. */
async function* textOf(events: AsyncIterable<UiEvent>): AsyncGenerator<string, void, undefined> {
  const text = new TextPieces();
  for await (const event of events) yield* text.of(event);
}

/** What of a start or a prompt decides which run it belongs to. */
type RunStart = Pick<BodyInput<'start'>, 'message_id'> & Pick<BodyInput<'prompt'>, 'if_running'>;

/** Whether a record holds a start. The first record of a fork is a copy, which names the start of the fork. */
function isStartOf({ input }: JournalRecord, commandId: string | undefined): boolean {
  if (input.type !== 'command') return false;
  return input.command_id === commandId || input.copied_from?.command_id === commandId;
}

/**
 * The command that starts the run of a sent start or prompt. A start under a message id may repeat an earlier one, which its receipt
 * names.
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
