/** Quotes texts that people paste into a shell. */

/** Quotes a text for a POSIX shell. A text without special characters stays unchanged. */
export function shellQuoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
