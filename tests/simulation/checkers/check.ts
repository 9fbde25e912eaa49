/**
 * The checkers: what must hold of every simulation, whatever went wrong in it. They read journals, the log of what tools
 * really did, and the history of what clients sent and were told; never the state of a host.
 */
import type { Blobs } from '@coxswain/ports';
import type { EventOf, EventType, JournalRecord, SessionEvent, SessionStatus } from '@coxswain/protocol';
import type { Schedule } from '../generator.ts';
import type { History } from '../history.ts';
import { checkBudgets } from './budgets.ts';
import { checkCalls } from './calls.ts';
import { checkChain } from './chain.ts';
import { checkClocks } from './clocks.ts';
import { checkCommands } from './commands.ts';
import { checkCopy } from './copy.ts';
import { checkDeletion, type Stored } from './deletion.ts';
import { checkEffects } from './effects.ts';
import { checkFates } from './fates.ts';
import { checkFeedback } from './feedback.ts';
import { checkHandoffs } from './handoffs.ts';
import { isCopy } from './origin.ts';
import { checkQuestions } from './questions.ts';
import { checkReceipts } from './receipts.ts';
import { checkReminders } from './reminders.ts';
import { checkReplay } from './replay.ts';
import { checkRest } from './rest.ts';
import { checkRuns } from './runs.ts';
import { checkServedSteps } from './served-steps.ts';
import { checkShown } from './shown.ts';
import { checkSuspensions } from './suspensions.ts';
import { checkWorkers } from './workers.ts';

/** A session's journal, as stored and as read. */
export interface Journal {
  readonly session: string;
  readonly bytes: readonly Uint8Array[];
  readonly records: readonly JournalRecord[];
}

/** What checkers have to go by. */
export interface Evidence {
  readonly schedule: Schedule;
  readonly history: History;
  readonly journals: readonly Journal[];
  /** What hosts say of the sessions in the end. */
  readonly statuses: ReadonlyMap<string, SessionStatus | null>;
  /** Everything that was stored of each session, and what of it stands: where sessions may have been deleted. */
  readonly stored?: ReadonlyMap<string, Stored> | undefined;
  /** Commands that the store still holds of each session. */
  readonly waiting?: ReadonlyMap<string, readonly string[]> | undefined;
  readonly blobs: Pick<Blobs, 'get'>;
  /** Whether all sessions had ended in time. */
  readonly ended: boolean;
}

/** Something that must not be. */
export interface Problem {
  readonly checker: string;
  readonly session: string;
  readonly what: string;
}

/** One checker: what is wrong with one session, in sentences. */
export type Checker = (journal: Journal, evidence: Evidence) => readonly string[] | Promise<readonly string[]>;

/** All checkers by name. */
export const CHECKERS: Readonly<Record<string, Checker>> = {
  chain: checkChain,
  clocks: checkClocks,
  replay: checkReplay,
  runs: checkRuns,
  calls: checkCalls,
  commands: checkCommands,
  effects: checkEffects,
  feedback: checkFeedback,
  receipts: checkReceipts,
  shown: checkShown,
  fates: checkFates,
  reminders: checkReminders,
  suspensions: checkSuspensions,
  budgets: checkBudgets,
  handoffs: checkHandoffs,
  workers: checkWorkers,
  questions: checkQuestions,
  servedSteps: checkServedSteps,
  deletion: checkDeletion,
  rest: checkRest,
};

/** What holds of a fork as well: what others say of commands, effects and owners is about its origin up to where it begins. */
const OF_COPIES: Readonly<Record<string, Checker>> = {
  copy: checkCopy,
  replay: checkReplay,
  runs: checkRuns,
  handoffs: checkHandoffs,
  deletion: checkDeletion,
  rest: checkRest,
};

/** Everything that is wrong. */
export async function check(evidence: Evidence): Promise<Problem[]> {
  const problems: Problem[] = [];
  if (!evidence.ended) problems.push({ checker: 'liveness', session: '', what: 'not every session came to an end' });
  for (const journal of evidence.journals) {
    for (const [checker, run] of Object.entries(isCopy(journal) ? OF_COPIES : CHECKERS)) {
      for (const what of await found(run, journal, evidence))
        problems.push({ checker, session: journal.session, what });
    }
  }
  return problems;
}

/** What one checker finds. A journal that it cannot even read is no better than one that it finds wrong. */
export async function found(run: Checker, journal: Journal, evidence: Evidence): Promise<readonly string[]> {
  try {
    return await run(journal, evidence);
  } catch (error) {
    return [`cannot be read: ${(error as Error).message}`];
  }
}

/** An event and where it stands. */
export interface Placed<E extends SessionEvent = SessionEvent> {
  readonly n: number;
  readonly epoch: number;
  readonly event: E;
}

/** The events of a journal, in order. */
export function eventsOf(journal: Journal): Placed[] {
  return journal.records.flatMap(({ n, epoch, events }) => events.map((event) => ({ n, epoch, event })));
}

/** The events of one type. */
export function ofType<T extends EventType>(placed: readonly Placed[], type: T): Placed<EventOf<T>>[] {
  return placed.filter((one): one is Placed<EventOf<T>> => one.event.type === type);
}
