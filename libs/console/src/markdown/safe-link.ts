/** Which links of a transcript may be followed. */

const FOLLOWED: ReadonlySet<string> = new Set(['http:', 'https:', 'mailto:']);
const LINK_MAX_CHARS = 2_048;

/** The address as the browser reads it, or null for what leads anywhere but to the web or into a mail program. */
export function safeLink(href: string): string | null {
  if (href.length > LINK_MAX_CHARS || !URL.canParse(href)) return null;
  // What is parsed is what is followed: white space and control characters within a scheme are gone by now.
  const url = new URL(href);
  return FOLLOWED.has(url.protocol) ? url.href : null;
}
