import {
  type CallEnding,
  cancelledCall,
  cutText,
  isQuestion,
  LATER,
  type ReceivedQuestion,
  type RunnableCall,
  SERVED_BOUNDS,
  type ServedHookAnswer,
  type SessionRef,
  sessionRef,
  type WorkObserver,
  type WorkOrder,
  type WorkRequest,
} from '@coxswain/protocol';
import { SYSTEM_CLOCK, type WorkClock } from './clock.ts';
import { type LedgerEntry, type ReportBody, type SendReport, WorkLedger } from './ledger.ts';

/**
 * Answers a question to a hook, or about the approval of a call. Contract: never rejects.
 * @returns null if the host no longer waits.
 */
export type AnswerQuestion = (question: ReceivedQuestion) => Promise<ServedHookAnswer | null>;

/** Finds the work of a request: a call or a step to run, or the answer to a question. Null if it is not served. */
export type FindWork = (
  request: Pick<WorkRequest, 'tool' | 'call_id' | 'approval' | 'hook'>,
) => RunnableCall | AnswerQuestion | null;

/** A call of a `longRunning` tool that is answered later, identified by members of its function's context. */
export interface AcceptedCall {
  readonly idempotencyKey: string;
  readonly toolCallId: string;
  readonly epoch: number;
}

/** The dependencies of {@link RunningWork}. */
export interface RunningWorkPorts {
  readonly tenant: string;
  /** Default: the platform's. */
  readonly clock?: WorkClock | undefined;
  /** Notified of each call and step that runs. Hooks notify their own observer. */
  readonly observer?: WorkObserver | undefined;
  /**
   * Sends the outcome of a `long_running` call. Does not reject.
   * @returns whether it is durable; false: the attempts ended. Absent where no tool is `long_running`.
   */
  sendOutcome?(ref: SessionRef, call: AcceptedCall, ending: CallEnding): Promise<boolean>;
}

/** A request that waits for the order `start`. */
interface HeldRequest {
  readonly request: WorkRequest;
  /** The number of the sending. */
  readonly hold: number;
  readonly traceparent: string | undefined;
  readonly untilMs: number;
}

/**
 * How long an instance may work on a question before it reports that it has the question, milliseconds. An answer within
 * this time needs no other report. The host waits for one at least 30 times as long.
 */
const REPORT_QUESTION_AFTER_MS = 20;

/**
 * The requests of one service in this process: takes requests and orders, runs the work, and reports its end. It is
 * independent of NATS.
 */
export class RunningWork {
  readonly #ports: RunningWorkPorts;
  readonly #clock: WorkClock;
  readonly #ledger: WorkLedger;
  readonly #open = new Set<Promise<void>>();
  /** In the order of arrival; all expire after the same time. */
  readonly #held = new Map<string, HeldRequest>();
  /** The number of running requests of each kind. */
  readonly #runs = { questions: 0, calls: 0, steps: 0 };
  readonly #find: FindWork;
  #draining = false;

  constructor(find: FindWork, ports: RunningWorkPorts, ledger?: WorkLedger) {
    const { clock = SYSTEM_CLOCK } = ports;
    this.#find = find;
    this.#ports = ports;
    this.#clock = clock;
    this.#ledger = ledger ?? new WorkLedger(() => clock.nowMs());
  }

  /** The number of running requests. */
  get running(): number {
    return this.#ledger.running.length;
  }

  /**
   * Takes a request: runs it, holds it until the order `start`, or reports its state.
   * @param traceparent The parent span, in a traced session.
   */
  take(request: WorkRequest, send: SendReport, traceparent?: string): void {
    const { key, epoch = 0, hold } = request;
    this.#dropExpired();
    const refusal = this.#refusal(request);
    if (refusal) {
      send(refusal);
      return;
    }
    const known = this.#ledger.find(key);
    if (known) {
      this.#attach(known, epoch, send);
      return;
    }
    if (hold === undefined) {
      this.#start(request, epoch, send, traceparent);
      return;
    }
    this.#held.delete(key);
    const untilMs = this.#clock.nowMs() + SERVED_BOUNDS.heldMaxMs;
    this.#held.set(key, { request, hold, traceparent, untilMs });
    send({ type: 'ready', hold });
  }

