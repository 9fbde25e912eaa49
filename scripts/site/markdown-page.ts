/** Reads one page of Markdown: its HTML, its headings, its links, and its sections as plain text. */
import hljs from 'highlight.js/lib/common';
import { Marked, type Token, type Tokens } from 'marked';
import { HeadingSlugs } from './heading-slug.ts';

/** A heading of a page. */
export interface Heading {
  readonly depth: number;
  readonly text: string;
  /** Its name in addresses. */
  readonly slug: string;
}

/** What stands below one heading, for the search. */
export interface Section {
  readonly heading: string;
  readonly slug: string;
  readonly text: string;
}

/** A page that was read. */
export interface MarkdownPage {
  /** Its first heading. */
  readonly title: string;
  readonly html: string;
  readonly headings: readonly Heading[];
  readonly sections: readonly Section[];
}

/** A fenced block of code. */
export interface Fence {
  /** As the page says, `ts`; empty where it says nothing. */
  readonly language: string;
  readonly text: string;
  /** Of its first line of code, from 1. */
  readonly line: number;
}

/** A link of a page, as it is written. */
export type LinkWriter = (href: string) => string;

/**
 * Renders a page.
 * @param link says where a link of it leads.
 * @param diagrams SVG, by the source in the page; a diagram that is not among them is shown as code.
 */
export function readMarkdown(
  text: string,
  link: LinkWriter,
  diagrams: ReadonlyMap<string, string> = new Map(),
): MarkdownPage {
  const headings: Heading[] = [];
  const slugs = new HeadingSlugs();
  const marked = new Marked({
    gfm: true,
    renderer: {
      heading({ tokens, depth, text: raw }) {
        const plain = plainText(tokens);
        const slug = slugs.slug(plain);
        headings.push({ depth, text: plain, slug });
        const inner = this.parser.parseInline(tokens);
        if (depth === 1) return `<h1 id="${slug}">${inner}</h1>\n`;
        return `<h${depth} id="${slug}">${inner}<a class="anchor" href="#${slug}" aria-label="Link to ${escaped(raw)}">#</a></h${depth}>\n`;
      },
      link({ href, tokens }) {
        const away = /^[a-z]+:/.test(href) ? ' rel="noreferrer"' : '';
        return `<a href="${escaped(link(href))}"${away}>${this.parser.parseInline(tokens)}</a>`;
      },
      image({ href, text: alt }) {
        return `<img src="${escaped(link(href))}" alt="${escaped(alt)}">`;
      },
      code({ text: code, lang }) {
        const svg = diagrams.get(code);
        return svg ? figure(svg, headings.at(-1)?.text ?? '', code) : codeBlock(code, lang ?? '');
      },
      table(token) {
        const cells = (row: readonly Tokens.TableCell[], tag: string) =>
          row.map((cell) => `<${tag}>${this.parser.parseInline(cell.tokens)}</${tag}>`).join('');
        // Tables without a head are written with an empty one: nothing of it is shown.
        const head = token.header.some((cell) => cell.text !== '')
          ? `<thead><tr>${cells(token.header, 'th')}</tr></thead>`
          : '';
        const body = token.rows.map((row) => `<tr>${cells(row, 'td')}</tr>`).join('\n');
        return `<div class="table"><table>${head}<tbody>\n${body}\n</tbody></table></div>\n`;
      },
    },
  });
  const html = marked.parse(text, { async: false });
  const title = headings[0]?.text ?? '';
  return { title, html, headings, sections: sectionsOf(text) };
}

/** A block of code with its colours. @param language one that the highlighter knows, else the code is left plain. */
export function codeBlock(code: string, language: string): string {
  const name = LANGUAGES[language] ?? language;
  const known = hljs.getLanguage(name) !== undefined;
  const inner = known ? hljs.highlight(code, { language: name }).value : escaped(code);
  return `<div class="code"><pre><code>${inner}</code></pre></div>\n`;
}

/** A drawing that may be wider than the page, and what it was drawn from. */
function figure(svg: string, subject: string, source: string): string {
  return `<figure><div class="drawing" role="img" tabindex="0" aria-label="Diagram of ${escaped(subject)}; its text follows">${svg}</div>
<details><summary>Diagram as text</summary>${codeBlock(source, '')}</details></figure>\n`;
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

/** Every link and heading of a page, without rendering it. */
export function linksOf(text: string): { readonly links: readonly string[]; readonly headings: readonly Heading[] } {
  const links: string[] = [];
  const { headings } = readMarkdown(text, (href) => {
    links.push(href);
    return href;
  });
  return { links, headings };
}

/** @returns text that means itself in HTML. */
export function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}

/** How pages call languages that the highlighter calls otherwise. */
const LANGUAGES: Readonly<Record<string, string>> = {
  sh: 'bash',
  html: 'xml',
  mjs: 'javascript',
  tsx: 'typescript',
  yml: 'yaml',
};

function plainText(tokens: readonly Token[]): string {
  return tokens
    .map((token) => {
      if ('tokens' in token && token.tokens) return plainText(token.tokens);
      if (token.type === 'html') return '';
      return 'text' in token ? unescaped(String(token.text)) : '';
    })
    .join('');
}

function unescaped(text: string): string {
  return text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&quot;', '"').replaceAll('&amp;', '&');
}

function sectionsOf(text: string): Section[] {
  const slugs = new HeadingSlugs();
  const sections: { heading: string; slug: string; text: string }[] = [];
  for (const token of new Marked({ gfm: true }).lexer(text)) {
    if (token.type === 'heading') {
      const heading = plainText(token.tokens ?? []);
      sections.push({ heading, slug: slugs.slug(heading), text: '' });
      continue;
    }
    const section = sections.at(-1);
    if (section && token.type !== 'html') section.text += ` ${searchable(token.raw)}`;
  }
  return sections;
}

/** What people might look for, without the marks of Markdown. */
function searchable(markdown: string): string {
  return markdown
    .replace(/\]\([^)]*\)/g, ' ')
    .replace(/^\s*```\S*$/gm, ' ')
    .replace(/[`*|#[\]]+/g, ' ')
    .replace(/-{3,}/g, ' ')
    .replace(/\s+/g, ' ')
    .trim();
}
