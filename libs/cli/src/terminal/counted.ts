/** Formats counts for people. */

/** `1 session`, `2 sessions`, `0 sessions`: for words whose plural ends in s. */
export function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}
