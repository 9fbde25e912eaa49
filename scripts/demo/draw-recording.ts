/** Draws a recorded run of the demo as an animated SVG. */

/** A line of output. */
export interface RecordedLine {
  readonly text: string;
  /** Milliseconds since the start of the recording. */
  readonly atMs: number;
}

/** The width of the drawn terminal in characters. Longer lines wrap after a space. */
const COLUMNS = 92;
const [CHAR_WIDTH, ROW_HEIGHT, PADDING] = [7.8, 19, 16];
/** Limits of a drawn pause in milliseconds: a person reads slower than the demo plays. */
const [SHORTEST_MS, LONGEST_MS] = [350, 1_400];
/** Milliseconds added before each action of the person in the demo. */
const ACTION_MS = 1_200;
/**
 * Time in milliseconds for which the whole screen is shown before and after the recording. The first frame is a still
 * of the whole recording.
 */
const [FIRST_MS, LAST_MS] = [2_500, 6_000];

/** CSS classes by the mark at the start of a `cox` output line. */
const CLASS_BY_MARK: ReadonlyMap<string, string> = new Map([
  ['$', 'command'],
  ['›', 'prompt'],
  ['—', 'person'],
  ['▸', 'dim'],
  ['✓', 'good'],
  ['⊘', 'bad'],
  ['■', 'bad'],
  ['?', 'ask'],
  ['↳', 'steer'],
  ['●', 'good'],
]);

/** Replaces the parts that differ between runs: ids, ports and folders. Durations stay. */
export function steady(line: string): string {
  return line
    .replace(/\S+\/bin\/cox\.mjs/g, 'cox')
    .replace(/ --state-dir \S+/g, '')
    .replace(/scripted\/\S*\/script\.yaml/g, 'scripted/script.yaml')
    .replace(/127\.0\.0\.1:\d+/g, '127.0.0.1:7707')
    .replace(/(?<=\/sessions\/|session\.|cancel-call |approve |replay of )[a-z0-9]{12}\b/g, 'k3f9m2xq7zd5');
}

/** A line without its durations and record counts, which differ between runs. */
export function timeless(line: string): string {
  return line.replace(/\d[\d.]* (ms|s)\b/g, 'N ms').replace(/\d+ records/, 'N records');
}

/** The printed lines of a drawn recording. */
export function linesOf(svg: string): string[] {
  return [...svg.matchAll(/<text[^>]*>(.*?)<\/text>/g)].map(([, rows = '']) =>
    [...rows.matchAll(/<tspan[^>]*>(.*?)<\/tspan>/g)]
      .map(([, row = '']) => row)
      .join('')
      .replaceAll('&lt;', '<')
      .replaceAll('&gt;', '>')
      .replaceAll('&amp;', '&'),
  );
}

/**
 * Draws an animated SVG.
 * @param lines printed lines with their times, in order.
 * @returns the SVG. It shows the whole screen without animations, or if the reader prefers reduced motion.
 */
export function drawRecording(command: string, lines: readonly RecordedLine[]): string {
  const typed = { text: `$ ${command}`, atMs: 0 };
  const shown = [typed, ...lines].map(({ text, atMs }) => ({ rows: wrapped(text), atMs }));
  let before = 0;
  let nowMs = FIRST_MS;
  const times = shown.map(({ rows, atMs }) => {
    const pause = Math.min(LONGEST_MS, Math.max(SHORTEST_MS, atMs - before));
    before = atMs;
    nowMs += atMs === 0 ? 0 : pause + (rows[0]?.startsWith('—') ? ACTION_MS : 0);
    return nowMs;
  });
  const totalMs = nowMs + LAST_MS;
  const frames = times.map((ms, index) => {
    const [still, seen] = [FIRST_MS, ms].map((at) => ((at / totalMs) * 100).toFixed(2));
    return index === 0
      ? ''
      : `@keyframes l${index}{0%,${still}%{opacity:1}${still}1%,${seen}%{opacity:0}${seen}1%,100%{opacity:1}}`;
  });
  let row = 0;
  const texts = shown.map(({ rows }, index) => {
    const spans = rows.map((text) => {
      row += 1;
      return `<tspan x="${PADDING}" y="${PADDING + row * ROW_HEIGHT - 5}">${escaped(text)}</tspan>`;
    });
    const mark = CLASS_BY_MARK.get(rows[0]?.trimStart()[0] ?? '') ?? 'said';
    return `<text class="${mark}"${index === 0 ? '' : ` style="animation-name:l${index}"`}>${spans.join('')}</text>`;
  });
  const [width, height] = [Math.ceil(COLUMNS * CHAR_WIDTH + 2 * PADDING), row * ROW_HEIGHT + 2 * PADDING];
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title">
<title id="title">A terminal: ${escaped(command)} plays the demo</title>
<!-- Recorded by npm run record:demo. Pauses are lengthened or cut; ids, ports and folders are replaced. -->
<style>
rect { fill: #0d1117; stroke: #3d444d; }
text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace; white-space: pre; animation: ${(totalMs / 1_000).toFixed(1)}s infinite; }
.said { fill: #e6edf3; } .dim { fill: #9198a1; } .good { fill: #56d364; } .bad { fill: #ff7b72; } .ask { fill: #e3b341; }
.command, .prompt { fill: #79c0ff; font-weight: 600; } .person { fill: #e3b341; font-weight: 600; } .steer { fill: #d2a8ff; }
@media (prefers-reduced-motion: reduce) { text { animation: none; } }
${frames.filter((frame) => frame !== '').join('\n')}
</style>
<rect x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="8"/>
${texts.join('\n')}
</svg>
`;
}

/** The rows of a wrapped line. The concatenated rows equal the line. */
function wrapped(line: string): string[] {
  const rows = [''];
  for (const word of line.match(/ *[^ ]+ ?/g) ?? []) {
    const row = rows.at(-1) ?? '';
    if (row !== '' && row.length + word.trimEnd().length > COLUMNS) rows.push(word);
    else rows[rows.length - 1] = row + word;
  }
  return rows;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
