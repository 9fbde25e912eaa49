import {
  APPROVAL_CHECK_MS,
  type BegunWork,
  BOUNDS,
  cutText,
  EditedPath,
  type JsonObject,
  problemSentences,
  readStrictly,
  type SessionRef,
  sessionRef,
  TOOL_SERVICE_BOUNDS,
  type ToolApprovalAsked,
  type ToolAsked,
  type ToolOrder,
  ToolResult,
  type ToolSaid,
  type WorkObserver,
} from '@coxswain/protocol';
import { type CheckedTool, LATER } from './define-tool.ts';
import type { AcceptedCall } from './send-call-outcome.ts';
import { type CallEnding, type LedgerEntry, type Tell, ToolLedger } from './tool-ledger.ts';

/** An answer without its common members. */
type Words = ToolSaid extends infer One ? (One extends ToolSaid ? Omit<One, 'v' | 'key' | 'instance'> : never) : never;

/** Answers the sender of a request. Must not throw. */
export type Answer = (said: Words) => void;

/** Finds the tool of a request; null if it is not served. */
export type ToolFinder = (asked: Pick<ToolAsked, 'tool'>) => CheckedTool | null;

/** The dependencies of the calls. */
export interface ToolCallsPorts {
  readonly tenant: string;
  nowMs(): number;
  /** Notified of each call that runs. */
  readonly observer?: WorkObserver | undefined;
  /** The tool or persona of a request, by the request's member `tool`. */
  servedAs?(tool: string | undefined): Pick<BegunWork, 'kind' | 'name'>;
  /**
   * Sends the outcome of a `long_running` call. Does not reject.
   * @returns whether it is durable; false: the attempts ended.
   */
  bring(ref: SessionRef, call: AcceptedCall, ending: CallEnding): Promise<boolean>;
}

/** A call that waits for the order `begin`. */
interface HeldCall {
  readonly asked: ToolAsked;
  /** The number of the request. */
  readonly hold: number;
  readonly traceparent: string | undefined;
  readonly untilMs: number;
}

/**
 * The calls of one served tool: takes requests and orders, runs calls, and reports their outcomes. It is independent of
 * NATS.
 */
export class ToolCalls {
  readonly #ports: ToolCallsPorts;
  readonly #ledger: ToolLedger;
  readonly #atWork = new Set<Promise<void>>();
  /** In the order of arrival; all expire after the same time. */
  readonly #held = new Map<string, HeldCall>();
  #find: ToolFinder;
  #draining = false;
  /** The number of pending approval questions. */
  #approvals = 0;

  /** @param tool The tool, or a function that finds it by the request. */
  constructor(
    tool: CheckedTool | ToolFinder,
    ports: ToolCallsPorts,
    ledger: ToolLedger = new ToolLedger(() => ports.nowMs()),
  ) {
    this.#find = typeof tool === 'function' ? tool : () => tool;
    this.#ports = ports;
    this.#ledger = ledger;
  }

  /** The number of running calls. */
  get running(): number {
    return this.#ledger.running.length;
  }

  /** Runs another version from now on. Running calls are not affected. */
  update(tool: CheckedTool): void {
    this.#find = () => tool;
  }

  /**
   * Takes a call: runs it, holds it until the order `begin`, or answers with its state.
   * @param traceparent The parent span, in a traced session.
   */
  ask(asked: ToolAsked, answer: Answer, traceparent?: string): void {
    const { key, epoch, hold } = asked;
    const refusal = this.#refusal(asked);
    if (refusal) {
      answer(refusal);
      return;
    }
    const known = this.#ledger.find(key);
    if (known) {
      this.#attach(known, epoch, answer);
      return;
    }
    if (hold === undefined) {
      this.#begin(asked, epoch, answer, traceparent);
      return;
    }
    this.#held.delete(key);
    const untilMs = this.#ports.nowMs() + TOOL_SERVICE_BOUNDS.heldMaxMs;
    this.#held.set(key, { asked, hold, traceparent, untilMs });
    answer({ type: 'ready', hold });
  }

