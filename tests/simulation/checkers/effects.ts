/**
 * What tools really did, held against the journal. RUNNER-4: no run without its durable intent. RUNNER-9: no completed call again,
 * and no answer forgotten that a living host had in its hands.
 * A call of which a crash has left nothing known ends `interrupted`, unless it may run again.
 */
import type { JournalRecord, SessionEvent, ToolResult } from '@coxswain/protocol';
import { UNKNOWN_OUTCOME } from '@coxswain/turn';
import type { History, ToolRun } from '../history.ts';
import { answersAtOnce, isIdempotent, isRemote } from '../sim-tools.ts';
import type { Checker, Placed } from './check.ts';
import { eventsOf, ofType } from './check.ts';
import { InstanceLives } from './instances.ts';

/** See the top of the file. */
export const checkEffects: Checker = (journal, { history }) => {
  const wrong: string[] = [];
  const placed = eventsOf(journal);
  const started = new Map(
    ofType(placed, 'call_started').map(({ n, epoch, event }) => [`${event.effect_id}`, { n, epoch, event }]),
  );
  const lives = new InstanceLives(history);
  const struck = new Map<string, number>();
  for (const { key, moment } of history.of('struck'))
    if (moment !== 'before') struck.set(key, (struck.get(key) ?? 0) + 1);
  const runs = new Map<string, { readonly run: ToolRun; readonly startedMs: number }[]>();
  for (const { run, atMs: startedMs } of history.of('ran')) {
    if (run.session === journal.session) runs.set(run.key, [...(runs.get(run.key) ?? []), { run, startedMs }]);
  }
  const storedAtMs = new Map(
    history.of('stored').flatMap(({ session, n, atMs }) => (session === journal.session ? [[n, atMs] as const] : [])),
  );

  for (const [key, list] of runs) {
    const effectId = key.split('.').at(-1) as string;
    const intent = started.get(effectId);
    if (!intent) {
      wrong.push(`${key} ran, and no record says so`);
      continue;
    }
    for (const { run } of list) {
      if (run.recordsThen < intent.n) wrong.push(`${key} ran before record ${intent.n} was stored`);
      if (JSON.stringify(run.args) !== JSON.stringify(intent.event.args)) wrong.push(`${key} ran with other arguments`);
    }
    if (list.length > 1 && !isIdempotent(intent.event.tool))
      wrong.push(`${key} (${intent.event.tool}) ran ${list.length} times`);
    // Within one epoch a call runs again only where the instance that had it has failed.
    const failed = ({ run, startedMs }: (typeof list)[number]) =>
      isRemote(run.tool) && lives.failed(run.host, startedMs, Number.POSITIVE_INFINITY);
    const epochs = list.filter((one) => !failed(one)).map(({ run }) => run.epoch);
    if (new Set(epochs).size < epochs.length) wrong.push(`${key} ran twice in epoch ${epochs.join(', ')}`);
  }

  const open = new Map<string, string>();
  /** Calls about which a person was asked: who answers for them need not be the host that had them. */
  const asked = new Set<string>();
  /** The records in which calls came back; hooks may look at the result before the call ends, on another host. */
  const returned = new Map<string, number>();
  for (const { n, epoch, event } of placed) {
    if (event.type === 'call_returned') returned.set(event.call_id, n);
    if (event.type === 'call_started') {
      open.set(event.call_id, event.effect_id);
      returned.delete(event.call_id);
    }
    if (event.type === 'approval_requested' && event.requested_by === UNKNOWN_OUTCOME) asked.add(event.call_id);
    if (event.type !== 'call_ended') continue;
    const effectId = open.get(event.call_id);
    open.delete(event.call_id);
    // Hand-offs are a session's own work, and have a checker of theirs.
    if (effectId === undefined || event.tool === 'handoff') continue;
    const intent = started.get(effectId);
    const list = runs.get(`default.${journal.session}.${effectId}`) ?? [];
    const crossed = intent !== undefined && intent.epoch < epoch;
    if (event.status === 'interrupted') {
      const lostWorker = isRemote(event.tool) && lives.anyFailed('tools', storedAtMs.get(n) ?? 0);
      if (!crossed && !lostWorker)
        wrong.push(`record ${n}: ${event.call_id} is interrupted, and its host never changed`);
      // Instances that fail one after another are given up on.
      const failures = struck.get(`default.${journal.session}.${effectId}`) ?? 0;
      // A call that is being stopped is not sent again.
      const isStopped = wasStopped(placed, event.call_id, intent?.n ?? 0, n);
      if (isIdempotent(event.tool) && !isStopped && Math.max(failures, list.length) < 3)
        wrong.push(`record ${n}: ${event.call_id} may run again, and is interrupted`);
      // What a host knew is late once another has had the session, also where that one has let it go again.
      const writers = new Set(journal.records.slice(intent?.n ?? 0, returned.get(event.call_id) ?? n).map(writerOf));
      for (const { run } of list) {
        const isOnly = writers.size === 1 && writers.has(run.host);
        if (!asked.has(event.call_id) && isOnly && answersAtOnce(run.tool) && wasInHand(run, history))
          wrong.push(`record ${n}: ${event.call_id} is interrupted, and ${run.host} knew its answer`);
      }
    }
    const said = textOf(event.result);
    const isOfRun = list.some(
      ({ run }) => run.answered !== null && said.startsWith(run.answered.trimEnd().slice(0, 40).trimEnd()),
    );
    if (event.status === 'ok' && !isOfRun)
      wrong.push(`record ${n}: ${event.call_id} has a result that no run gave: ${said.slice(0, 40)}`);
    // Only its tool fails a call that may run again, or the lack of instances (see `workers`).
    const mayRunAgain = isRemote(event.tool) && isIdempotent(event.tool);
    const isUnserved = event.result.detail?.code === 'tool_unavailable';
    // A hook may withhold the result of a run.
    const isComplete = list.some(({ run }) => run.answered !== null);
    if (event.status === 'error' && mayRunAgain && !isComplete && !isUnserved)
      wrong.push(`record ${n}: ${event.call_id} may run again, and failed: ${said.slice(0, 80)}`);
    // A call that was cancelled may still have been on its way to its worker; what it does there is dropped.
    if (event.status === 'cancelled') continue;
    const endedAtMs = storedAtMs.get(n) ?? 0;
    for (const { run, startedMs } of list) {
      // The order to start may have waited for an instance that stood still.
      const wasFrozen = lives.failed(run.host, 0, startedMs);
      if (startedMs > endedAtMs && run.epoch >= epoch && !wasFrozen)
        wrong.push(`${effectId} of ${event.call_id} ran after its end was recorded`);
    }
  }
  return wrong;
};

