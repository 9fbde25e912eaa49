/**
 * Intake: commands and timers of the session's inbox become inputs of the machine, in the order of the stream (RUNNER-7,
 * session-runner.ts).
 *
 * These commands leave no record: beyond a quota (`#quotaProblem`) or the share of rejections (`#rejectBeyondShare`;
 * RUNNER-11, session-runner.ts); rejected ones to an unknown session (`#rejectUnknown`); repeated starts
 * (`#compareStart`); those that the machine ignores (`JournalWriter.apply`); and those to a session that is deleted or
 * cannot be read (`InboxReader.refuse`). Timers that cannot be read, or that the session no longer waits for, leave
 * none either (`#takeTimer`). A deletion leaves a tombstone.
 */
import type { StoredCommand } from '@coxswain/ports';
import {
  type CommandInput,
  type CommandProblem,
  type ErrorCode,
  type EventOf,
  type Input,
  isCrewVerb,
  type QuotaName,
  type SessionRef,
  type TimerInput,
  toWellFormed,
} from '@coxswain/protocol';
import { awaitedTimers, decide, isEnded, recordsRejection } from '@coxswain/turn';
import type { QuotaProblem } from '../hosting/command-quotas.ts';
import { isRecordTooLarge } from '../journal/append-record.ts';
import type { SessionCopy } from '../journal/copy-session.ts';
import { type LiveSession as Live, transcriptOf } from '../journal/load-session.ts';
import { asksForFork } from '../journal/plan-fork.ts';
import { checkCommand, checkStart, inputOfCommand, inputOfTimer } from './check-command.ts';
import type { InboxReader } from './inbox-reader.ts';
import type { JournalWriter } from './journal-writer.ts';
import { namesMessage, repeatedStart } from './repeated-start.ts';
import { ResultStore } from './result-store.ts';
import type { InboxPlace, RunnerPorts } from './runner-ports.ts';
import { type SessionExit, SessionLeft } from './session-exit.ts';
import { JOURNAL_CODES, type SessionLifecycle } from './session-lifecycle.ts';
import { areSpent } from './spent-timers.ts';
import type { UnrecordedReceipts } from './unrecorded-receipts.ts';

/** The parts of a runner that its intake uses. */
export interface IntakeParts {
  readonly exit: SessionExit;
  readonly writer: JournalWriter;
  readonly lifecycle: SessionLifecycle;
  readonly inbox: InboxReader;
  readonly copy: SessionCopy;
  readonly unrecorded: UnrecordedReceipts;
}

/** The intake of one session. */
export class SessionIntake {
  readonly #ports: RunnerPorts;
  readonly #ref: SessionRef;
  readonly #exit: SessionExit;
  readonly #writer: JournalWriter;
  readonly #lifecycle: SessionLifecycle;
  readonly #inbox: InboxReader;
  readonly #copy: SessionCopy;
  readonly #unrecorded: UnrecordedReceipts;
  readonly #results: ResultStore;
  /** Whether the log has a warning that rejections leave no record. */
  #warnedOfRejections = false;

  constructor(ports: RunnerPorts, ref: SessionRef, parts: IntakeParts) {
    this.#ports = ports;
    this.#ref = ref;
    this.#exit = parts.exit;
    this.#writer = parts.writer;
    this.#lifecycle = parts.lifecycle;
    this.#inbox = parts.inbox;
    this.#copy = parts.copy;
    this.#unrecorded = parts.unrecorded;
    this.#results = new ResultStore(ports.blobs, ports.clock, ports.log);
  }

  /**
   * Drops notifications of due timers that the session no longer waits for, if there are no others: such timers alone
   * do not cause a load of the session.
   * @returns whether nothing is left to read; false also if there was no notification, or if the store cannot be read.
   */
  async dropSpentTimers(): Promise<boolean> {
    try {
      return await this.#inbox.dropSpentTimers((timers) => areSpent(this.#ports, this.#ref, timers));
    } catch {
      // The load that follows fails the same way, and reports it.
      return false;
    }
  }

  /**
   * Takes the commands of all deliveries so far. If the session turns out to be deleted, rejects those that are left.
   * @throws {SessionLeft}
   */
  async read(session: Live): Promise<void> {
    try {
      this.#unrecorded.send(await this.#inbox.read(session.cursor, (command, cursor) => this.#take(command, cursor)));
    } finally {
      const { tombstone } = this.#exit;
      // These commands follow the deletion in the stream, or their append found the tombstone.
      if (tombstone !== null) await this.#inbox.refuse(this.#ports.publisher, 'session_deleted', tombstone);
    }
  }

