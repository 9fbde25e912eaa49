/**
 * What tools really did, by their own log, held against the journals: nothing ran without its durable intent; no call of
 * a tool that is not idempotent ran twice, whether its worker lived or not; nothing ran again that had a result.
 */
import type { EventOf } from '@coxswain/protocol';
import { type EffectLine, grouped, type StoredJournal, stoodStill } from '../evidence.ts';
import type { ChaosChecker } from './check.ts';

/** Tools that may run again. */
export const IDEMPOTENT: ReadonlySet<string> = new Set(['read_tide']);
/** By so much the server's clock and the workers' may disagree about one moment. */
const CLOCKS_AGREE_MS = 20;

interface Intent {
  readonly event: EventOf<'call_started'>;
  readonly storedAtMs: number;
  endedAtMs: number;
}

/** See the top of the file. */
export const checkEffectsOnce: ChaosChecker = ({ history, journals, effects }) => {
  const wrong: { session: string; what: string }[] = [];
  const died = new Map(
    history
      .of('process')
      .flatMap(({ role, did, pid, atMs }) => (role === 'worker' && did === 'ended' ? [[pid, atMs]] : [])),
  );
  const intents = new Map(journals.flatMap((journal) => [...intentsOf(journal)]));
  const starts = grouped(
    effects.filter(({ what }) => what === 'start'),
    ({ key }) => key,
  );
  for (const [key, runs] of starts) {
    const { session, tool } = runs[0] as EffectLine;
    const intent = intents.get(key);
    if (!intent) {
      wrong.push({ session, what: `${key} ran, and no record says so` });
      continue;
    }
    const first = runs[0] as EffectLine;
    if (first.atMs + CLOCKS_AGREE_MS < intent.storedAtMs)
      wrong.push({
        session,
        what: `${key} ran ${Math.round(intent.storedAtMs - first.atMs)} ms before its record was stored`,
      });
    for (const [i, again] of runs.slice(1).entries()) {
      const before = runs[i] as EffectLine;
      const hasLived = (died.get(before.pid) ?? Number.POSITIVE_INFINITY) > again.atMs;
      if (!IDEMPOTENT.has(tool))
        wrong.push({
          session,
          what: `${key} (${tool}) ran again${hasLived ? ' while its worker lived' : ' after its worker had died'}`,
        });
      if (again.epoch === before.epoch && again.pid === before.pid)
        wrong.push({ session, what: `${key} ran twice in one worker for one owner` });
    }
    for (const { atMs, pid } of runs)
      if (atMs > intent.endedAtMs + CLOCKS_AGREE_MS && !stoodStill(history, pid, intent.storedAtMs, atMs))
        wrong.push({
          session,
          what: `${key} ran ${Math.round(atMs - intent.endedAtMs)} ms after its end was recorded`,
        });
  }
  for (const journal of journals) wrong.push(...unfounded(journal, starts, effects));
  return wrong;
};

/** Calls that went to workers, by idempotency key. */
function intentsOf({ session, records, storedAtMs }: StoredJournal): Map<string, Intent> {
  const intents = new Map<string, Intent>();
  const open = new Map<string, Intent>();
  for (const [i, { events }] of records.entries()) {
    for (const event of events) {
      if (event.type === 'call_started') {
        const intent = { event, storedAtMs: storedAtMs[i] as number, endedAtMs: Number.POSITIVE_INFINITY };
        intents.set(`default.${session}.${event.effect_id}`, intent);
        open.set(event.call_id, intent);
      }
      if (event.type !== 'call_ended') continue;
      const intent = open.get(event.call_id);
      open.delete(event.call_id);
      // One that was cancelled may still have been on its way; what it does there is dropped.
      if (intent && event.status !== 'cancelled') intent.endedAtMs = storedAtMs[i] as number;
    }
  }
  return intents;
}

/** Results that are good and that no run has given. */
function unfounded(
  { session, records }: StoredJournal,
  starts: ReadonlyMap<string, readonly EffectLine[]>,
  effects: readonly EffectLine[],
): { session: string; what: string }[] {
  const ended = new Set(effects.filter(({ what }) => what === 'end').map(({ key }) => key));
  const keys = new Map<string, string>();
  const wrong: { session: string; what: string }[] = [];
  for (const { n, events } of records) {
    for (const event of events) {
      if (event.type === 'call_started') keys.set(event.call_id, `default.${session}.${event.effect_id}`);
      if (event.type !== 'call_ended' || event.status !== 'ok') continue;
      const key = keys.get(event.call_id);
      if (key !== undefined && !(starts.has(key) && ended.has(key)))
        wrong.push({ session, what: `record ${n}: ${event.call_id} has a result that no run gave` });
    }
  }
  return wrong;
}
