/**
 * Stalls: from when a session could have gone on to when it did. A session could go on when the first of the effects
 * that it had open was due: a call when its tool says that it ended, an answer when the script says, everything else at once.
 * A new owner begins what is open anew, so its own record divides what was before from what comes after.
 */
import type { JournalRecord } from '@coxswain/protocol';
import type { ChaosEvidence, StoredJournal } from './evidence.ts';

/** Two records, one after the other, while something was under way. */
export interface Gap {
  readonly session: string;
  /** The record that ends it. */
  readonly n: number;
  /** From the one record to the other, milliseconds. */
  readonly ms: number;
  /** How much of it the session could have gone on. */
  readonly stallMs: number;
}

interface Known {
  /** Time that it takes by itself. */
  readonly ownMs: number;
  /** Of a call, its idempotency key. */
  readonly key?: string;
}

/** All gaps of a run. */
export function gapsOf({ journals, effects, plan }: ChaosEvidence): Gap[] {
  const ends = new Map<string, number[]>();
  for (const { what, key, atMs } of effects) {
    if (what !== 'end') continue;
    const known = ends.get(key);
    if (known) known.push(atMs);
    else ends.set(key, [atMs]);
  }
  const scripts = new Map(plan.sessions.map(({ id, script }) => [id, plan.scripts[script] ?? []]));
  return journals.flatMap((journal) => {
    const delays = (scripts.get(journal.session) ?? []).map(({ delay_ms }) => delay_ms);
    return gapsIn(journal, knownIn(journal, delays), ends);
  });
}

function gapsIn(
  { session, records, storedAtMs }: StoredJournal,
  known: ReadonlyMap<string, Known>,
  ends: ReadonlyMap<string, readonly number[]>,
): Gap[] {
  const gaps: Gap[] = [];
  let ownedAtMs = Number.NEGATIVE_INFINITY;
  for (let i = 1; i < records.length; i++) {
    const [before, record] = [records[i - 1], records[i]] as [JournalRecord, JournalRecord];
    const [fromMs, toMs] = [storedAtMs[i - 1], storedAtMs[i]] as [number, number];
    if (before.input.type === 'owned') ownedAtMs = fromMs;
    const dues = before.effects_open.flatMap((id) => {
      const effect = known.get(id);
      if (!effect) return [];
      const ended = ends.get(effect.key ?? '')?.filter((at) => at <= toMs);
      if (ended && ended.length > 0) return [Math.min(...ended)];
      return [Math.max(storedAtMs[recordOf(id) - 1] ?? fromMs, ownedAtMs) + effect.ownMs];
    });
    if (dues.length === 0) continue;
    const ms = toMs - fromMs;
    gaps.push({ session, n: record.n, ms, stallMs: Math.max(0, toMs - Math.max(fromMs, Math.min(...dues))) });
  }
  return gaps;
}

/** What is known of the effects of a journal, by id. One that came to nothing, or that is a timer, is not there. */
function knownIn({ session, records }: StoredJournal, delays: readonly number[]): Map<string, Known> {
  const known = new Map<string, Known>();
  for (const { input, events } of records) {
    for (const event of events) {
      if (event.type !== 'call_started') continue;
      const ownMs = Number((event.args as { ms?: number } | null)?.ms ?? 0);
      known.set(event.effect_id, { ownMs, key: `default.${session}.${event.effect_id}` });
    }
    if (input.type === 'model_outcome') {
      const marker = input.message.content[0]?.provider_metadata?.scripted as { turn?: number } | undefined;
      known.set(input.effect_id, { ownMs: delays[marker?.turn ?? -1] ?? input.duration_ms });
    } else if (input.type === 'provision_outcome') known.set(input.effect_id, { ownMs: 0 });
  }
  return known;
}

/** The record that asked for an effect: its id begins with the record's number. */
function recordOf(effectId: string): number {
  return Number(effectId.split('-')[0]);
}
