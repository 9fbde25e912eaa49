/** Reads what tests need of a page of Markdown: its fenced blocks, its links, and the names of its headings. */
import { lexer, type Token, walkTokens } from 'marked';

/** A fenced block of code. */
export interface Fence {
  /** The language that the page names, `ts`; empty without one. */
  readonly language: string;
  readonly text: string;
  /** The line of the page that holds the first line of code, from 1. */
  readonly line: number;
}

/** Every fenced block of a page, also those in lists. */
export function fencesOf(text: string): Fence[] {
  const fences: Fence[] = [];
  let open: { readonly indent: string; readonly language: string; readonly line: number; lines: string[] } | null =
    null;
  for (const [index, line] of text.split('\n').entries()) {
    const [, indent = '', language = ''] = /^(\s*)```(\S*)\s*$/.exec(line) ?? [];
    if (open === null) {
      if (/^\s*```/.test(line)) open = { indent, language, line: index + 2, lines: [] };
    } else if (line === `${open.indent}\`\`\``) {
      fences.push({ language: open.language, line: open.line, text: `${open.lines.join('\n')}\n` });
      open = null;
    } else open.lines.push(line.slice(open.indent.length));
  }
  return fences;
}

/** The links and images of a page, and the anchors of its headings as GitHub and the site name them. */
export function linksOf(text: string): { readonly links: readonly string[]; readonly anchors: ReadonlySet<string> } {
  const links: string[] = [];
  const anchors = new Set<string>();
  walkTokens(lexer(text), (token) => {
    if (token.type === 'link' || token.type === 'image') links.push(token.href);
    if (token.type !== 'heading') return;
    const base = slugOf(plainText(token.tokens ?? []));
    let anchor = base;
    for (let times = 1; anchors.has(anchor); times += 1) anchor = `${base}-${times}`;
    anchors.add(anchor);
  });
  return { links, anchors };
}

const slugOf = (heading: string): string =>
  heading
    .toLowerCase()
    .trim()
    .replace(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, '')
    .replaceAll(' ', '-');

function plainText(tokens: readonly Token[]): string {
  return tokens
    .map((token) => {
      if ('tokens' in token && token.tokens) return plainText(token.tokens);
      return token.type === 'html' || !('text' in token) ? '' : unescaped(String(token.text));
    })
    .join('');
}

const unescaped = (text: string): string =>
  text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&quot;', '"').replaceAll('&amp;', '&');
