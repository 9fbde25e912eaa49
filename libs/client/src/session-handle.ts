/** One session, as a client holds it: its commands, its events, its state and its result. */
import {
  type CommandId,
  type Delta,
  hasEnded,
  type JournalRecord,
  type Json,
  type ParkingFields,
  type Receipt,
  type SessionRef,
  type SessionStatus,
  sessionRef,
} from '@coxswain/protocol';
import { CommandFate } from './command-fate.ts';
import { exportLines } from './export-journal.ts';
import { type ForkOptions, sendFork } from './fork-session.ts';
import { newSessionId } from './fresh-ids.ts';
import { RecordDecoder } from './large-fields.ts';
import { deltas } from './live-deltas.ts';
import { queryState } from './query-state.ts';
import { followJournal, type JournalBus, lastRecord, readJournal, type StoredJournalRecord } from './read-journal.ts';
import { ResultCollector, type RunResult } from './run-result.ts';
import { type CallEnd, sendCallOutcome, type TakenUpCall } from './send-call-outcome.ts';
import {
  type BodyInput,
  type CommandBus,
  type SendOptions,
  type SentCommand,
  sendCommand,
  type WaitStage,
} from './send-command.ts';
import { type JobReport, sendJobReport } from './send-job-report.ts';
import { type WatchItem, watchSession } from './watch-session.ts';

/** How an injection is sent: it can be followed until it is delivered. */
export interface InjectOptions extends SendOptions<WaitStage> {
  /** When it may be delivered. Default `finish_step`; unknown modes are refused. */
  readonly mode?: BodyInput<'steer'>['mode'];
  /** An interrupt that does not wait: it also ends the answer that streams and the calls that run. */
  readonly preempt?: boolean | undefined;
  /** What waits under the same key, of its kind, makes way for this. */
  readonly dedupeKey?: string | undefined;
}

/** How a reminder is sent: what it may say of itself beside its text. */
export interface RemindOptions extends InjectOptions {
  readonly tags?: readonly string[] | undefined;
  /** How many turns show it; without it, every turn until it is revoked or compacted away. */
  readonly ttlTurns?: number | undefined;
  readonly preserveOnCompact?: boolean | undefined;
  readonly propagate?: BodyInput<'remind'>['propagate'];
  readonly roleHint?: BodyInput<'remind'>['role_hint'];
}

/** From where a session is read. */
export interface ReadFrom {
  /** The first record, by its number; default 1. */
  readonly from?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A handle on one session. Making one asks nothing of the bus. */
export class Session {
  readonly ref: SessionRef;
  readonly #bus: CommandBus & JournalBus;

  /** Made by {@link Client}. */
  constructor(bus: CommandBus & JournalBus, ref: SessionRef) {
    this.#bus = bus;
    this.ref = ref;
  }

  get id(): string {
    return this.ref.sessionId;
  }