  /**
   * Applies an input as it is: without the checks of `#judge`, and without `takeOwnership` before it. It can be an input
   * of a copy, the input `owned` of a copy's first owner, or a rejected fork. It can also be a command whose record was too
   * large, or for which the machine threw: with a problem, and without its body (`#take`).
   * @returns false where it cannot be judged now.
   * @throws as {@link JournalWriter.apply}.
   */
  async apply(session: Live, input: Input, place?: InboxPlace, copiedAt?: string): Promise<boolean> {
    const rejected = await this.#writer.apply(session, input, place, copiedAt);
    return rejected === null || this.#rejectUnknown(session, input as CommandInput, rejected, place);
  }

  /** @returns false where the command cannot be judged now. @throws {SessionLeft} */
  async #take(command: StoredCommand, cursor: InboxPlace['cursor']): Promise<boolean> {
    const { session } = this.#writer;
    if (!session) throw new SessionLeft();
    this.#exit.throwIfLeft();
    if (command.isTimer) return this.#takeTimer(session, command, { cursor, command: null });
    const place = { cursor, command };
    const input = inputOfCommand(command, this.#ports.inbox.incarnation, this.#ports);
    try {
      return await this.#judge(session, input, place);
    } catch (error) {
      // The sender is at fault for a command that is too large for a record; this host for one that breaks the machine.
      const isTooLarge = isRecordTooLarge(error);
      if (isTooLarge) await this.#lifecycle.reloadOrLeave();
      else await this.#lifecycle.failRunAfterError(error as Error);
      const reloaded = this.#writer.session;
      if (!reloaded) throw new SessionLeft();
      this.#exit.throwIfLeft();
      // Both are rejected and so settled: otherwise the store would deliver the command again and again.
      const problem: CommandProblem = isTooLarge
        ? {
            code: 'body_too_large',
            message: `the record that this body causes is too large: ${error.message}`,
            field: 'body',
          }
        : { code: 'session_failed', message: (error as Error).message };
      return await this.apply(reloaded, { ...input, body: {}, problem }, place);
    }
  }

