/** Shows the person at the terminal the possible actions, and the effect of Enter on an empty line. */
import type { UiEvent } from '@coxswain/client';
import { type SessionRef, subjects } from '@coxswain/protocol';
import { SLOW_TOOL, STEER } from './story.ts';

/** An edit without a decision is approved after this time, in ms, so that the demo ends if a person only watches. */
export const APPROVED_AFTER_MS = 60_000;

/** The stage of the story. */
type Stage = 'steer' | 'cancel' | 'approve';

const SUGGESTIONS: Readonly<Record<Stage, string>> = { steer: STEER, cancel: '/cancel-call', approve: 'y' };

/** Prints hints for each stage, and suggests the input of an empty line. */
export class Guide {
  readonly #ref: SessionRef;
  readonly #say: (text: string) => void;
  readonly #pasted: (command: string) => string;
  #stage: Stage | null = null;

  /**
   * @param say prints a hint.
   * @param pasted builds a `cox` command line that finds this bus from another shell.
   */
  constructor(ref: SessionRef, say: (text: string) => void, pasted: (command: string) => string) {
    this.#ref = ref;
    this.#say = say;
    this.#pasted = pasted;
  }

  /** The input that Enter on an empty line sends now; null for none. */
  get suggestion(): string | null {
    return this.#stage === null ? null : SUGGESTIONS[this.#stage];
  }

  saw(event: UiEvent): void {
    if (event.type === 'call_started' && event.tool === SLOW_TOOL) {
      this.#enter('steer', [
        `This call takes a minute. Watch it end, or steer the session meanwhile: type a message and press Enter, or press Enter alone for “${STEER}”. From another shell in this folder:`,
        `  ${this.#pasted(`steer ${this.#ref.sessionId} "${STEER}"`)}`,
        'or with the NATS command line alone:',
        `  eval "$(${this.#pasted('env')})"`,
        `  nats pub ${subjects.command(this.#ref, 'steer')} "${STEER}"`,
      ]);
    } else if (event.type === 'injection_received' && event.mode === 'interrupt_immediate') {
      // An immediate interrupt ends the call itself, so no suggestion is left.
      this.#stage = null;
    } else if (event.type === 'injection_received' && this.#stage === 'steer') {
      this.#enter('cancel', [
        'It is in the journal, and waits for the next seam: the end of this call.',
        'Press Enter to cancel the call now (/cancel-call), or let it end.',
      ]);
    } else if (event.type === 'call_ended') this.#stage = null;
    else if (event.type === 'approval_needed') {
      this.#enter('approve', [
        'The edit waits for your approval: y or n and Enter. Enter alone approves. From another shell in this folder:',
        `  ${this.#pasted(`approve ${this.#ref.sessionId}`)}`,
        `Without an answer the demo approves it after ${APPROVED_AFTER_MS / 1_000} seconds; a session of yours would wait.`,
      ]);
    } else if (event.type === 'approval_settled' || event.type === 'run_ended') this.#stage = null;
  }

  #enter(stage: Stage, lines: readonly string[]): void {
    this.#stage = stage;
    for (const line of lines) this.#say(`  ${line}`);
  }
}
