/** The evidence of a run: what its folder holds, read for the checkers. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { decodeRecord } from '@coxswain/protocol';
import type { Journal } from '../simulation/checkers/check.ts';
import type { StoredLine } from './collect-journals.ts';
import type { LoadPlan } from './generator.ts';
import { History, linesOf } from './history.ts';
import { type HostLine, readHostLogs } from './host-log.ts';
import { effectLogOf, logsOf } from './world.ts';

/** A journal, and when each of its records was stored, by the history's clock. */
export interface StoredJournal extends Journal {
  readonly storedAtMs: readonly number[];
}

/** One line of what tool workers wrote down themselves. */
export interface EffectLine {
  readonly what: 'start' | 'end';
  readonly atMs: number;
  readonly pid: number;
  readonly tool: string;
  readonly session: string;
  readonly callId: string;
  readonly key: string;
  readonly epoch: number;
  /** How long it was told to take; of a start. */
  readonly ms?: number;
  /** It was told to stop; of an end. */
  readonly isAborted?: boolean;
}

/** See the top of the file. */
export interface ChaosEvidence {
  readonly history: History;
  readonly journals: readonly StoredJournal[];
  readonly effects: readonly EffectLine[];
  /** What hosts said in their logs; all lines of one are in their order. */
  readonly hostLog: readonly HostLine[];
  /** What clients and models were to do. */
  readonly plan: LoadPlan;
}

/** The files of a run. */
export const filesOf = (folder: string) => ({
  history: join(folder, 'history.jsonl'),
  journals: join(folder, 'journals.jsonl'),
  effects: effectLogOf(folder),
  plan: join(folder, 'plan.json'),
  logs: logsOf(folder),
});

/** Reads a run's folder. */
export function readEvidence(folder: string): ChaosEvidence {
  const files = filesOf(folder);
  const history = History.read(files.history);
  const effects = existsSync(files.effects) ? [...linesOf<EffectLine>(files.effects)] : [];
  const journals = journalsIn(linesOf(files.journals), history);
  const plan = JSON.parse(readFileSync(files.plan, 'utf8'));
  return { history, journals, effects, hostLog: readHostLogs(files.logs, history), plan };
}

/** Stored lines as journals, in the order of the sessions' names. */
export function journalsIn(lines: Iterable<StoredLine>, history: History): StoredJournal[] {
  return [...grouped(decoded(lines, history), ({ session }) => session)]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([session, own]) => ({
      session,
      bytes: own.map(({ bytes }) => bytes),
      records: own.map(({ record }) => record),
      storedAtMs: own.map(({ storedAtMs }) => storedAtMs),
    }));
}

function* decoded(lines: Iterable<StoredLine>, history: History) {
  for (const { session, text, storedWallMs } of lines) {
    const bytes = new TextEncoder().encode(text);
    yield { session, bytes, record: decodeRecord(bytes), storedAtMs: history.atOfWall(storedWallMs) };
  }
}

/** A list's members by what `of` says of each, in their order. */
export function grouped<T, K>(list: Iterable<T>, of: (one: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const one of list) {
    const key = of(one);
    const group = groups.get(key);
    if (group) group.push(one);
    else groups.set(key, [one]);
  }
  return groups;
}

/** Whether a worker stood still for a while that ended between two moments: what it had been sent before, it does then. */
export function stoodStill(history: History, pid: number, fromMs: number, toMs: number): boolean {
  return history
    .of('process')
    .some((one) => one.pid === pid && one.did === 'resumed' && one.atMs >= fromMs && one.atMs <= toMs);
}
