/** The names that headings have in addresses, as GitHub gives them: so that links hold there and here. */

/** Names the headings of one page, in order. A name that was given before gets a number. */
export class HeadingSlugs {
  readonly #given = new Map<string, number>();

  /** @param heading its text, without markup. */
  slug(heading: string): string {
    const base = heading
      .toLowerCase()
      .trim()
      .replace(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, '')
      .replaceAll(' ', '-');
    const times = this.#given.get(base) ?? 0;
    this.#given.set(base, times + 1);
    return times === 0 ? base : `${base}-${times}`;
  }
}