  /** Takes an order about a request. */
  order(order: WorkOrder, send: SendReport): void {
    const { key, session_id, epoch = 0 } = order;
    const known = this.#ledger.find(key);
    this.#dropExpired();
    const held = this.#held.get(key);
    if (!this.#ledger.admit(session_id, order.epoch)) {
      send(stale(session_id));
    } else if (held && order.want === 'start') {
      // A late order for an earlier sending: the host may have chosen another instance since.
      if (held.hold !== order.hold) return;
      this.#held.delete(key);
      if (this.#draining) send(refused('this instance is stopping and accepts no more calls'));
      else this.#start(held.request, epoch, send, held.traceparent);
    } else if (held && order.want === 'attach') {
      send({ type: 'ready', hold: held.hold });
    } else if (held && order.want === 'probe') {
      // The host decides again where it runs. A later order `start` finds nothing here.
      this.#held.delete(key);
      send({ type: 'unknown' });
    } else if (order.want === 'abort') {
      this.#held.delete(key);
      if (known) known.stop.abort(new Error(order.reason));
      else if (order.epoch !== undefined) this.#forbid(key, epoch, order.reason);
      send({ type: known && !known.ending ? 'running' : 'unknown' });
    } else if (!known && this.#ledger.hasDropped(key)) {
      // It ran: "unknown" would let the host send a call again that must not run twice.
      send({ type: 'given_up', message: 'its outcome is no longer kept' });
    } else if (!known || known.neverRan) {
      send({ type: 'unknown' });
    } else if (order.want !== 'probe' || known.ending || known.accepted !== null) {
      this.#attach(known, epoch, send);
    } else {
      send({ type: 'running' });
    }
  }

  /**
   * Takes no more calls and steps. Questions to hooks are still answered. Resolves when the running requests have ended
   * and their outcomes were sent.
   */
  async drain(): Promise<void> {
    this.#draining = true;
    while (this.#open.size > 0) await Promise.all([...this.#open]);
  }

  /**
   * Aborts every running request, because the process stops. No session has cancelled them, so their outcomes are
   * unknown.
   */
  abortAll(reason: string): void {
    for (const entry of this.#ledger.running) {
      entry.givenUp ??= reason;
      entry.stop.abort(new Error(reason));
    }
  }

  #refusal(request: WorkRequest): ReportBody | null {
    const { key, session_id, epoch, tool, hook } = request;
    if (!this.#ledger.admit(session_id, epoch)) return stale(session_id);
    if (this.#ledger.find(key)) return null;
    if (this.#draining && !isQuestion(request)) return refused('this instance is stopping and accepts no more calls');
    if (!this.#find(request)) {
      const message = `this instance does not serve ${hook ?? tool}`;
      // A hook that was removed has an answer. Without one, the host would ask again until the hook's time limit.
      if (hook !== undefined)
        return { type: 'answered', answer: { status: 'failed', code: 'hook_unavailable', message } };
      return refused(message);
    }
    const kind = kindOf(request);
    const taken = this.#runs[kind] + (kind === 'calls' ? this.#held.size : 0);
    if (taken < SERVED_BOUNDS.requestsAtOnceMax || this.#held.has(key)) return null;
    return refused(`this instance has reached its limit of concurrent ${kind}`);
  }

  #dropExpired(): void {
    const nowMs = this.#clock.nowMs();
    for (const [key, { untilMs }] of this.#held) {
      if (untilMs > nowMs) return;
      this.#held.delete(key);
    }
  }

  /** Records a call as ended: a request that arrives after its abort must not start it. */
  #forbid(key: string, epoch: number, reason: string): void {
    const entry = this.#ledger.start(key, epoch, () => undefined);
    entry.neverRan = true;
    this.#ledger.end(entry, cancelledCall(`cancelled before the tool ran: ${reason}`));
  }

  #attach(entry: LedgerEntry, epoch: number, send: SendReport): void {
    entry.epoch = Math.max(entry.epoch, epoch);
    entry.send = send;
    // An outcome that is sent as a command is not reported here, too: the session accepts one and rejects the other.
    if (entry.accepted !== null) send(acceptedWith(entry.accepted, epoch));
    else if (entry.ending) reportEnd(entry);
    else send({ type: 'running' });
  }

  #start(request: WorkRequest, epoch: number, send: SendReport, traceparent: string | undefined): void {
    const found = this.#find(request);
    if (!found) return;
    const entry = this.#ledger.start(request.key, epoch, send);
    const ref = sessionRef(request.session_id, this.#ports.tenant);
    if (typeof found !== 'function') send({ type: 'running' });
    const kind = kindOf(request);
    this.#runs[kind]++;
    const work = (
      typeof found === 'function'
        ? this.#runQuestion(entry, found, request, ref, send, traceparent)
        : this.#runCall(entry, found, request, ref, traceparent)
    ).finally(() => {
      this.#runs[kind]--;
      this.#open.delete(work);
    });
    this.#open.add(work);
  }

  async #runQuestion(
    entry: LedgerEntry,
    answer: AnswerQuestion,
    { hook = '', args }: WorkRequest,
    ref: SessionRef,
    send: SendReport,
    traceparent: string | undefined,
  ): Promise<void> {
    let cancel: () => void = () => undefined;
    // Most handlers answer immediately and need no timer.
    const starting = setImmediate(() => {
      cancel = this.#clock.after(REPORT_QUESTION_AFTER_MS, () => send({ type: 'running' }));
    });
    const effectId = entry.key.slice(`${ref.tenant}.${ref.sessionId}.`.length, -hook.length - 1);
    let answered: ServedHookAnswer | null;
    try {
      answered = await answer({
        ref,
        effectId,
        hook,
        args,
        signal: entry.stop.signal,
        traceparent,
        onFeedback: (text) => sendFeedback(entry, text),
      });
    } catch (error) {
      // A broken contract must not cost a slot, and the host would wait for its time limit.
      const message = cutText(`the question failed: ${(error as Error)?.message ?? error}`, 2_048);
      answered = { status: 'failed', code: 'hook_unavailable', message };
    } finally {
      clearImmediate(starting);
      cancel();
      this.#ledger.forget(entry);
    }
    if (answered !== null) entry.ending = { answer: answered };
    reportEnd(entry);
  }

  async #runCall(
    entry: LedgerEntry,
    { kind, name, isLongRunning, run }: RunnableCall,
    { call_id = '', args }: WorkRequest,
    ref: SessionRef,
    parent: string | undefined,
  ): Promise<void> {
    const { epoch } = entry;
    const { observer, sendOutcome } = this.#ports;
    const work = observer?.begin({
      kind,
      name,
      tenant: ref.tenant,
      sessionId: ref.sessionId,
      callId: call_id,
      traceparent: parent,
    });
    const ending = await run(args, {
      abortSignal: entry.stop.signal,
      toolCallId: call_id,
      idempotencyKey: entry.key,
      epoch,
      ref,
      traceparent: work?.traceparent ?? parent,
      progress: (text) => entry.send({ type: 'progress', text: cutText(String(text), SERVED_BOUNDS.progressMaxChars) }),
      feedback: (text) => sendFeedback(entry, text),
    });
    work?.end(ending === LATER ? { status: 'ok' } : { status: ending.status, code: codeOf(ending) });
    if (ending === LATER) {
      // It can still be aborted, as long as the ledger keeps it.
      this.#ledger.end(entry, null);
      this.#accept(entry, epoch);
      return;
    }
    // A function that ended despite the abort has an outcome.
    if (ending.status !== 'cancelled') entry.givenUp = null;
    if (sendOutcome && isLongRunning && entry.givenUp === null) {
      // Until it is stored, this process can lose it: hosts must still see the call as running here.
      const sent = entry.epoch;
      const call = { idempotencyKey: entry.key, toolCallId: call_id, epoch: sent };
      const isDurable = await sendOutcome(ref, call, ending);
      this.#ledger.end(entry, ending);
      if (isDurable) return this.#accept(entry, sent);
    } else this.#ledger.end(entry, ending);
    reportEnd(entry);
  }

