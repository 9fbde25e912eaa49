import { expect, test } from 'vitest';
import {
  appendMarkdown,
  EMPTY_MARKDOWN,
  type MarkdownBlock,
  markdownLines,
  openMarkdown,
} from '../src/live-view/mod.ts';
import { columnsOf, createStyle, wrapStyled } from '../src/terminal/mod.ts';

const plain = createStyle(false);
const rowsOf = (blocks: readonly MarkdownBlock[], columns = 40) =>
  blocks.flatMap(({ token, gap }) => [...(gap ? [''] : []), ...markdownLines(token, columns, plain)]);

/** The rows of a text that arrives in pieces, and the longest tail that was parsed again meanwhile. */
function streamed(text: string, pieceChars: number, columns = 40) {
  let stream = EMPTY_MARKDOWN;
  let longest = 0;
  const blocks: MarkdownBlock[] = [];
  for (let at = 0; at < text.length; at += pieceChars) {
    const step = appendMarkdown(stream, text.slice(at, at + pieceChars));
    stream = step.stream;
    longest = Math.max(longest, stream.tail.length);
    blocks.push(...step.finished);
  }
  return { rows: rowsOf([...blocks, ...openMarkdown(stream)], columns), longest };
}

const TEXT = `# Title

Some **bold** text with \`code\` and a [link](https://a.example/b), which is longer than a row.

1. first
2. second
   - nested 漢字
3. third

\`\`\`ts
const a = 1;

  const b = '👨‍👩‍👧';
\`\`\`
- [x] done
- open

| name | n |
|------|--:|
| 漢字 | 1 |
| b | 20 |

> quoted

The end.
`;

test('Markdown is drawn the same, however it is split into pieces', () => {
  const { rows } = streamed(TEXT, TEXT.length);
  expect(rows).toEqual([
    '',
    'Title',
    '',
    'Some bold text with code and a link',
    '(https://a.example/b), which is longer',
    'than a row.',
    '',
    '1. first',
    '2. second',
    '   • nested 漢字',
    '3. third',
    '',
    '  const a = 1;',
    '  ',
    "    const b = '👨‍👩‍👧';",
    '',
    '• [x] done',
    '• open',
    '',
    'name │  n',
    '─────┼───',
    '漢字 │  1',
    'b    │ 20',
    '',
    '│ quoted',
    '',
    'The end.',
  ]);
  for (const chars of [1, 3, 7, 64]) expect(streamed(TEXT, chars).rows).toEqual(rows);
});

test('an empty line after a closing fence ends the code', () => {
  const text = 'Intro\n\n```ts\nconst x = 1;\n```\n\n- item\n\nend';
  const rows = ['', 'Intro', '', '  const x = 1;', '', '• item', '', 'end'];
  for (let chars = 1; chars <= text.length; chars++) expect(streamed(text, chars).rows, `${chars}`).toEqual(rows);
});

test.each([
  { of: 'a fence of tildes around one of backticks', text: '~~~\n```\n~~~\n\nend', rows: ['  ```', '', 'end'] },
  {
    of: 'a deeply indented fence, which is code',
    text: '```\nx\n    ```\ny\n```\nend',
    rows: ['  x', '      ```', '  y', '', 'end'],
  },
  { of: 'an indented block', text: '  ```ts\n  x\n    y\n  ```\nend', rows: ['  x', '    y', '', 'end'] },
  { of: 'an empty last line', text: '```\nx\n\n```\nend', rows: ['  x', '  ', '', 'end'] },
])('code with $of is drawn the same, however it is split into pieces', ({ text, rows }) => {
  for (let chars = 1; chars <= text.length; chars++)
    expect(streamed(text, chars).rows, `${chars}`).toEqual(['', ...rows]);
});

test('a list keeps its numbers and its empty lines, however it is split into pieces', () => {
  const text = '1. a\n1. b\n\n1. c\n\n   more\n1. d\n\nend';
  const rows = ['', '1. a', '2. b', '', '3. c', '', '   more', '4. d', '', 'end'];
  for (let chars = 1; chars <= text.length; chars++) expect(streamed(text, chars).rows, `${chars}`).toEqual(rows);
});

test('long blocks finish in parts, so that the open text stays short', () => {
  const code = `\`\`\`\n${'x = 1\n'.repeat(500)}\`\`\`\n`;
  expect(streamed(code, 10).longest).toBeLessThan(100);
  const list = Array.from({ length: 200 }, (_, n) => `${n + 1}. item`).join('\n');
  const { rows, longest } = streamed(list, 10);
  expect(longest).toBeLessThan(100);
  expect(rows.at(-1)).toBe('200. item');
  expect(streamed('word '.repeat(2_000), 50).longest).toBeLessThan(5_000);
  // Too deep for the parser: shown as it was written.
  expect(streamed('>'.repeat(4_000), 4_000).rows.join('')).toContain('>>>>');
});

test('a table that is too wide is shortened column by column', () => {
  const wide = `| a | b |\n|---|---|\n| ${'long '.repeat(10)} | x |\n`;
  for (const row of streamed(wide, 1_000, 24).rows) expect(columnsOf(row)).toBeLessThanOrEqual(24);
});

test('rows carry their style, keep characters whole and never exceed the width', () => {
  const { bold, red } = createStyle(true);
  expect(wrapStyled(bold(`ab ${red('cd')}`), 4, { first: '', rest: '  ' })).toEqual([
    '\u001b[1mab\u001b[0m',
    '  \u001b[1;31mcd\u001b[0m',
  ]);
  expect(wrapStyled('👨‍👩‍👧👨‍👩‍👧漢字', 4)).toEqual(['👨‍👩‍👧👨‍👩‍👧', '漢字']);
  expect(wrapStyled('ab  cd', 4, { anywhere: true })).toEqual(['ab  ', 'cd']);
});
