import type { JournalRecord, SeamKind, SessionEvent } from '@coxswain/protocol';
import { injectionFateIn } from '@coxswain/protocol';
import { BEFORE_SEAM, type MomentMove } from './moves.ts';
import { SceneError } from './testing-errors.ts';

/** The current activity of the session. */
export type Doing =
  | { readonly what: 'start' }
  | { readonly what: 'answering'; readonly number: number }
  | { readonly what: 'answered'; readonly withCalls: boolean }
  | { readonly what: 'calling'; readonly tool: string }
  /** A `session_idle` hook is consulted, before a daemon waits. */
  | { readonly what: 'idle hook' }
  /** A daemon waits for its next wake-up. */
  | { readonly what: 'idle' };

interface Pending {
  readonly move: MomentMove;
  /** The id of its command, once it is sent. */
  sent: string | null;
}

/** The commands of one `when` that a test sends while the session works: when each is due, and its outcome. */
export class PendingMoments {
  readonly #all: readonly Pending[];

  constructor(moves: readonly MomentMove[]) {
    this.#all = moves.map((move) => ({ move, sent: null }));
  }

  /** The commands that are due now, in the order of the test. Each is due once. */
  due(doing: Doing): readonly Pending[] {
    return this.#all.filter((pending) => pending.sent === null && isDue(pending.move, doing));
  }

  /**
   * Checks that each command was sent, and that each one for a seam was delivered there or blocked by a hook.
   * @throws SceneError
   */
  check(records: readonly JournalRecord[]): void {
    const events = records.flatMap(({ events: of }) => of);
    for (const { move, sent } of this.#all) {
      if (sent === null) throw new SceneError(neverCame(move, events));
      if (move.moment.at !== 'seam') continue;
      const problem = undelivered(events, sent, move.moment.seam);
      if (problem !== null) throw new SceneError(`${wordsOf(move)} ${problem}`);
    }
  }
}

function isDue({ moment }: MomentMove, doing: Doing): boolean {
  if (moment.at === 'answer') return doing.what === 'answering' && doing.number === moment.number;
  if (moment.at === 'call') return doing.what === 'calling' && doing.tool === moment.tool;
  const before = BEFORE_SEAM[moment.seam];
  if (before === 'start') return doing.what === 'start';
  if (before === 'calls') return doing.what === 'calling';
  if (before === 'idle hook' || before === 'idle') return doing.what === before;
  return doing.what === 'answered' && doing.withCalls === (before === 'answer with calls');
}

function neverCame(move: MomentMove, events: readonly SessionEvent[]): string {
  const { moment } = move;
  const said = `${wordsOf(move)} was never sent: `;
  if (moment.at === 'call') {
    const made = [...new Set(events.flatMap((event) => (event.type === 'call_started' ? [event.tool] : [])))];
    return `${said}no call of ${moment.tool} was made; calls were made of: ${made.join(', ') || 'nothing'}`;
  }
  if (moment.at === 'answer') {
    const count = events.filter(({ type }) => type === 'message_complete').length;
    return `${said}the session has had ${count} ${count === 1 ? 'answer' : 'answers'}`;
  }
  const passed = [...new Set(events.flatMap((event) => (event.type === 'loop_checkpoint' ? [event.kind] : [])))];
  if (moment.seam === 'daemon_idle_post')
    return `${said}the session never waited as a daemon does: its persona needs daemon: {}`;
  if (moment.seam === 'daemon_idle_pre')
    return `${said}no SessionIdle hook was asked, and without one nothing can wait for that seam: give the scene one, and its persona daemon: {}`;
  return `${said}the session did not come to that seam with something before it; it passed: ${passed.join(', ') || 'none'}`;
}

function undelivered(events: readonly SessionEvent[], commandId: string, seam: SeamKind): string | null {
  const fate = events.map(injectionFateIn).find((one) => one?.of === commandId)?.fate;
  // The command may be there to test a hook that refuses it.
  if (fate?.stage === 'blocked') return null;
  if (fate?.stage === 'delivered') return fate.seam === seam ? null : `was delivered at ${fate.seam}`;
  const rejected = events.find((event) => event.type === 'command_rejected' && event.command_id === commandId);
  if (rejected?.type === 'command_rejected') return `was rejected: ${rejected.code}`;
  return 'was not delivered';
}

function wordsOf({ moment, move }: MomentMove): string {
  const inner = `${move.verb}(…)`;
  if (moment.at === 'seam') return `atSeam("${moment.seam}", ${inner})`;
  return moment.at === 'call' ? `during("${moment.tool}", ${inner})` : `duringAnswer(${moment.number}, ${inner})`;
}
