/** The keyboard of a terminal, key by key. While it is open, the terminal is in raw mode and brackets pasted text. */
import { emitKeypressEvents } from 'node:readline';
import type { ReadStream } from 'node:tty';
import type { Key } from './composer.ts';

const PASTE_ON = '\u001b[?2004h';
const PASTE_OFF = '\u001b[?2004l';

/** Reports keys until it is closed, then restores the terminal. */
export class Keyboard {
  readonly #input: ReadStream;
  readonly #write: (text: string) => unknown;
  readonly #onKey: (text: string | undefined, key: Key) => void;
  readonly #onEnd: () => void;
  // A process that ends, even with an error, must not leave the terminal in raw mode.
  readonly #onExit = () => this.#leaveRaw();

  /**
   * @param write writes to the terminal.
   * @param onEnd called when the terminal has closed.
   */
  constructor(
    input: ReadStream,
    write: (text: string) => unknown,
    onKey: (text: string | undefined, key: Key) => void,
    onEnd: () => void,
  ) {
    this.#input = input;
    this.#write = write;
    this.#onKey = (text, key) => onKey(text, key);
    this.#onEnd = () => onEnd();
    emitKeypressEvents(input);
    input.on('keypress', this.#onKey);
    input.on('end', this.#onEnd);
    // Reading or changing a closed terminal may also fail.
    input.on('error', this.#onEnd);
    process.on('exit', this.#onExit);
    this.resume();
  }

  /** Takes the terminal again, after {@link pause}. */
  resume(): void {
    this.#input.setRawMode(true);
    this.#write(PASTE_ON);
    this.#input.resume();
  }

  /** Gives the terminal back temporarily. */
  pause(): void {
    this.#leaveRaw();
    this.#input.pause();
  }

  close(): void {
    this.#input.off('keypress', this.#onKey);
    process.off('exit', this.#onExit);
    this.pause();
    this.#input.off('end', this.#onEnd);
    this.#input.off('error', this.#onEnd);
  }

  #leaveRaw(): void {
    this.#input.setRawMode(false);
    this.#write(PASTE_OFF);
  }
}
