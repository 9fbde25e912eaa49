/** The tool connections that a session holds on its host: for its persona, and for the next one during a hand-off. */
import type { Toolset } from '@coxswain/ports';

/** The open tool connections of one session. */
export class HeldTools {
  readonly #open: () => Promise<Toolset | null>;
  readonly #disposed: AbortSignal;
  #toolset: Toolset | null = null;
  /** The tools of the next persona during a hand-off. */
  #next: { readonly toolset: Toolset; readonly persona: string } | null = null;
  #opening: Promise<Toolset | null> | null = null;
  /** Counts the changes of the tools in use. A reopening that began before the newest change is too late. */
  #changes = 0;

  /**
   * @param open opens the tools that the run has pinned, if none are held, as after a change of the host. Null if that fails.
   * @param disposed aborts when the runner leaves the session. New connections are then closed at once.
   */
  constructor(open: () => Promise<Toolset | null>, disposed: AbortSignal) {
    this.#open = open;
    this.#disposed = disposed;
  }

  /**
   * The tools of the session. If none are held, as after a change of the host, they are opened, once for all callers that wait.
   * Null if that fails; the next call tries again. If other tools are held or all are closed meanwhile, the opened ones
   * are closed.
   */
  get(): Toolset | Promise<Toolset | null> {
    if (this.#toolset) return this.#toolset;
    this.#opening ??= this.#reopen().finally(() => {
      this.#opening = null;
    });
    return this.#opening;
  }

  /** Holds a toolset, and closes the one that was in use. After the runner has left, closes the given one. */
  async hold(toolset: Toolset): Promise<void> {
    if (this.#disposed.aborted) return void (await toolset.close());
    const before = this.#toolset;
    this.#toolset = toolset;
    this.#changes++;
    await before?.close();
  }

  /**
   * Holds the tools of a hand-off's next persona besides those in use. Closes earlier ones that were not taken over.
   * After the runner has left, closes the given ones.
   * @param next the tools, and the fingerprint of the persona; null if the hand-off has failed.
   */
  async prepare(next: { readonly toolset: Toolset; readonly persona: string } | null): Promise<void> {
    if (this.#disposed.aborted) return void (await next?.toolset.close());
    const before = this.#next;
    this.#next = next;
    await before?.toolset.close();
  }

  /**
   * After a hand-off to a persona: its prepared tools replace those in use.
   * @param persona the fingerprint of the session's persona.
   * @returns undefined if no tools are prepared for this persona.
   */
  takeOver(persona: string | undefined): Promise<void> | undefined {
    const next = this.#next;
    if (!next || next.persona !== persona) return;
    this.#next = null;
    return this.hold(next.toolset);
  }

  /** Closes all connections, also prepared ones. Never rejects. @returns a note for each that could not be closed. */
  async close(): Promise<readonly string[]> {
    const closing = [this.#toolset, this.#next?.toolset];
    this.#toolset = null;
    this.#next = null;
    this.#changes++;
    return (await Promise.all(closing.map((toolset) => toolset?.close() ?? []))).flat();
  }

  async #reopen(): Promise<Toolset | null> {
    const changes = this.#changes;
    const opened = await this.#open();
    if (changes !== this.#changes) await opened?.close();
    else if (opened) await this.hold(opened);
    return this.#toolset;
  }
}
