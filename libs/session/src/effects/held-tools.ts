/** The tool connections that a session holds on its host: of its persona, and during a hand-off of the next one, too. */
import type { Toolset } from '@coxswain/ports';

/** The open tool connections of one session. */
export class HeldTools {
  readonly #open: () => Promise<Toolset | null>;
  readonly #disposed: AbortSignal;
  #toolset: Toolset | null = null;
  /** The tools of the next persona during a hand-off. */
  #next: { readonly toolset: Toolset; readonly persona: string } | null = null;
  #opening: Promise<Toolset | null> | null = null;

  /**
   * @param open opens the pinned tools of the run after a recovery. Null where they cannot be opened.
   * @param disposed aborted when the runner leaves the session: connections that open later are closed at once.
   */
  constructor(open: () => Promise<Toolset | null>, disposed: AbortSignal) {
    this.#open = open;
    this.#disposed = disposed;
  }

  /** The tools of the session. After a recovery they are opened again, once for all calls. Null where that fails. */
  get(): Toolset | Promise<Toolset | null> {
    if (this.#toolset) return this.#toolset;
    this.#opening ??= this.#reopen().finally(() => {
      this.#opening = null;
    });
    return this.#opening;
  }

  /** Holds a toolset in place of the one in use, which is closed. After the runner has left, closes both. */
  async hold(toolset: Toolset): Promise<void> {
    const before = this.#toolset;
    this.#toolset = this.#disposed.aborted ? null : toolset;
    if (before) await before.close();
    if (this.#disposed.aborted) await toolset.close();
  }

  /**
   * Holds the tools of a hand-off's next persona besides those in use, in place of an earlier hand-off's.
   * @param persona fingerprint of that persona.
   */
  async prepare(next: { readonly toolset: Toolset; readonly persona: string } | null): Promise<void> {
    await this.#dropNext();
    this.#next = next;
  }

  /** After a hand-off to this persona: its tools replace those in use. */
  takeOver(persona: string | undefined): Promise<void> | undefined {
    const next = this.#next;
    if (!next || next.persona !== persona) return;
    this.#next = null;
    return this.hold(next.toolset);
  }

  /** Closes the connections. Never rejects. @returns a note for each that could not be closed. */
  async close(): Promise<readonly string[]> {
    const toolset = this.#toolset;
    this.#toolset = null;
    const notes = toolset ? await toolset.close() : [];
    return [...notes, ...(await this.#dropNext())];
  }

  async #reopen(): Promise<Toolset | null> {
    const opened = await this.#open();
    if (opened) await this.hold(opened);
    return this.#toolset;
  }

  async #dropNext(): Promise<readonly string[]> {
    const next = this.#next;
    this.#next = null;
    return next ? next.toolset.close() : [];
  }
}
