/** The few forms that all generated pages share. */

/** The first line of a generated page. */
export function generatedFrom(...sources: readonly string[]): string {
  return `<!-- Generated from ${sources.join(', ')} by \`npm run docs\`. Do not edit. -->\n`;
}

/** A table, one row per list of cells. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map(cell).join(' | ')} |`;
  return [line(head), `|${head.map(() => '---').join('|')}|`, ...rows.map(line)].join('\n');
}

// Inside code nothing but the bar between cells means anything.
function cell(text: string): string {
  return text
    .replaceAll('|', '\\|')
    .replaceAll('\n', ' ')
    .split('`')
    .map((part, index) => (index % 2 === 1 ? part : part.replaceAll(/<(?!br>)/g, '&lt;')))
    .join('`');
}

/** Code in a sentence; nothing stays nothing. */
export function code(text: string): string {
  return text === '' ? '' : `\`${text}\``;
}
