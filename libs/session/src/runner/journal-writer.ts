/**
 * One step: the machine turns an input into events, they become a record, the record is appended, and its effects start.
 * This part of a runner holds the loaded session, and appends to its journal (RUNNER-1 to RUNNER-4, session-runner.ts).
 * Events are not published: watchers read the stored records. A session publishes receipts (receipts.ts) and deltas:
 * `streamAnswer` (stream-answer.ts), `SessionWorker` (progress of tools), `publishProgress` (crew-effects.ts).
 */
import type { SessionSummary } from '@coxswain/ports';
import {
  type CommandInput,
  type EventOf,
  type Input,
  type JournalRecord,
  type SessionRef,
  type SessionStatus,
  toWellFormed,
} from '@coxswain/protocol';
import { isEnded, queuedBytes, type SessionState } from '@coxswain/turn';
import { publishProgress } from '../effects/crew-effects.ts';
import type { SessionView } from '../effects/session-worker.ts';
import { APPEND_BOUNDS, buildRecord, type SealedRecord, sealRecord, storeRecord } from '../journal/append-record.ts';
import { unfinishedCopyAfter } from '../journal/copy-state.ts';
import { type LiveSession as Live, type LoadedSession, snapshotBytes } from '../journal/load-session.ts';
import { tombstoneOf } from '../journal/tombstone-of.ts';
import { SessionObserver } from '../trace/observe-session.ts';
import type { InboxPlace, RunnerOptions, RunnerPorts } from './runner-ports.ts';
import { type SessionExit, SessionLeft } from './session-exit.ts';
import { statusOf, summaryOf } from './session-status.ts';
import type { SessionWork } from './session-work.ts';
import type { UnrecordedReceipts } from './unrecorded-receipts.ts';

/** The writer of one session's journal. */
export class JournalWriter {
  readonly #ports: RunnerPorts;
  readonly #ref: SessionRef;
  readonly #options: RunnerOptions;
  readonly #exit: SessionExit;
  readonly #work: SessionWork;
  readonly #unrecorded: UnrecordedReceipts;
  readonly #observer: SessionObserver;
  #session: Live | null = null;
  /** The state after the newest acknowledged record. It outlasts `#session` while the journal is read again. */
  #committedState: SessionState | null = null;
  /** The transcript up to that record, if it is loaded. It outlasts `#session`, too: effects run on meanwhile. */
  #transcript: Live['transcript'] = null;
  /** The status of that state, made at the first question. */
  #status: SessionStatus | null = null;
  /** Whether an append has no acknowledgement yet. Other processes may read its record already. */
  #isAppending = false;
  /** Records since the last attempt to store a snapshot. */
  #sinceSnapshot = 0;
  /** Whether that attempt has failed. */
  #hasFailedSnapshot = false;
  /** The attempt in progress; null without one. */
  #storing: Promise<void> | null = null;
  #hasWritten = false;
  #unansweredFirst: SealedRecord | null;
  /** Bytes of queued injections, as the host's quotas have them. */
  #pendingBytes = 0;

  /** @param unansweredFirst the session's first record by an earlier runner, if its append had no answer. */
  constructor(
    ports: RunnerPorts,
    ref: SessionRef,
    options: RunnerOptions,
    parts: { readonly exit: SessionExit; readonly work: SessionWork; readonly unrecorded: UnrecordedReceipts },
    unansweredFirst: SealedRecord | null,
  ) {
    this.#ports = ports;
    this.#ref = ref;
    this.#options = options;
    this.#exit = parts.exit;
    this.#work = parts.work;
    this.#unrecorded = parts.unrecorded;
    this.#observer = new SessionObserver(ports, ref, options.traces);
    this.#unansweredFirst = unansweredFirst;
  }

  /**
   * The session, or null while it is not loaded. Its number, fence and hash are those of the newest acknowledged record. Its
   * machine can be ahead of them, for example during an append.
   */
  get session(): Live | null {
    return this.#session;
  }

  /** The state after the newest acknowledged record; null before the first one. */
  get committedState(): SessionState | null {
    return this.#committedState;
  }

  /** The session's first record while its append has no answer, or none came: the store may hold it. */
  get unansweredFirst(): SealedRecord | null {
    return this.#unansweredFirst;
  }

  /** Whether this runner has appended a record to the session while it was loaded with its transcript. */
  get hasWritten(): boolean {
    return this.#hasWritten;
  }

  /** Whether the newest record names this host and its generation. If not, the open effects are another owner's. */
  get isOwner(): boolean {
    return this.#session?.writer === this.#options.host;
  }

  /** For meters; null before the first acknowledged record. It outlasts {@link discard}. */
  get summary(): SessionSummary | null {
    return this.#committedState && summaryOf(this.#committedState);
  }