  /** From here on the call does not depend on this process. */
  #accept(entry: LedgerEntry, epoch: number): void {
    entry.accepted = epoch;
    entry.send(acceptedWith(epoch, entry.epoch));
  }
}

/** The error code of a failed call; undefined for any other ending. */
function codeOf({ status, result }: CallEnding): string | undefined {
  const code = status === 'error' ? result.detail?.code : undefined;
  return typeof code === 'string' ? code : undefined;
}

/** Each kind has its own limit: the steps of a persona that wait must not keep its hooks from answering. */
function kindOf(request: WorkRequest): 'questions' | 'calls' | 'steps' {
  if (isQuestion(request)) return 'questions';
  return request.hold === undefined ? 'steps' : 'calls';
}

function acceptedWith(epoch: number, asked: number): ReportBody {
  return { type: 'accepted', ...(epoch < asked ? { epoch } : {}) };
}

/** Reports the end of a request, if it has one. */
function reportEnd({ send, ending, givenUp }: LedgerEntry): void {
  if (givenUp !== null) send({ type: 'given_up', message: cutText(givenUp, 2_048) });
  else if (ending && 'answer' in ending) send({ type: 'answered', answer: ending.answer });
  else if (ending) send({ type: 'ended', ...ending });
}

function sendFeedback({ send }: LedgerEntry, text: string): void {
  send({ type: 'feedback', text: cutText(String(text), SERVED_BOUNDS.feedbackMaxChars) });
}

function refused(message: string): ReportBody {
  return { type: 'refused', code: 'tool_unavailable', message };
}

function stale(sessionId: string): ReportBody {
  return { type: 'refused', code: 'stale_epoch', message: `the session ${sessionId} has a newer owner` };
}