  /**
   * A timer whose id the session no longer waits for writes no record and does not claim the session. Only the id is
   * compared here. The machine ignores a timer with another due time (`decideTimer` in libs/turn), after the claim. A
   * timer that breaks the machine has no sender to answer: the run ends as failed.
   * @returns false where it cannot be judged now.
   * @throws {SessionLeft}
   */
  async #takeTimer(session: Live, command: StoredCommand, place: InboxPlace): Promise<boolean> {
    const input = inputOfTimer(command);
    if (input === null) return true;
    const isWanted = awaitedTimers(session.actor.state).some(({ id }) => id === input.effect_id);
    if (!isWanted) return this.#lifecycle.confirmNewest(session);
    try {
      return await this.#judge(session, input, place);
    } catch (error) {
      await this.#lifecycle.failRunAfterError(error as Error);
      this.#exit.throwIfLeft();
      return true;
    }
  }

  /** Judges a command or timer by the newest state. @returns false where that is not possible now. @throws {SessionLeft} */
  async #judge(session: Live, given: CommandInput | TimerInput, place: InboxPlace | undefined): Promise<boolean> {
    let input = given;
    // The journal may have been read again after the inbox was, and hold this command by now.
    if (place && place.cursor.seq <= this.#inbox.position(session.cursor)) return true;
    if (input.type === 'command' && place) {
      const problem = this.#quotaProblem(session, input, place);
      if (problem) return this.#rejectUnrecorded(session, place, input, quotaRejection(input, problem), problem.quota);
      const compared = session.n > 0 && namesMessage(input) ? await this.#compareStart(session, input) : input;
      if (typeof compared === 'boolean') return compared;
      input = compared;
      const judged = await this.#rejectBeyondShare(session, place, input);
      if (judged !== null) return judged;
    }
    if (session.n === 0 && asksForFork(input)) return this.#copy.fork(session, input, place);
    await this.#lifecycle.takeOwnership(session);
    const owned = this.#writer.session ?? session;
    const checked = input.type === 'command' ? await this.#check(owned, input) : input;
    if (checked === null) return false;
    const rejected = await this.#writer.apply(owned, checked, place);
    return rejected === null || this.#rejectUnknown(owned, checked as CommandInput, rejected, place);
  }

  /**
   * Answers a rejected command to an unknown session. The rejection leaves no record, so no fence checks whether the
   * session is still unknown: another host may have started it. The journal is read once more, which also discards the
   * machine, whose state has changed by the rejection. If the store may hold a first record of this host, that record
   * is appended again before, and its fence decides.
   * @returns false where the command cannot be judged now.
   * @throws {SessionLeft}
   */
  async #rejectUnknown(
    unknown: Live,
    input: CommandInput,
    rejected: EventOf<'command_rejected'>,
    place: InboxPlace | undefined,
  ): Promise<boolean> {
    await this.#writer.appendFirstAgain(unknown);
    const session = await this.#lifecycle.reloadFromJournal();
    if (session.n > 0) {
      // The session may be a copy by now that has no owner yet.
      await this.#copy.complete(session);
      return this.#judge(this.#writer.session ?? session, input, place);
    }
    session.receipts.rejectedUnrecorded(input, rejected);
    return true;
  }

  /**
   * Compares a start that names a message id with the start of the session. A repetition leaves no record, and gets the
   * receipt of the first start.
   * @returns the command where the machine decides it, with a problem for a different start under the same message id.
   *   Otherwise whether the command could be judged.
   */
  async #compareStart(session: Live, input: CommandInput): Promise<CommandInput | boolean> {
    // Another host may have deleted the session meanwhile.
    if (!(await this.#lifecycle.confirmNewest(session))) return false;
    try {
      const repeated = await repeatedStart(this.#ports, this.#ref, input);
      if (repeated === null) return input;
      if ('problem' in repeated) return { ...input, body: {}, problem: repeated.problem };
      session.receipts.repeatedStart(input, repeated.first);
      return true;
    } catch (error) {
      const { code, message } = error as Error & { readonly code?: ErrorCode };
      // A start in a damaged journal can never be compared: the machine decides by its state.
      if (code !== undefined && JOURNAL_CODES.has(code)) return input;
      this.#ports.log.warn({ session_id: this.#ref.sessionId, error: message }, 'the journal cannot be read now');
      return false;
    }
  }

  #quotaProblem(
    { n, actor: machine }: Live,
    { verb: sent, body, receipt_to, actor }: CommandInput,
    { command: stored }: InboxPlace,
  ): QuotaProblem | null {
    // While a run is active, a command with `if_running` is queued like a steer.
    const verb = body.if_running !== undefined && !isEnded(machine.state) ? 'steer' : sent;
    const bytes = stored?.payload.length ?? 0;
    const command = { ref: this.#ref, verb, bytes, receiptTo: receipt_to, actor: actor?.name, isNew: n === 0 };
    return this.#ports.quotas?.take(command) ?? null;
  }

  /**
   * Rejects a command without a record where rejections have used their share of the newest commands (RUNNER-11,
   * session-runner.ts): `recordsRejection` (libs/turn, command-memory.ts).
   * @returns null where this rule does not apply: the caller judges the command. Otherwise whether it could be judged.
   */
  async #rejectBeyondShare(session: Live, place: InboxPlace, input: CommandInput): Promise<boolean | null> {
    const { state } = session.actor;
    // Exempt are sessions without records (`#rejectUnknown` answers), and the commands that hosts send for other sessions.
    if (session.n === 0 || isCrewVerb(input.verb) || recordsRejection(state.context)) return null;
    const given = await this.#check(session, input);
    if (given === null) return false;
    const checked = toWellFormed(given);
    const decision = decide(state, checked, this.#writer.nowMs(checked));
    if (decision.kind !== 'rejected') return null;
    // A command that has its problem before the machine decides is invalid in every state. Any other may be valid in a
    // state that another host has made.
    if (!input.problem && !(await this.#lifecycle.confirmNewest(session))) return false;
    return this.#rejectUnrecorded(session, place, checked, decision.events[0], 'rejections');
  }

  /** Rejects a command without a record. Its receipt waits until the command is settled. @returns true: it was judged. */
  #rejectUnrecorded(
    session: Live,
    { cursor }: InboxPlace,
    input: CommandInput,
    rejected: EventOf<'command_rejected'>,
    reason: QuotaName | 'rejections',
  ): true {
    this.#unrecorded.defer(cursor.seq, () => session.receipts.rejectedUnrecorded(input, rejected));
    this.#ports.telemetry?.meters.add('coxswain_rejections_unrecorded_total', { reason });
    const { command_id, verb, code } = rejected;
    const level = this.#warnedOfRejections ? 'debug' : 'warn';
    this.#warnedOfRejections = true;
    this.#ports.log[level](
      { tenant: this.#ref.tenant, session_id: this.#ref.sessionId, command_id, verb, code, reason },
      'a command was rejected without a record',
    );
    return true;
  }

  /** @returns null where the command cannot be checked now. */
  async #check(session: Live, input: CommandInput): Promise<CommandInput | null> {
    if (session.n === 0) return checkStart(this.#ports, this.#ref, input);
    const known = { actor: session.actor, transcript: transcriptOf(session) };
    return checkCommand(known, input, this.#results);
  }
}

function quotaRejection(
  { command_id, verb }: CommandInput,
  { quota, message, retryAfterMs }: QuotaProblem,
): EventOf<'command_rejected'> {
  const detail = { quota, ...(retryAfterMs === undefined ? {} : { retry_after_ms: retryAfterMs }) };
  return { type: 'command_rejected', command_id, verb, code: 'quota_exceeded', message, detail };
}
