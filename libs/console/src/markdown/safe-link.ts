/** Decides which links of a transcript can be opened. */

const FOLLOWED: ReadonlySet<string> = new Set(['http:', 'https:', 'mailto:']);
const LINK_MAX_CHARS = 2_048;

/** The normalized address; null if it does not lead to the web or a mail program. */
export function safeLink(href: string): string | null {
  if (href.length > LINK_MAX_CHARS || !URL.canParse(href)) return null;
  // The parsed address is the one that opens: whitespace and control characters in the scheme are removed.
  const url = new URL(href);
  return FOLLOWED.has(url.protocol) ? url.href : null;
}
