/** The end of what a server said outside of messages. */

import { cutTextToEnd } from '@coxswain/protocol';
import { MCP_BOUNDS } from './mcp-bounds.ts';

/** Keeps the end of a text that goes on and on. */
export class TextTail {
  readonly #decoder = new TextDecoder('utf-8');
  #text = '';

  add(chunk: Uint8Array | string): void {
    const text = typeof chunk === 'string' ? chunk : this.#decoder.decode(chunk, { stream: true });
    this.#text = cutTextToEnd(this.#text + text, MCP_BOUNDS.stderrTailMaxChars);
  }

  get text(): string {
    return this.#text.trim();
  }
}
