/**
 * Renders Markdown as elements. The browser never receives it as markup: tokens become the elements below, and
 * everything else becomes text. Images are not loaded: the page sends requests to its own origin only.
 */
import type { Token, Tokens } from 'marked';
import type { ComponentChildren, VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import { markdownTokens } from './markdown-tokens.ts';
import { safeLink } from './safe-link.ts';

/** Deeper nested lists and quotes are shown as text. */
const DEPTH_MAX = 24;

/** Renders a text that may contain Markdown. */
export function Markdown({ text }: { readonly text: string }): VNode {
  // Memoized: a long transcript is rendered again with each piece of an answer.
  return useMemo(() => <div class="markdown">{markdownNodes(text)}</div>, [text]);
}

/** The elements of a text. */
export function markdownNodes(text: string): ComponentChildren {
  const tokens = markdownTokens(text);
  return tokens === null ? <pre class="plain">{text}</pre> : blocks(tokens, 0);
}

function blocks(tokens: readonly Token[], depth: number): ComponentChildren {
  if (depth > DEPTH_MAX) return tokens.map(({ raw }) => raw).join('');
  return tokens.map((token) => block(token, depth));
}

function block(token: Token, depth: number): ComponentChildren {
  switch (token.type) {
    case 'space':
    case 'def':
    // Rendered with its list item.
    case 'checkbox':
      return null;
    case 'heading': {
      // Headings of the page come above these.
      const { depth: level } = token as Tokens.Heading;
      const Heading = level <= 1 ? 'h4' : level === 2 ? 'h5' : 'h6';
      return <Heading>{inlines(token.tokens ?? [], depth)}</Heading>;
    }
    case 'paragraph':
      return <p>{inlines(token.tokens ?? [], depth)}</p>;
    case 'code': {
      const { text, lang } = token as Tokens.Code;
      return (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable elements must be reachable by keyboard
        <pre tabIndex={0}>
          <code data-language={lang === undefined || lang === '' ? undefined : lang.slice(0, 32)}>{text}</code>
        </pre>
      );
    }
    case 'blockquote':
      return <blockquote>{blocks(token.tokens ?? [], depth + 1)}</blockquote>;
    case 'list': {
      const { ordered, start, items } = token as Tokens.List;
      const entries = items.map((item) => <ListItem item={item} depth={depth + 1} />);
      return ordered ? <ol start={start === '' ? undefined : start}>{entries}</ol> : <ul>{entries}</ul>;
    }
    case 'table':
      return <Table table={token as Tokens.Table} depth={depth} />;
    case 'hr':
      return <hr />;
    case 'text':
      return token.tokens ? <p>{inlines(token.tokens, depth)}</p> : decoded(token.raw);
    // Markup is shown as text and not rendered.
    default:
      return <p>{token.raw.trimEnd()}</p>;
  }
}

function ListItem({ item, depth }: { readonly item: Tokens.ListItem; readonly depth: number }) {
  const parts = item.tokens.map((token) =>
    // In a list without blank lines, the text of an item has no paragraph.
    token.type === 'text' && !item.loose && token.tokens ? inlines(token.tokens, depth) : block(token, depth),
  );
  if (!item.task) return <li>{parts}</li>;
  return (
    <li>
      <input type="checkbox" checked={item.checked === true} disabled aria-label={item.checked ? 'done' : 'open'} />{' '}
      {parts}
    </li>
  );
}

function Table({ table, depth }: { readonly table: Tokens.Table; readonly depth: number }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable elements must be reachable by keyboard
    <div class="scrolls" tabIndex={0}>
      <table>
        <thead>
          <tr>
            {table.header.map((cell) => (
              <th scope="col">{inlines(cell.tokens, depth)}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {table.rows.map((row) => (
            <tr>
              {row.map((cell) => (
                <td>{inlines(cell.tokens, depth)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function inlines(tokens: readonly Token[], depth: number): ComponentChildren {
  if (depth > DEPTH_MAX) return tokens.map(({ raw }) => raw).join('');
  return tokens.map((token) => inline(token, depth + 1));
}

function inline(token: Token, depth: number): ComponentChildren {
  switch (token.type) {
    case 'text':
      return token.tokens ? inlines(token.tokens, depth) : decoded((token as Tokens.Text).text);
    case 'escape':
      return (token as Tokens.Escape).text;
    case 'strong':
      return <strong>{inlines(token.tokens ?? [], depth)}</strong>;
    case 'em':
      return <em>{inlines(token.tokens ?? [], depth)}</em>;
    case 'del':
      return <del>{inlines(token.tokens ?? [], depth)}</del>;
    case 'codespan':
      return <code>{(token as Tokens.Codespan).text}</code>;
    case 'br':
      return <br />;
    case 'checkbox':
      return null;
    case 'link':
      return <Link href={(token as Tokens.Link).href}>{inlines(token.tokens ?? [], depth)}</Link>;
    case 'image': {
      const { href, text } = token as Tokens.Image;
      return <Link href={href}>{`image: ${text === '' ? href : text}`}</Link>;
    }
    default:
      return token.raw;
  }
}

/** An unsafe link is shown as text next to its address, so that nothing is hidden. */
function Link({ href, children }: { readonly href: string; readonly children: ComponentChildren }) {
  const safe = safeLink(href);
  if (safe === null)
    return (
      <span class="dead-link">
        {children} <code>{href}</code>
      </span>
    );
  return (
    <a href={safe} title={safe} target="_blank" rel="noopener noreferrer nofollow">
      {children}
    </a>
  );
}

const NAMED: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: '\u00a0' };

/** Decodes the few entities that models write; others stay unchanged. */
function decoded(text: string): string {
  return text.replace(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|([a-z]{2,4}));/gi, (whole, decimal, hex, name) => {
    if (name !== undefined) return NAMED[(name as string).toLowerCase()] ?? whole;
    const point = Number.parseInt(decimal ?? hex, decimal === undefined ? 16 : 10);
    return point > 0x1f && point <= 0x10ffff ? String.fromCodePoint(point) : whole;
  });
}
