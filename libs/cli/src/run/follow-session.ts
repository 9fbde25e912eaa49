/**
 * Follows a session to the end of its run, shows it, and passes its approvals to a `Participant`, which acts for the
 * person.
 */
import {
  createEventTranslator,
  hasEnded,
  ResultCollector,
  type RunResult,
  type Session,
  topState,
  type UiEvent,
} from '@coxswain/client';
import { ChildApprovals, type OpenApproval, OpenApprovals } from '@coxswain/client/transport';
import { AnswerSoFar, type JournalRecord } from '@coxswain/protocol';
import type { SessionView } from '../terminal/mod.ts';

/** Why the following ended. */
export type FollowEnd =
  | { readonly kind: 'ended'; readonly result: RunResult }
  | { readonly kind: 'approval_needed'; readonly approvals: readonly OpenApproval[] }
  | { readonly kind: 'step_waits'; readonly session: string; readonly step: string }
  | { readonly kind: 'left' };

/** Decides approvals while the session is followed. */
export interface Participant {
  /** Called with the pending approvals whenever they change, unless none is left. `stop` ends the following. */
  approvalsOpen(approvals: readonly OpenApproval[]): 'go_on' | 'stop';
  /**
   * Called when a step has failed and its session is suspended until a person resumes it to retry the step. `stop` ends
   * the following.
   */
  stepWaits?(): 'go_on' | 'stop';
  /** Called with each recorded event. */
  saw?(event: UiEvent): void;
}

/** How to follow a session. */
export interface FollowOptions {
  readonly session: Session;
  readonly view: SessionView;
  readonly participant: Participant;
  /** The first record to show; default 1. */
  readonly from?: number | undefined;
  /**
   * Only the end of a run in this record or a later one counts. Without it, an earlier end counts too, after the newest
   * record was read.
   */
  readonly after?: number | undefined;
  /** Called with the number of each shown record. */
  readonly onShown?: ((n: number) => void) | undefined;
  /** Whether to continue after the end of a run. */
  readonly stay?: boolean | undefined;
  /** Whether to stop after the newest record. */
  readonly untilPresent?: boolean | undefined;
  /** If given, the approvals of child sessions are followed too. */
  readonly sessionOf?: ((id: string) => Session) | undefined;
  /** Resolves when the stored commands of a child session are processed. */
  readonly untilProcessed?: ((id: string) => Promise<void>) | undefined;
  /** Aborts to stop following. */
  readonly signal: AbortSignal;
}

/** Follows the session. @returns why the following ended. @throws the errors of reading. */
export async function followSession(options: FollowOptions): Promise<FollowEnd> {
  const { session, view, participant, sessionOf } = options;
  const stopped = new AbortController();
  const signal = AbortSignal.any([options.signal, stopped.signal]);
  const newest = (await session.newest())?.n ?? 0;
  // Records before this one are history: their approvals may be settled, and their runs have ended.
  const present = options.after ?? newest;
  const translator = createEventTranslator();
  const approvals = new OpenApprovals(session);
  const results = new ResultCollector();
  let announced = '';
  let stoppedFor: readonly OpenApproval[] | null = null;
  let waitingStep: Extract<FollowEnd, { kind: 'step_waits' }> | null = null;
  const escalated = new Map<string, string>();
  const stepWaits = (id: string, { state }: JournalRecord, events: readonly UiEvent[]) => {
    for (const event of events) {
      if (event.type === 'step_ended' && event.errorBoundary === 'escalate') escalated.set(id, event.step);
      else if (event.type === 'session_resumed' || event.type === 'run_ended') escalated.delete(id);
    }
    const step = escalated.get(id);
    if (step === undefined || topState(state) !== 'suspended') return false;
    waitingStep = { kind: 'step_waits', session: id, step };
    return participant.stepWaits?.() === 'stop';
  };
  const announce = () => {
    const open = [...approvals.list, ...(children?.list ?? [])];
    const ids = open.map((approval) => `${approval.session.id}/${approval.callId}`).join(' ');
    if (ids === announced) return;
    announced = ids;
    if (ids === '' || participant.approvalsOpen(open) === 'go_on') return;
    stoppedFor = open;
    stopped.abort();
  };
  const children = sessionOf
    ? new ChildApprovals({
        sessionOf,
        untilProcessed: options.untilProcessed,
        saw: (record, events, child) => {
          view.child(record, events, child);
          announce();
          if (stepWaits(child.id, record, events)) stopped.abort();
        },
        lost: ({ id }, error) => view.notice(`approvals of session ${id} are no longer shown here: ${error.message}`),
      })
    : null;
  let passed = 0;
  // The deltas that arrive while records before `from` are read without being shown.
  const early = new AnswerSoFar();
  let isConnected = true;
  // All records are processed, because approvals and texts may start before `from`. Only later records are shown.
  const from = options.from ?? 1;
  try {
    for await (const { record, delta, connected } of session.records({ deltas: true, signal })) {
      if (delta) {
        if (passed < from - 1) early.take(delta);
        else view.live(translator.delta(delta));
        continue;
      }
      if (!record) {
        if (connected !== isConnected) view.live([{ type: connected ? 'connection_restored' : 'connection_lost' }]);
        isConnected = connected;
        continue;
      }
      const events: UiEvent[] = translator.record(record);
      for (const event of events) {
        approvals.add(event);
        children?.add(event);
        participant.saw?.(event);
      }
      if (record.n >= from) {
        view.record(record, events);
        options.onShown?.(record.n);
      } else view.past?.(record, events);
      if (record.input.type === 'model_outcome') early.end(record.input.effect_id);
      const isPassed = passed < from - 1 && record.n >= from - 1;
      passed = record.n;
      if (isPassed)
        for (const piece of early.after(null, Number.MAX_SAFE_INTEGER).pieces) view.live(translator.delta(piece));
      const result = results.add(record) ?? results.newest;
      const waitsForStep = stepWaits(session.id, record, events);
      if (record.n < present) continue;
      if (hasEnded(record.state) && !options.stay && result !== null && result.n >= (options.after ?? 0)) {
        return { kind: 'ended', result };
      }
      if (waitsForStep && waitingStep) return waitingStep;
      if (options.untilPresent) return { kind: 'left' };
      children?.begin();
      announce();
    }
  } finally {
    children?.close();
  }
  // A pending call takes precedence. After its decision, the person returns and is asked about the step.
  if (stoppedFor === null && stopped.signal.aborted && waitingStep) return waitingStep;
  return stoppedFor === null ? { kind: 'left' } : { kind: 'approval_needed', approvals: stoppedFor };
}