  /**
   * The status after the newest acknowledged record (RUNNER-3, session-runner.ts). Null where only the journal knows
   * the newest record: while the session is not loaded, while an append is in flight, and where another owner wrote
   * last (`isOwner`).
   */
  get status(): SessionStatus | null {
    if (!this.#session || !this.#committedState || this.#isAppending || !this.isOwner) return null;
    const { n, at } = this.#session;
    if (this.#status?.n !== n) this.#status = statusOf(this.#committedState, n, at);
    return this.#status;
  }

  /**
   * What an effect sees of the session: the newest acknowledged record (RUNNER-3, session-runner.ts), also during an append
   * and while the journal is read again after {@link discard}.
   * @throws Error if the session was never loaded with its transcript.
   */
  view(): SessionView {
    if (!this.#committedState || !this.#transcript) throw new Error('an effect without a session');
    return { state: this.#committedState, transcript: this.#transcript };
  }

  /** Continues from a loaded session. */
  open({ tail, ...session }: LoadedSession): Live {
    const { state } = session.actor;
    this.#session = session;
    this.#transcript = session.transcript;
    this.#sinceSnapshot = tail;
    this.#hasFailedSnapshot = false;
    this.#work.loaded(state);
    if (session.n > 0) this.#committedState = state;
    this.#countPending(queuedBytes(state.context));
    return session;
  }

  /** Completes a session that was loaded without its transcript. */
  addTranscript(session: Live, transcript: Live['transcript']): void {
    this.#session = { ...session, transcript };
    this.#transcript = transcript;
  }

  /** Discards the machine, whose state may be ahead of the journal. */
  discard(): void {
    this.#session = null;
    this.#isAppending = false;
  }

  /** Reconciles the effects, timers and rules of the session with its newest record. */
  reconcile(): void {
    if (this.#session) this.#work.reconcile(this.#session);
  }

  /**
   * Applies one input and appends its record. An input that the machine ignores leaves no record. For the deletion of the
   * session, a tombstone is appended.
   * @param copiedAt the time of the record that this one copies.
   * @returns null once the step is done. If the machine rejects a command to an unknown session: the rejection. It leaves
   *   no record, and the caller sends it to the sender.
   * @throws {SessionLeft}; RecordTooLargeError; or an error of the machine, if the input breaks it. After the last two,
   *   and after a returned rejection, the machine is ahead of the journal: load the session again.
   */
  async apply(
    session: Live,
    given: Input,
    place?: InboxPlace,
    copiedAt?: string,
  ): Promise<EventOf<'command_rejected'> | null> {
    // All texts of models, tools, hooks and other sessions pass here: they become well-formed. A copied record stays as
    // it is in its origin.
    const input = copiedAt === undefined ? toWellFormed(given) : given;
    const n = session.n + 1;
    const at = copiedAt ?? new Date(this.nowMs(input)).toISOString();
    const { decision, events } = session.actor.step(input, n, Date.parse(at));
    if (decision.kind === 'deletion') {
      await this.#delete(session, input as CommandInput, at);
      return null;
    }
    if (decision.kind === 'ignored') {
      this.#ports.log.debug(
        { session_id: this.#ref.sessionId, input: input.type, reason: decision.reason },
        'input ignored',
      );
      if (input.type === 'command' && decision.previously !== undefined)
        session.receipts.repeated(input, decision.previously);
      return null;
    }
    if (decision.kind === 'rejected' && session.n === 0) return decision.events[0];
    const cursor = place?.cursor;
    const frame = {
      sessionId: this.#ref.sessionId,
      n,
      attempt: this.#options.host,
      prevHash: session.hash,
      at,
      cursor,
    };
    const record = buildRecord(frame, input, events, session.actor.state);
    const sealed = sealRecord(record);
    const fence = await this.#appendOrLeave(session, sealed);
    const { actor, transcript, receipts } = session;
    const after: Live = {
      actor,
      transcript,
      receipts,
      n,
      fence,
      hash: sealed.hash,
      at,
      cursor: cursor ?? session.cursor,
      writer: this.#options.host,
      copy: unfinishedCopyAfter(session.copy, { n, input }, this.#ref.sessionId),
    };
    this.#acknowledged(after, record, place);
    return null;
  }

  /** The time of a record with this input. A timer that has fired proves that the store's clock has reached its time. */
  nowMs(input: Input): number {
    return Math.max(this.#ports.clock.nowMs(), input.type === 'timer' ? input.due_at_ms : 0);
  }

  /**
   * Appends the first record once more if its append had no answer, so that the fence decides whether the session exists.
   * @throws {SessionLeft}
   */
  async appendFirstAgain(session: Live): Promise<void> {
    if (this.#unansweredFirst) await this.#appendOrLeave(session, this.#unansweredFirst);
  }

  /**
   * Stores a snapshot of the loaded session if there are records after the last one, or if that one was not stored. A
   * session that was left gets none: after an append without an answer its machine is ahead of the journal, and the
   * next owner would count a command as accepted that has no record. Contract: does not reject.
   */
  async keepSnapshot(): Promise<void> {
    if (this.#exit.hasLeft) return;
    const isDue = this.#sinceSnapshot > 0 || this.#hasFailedSnapshot;
    if (this.#session && this.#session.n > 0 && isDue) void this.#snapshot(this.#session);
    await this.#storing;
  }

  /**
   * Appends a record by `storeRecord` (append-record.ts), which retries within `appendBounds`, {@link APPEND_BOUNDS} by
   * default. If the record is not stored, the runner leaves the session.
   * @returns the record's fence. @throws {SessionLeft}; RecordTooLargeError, after which the runner stays.
   */
  async #appendOrLeave(session: Live, sealed: SealedRecord): Promise<number> {
    const hasLeft = () => this.#exit.hasLeft;
    const bounds = this.#options.appendBounds ?? APPEND_BOUNDS;
    const { telemetry, clock } = this.#ports;
    if (session.n === 0) this.#unansweredFirst = sealed;
    this.#isAppending = true;
    const startedMs = telemetry ? clock.monotonicMs() : 0;
    const appending = storeRecord(this.#ports, this.#ref, sealed, session.fence, hasLeft, bounds);
    const result = await appending.catch((error) => {
      // The journal does not take a record of this size, so it does not hold it.
      this.#unansweredFirst = null;
      throw error;
    });
    const { status } = result;
    telemetry?.meters.observe(
      'coxswain_append_seconds',
      { outcome: status },
      (clock.monotonicMs() - startedMs) / 1_000,
    );
    if (status === 'foreign' || status === 'deleted')
      telemetry?.meters.add('coxswain_fence_rejections_total', { by: status });
    if (session.n === 0 && status !== 'unavailable') this.#unansweredFirst = null;
    this.#exit.throwIfLeft();
    if (result.status === 'stored') {
      // An append to a session without its transcript does not show that the whole journal can be read.
      if (session.transcript) this.#hasWritten = true;
      return result.fence;
    }
    if (result.status === 'unavailable') this.#exit.leave('journal_unavailable', result.cause);
    else this.#exit.leaveByConflict(session.n + 1, result);
    throw new SessionLeft();
  }

  /** Ends the journal with a tombstone, leaves the session, and sends the receipt. @throws {SessionLeft} */
  async #delete(session: Live, input: CommandInput, at: string): Promise<void> {
    const tombstone = tombstoneOf(this.#ref, session, { at, by: input.actor, reason: input.body.reason });
    await this.#appendOrLeave(session, tombstone.sealed);
    this.#exit.leaveDeleted(tombstone.sentence);
    const within = (await this.#ports.retention?.purgesWithin()) ?? null;
    session.receipts.deleted(input, session.n + 1, within);
  }

  /**
   * Receipts, effects and status follow the acknowledgement, never precede it (RUNNER-3 and RUNNER-4,
   * session-runner.ts). Each `snapshotEvery` records it starts to store a snapshot, once the one before is stored.
   */
  #acknowledged(session: Live, record: JournalRecord, place: InboxPlace | undefined): void {
    const { input, events } = record;
    const { state } = session.actor;
    const before = this.#committedState;
    this.#session = session;
    this.#committedState = state;
    this.#isAppending = false;
    // The cursor of this record has passed all commands that left none.
    if (record.cursor) this.#unrecorded.sendAll();
    if (record.n === 1) this.#ports.quotas?.noteStart(this.#ref.tenant);
    this.#countPending(queuedBytes(state.context));
    for (const event of events) session.transcript?.push(event);
    session.receipts.committed(input, events, session.n, isEnded(state));
    // While records are copied, the open effects are those of the origin.
    if (!session.copy) {
      publishProgress(this.#ports.publisher, this.#ref, state, session.n, events);
      this.reconcile();
    }
    this.#observer.recorded(record, { before, after: state }, place?.command ?? null, session.copy !== null);
    if (++this.#sinceSnapshot >= this.#options.snapshotEvery && !this.#storing) void this.#snapshot(session);
  }

  #countPending(bytes: number): void {
    if (bytes === this.#pendingBytes) return;
    this.#pendingBytes = bytes;
    this.#ports.quotas?.notePending(this.#ref, bytes);
  }

  /** Stores a snapshot of the session as it is now, after the one in progress. Contract: does not reject. */
  #snapshot(session: Live): Promise<void> {
    this.#sinceSnapshot = 0;
    this.#hasFailedSnapshot = false;
    const before = this.#storing;
    const storing = (async () => {
      try {
        // Made before the wait: the runner may leave the session meanwhile.
        const [bytes, summary] = [snapshotBytes(session), summaryOf(session.actor.state)];
        // An older snapshot must not replace a newer one.
        await before;
        await this.#ports.snapshots.put(this.#ref, bytes, summary);
      } catch (error) {
        this.#hasFailedSnapshot = true;
        this.#ports.log.warn(
          { session_id: this.#ref.sessionId, error: (error as Error).message },
          'the snapshot was not stored; the journal is complete',
        );
      }
    })();
    this.#storing = storing;
    void storing.then(() => {
      if (this.#storing === storing) this.#storing = null;
    });
    return storing;
  }
}