  /**
   * Starts a new session with this one's past up to a record. This one is left as it is.
   * @returns the fork, the record at which it begins, and the stored command.
   */
  async fork(
    options: ForkOptions = {},
  ): Promise<{ readonly session: Session; readonly n: number; readonly sent: SentCommand }> {
    const ref = sessionRef(options.sessionId ?? newSessionId(), this.ref.tenant);
    const { n, ...sent } = await sendFork(this.#bus, this.ref, ref, options);
    return { session: new Session(this.#bus, ref), n, sent };
  }

  /** Starts the next run of a session that has ended. */
  prompt(body: string, options: SendOptions = {}): Promise<SentCommand> {
    return sendCommand(this.#bus, this.ref, 'prompt', { body }, options);
  }

  /** Says something to the session while it works. */
  steer(body: string, { mode, preempt, dedupeKey, ...options }: InjectOptions = {}): Promise<SentCommand> {
    return sendCommand(this.#bus, this.ref, 'steer', { body, ...when(mode, preempt), ...under(dedupeKey) }, options);
  }

  /** Reminds the session of something, not in a user's voice. */
  remind(
    body: string,
    {
      mode,
      preempt,
      dedupeKey,
      tags,
      ttlTurns,
      preserveOnCompact,
      propagate,
      roleHint,
      ...options
    }: RemindOptions = {},
  ): Promise<SentCommand> {
    const reminder: BodyInput<'remind'> = {
      body,
      ...when(mode, preempt),
      ...under(dedupeKey),
      ...(tags === undefined ? {} : { tags: [...tags] }),
      ...(ttlTurns === undefined ? {} : { ttl_turns: ttlTurns }),
      ...(preserveOnCompact === undefined ? {} : { preserve_on_compact: preserveOnCompact }),
      ...(propagate === undefined ? {} : { propagate }),
      ...(roleHint === undefined ? {} : { role_hint: roleHint }),
    };
    return sendCommand(this.#bus, this.ref, 'remind', reminder, options);
  }

  /** Queues what is to be done once the session would otherwise end its run. */
  followup(
    body: string,
    { dedupeKey, ...options }: SendOptions<WaitStage> & Pick<InjectOptions, 'dedupeKey'> = {},
  ): Promise<SentCommand> {
    return sendCommand(this.#bus, this.ref, 'followup', { body, ...under(dedupeKey) }, options);
  }

  /** Takes back a steer, a reminder or a follow-up that waits, by its command id; clears a reminder that is shown. */
  revoke(commandId: string, options: SendOptions = {}): Promise<SentCommand> {
    return sendCommand(this.#bus, this.ref, 'revoke', { command_id: commandId }, options);
  }

  /** Gives what waits another text; it keeps its place. */
  replace(commandId: string, body: string, options: SendOptions = {}): Promise<SentCommand> {
    return sendCommand(this.#bus, this.ref, 'replace', { command_id: commandId, body }, options);
  }

  /** What the session has accepted and not delivered yet, in order. Answered by a host. */
  async pending(timeoutMs?: number): Promise<SessionStatus['pending']> {
    return (await this.state(timeoutMs)).pending;
  }

  /** Decides a parked call. The first decision stands. */
  approve(
    decision: {
      readonly callId: string;
      readonly decision: 'allow' | 'deny';
      readonly reason?: string | undefined;
      readonly args?: BodyInput<'approve'>['args'];
      /** Later calls like it are decided the same way; the receipt's `detail.remembered` says which those are. */
      readonly remember?: BodyInput<'approve'>['remember'];
    },
    options: SendOptions = {},
  ): Promise<SentCommand> {
    const { callId, reason, args, remember } = decision;
    const body: BodyInput<'approve'> = {
      call_id: callId,
      decision: decision.decision,
      ...(reason === undefined ? {} : { reason }),
      ...(args === undefined ? {} : { args }),
      ...(remember === undefined ? {} : { remember }),
    };
    return sendCommand(this.#bus, this.ref, 'approve', body, options);
  }

  /** Ends the run; the session stays. */
  cancel(reason?: string, options: SendOptions = {}): Promise<SentCommand> {
    return sendCommand(this.#bus, this.ref, 'cancel', reason === undefined ? {} : { reason }, options);
  }

  /**
   * Deletes a session that has ended: nobody reads it any more, and its id is never used again. What it has left is purged by
   * whoever looks after the bus, with `cox sweep`. For users whom the bus lets publish it: the admin's.
   */
  delete(reason?: string, options: SendOptions = {}): Promise<SentCommand> {
    return sendCommand(this.#bus, this.ref, 'delete', reason === undefined ? {} : { reason }, options);
  }

  /** Ends one call; the session goes on. */
  cancelCall(
    callId: string,
    body: Omit<BodyInput<'cancel_call'>, 'call_id' | 'id' | 'actor'> = {},
    options: SendOptions = {},
  ): Promise<SentCommand> {
    return sendCommand(this.#bus, this.ref, 'cancel_call', { ...body, call_id: callId }, options);
  }

  /** Brings the outcome of a call of a `long_running` tool: for whoever has taken it up. The first one counts. */
  endCall(call: TakenUpCall, end: CallEnd, options: SendOptions = {}): Promise<SentCommand> {
    return sendCallOutcome(this.#bus, this.ref, call, end, options);
  }

  /**
   * Says how far a job is that a hook of the session has begun: for whoever runs it. Its end reaches the model. Wait for
   * `accepted` where the job may end before its receipt is recorded: then it is sent again until it is.
   */
  reportJob(report: JobReport, options: SendOptions = {}): Promise<SentCommand> {
    return sendJobReport(this.#bus, this.ref, report, options);
  }

  /** Parks the session at its next turn boundary: until it is resumed, until a time, or until a signal. */
  suspend(request: ParkingFields = {}, options: SendOptions = {}): Promise<SentCommand> {
    return sendCommand(this.#bus, this.ref, 'suspend', { ...request }, options);
  }

  /** Gives a session a signal: it wakes one that waits for it, and is kept for one that has yet to wait. */
  signal(name: string, data?: Json, options: SendOptions = {}): Promise<SentCommand> {
    return sendCommand(this.#bus, this.ref, 'signal', { name, ...(data === undefined ? {} : { data }) }, options);
  }

  /** Lets a suspended session go on. */
  resume(options: SendOptions = {}): Promise<SentCommand> {
    return sendCommand(this.#bus, this.ref, 'resume', {}, options);
  }

  /**
   * The session's records, from `from` on and then live: no gap, no repeat. Ends when the signal aborts or the loop is
   * left; a session that does not exist yet is waited for.
   */
  async *events({ from, signal }: ReadFrom = {}): AsyncGenerator<JournalRecord, void, undefined> {
    for await (const { record } of followJournal(this.#bus, this.ref, from, signal)) yield record;
  }

  /** The records that are stored now, each with its bytes as stored. */
  journal({ from }: Pick<ReadFrom, 'from'> = {}): AsyncGenerator<StoredJournalRecord, void, undefined> {
    return readJournal(this.#bus, this.ref, from);
  }

  /**
   * The lines of an export: the records as stored, and before them what lies apart of them. Without line breaks.
   * @param recordsOnly leaves out what lies apart.
   */
  async *export({ recordsOnly = false } = {}): AsyncGenerator<Uint8Array, void, undefined> {
    const decoder = new RecordDecoder(this.#bus, this.ref.tenant);
    yield* exportLines(this.journal(), async (sha256) => (recordsOnly ? null : decoder.blob(sha256)));
  }

  /** Pieces of running answers as they stream. Ephemeral: the journal holds the whole. */
  deltas(signal?: AbortSignal): AsyncGenerator<Delta, void, undefined> {
    return deltas(this.#bus.nc, this.ref, signal);
  }

  /** Records and deltas in one sequence, for an event translator. */
  watch({ from, signal }: ReadFrom = {}): AsyncGenerator<WatchItem, void, undefined> {
    return watchSession(this.#bus, this.ref, from, signal);
  }

  /** What became of a command, by the records that are stored now; null where none of them holds it. */
  async receiptOf(commandId: string): Promise<Receipt | null> {
    const fate = new CommandFate(commandId as CommandId);
    let receipt: Receipt | null = null;
    for await (const { record } of readJournal(this.#bus, this.ref)) receipt = fate.add(record);
    return receipt;
  }

  /** The newest record, or null where there is no such session. */
  newest(): Promise<JournalRecord | null> {
    return lastRecord(this.#bus, this.ref);
  }

  /** What the session is doing. Answered by a host. */
  state(timeoutMs?: number): Promise<SessionStatus> {
    return queryState(this.#bus.nc, this.ref, timeoutMs);
  }

  /**
   * Waits for the end of the run, as long as that takes; bound it with a signal.
   * @param after count only ends in this record or later ones: give the `n` of a prompt's receipt. By default the end
   *   of the newest run is taken, also when it lies in the past.
   * @throws the signal's reason.
   */
  async result(options: { readonly after?: number; readonly signal?: AbortSignal } = {}): Promise<RunResult> {
    const after = options.after ?? (await lastRecord(this.#bus, this.ref))?.n ?? 1;
    const results = new ResultCollector();
    for await (const record of this.events({ signal: options.signal })) {
      results.add(record);
      const { newest } = results;
      const settled = record.n >= after && hasEnded(record.state);
      if (settled && newest !== null && (options.after === undefined || newest.n >= options.after)) return newest;
    }
    options.signal?.throwIfAborted();
    throw new Error('the connection was closed before the run ended');
  }
}

// Without a mode the session decides: what preempts is an interrupt, anything else waits for its step.
function when(mode: InjectOptions['mode'], preempt: boolean | undefined): { mode: InjectOptions['mode'] } {
  return { ...(mode === undefined ? {} : { mode }), ...(preempt === true ? { preempt } : {}) } as {
    mode: InjectOptions['mode'];
  };
}

function under(dedupeKey: string | undefined): { dedupe_key?: string } {
  return dedupeKey === undefined ? {} : { dedupe_key: dedupeKey };
}
