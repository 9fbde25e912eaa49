/** Texts that people paste into a shell. */

/** Safe in a POSIX shell; plain where nothing in it means anything to one. */
export function shellQuoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
