/**
 * Follows a session to the end of its run, shows it, and sees to its approvals. Everything a person does meanwhile
 * arrives through `Participant`.
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
import { AnswerSoFar, type JournalRecord } from '@coxswain/protocol';
import type { SessionView } from '../terminal/session-view.ts';
import { ChildApprovals } from './child-approvals.ts';
import { type OpenApproval, OpenApprovals } from './open-approvals.ts';

/** How the following ended. */
export type FollowEnd =
  | { readonly kind: 'ended'; readonly result: RunResult }
  | { readonly kind: 'approval_needed'; readonly approvals: readonly OpenApproval[] }
  | { readonly kind: 'step_waits'; readonly session: string; readonly step: string }
  | { readonly kind: 'left' };

/** Who answers approvals while the session is followed. */
export interface Participant {
  /** These wait for a decision; called when one is added or settled. `stop` ends the following. */
  approvalsOpen(approvals: readonly OpenApproval[]): 'go_on' | 'stop';
  /** A step of one of the sessions has failed, and that is suspended until a person has the step begun again. */
  stepWaits?(): 'go_on' | 'stop';
  /** Something was recorded. */
  saw?(event: UiEvent): void;
}

/** How a session is followed. */
export interface FollowOptions {
  readonly session: Session;
  readonly view: SessionView;
  readonly participant: Participant;
  /** The first record to show; default 1. */
  readonly from?: number | undefined;
  /** Only an end in this record or a later one counts; default: the newest record at the beginning. */
  readonly after?: number | undefined;
  /** A record was shown. */
  readonly onShown?: ((n: number) => void) | undefined;
  /** Go on after the end of a run. */
  readonly stay?: boolean | undefined;
  /** Leave after the newest record. */
  readonly untilPresent?: boolean | undefined;
  /** Where it is given, what waits for a person in the sessions below is seen to as well. */
  readonly sessionOf?: ((id: string) => Session) | undefined;
  /** Resolves when the stored commands of a session below are processed. */
  readonly untilTaken?: ((id: string) => Promise<void>) | undefined;
  /** Leaves the session. */
  readonly signal: AbortSignal;
}

/** Follows the session. */
export async function followSession(options: FollowOptions): Promise<FollowEnd> {
  const { session, view, participant, sessionOf } = options;
  const stopped = new AbortController();
  const signal = AbortSignal.any([options.signal, stopped.signal]);
  const newest = (await session.newest())?.n ?? 0;
  // Up to here it is history: approvals in it may be settled, runs in it are over.
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
        untilTaken: options.untilTaken,
        saw: (record, events, child) => {
          view.child(record, events, child);
          announce();
          if (stepWaits(child.id, record, events)) stopped.abort();
        },
        lost: ({ id }, error) => view.notice(`approvals of session ${id} are no longer shown here: ${error.message}`),
      })
    : null;
  let passed = 0;
  // What streams while records before `from` are read, and not shown.
  const early = new AnswerSoFar();
  let isConnected = true;
  // All records are taken in, so that approvals and texts from before `from` are known; only later ones are shown.
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
      const isParked = stepWaits(session.id, record, events);
      if (record.n < present) continue;
      if (hasEnded(record.state) && !options.stay && result !== null && result.n >= (options.after ?? 0)) {
        return { kind: 'ended', result };
      }
      if (isParked && waitingStep) return waitingStep;
      if (options.untilPresent) return { kind: 'left' };
      children?.begin();
      announce();
    }
  } finally {
    children?.close();
  }
  // A call that waits is told first: whoever decides it comes back and hears of the step.
  if (stoppedFor === null && stopped.signal.aborted && waitingStep) return waitingStep;
  return stoppedFor === null ? { kind: 'left' } : { kind: 'approval_needed', approvals: stoppedFor };
}