/** Whether a call was being stopped by the end of a record: alone, with the calls of its batch, or with its run. */
export function wasStopped(placed: readonly Placed[], callId: string, startedN: number, n: number): boolean {
  return placed.some(({ n: at, event }) => at > startedN && at <= n && stops(event, callId));
}

function stops(event: SessionEvent, callId: string): boolean {
  switch (event.type) {
    case 'steering_received':
    case 'reminder_injected':
      return event.preempt === true;
    case 'call_cancel_requested':
      return event.call_id === callId;
    case 'control_outcome':
      return event.control === 'cancel' && event.status === 'cancelled';
    case 'budget_threshold':
      return event.percent === 100;
    default:
      return event.type === 'run_failed';
  }
}

// The host still had the session when the answer was given: it has left it since, and come back.
function wasInHand(run: ToolRun, history: History): boolean {
  const { answeredMs } = run;
  if (answeredMs === null) return false;
  const left = history
    .of('log')
    .filter(({ host, session, reason }) => host === run.host && session === run.session && reason !== null);
  return (
    left.some(({ atMs }) => atMs > answeredMs) && !left.some(({ atMs }) => atMs >= run.startedMs && atMs <= answeredMs)
  );
}

function writerOf({ attempt }: JournalRecord): string {
  return attempt.split('-')[0] ?? '';
}

function textOf(result: ToolResult): string {
  return result.content.map((part) => (part.type === 'text' ? part.text : '')).join('');
}