  /**
   * Whether a person must approve a call. Runs nothing.
   * Contract: does not reject; true without such a function, if it does not answer in time, or if too many questions
   * are pending.
   */
  async needsApproval({ tool: member, session_id, call_id, args }: ToolApprovalAsked): Promise<boolean> {
    const tool = this.#find({ tool: member });
    if (!tool?.needsApproval || this.#approvals >= TOOL_SERVICE_BOUNDS.callsAtOnceMax) return true;
    this.#approvals++;
    try {
      return await tool.needsApproval(args, {
        toolCallId: call_id,
        ref: sessionRef(session_id, this.#ports.tenant),
        abortSignal: AbortSignal.timeout(APPROVAL_CHECK_MS),
      });
    } finally {
      this.#approvals--;
    }
  }

  #begin(asked: ToolAsked, epoch: number, answer: Answer, traceparent: string | undefined): void {
    const { key, session_id } = asked;
    const tool = this.#find(asked);
    if (!tool) return;
    const entry: LedgerEntry = this.#ledger.begin(
      key,
      epoch,
      tellBy(answer, () => entry),
    );
    answer({ type: 'running' });
    const work = this.#run(entry, tool, asked, sessionRef(session_id, this.#ports.tenant), traceparent).finally(() =>
      this.#atWork.delete(work),
    );
    this.#atWork.add(work);
  }

  /** Takes an order about a call. */
  order(order: ToolOrder, answer: Answer): void {
    const { key, session_id, epoch } = order;
    const known = this.#ledger.find(key);
    const held = this.#heldCall(key);
    if (!this.#ledger.admit(session_id, epoch)) {
      answer(stale(session_id));
    } else if (held && order.want === 'begin') {
      // A late order for an earlier request: the host may have chosen another instance since.
      if (held.hold !== order.hold) return;
      this.#held.delete(key);
      if (this.#draining) answer(refused('this instance is stopping and accepts no more calls'));
      else this.#begin(held.asked, epoch, answer, held.traceparent);
    } else if (held && order.want === 'attach') {
      answer({ type: 'ready', hold: held.hold });
    } else if (held && order.want === 'probe') {
      // The host decides again where it runs. A later order `begin` finds nothing here.
      this.#held.delete(key);
      answer({ type: 'unknown' });
    } else if (order.want === 'abort') {
      this.#held.delete(key);
      if (known) known.stop.abort(new Error(order.reason));
      else this.#forbid(key, epoch, order.reason);
      answer({ type: known && !known.ending ? 'running' : 'unknown' });
    } else if (!known || known.neverRan) {
      answer({ type: 'unknown' });
    } else if (order.want !== 'probe' || known.ending || known.accepted !== null) {
      this.#attach(known, epoch, answer);
    } else {
      answer({ type: 'running' });
    }
  }

  #refusal(asked: ToolAsked): Words | null {
    const { key, session_id, epoch } = asked;
    if (!this.#ledger.admit(session_id, epoch)) return stale(session_id);
    if (this.#ledger.find(key)) return null;
    if (this.#draining) return refused('this instance is stopping and accepts no more calls');
    if (!this.#find(asked)) return refused(`this instance does not serve the tool ${String(asked.tool)}`);
    const { callsAtOnceMax } = TOOL_SERVICE_BOUNDS;
    const isFull = this.#ledger.running.length + this.#heldCount() >= callsAtOnceMax;
    return isFull && !this.#held.has(asked.key)
      ? refused('this instance has reached its limit of concurrent calls')
      : null;
  }

  #heldCall(key: string): HeldCall | undefined {
    this.#heldCount();
    return this.#held.get(key);
  }

  /** Drops expired held calls. @returns the number that remain. */
  #heldCount(): number {
    const nowMs = this.#ports.nowMs();
    for (const [key, { untilMs }] of this.#held) {
      if (untilMs > nowMs) break;
      this.#held.delete(key);
    }
    return this.#held.size;
  }

  /** Takes no more calls. Resolves when the running ones have ended and their outcomes were sent. */
  async drain(): Promise<void> {
    this.#draining = true;
    await Promise.all([...this.#atWork]);
  }

  /**
   * Aborts every running call, because the process stops. No session has cancelled them, so their outcomes are unknown.
   */
  abortAll(reason: string): void {
    for (const entry of this.#ledger.running) {
      entry.givenUp ??= reason;
      entry.stop.abort(new Error(reason));
    }
  }

  /** Records a call as ended: a request that arrives after its abort must not start it. */
  #forbid(key: string, epoch: number, reason: string): void {
    const entry = this.#ledger.begin(key, epoch, () => undefined);
    entry.neverRan = true;
    this.#ledger.end(entry, cancelledBefore(reason));
  }

  #attach(entry: LedgerEntry, epoch: number, answer: Answer): void {
    entry.epoch = Math.max(entry.epoch, epoch);
    entry.tell = tellBy(answer, () => entry);
    // An outcome that is sent as a command is not reported here, too: the session accepts one and rejects the other.
    if (entry.accepted !== null) answer(acceptedWith(entry.accepted, epoch));
    else if (entry.ending) entry.tell({ type: entry.givenUp === null ? 'ended' : 'given_up' });
    else answer({ type: 'running' });
  }

  async #run(entry: LedgerEntry, tool: CheckedTool, asked: ToolAsked, ref: SessionRef, above?: string): Promise<void> {
    const callId = asked.call_id;
    const { epoch } = entry;
    const isLongRunning = tool.announced.traits.long_running;
    const { observer, servedAs } = this.#ports;
    const work = observer?.begin({
      ...(servedAs?.(asked.tool) ?? { kind: 'tool', name: tool.announced.name }),
      tenant: ref.tenant,
      sessionId: ref.sessionId,
      callId,
      traceparent: above,
    });
    const edited = new Set<string>();
    const outcome = await outcomeOf(tool, asked.args, {
      abortSignal: entry.stop.signal,
      toolCallId: callId,
      idempotencyKey: entry.key,
      epoch,
      ref,
      traceparent: work?.traceparent ?? above,
      progress: (text) => entry.tell({ type: 'progress', text: String(text) }),
      feedback: (text) => entry.tell({ type: 'feedback', text: String(text) }),
      edited: (path) => {
        if (edited.size < BOUNDS.editedPathsPerCallMax && EditedPath.safeParse(path).success) edited.add(path);
      },
    });
    const returned = outcome === LATER ? outcome : withEdited(outcome, [...edited]);
    work?.end(returned === LATER ? { status: 'ok' } : { status: returned.status, code: codeOf(returned) });
    if (returned === LATER && isLongRunning) {
      this.#ledger.end(entry, failed('another process delivers the outcome'));
      // It can still be aborted, as long as the ledger keeps it.
      entry.ending = null;
      this.#accept(entry, epoch);
      return;
    }
    const ending = returned === LATER ? failed('it returned LATER and is not declared longRunning') : returned;
    // A function that ended despite the abort has an outcome.
    if (ending.status !== 'cancelled') entry.givenUp = null;
    if (isLongRunning && entry.givenUp === null) {
      // Until it is stored, this process can lose it: hosts must still see the call as running here.
      const brought = entry.epoch;
      const isDurable = await this.#ports.bring(
        ref,
        { idempotencyKey: entry.key, toolCallId: callId, epoch: brought },
        ending,
      );
      this.#ledger.end(entry, ending);
      if (isDurable) return this.#accept(entry, brought);
    } else this.#ledger.end(entry, ending);
    entry.tell({ type: entry.givenUp === null ? 'ended' : 'given_up' });
  }

  /** From here on the call does not depend on this process. */
  #accept(entry: LedgerEntry, epoch: number): void {
    entry.accepted = epoch;
    entry.tell({ type: 'accepted', epoch, asked: entry.epoch });
  }
}

