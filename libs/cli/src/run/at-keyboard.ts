/** A person at the keyboard: a typed line steers, y and n decide, Esc interrupts, Ctrl-C leaves. */
import type { ReadStream } from 'node:tty';
import type { Session, UiEvent } from '@coxswain/client';
import { Keyboard } from '../terminal/keyboard.ts';
import { type Key, type KeyResult, LineEditor, type LineKind } from '../terminal/line-editor.ts';
import type { Screen } from '../terminal/screen.ts';
import type { Style } from '../terminal/style.ts';
import { carryOut } from './carry-out.ts';
import type { Participant } from './follow-session.ts';
import type { OpenApproval } from './open-approvals.ts';
import { readTyped, TYPED_HELP, type TypedCommand } from './typed-command.ts';

/** What leaving means: the session goes on elsewhere. */
export type Leave = () => void;

/** Sends that a person may have under way at once; a key held down sends no more. */
const SENDS_MAX = 32;

function isCtrlC({ ctrl, name }: Key): boolean {
  return ctrl === true && name === 'c';
}

/** The person. Close it to give the keyboard back. */
export class AtKeyboard implements Participant {
  readonly #session: Session;
  readonly #screen: Screen;
  readonly #style: Style;
  readonly #leave: Leave;
  readonly #suggestion: () => string | null;
  readonly #question: string;
  readonly #keyboard: Keyboard;
  readonly #editor = new LineEditor();
  readonly #sends = new Set<Promise<void>>();
  #approvals: readonly OpenApproval[] = [];
  #running: string | null = null;
  #leaving = false;

  /**
   * @param suggestion what Enter on an empty line stands for.
   * @param question what Ctrl-C asks.
   */
  constructor(
    session: Session,
    screen: Screen,
    style: Style,
    leave: Leave,
    suggestion: () => string | null = () => null,
    question = 'Ctrl-C again or d: detach, the session lives on · c: cancel the run · other: go on',
  ) {
    this.#session = session;
    this.#screen = screen;
    this.#style = style;
    this.#leave = leave;
    this.#suggestion = suggestion;
    this.#question = question;
    this.#keyboard = new Keyboard(process.stdin as ReadStream, (text, key) => this.#key(text, key));
  }

  /** Sees what happens, so that `/cancel-call` and `y` know what is meant. */
  saw(event: UiEvent): void {
    if (event.type === 'call_started') this.#running = event.callId;
    else if (event.type === 'call_ended' && event.callId === this.#running) this.#running = null;
    if (event.type === 'approval_settled' || event.type === 'call_ended') {
      this.#approvals = this.#approvals.filter(
        ({ session, callId }) => session.id !== this.#session.id || callId !== event.callId,
      );
    }
  }

  approvalsOpen(approvals: readonly OpenApproval[]): 'go_on' {
    this.#approvals = approvals;
    const [first] = approvals;
    if (first) {
      const more = approvals.length > 1 ? ` (the first of ${approvals.length})` : '';
      this.#screen.line(this.#style.yellow(`  allow ${first.tool}${more}? y or n, or type to steer`));
    }
    return 'go_on';
  }

  /** Sends a line as if it had been typed. */
  submit(line: string, kind: LineKind = 'steer'): void {
    const meant = line.trim() === '' && kind === 'steer' ? (this.#suggestion() ?? '') : line;
    const command = readTyped(meant, kind, this.#approvals.length > 0);
    if (command.do === 'detach') this.#leave();
    else if (command.do === 'help') this.#help(command.problem);
    else if (command.do !== 'nothing') this.#send(command);
  }

  #help(problem: string | null): void {
    this.#screen.line(problem === null ? this.#style.dim(TYPED_HELP) : this.#style.yellow(`  ${problem}`));
  }

  /** Gives the keyboard back and waits for what was sent, which is bounded by each send’s own time-out. */
  async close(): Promise<void> {
    this.#keyboard.close();
    await Promise.all(this.#sends);
  }

  #key(text: string | undefined, key: Key): void {
    if (this.#leaving && !isCtrlC(key)) {
      this.#answerLeaving(text);
      return;
    }
    const result = this.#editor.key(text, key);
    if (result.type === 'ctrl_c') this.#ctrlC();
    else if (result.type !== 'none') this.#typed(result);
  }

  #typed(result: KeyResult): void {
    this.#showTyped();
    if (result.type === 'submitted') this.submit(result.text, result.kind);
  }

  #showTyped(): void {
    const { open, kind, text, after } = this.#editor;
    this.#screen.typing(open ? { label: `${kind} ›`, text, after } : null);
  }

  #ctrlC(): void {
    if (this.#leaving) {
      this.#leave();
      return;
    }
    this.#leaving = true;
    this.#screen.typing({ label: this.#question, text: '' });
  }

  #answerLeaving(text: string | undefined): void {
    this.#leaving = false;
    // What was half typed before the question is there again.
    this.#showTyped();
    if (text === 'd') this.#leave();
    else if (text === 'c') this.#send({ do: 'cancel', reason: 'cancelled at the keyboard' });
  }

  #send(command: TypedCommand): void {
    if (this.#sends.size >= SENDS_MAX) {
      this.#screen.line(this.#style.yellow('  too much is under way; wait a moment'));
      return;
    }
    const about = { asked: this.#asked(command), running: this.#running };
    const show = (text: string) => this.#screen.line(this.#style.dim(text));
    // A rejection is in the journal too, and is shown from there; these waits end with the time-outs of the sends.
    const sending: Promise<void> = carryOut(this.#session, command, about, show)
      .catch((error: Error & { code?: string }) => {
        this.#screen.line(this.#style.yellow(`  not done: ${error.code ? `${error.code}: ` : ''}${error.message}`));
      })
      .finally(() => {
        this.#sends.delete(sending);
      });
    this.#sends.add(sending);
  }

  /** The call that a decision is about: it is decided now, so that the next one is about the next. */
  #asked(command: TypedCommand): OpenApproval | undefined {
    if (command.do !== 'decide') return undefined;
    const [first, ...rest] = this.#approvals;
    this.#approvals = rest;
    return first;
  }
}
