/** Markdown becomes elements that are named in the renderer, and everything else becomes text. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { markdownNodes } from '../src/markdown/markdown.tsx';
import { safeLink } from '../src/markdown/safe-link.ts';
import { shownMarkup } from './shown-markup.ts';

const shown = (text: string): string => shownMarkup(markdownNodes(text));

describe('what models write is laid out:', () => {
  test.each([
    ['a *word* and **more**', '<p>"a "<em>"word"</em>" and "<strong>"more"</strong></p>'],
    ['# Title', '<h4>"Title"</h4>'],
    ['`a < b`', '<p><code>"a < b"</code></p>'],
    ['```js\nlet a;\n```', '<pre tabIndex=0><code data-language=js>"let a;"</code></pre>'],
    ['- one\n- two', '<ul><li>"one"</li><li>"two"</li></ul>'],
    ['3. three', '<ol start=3><li>"three"</li></ol>'],
    ['> said', '<blockquote><p>"said"</p></blockquote>'],
    ['a &amp; b &lt;c&gt;', '<p>"a & b <c>"</p>'],
    ['one\ntwo', '<p>"one"<br></br>"two"</p>'],
  ])('%j', (text, markup) => expect(shown(text)).toBe(markup));

  test('a table scrolls by itself', () => {
    expect(shown('|a|b|\n|-|-|\n|1|2|')).toContain('<table><thead><tr><th scope=col>"a"</th>');
  });
  test('a task is a box that nobody can tick', () => {
    expect(shown('- [x] done')).toBe(
      '<ul><li><input type=checkbox checked=true disabled=true aria-label=done></input>" ""done"</li></ul>',
    );
    // With blank lines between.
    expect(visibleText('- [ ] one\n\n- [x] two')).toBe(' one two');
  });
});

describe('what would do something is shown, and does nothing:', () => {
  test.each([
    '<script>alert(1)</script>',
    '<img src=x onerror=alert(1)>',
    '<a href="javascript:alert(1)">x</a>',
    '<style>*{display:none}</style>',
    '<iframe srcdoc="<script>alert(1)</script>"></iframe>',
    'text <b onclick="alert(1)">bold</b> text',
    '<svg><script>alert(1)</script></svg>',
  ])('%s', (text) => {
    const elements: string[] = [];
    walk(markdownNodes(text), (type) => void elements.push(type));
    expect(elements).toEqual(['p']);
    expect(visibleText(text)).toContain(text);
  });

  test.each(['javascript:alert(1)', 'JaVaScRiPt:alert(1)', 'java\tscript:alert(1)', 'data:text/html,x', 'vbscript:x'])(
    'a link to %j is text with its address beside it',
    (href) => {
      expect(safeLink(href)).toBeNull();
      const markup = shown(`[press](<${href}>)`);
      expect(markup).not.toContain('href=');
      expect(visibleText(`[press](<${href}>)`)).toContain('press');
    },
  );
  test('a link that leads into the console itself is none', () => expect(safeLink('#token=stolen')).toBeNull());
  test('a link to the web says nothing of where it comes from', () => {
    expect(shown('[w](https://example.com/a)')).toBe(
      '<p><a href=https://example.com/a title=https://example.com/a target=_blank rel=noopener noreferrer nofollow>"w"</a></p>',
    );
  });
  test('an image is not fetched: it is a link', () => {
    expect(shown('![cat](https://example.com/cat.png)')).toContain('"image: cat"</a>');
  });
});

describe('bounds:', () => {
  test('a text that is too long to be read as Markdown is shown as it is', () => {
    const text = '*'.repeat(100_001);
    expect(shown(text)).toBe(`<pre class=plain>"${text}"</pre>`);
  });
  test('a text with too many lines is shown as it is', () => {
    const text = 'a\n'.repeat(5_000);
    expect(shown(text)).toMatch(/^<pre class=plain>/);
    expect(shown(text.replaceAll('\n', '\r'))).toMatch(/^<pre class=plain>/);
    expect(shown(text.slice(2))).toMatch(/^<p>/);
  });
  test('a table with too many cells is shown as text', () => {
    const table = (columns: number, rows: number) =>
      `${'|a'.repeat(columns)}|\n${'|-'.repeat(columns)}|\n${'|x\n'.repeat(rows)}`;
    expect(shown(table(10, 50))).toContain('<table>');
    expect(shown(table(300, 50))).not.toContain('<table>');
    expect(shown(table(10, 2_000))).not.toContain('<table>');
    // No text is lost where a list item contains it.
    const rows = Array.from({ length: 4_000 }, (_, row) => `  |r${row}`);
    const item = visibleText(['- first', '  |a|b|c|', '  |-|-|-|', ...rows].join('\n'));
    expect(item).toMatch(/first.*a\|b\|c.*r0.*r3999/s);
  });
  test('a line whose underline is far below is text', () => {
    expect(shown('- a\n  ===')).toBe('<ul><li><h4>"a"</h4></li></ul>');
    expect(shown(`- ${'a\n'.repeat(400)}  ===`)).toMatch(/^<ul><li>"a"/);
  });
  test('what is nested too deep is text', () => {
    expect(shown(`${'>'.repeat(200)} deep`)).toContain('deep');
  });
  test.each([
    ['quotes', '> '.repeat(20_000)],
    ['lists', '- '.repeat(20_000)],
    ['numbers', '1. '.repeat(20_000)],
    ['both', '> - '.repeat(10_000)],
    ['lists by their margin', Array.from({ length: 400 }, (_, depth) => `${'  '.repeat(depth)}- a`).join('\n')],
  ])('%s without a ground do not stop the page', (_what, text) => {
    expect(visibleText(`${text}deep`)).toContain('deep');
  });
  test('a paragraph that would be read for minutes is shown without it', () => {
    const text = '_a'.repeat(40_000);
    expect(shown(`before\n\n${text}\n\n*after*`)).toBe(`<p>"before"</p><p>"${text}"</p><p><em>"after"</em></p>`);
  });
  test('of many long paragraphs or cells, the first ones are laid out, and the others are text', () => {
    const long = `*b*${'a'.repeat(3_900)}`;
    const cells = shown(`${'|h'.repeat(24)}|\n${'|-'.repeat(24)}|\n${`|${long}`.repeat(24)}|\n\n*after*`);
    expect(cells.split('<td><em>"b"</em>')).toHaveLength(4 + 1);
    expect(cells.split(`<td>"${long}"</td>`)).toHaveLength(20 + 1);
    expect(cells).toContain('<p><em>"after"</em></p>');
    const paragraphs = Array.from({ length: 64 }, (_, at) => `*b* ${at} ${'a'.repeat(990)}`);
    expect(shown(paragraphs.join('\n\n')).split('<em>')).toHaveLength(64 + 1);
  });
  test('a line is laid out as before, whatever it begins with', () => {
    expect(shown('> - **deep**')).toBe('<blockquote><ul><li><strong>"deep"</strong></li></ul></blockquote>');
  });
});

const ELEMENTS =
  /^(p|h4|h5|h6|pre|code|blockquote|ol|ul|li|table|thead|tbody|tr|th|td|hr|br|strong|em|del|a|span|div|input)$/;

test('whatever the text, only elements of the renderer come out, and no attribute that runs anything', () => {
  const piece = fc.oneof(
    fc.string({ maxLength: 12 }),
    fc.constantFrom(
      '<script>',
      '[a](',
      'javascript:',
      ')',
      '![',
      '](',
      '`',
      '```\n',
      '|',
      '\n- ',
      '> ',
      '&#60;',
      'onerror=',
    ),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
      walk(markdownNodes(pieces.join('')), (type, props) => {
        expect(type).toMatch(ELEMENTS);
        for (const [name, value] of Object.entries(props)) {
          expect(name).not.toMatch(/^(on|srcdoc$|src$|style$|dangerouslySetInnerHTML$)/i);
          if (name === 'href') expect(value).toMatch(/^(https?:|mailto:)/);
        }
      });
    }),
  );
});

type Seen = (type: string, props: Record<string, unknown>) => void;

function walk(node: unknown, seen: Seen): void {
  if (Array.isArray(node)) {
    for (const one of node) walk(one, seen);
    return;
  }
  if (typeof node !== 'object' || node === null) return;
  const { type, props } = node as { type: unknown; props: Record<string, unknown> };
  if (typeof type === 'function') {
    walk(type({ ...props }), seen);
    return;
  }
  const { children, ...attributes } = props;
  seen(String(type), attributes);
  walk(children, seen);
}

function visibleText(text: string): string {
  const texts: string[] = [];
  const collect = (node: unknown): void => {
    if (typeof node === 'string') texts.push(node);
    else if (Array.isArray(node)) for (const one of node) collect(one);
    else if (typeof node === 'object' && node !== null) {
      const { type, props } = node as { type: unknown; props: Record<string, unknown> };
      collect(typeof type === 'function' ? type({ ...props }) : props.children);
    }
  };
  collect(markdownNodes(text));
  return texts.join('');
}