function codeOf({ status, result }: CallEnding): string | undefined {
  const code = status === 'error' ? result.detail?.code : undefined;
  return typeof code === 'string' ? code : undefined;
}

function acceptedWith(epoch: number, asked: number): Words {
  return { type: 'accepted', ...(epoch < asked ? { epoch } : {}) };
}

function tellBy(answer: Answer, entry: () => LedgerEntry): Tell {
  return (what) => {
    if (what.type === 'progress')
      answer({ type: 'progress', text: cutText(what.text, TOOL_SERVICE_BOUNDS.progressMaxChars) });
    else if (what.type === 'feedback')
      answer({ type: 'feedback', text: cutText(what.text, TOOL_SERVICE_BOUNDS.feedbackMaxChars) });
    else if (what.type === 'accepted') answer(acceptedWith(what.epoch, what.asked));
    else if (what.type === 'given_up') answer({ type: 'given_up', message: cutText(entry().givenUp ?? '', 2_048) });
    else {
      const { ending } = entry();
      if (ending) answer({ type: 'ended', ...ending });
    }
  };
}

async function outcomeOf(
  tool: CheckedTool,
  args: JsonObject,
  context: Parameters<CheckedTool['run']>[1],
): Promise<CallEnding | typeof LATER> {
  try {
    const checked = await tool.check(args);
    if ('problem' in checked) return failed(checked.problem, 'invalid_call_arguments');
    if (context.abortSignal.aborted) return cancelledBefore(messageOf(context.abortSignal.reason));
    const returned = await tool.run(checked.args, context);
    return returned === LATER ? LATER : bounded(resultOf(returned));
  } catch (error) {
    if (context.abortSignal.aborted) return { status: 'cancelled', result: textResult('cancelled', true) };
    return failed(messageOf(error));
  }
}

