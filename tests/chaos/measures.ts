/** What a run took: stalls, take-overs, waits, memory. Figures only; whether they are good the bars say. */
import type { JournalRecord } from '@coxswain/protocol';
import { keyOf, publishedIn } from './checkers/published.ts';
import type { ChaosEvidence, StoredJournal } from './evidence.ts';
import type { EntryOf, Role } from './history.ts';
import { gapsOf } from './stalls.ts';

/** Figures of several of a kind, milliseconds. */
export interface Spread {
  readonly count: number;
  readonly p50: number;
  readonly p99: number;
  readonly worst: number;
  /** Where the worst was. */
  readonly worstOf: string;
}

/** See the top of the file. */
export interface Measures {
  readonly records: number;
  readonly recordsPerSecond: number;
  readonly commands: number;
  readonly calls: number;
  readonly runs: number;
  /** From when a session could have gone on to when it did; see `stalls.ts`. */
  readonly stalls: Spread | null;
  /** From one record to the next while something was under way: with the time that models and tools take. */
  readonly gaps: Spread | null;
  /** From a command's acknowledgement to the record that consumed it. */
  readonly commandWaits: Spread | null;
  /** From the death of a host to the first record of each session that it worked on. */
  readonly takeOvers: Spread | null;
  readonly kills: number;
  readonly pauses: number;
  /** Calls that ran again because their worker had died, and might. */
  readonly ranAgain: number;
  readonly interrupted: number;
  readonly noReceipt: number;
  readonly unacknowledged: number;
  /** Of each kind of process: resident memory in MiB, when the load had warmed up and at its end, and the slope between. */
  readonly memory: Readonly<Partial<Record<Role, MemoryCourse>>>;
}

/** How memory went: medians of the first and the last third of the samples after a warm-up of a sixth of them. */
export interface MemoryCourse {
  readonly samples: number;
  readonly firstMib: number;
  readonly lastMib: number;
  readonly mostMib: number;
}

interface Timed {
  readonly ms: number;
  readonly of: string;
}

/** Computes them. */
export function measure(evidence: ChaosEvidence): Measures {
  const { history, journals, effects } = evidence;
  const events = journals.flatMap(({ records }) => records.flatMap((record) => record.events));
  const loadAt = history.of('phase').find(({ phase }) => phase === 'load')?.atMs ?? 0;
  const settlingAt = history.of('phase').find(({ phase }) => phase === 'settling')?.atMs ?? loadAt + 1;
  const all = journals.flatMap(({ storedAtMs }) => storedAtMs);
  const gaps = gapsOf(evidence).map(({ session, n, ...gap }) => ({ ...gap, of: `${session} before record ${n}` }));
  const starts = effects.filter(({ what }) => what === 'start');
  const processes = history.of('process');
  return {
    records: all.length,
    recordsPerSecond: all.filter((at) => at < settlingAt).length / ((settlingAt - loadAt) / 1_000),
    commands: publishedIn(history).size,
    calls: events.filter(({ type }) => type === 'call_started').length,
    runs: events.filter(({ type }) => type === 'agent_end').length,
    stalls: spread(gaps.map(({ stallMs: ms, of }) => ({ ms, of }))),
    gaps: spread(gaps),
    commandWaits: spread(commandWaits(evidence)),
    takeOvers: spread(takeOvers(journals, processes)),
    kills: processes.filter(({ did }) => did === 'killed').length,
    pauses: processes.filter(({ did }) => did === 'paused').length,
    ranAgain: starts.length - new Set(starts.map(({ key }) => key)).size,
    interrupted: events.filter((event) => event.type === 'call_ended' && event.status === 'interrupted').length,
    noReceipt: history.of('no_receipt').length,
    unacknowledged: history.of('unacknowledged').length,
    memory: memoryOf(history.of('memory'), settlingAt),
  };
}

function isAtWork({ state, effects_open }: JournalRecord, calls: ReadonlyMap<string, number>): boolean {
  if (effects_open.length === 0 || state === 'stopped' || state === 'failed') return false;
  const top = typeof state === 'string' ? state : Object.keys(state)[0];
  return top !== 'function_awaiting_approval' || calls.size > 0;
}

function commandWaits({ history, journals }: ChaosEvidence): Timed[] {
  const published = publishedIn(history);
  return journals.flatMap(({ session, records, storedAtMs }) =>
    records.flatMap(({ input }, i) => {
      if (input.type !== 'command') return [];
      const at = published.get(keyOf(session, input.command_id))?.acknowledgedAtMs;
      if (at === undefined || at === null) return [];
      return [{ ms: Math.max(0, (storedAtMs[i] as number) - at), of: `${session} ${input.command_id}` }];
    }),
  );
}

function takeOvers(journals: readonly StoredJournal[], processes: readonly EntryOf<'process'>[]): Timed[] {
  const kills = processes.filter(({ role, did }) => role === 'host' && did === 'killed');
  return kills.flatMap(({ name, atMs }) =>
    journals.flatMap(({ session, records, storedAtMs }) => {
      const next = storedAtMs.findIndex((at) => at > atMs);
      const before = records[next - 1];
      if (next < 1 || !before || before.attempt.split('-')[0] !== name) return [];
      if (!isAtWork(before, openCalls(records.slice(0, next)))) return [];
      const by = records.findIndex(({ attempt }, i) => i >= next && attempt !== before.attempt);
      // What it had sent before it died may be stored after.
      if (by === -1) return [];
      return [{ ms: (storedAtMs[by] as number) - atMs, of: `${session} of ${name}` }];
    }),
  );
}

function openCalls(records: readonly JournalRecord[]): Map<string, number> {
  const open = new Map<string, number>();
  for (const { events } of records.slice(-40)) {
    for (const event of events) {
      if (event.type === 'call_started') open.set(event.call_id, 0);
      if (event.type === 'call_ended') open.delete(event.call_id);
    }
  }
  return open;
}

function memoryOf(entries: readonly EntryOf<'memory'>[], untilMs: number): Partial<Record<Role, MemoryCourse>> {
  const courses: Partial<Record<Role, MemoryCourse>> = {};
  for (const role of ['host', 'worker', 'server'] as const) {
    // Together: sessions move between hosts, and their memory with them.
    const sums = entries
      .filter(({ atMs }) => atMs < untilMs)
      .map(({ samples }) =>
        samples.filter((one) => one.role === role).reduce((sum, { rssKib }) => sum + rssKib / 1_024, 0),
      );
    const warm = sums.slice(Math.ceil(sums.length / 6));
    if (warm.length < 3) continue;
    const third = Math.floor(warm.length / 3);
    courses[role] = {
      samples: warm.length,
      firstMib: median(warm.slice(0, third)),
      lastMib: median(warm.slice(-third)),
      mostMib: Math.max(...warm),
    };
  }
  return courses;
}

function median(list: readonly number[]): number {
  return [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)] ?? 0;
}

/** The spread of several times; null where there is none. */
export function spread(times: readonly Timed[]): Spread | null {
  if (times.length === 0) return null;
  const sorted = [...times].sort((a, b) => a.ms - b.ms);
  const at = (share: number) => Math.round((sorted[Math.floor((sorted.length - 1) * share)] as Timed).ms);
  const worst = sorted.at(-1) as Timed;
  return { count: times.length, p50: at(0.5), p99: at(0.99), worst: Math.round(worst.ms), worstOf: worst.of };
}
