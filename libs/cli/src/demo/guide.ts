/** Tells the person at the terminal what can be done now, and what Enter alone would do. */
import type { UiEvent } from '@coxswain/client';
import { type SessionRef, subjects } from '@coxswain/protocol';
import type { Screen } from '../terminal/screen.ts';
import type { Style } from '../terminal/style.ts';
import { SLOW_TOOL, STEER } from './story.ts';

/** Where the story stands. */
type Stage = 'steer' | 'cancel' | 'approve';

const SUGGESTIONS: Readonly<Record<Stage, string>> = { steer: STEER, cancel: '/cancel-call', approve: 'y' };

/** The guide. */
export class Guide {
  readonly #ref: SessionRef;
  readonly #screen: Screen;
  readonly #style: Style;
  readonly #env: string;
  #stage: Stage | null = null;

  /** @param env the command line that prints where the bus is. */
  constructor(ref: SessionRef, screen: Screen, style: Style, env: string) {
    this.#ref = ref;
    this.#screen = screen;
    this.#style = style;
    this.#env = env;
  }

  /** What Enter on an empty line stands for now. */
  get suggestion(): string | null {
    return this.#stage === null ? null : SUGGESTIONS[this.#stage];
  }

  saw(event: UiEvent): void {
    if (event.type === 'call_started' && event.tool === SLOW_TOOL) {
      this.#enter('steer', [
        'This call takes a minute. Say something to the session meanwhile: type it and press Enter,',
        `or press Enter alone for “${STEER}”. From another shell, with nothing of Coxswain in it:`,
        `  nats pub ${subjects.command(this.#ref, 'steer')} "${STEER}"      (first: eval "$(${this.#env})")`,
      ]);
    } else if (event.type === 'injection_received' && event.mode === 'interrupt_immediate') {
      // It stops by itself what there is to stop: nothing is left to suggest.
      this.#stage = null;
    } else if (event.type === 'injection_received' && this.#stage === 'steer') {
      this.#enter('cancel', [
        'It is in the journal, and waits for the next seam: the end of this call.',
        'Press Enter to cancel the call now (/cancel-call), or let it end.',
      ]);
    } else if (event.type === 'call_ended') this.#stage = null;
    else if (event.type === 'approval_needed') {
      this.#enter('approve', ['The edit waits for you: y or n and Enter. Enter alone approves.']);
    } else if (event.type === 'approval_settled' || event.type === 'run_ended') this.#stage = null;
  }

  #enter(stage: Stage, lines: readonly string[]): void {
    this.#stage = stage;
    for (const line of lines) this.#screen.line(this.#style.yellow(`  ${line}`));
  }
}
