/** Markdown elements of generated pages. */

/** The first line of a generated page. */
export function generatedFrom(...sources: readonly string[]): string {
  return `<!-- Generated from ${sources.join(', ')} by \`npm run docs\`. Do not edit. -->\n`;
}

/** A Markdown table, with one row per list of cells. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map(cell).join(' | ')} |`;
  return [line(head), `|${head.map(() => '---').join('|')}|`, ...rows.map(line)].join('\n');
}

// In code spans, only the bar has a meaning in Markdown.
function cell(text: string): string {
  return text
    .replaceAll('|', '\\|')
    .replaceAll('\n', ' ')
    .split('`')
    .map((part, index) => (index % 2 === 1 ? part : part.replaceAll(/<(?!br>)/g, '&lt;')))
    .join('`');
}

/** A code span. An empty text gives an empty text. */
export function code(text: string): string {
  return text === '' ? '' : `\`${text}\``;
}