function resultOf(returned: unknown): CallEnding {
  if (typeof returned === 'string') return { status: 'ok', result: textResult(returned, false) };
  const read = readStrictly(ToolResult, returned);
  if (!read.ok) return failed(`the tool returned an invalid result: ${problemSentences(read.problems)[0]}`);
  return { status: read.data.is_error ? 'error' : 'ok', result: read.data };
}

function bounded(ending: CallEnding): CallEnding {
  const bytes = Buffer.byteLength(JSON.stringify(ending));
  const { answerMaxBytes } = TOOL_SERVICE_BOUNDS;
  if (bytes <= answerMaxBytes) return ending;
  const message = `the call ran; its result has ${bytes} bytes as JSON; the limit is ${answerMaxBytes}`;
  return failed(message, 'tool_result_too_large');
}

// An invalid or large list of edited files must not cost the tool's result.
function withEdited(ending: CallEnding, edited: readonly string[]): CallEnding {
  if (edited.length === 0) return ending;
  const all = { ...ending, edited: [...edited] };
  return Buffer.byteLength(JSON.stringify(all)) <= TOOL_SERVICE_BOUNDS.answerMaxBytes ? all : ending;
}

/** The ending of a failed call. */
export function failed(message: string, code = 'tool_failed'): CallEnding {
  return { status: 'error', result: textResult(cutText(message, 16_384), true, { code }) };
}

function cancelledBefore(reason: string): CallEnding {
  return { status: 'cancelled', result: textResult(`cancelled before the tool ran: ${reason}`, true) };
}

function textResult(text: string, is_error: boolean, detail?: JsonObject): ToolResult {
  return { content: [{ type: 'text', text }], is_error, ...(detail ? { detail } : {}) };
}

function refused(message: string): Words {
  return { type: 'refused', code: 'tool_unavailable', message };
}

function stale(sessionId: string): Words {
  return { type: 'refused', code: 'stale_epoch', message: `the session ${sessionId} has a newer owner` };
}

function messageOf(error: unknown): string {
  return String((error as Partial<Error> | null)?.message ?? error);
}
