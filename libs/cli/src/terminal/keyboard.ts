/** The keyboard of a terminal, key by key, while a session is attached. */
import { emitKeypressEvents } from 'node:readline';
import type { ReadStream } from 'node:tty';
import type { Key } from './line-editor.ts';

/** Listens to keys until closed, and then leaves the terminal as it was. */
export class Keyboard {
  readonly #input: ReadStream;
  readonly #handle: (text: string | undefined, key: Key) => void;

  constructor(input: ReadStream, onKey: (text: string | undefined, key: Key) => void) {
    this.#input = input;
    this.#handle = (text, key) => onKey(text, key);
    emitKeypressEvents(input);
    input.setRawMode(true);
    // Bracketed paste: the terminal says where a paste begins and ends.
    process.stdout.write('\u001b[?2004h');
    input.on('keypress', this.#handle);
    input.resume();
  }

  close(): void {
    this.#input.off('keypress', this.#handle);
    this.#input.setRawMode(false);
    process.stdout.write('\u001b[?2004l');
    this.#input.pause();
  }
}
