/**
 * What people read: documents, help, the error catalogue, messages and labels in sources, and docstrings of exported
 * names. Each text comes with the place where it is written.
 */
import { ERROR_CATALOGUE } from '@coxswain/protocol';
import ts from 'typescript';
import { COMMANDS, SECTIONS } from '../libs/cli/src/line/command-table.ts';

/** A text and the place where it is written: `path:line`, or `cox run --help`. */
export interface ReaderText {
  readonly at: string;
  readonly text: string;
}

/** Paragraphs, list items, headings and table cells of a Markdown page. Code is reduced to one word per snippet. */
export function textsOfMarkdown(file: string, page: string): ReaderText[] {
  const texts: ReaderText[] = [];
  let paragraph = '';
  let start = 1;
  let fence: string | null = null;
  const flush = (): void => {
    if (paragraph.trim() !== '') texts.push({ at: `${file}:${start}`, text: paragraph.trim() });
    paragraph = '';
  };
  const visible = page.replace(/<!--[\s\S]*?-->/g, (comment) => comment.replace(/[^\n]/g, ''));
  for (const [index, line] of visible.split('\n').entries()) {
    const [mark] = /^\s*(```+|~~~+)/.exec(line)?.slice(1) ?? [];
    if (fence !== null || mark !== undefined) {
      flush();
      if (fence === null) fence = mark as string;
      else if (mark?.startsWith(fence)) fence = null;
      continue;
    }
    const bare = line.replace(/^(\s*>)+/, '');
    if (/^\s*\|/.test(bare)) {
      flush();
      const cells = withoutMarkup(bare).split(/(?<!\\)\|/);
      texts.push(...cells.filter((cell) => /[a-z]/i.test(cell)).map((text) => ({ at: `${file}:${index + 1}`, text })));
      continue;
    }
    if (bare.trim() === '' || /^\s*([-*+]|\d+[.)])\s/.test(bare) || /^#/.test(bare)) flush();
    if (paragraph === '') start = index + 1;
    paragraph += `${withoutMarkup(bare.replace(/^\s*([-*+]|\d+[.)]|#+)\s+/, ''))} `;
    if (/^#/.test(bare)) flush();
  }
  flush();
  return texts;
}

/** One word for a snippet of code, the text of a link, and neither emphasis nor tags. */
function withoutMarkup(line: string): string {
  return line
    .replace(/``.+?``|`[^`]*`/g, CODE)
    .replace(/!?\[([^\]]*)\](\([^)]*\)|\[[^\]]*\])/g, '$1')
    .replace(/<\/?[a-z][^>]*>/gi, ' ')
    .replace(/[*_]{1,3}(?=\S)|(?<=\S)[*_]{1,3}/g, '');
}

const CODE = 'CODE';

/** Every line of help: of each command, each flag and each topic. */
export const HELP_LINES: readonly ReaderText[] = [
  ...SECTIONS.map((section) =>
    section.topic === undefined
      ? { at: 'cox --help', text: section.title }
      : { at: `cox ${section.topic} --help`, text: section.help },
  ),
  ...COMMANDS.flatMap(({ name, help, flags }) => [
    { at: `cox ${name} --help`, text: help },
    ...Object.entries(flags).map(([flag, spec]) => ({ at: `cox ${name} --${flag}`, text: spec.help })),
  ]),
];

/** The sentence of each command. */
export const COMMAND_HELP: readonly ReaderText[] = COMMANDS.map(({ name, help }) => ({
  at: `cox ${name} --help`,
  text: help,
}));

/** What each error means, what the runtime does and what the reader can do. */
export const ERROR_TEXTS: readonly ReaderText[] = Object.entries(ERROR_CATALOGUE).flatMap(([code, entry]) =>
  [entry.meaning, entry.runtime, entry.caller].map((text) => ({ at: `error ${code}`, text: withoutMarkup(text) })),
);

/** Strings with at least two words, templates among them, and the text between the tags of a page. */
export function textsOfStrings(file: string, source: string): ReaderText[] {
  const texts: ReaderText[] = [];
  walk(parse(file, source), (node) => {
    const text = stringOf(node);
    if (text !== null && /[a-z]\S*\s+\S*[a-z]/i.test(text))
      texts.push({ at: place(file, node), text: withoutMarkup(text) });
  });
  return texts;
}

/** The text of a string that is no name of a module; of a template with one word for each expression. */
function stringOf(node: ts.Node): string | null {
  if (ts.isStringLiteralLike(node)) return ts.isImportDeclaration(node.parent) ? null : node.text;
  if (ts.isTemplateExpression(node)) {
    return node.head.text + node.templateSpans.map(({ literal }) => CODE + literal.text).join('');
  }
  return ts.isJsxText(node) ? node.text.replace(/\s+/g, ' ') : null;
}

/** Docstrings of exported declarations and of their members. */
export function textsOfDocstrings(file: string, source: string): ReaderText[] {
  const texts: ReaderText[] = [];
  for (const statement of parse(file, source).statements) {
    const modifiers = ts.canHaveModifiers(statement) ? (ts.getModifiers(statement) ?? []) : [];
    if (!modifiers.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword)) continue;
    walk(statement, (node) => {
      for (const doc of ts
        .getJSDocCommentsAndTags(node)
        .filter(ts.isJSDoc)
        .filter(({ parent }) => parent === node)) {
        const parts = [doc, ...(doc.tags ?? [])].map(({ comment }) => ts.getTextOfJSDocComment(comment) ?? '');
        texts.push(
          ...parts
            .flatMap((part) => textsOfMarkdown(place(file, doc), part))
            .map(({ text }) => ({ at: place(file, doc), text })),
        );
      }
    });
  }
  return texts;
}

function parse(file: string, source: string): ts.SourceFile {
  return ts.createSourceFile(file, source, ts.ScriptTarget.Latest, true);
}

function walk(node: ts.Node, visit: (node: ts.Node) => void): void {
  visit(node);
  ts.forEachChild(node, (child) => walk(child, visit));
}

function place(file: string, node: ts.Node): string {
  const source = node.getSourceFile();
  return `${file}:${source.getLineAndCharacterOfPosition(node.getStart(source)).line + 1}`;
}

/** Words of another dialect, and the standard words that the documentation uses instead. */
const UNUSUAL_WORDS =
  /\b(whoever|whosoever|somebody|nobody|for ever|mend(?:ed|s)?|beside|in the place of|goes on with|(?:is|be|are) let in|stands in|begun|is told|are told|(?<!there )is no (?!longer)[a-z]+|that is none|any more)\b/gi;
/** Words of the longest sentence. */
const SENTENCE_WORDS = 35;

/** What is wrong with a text: an unusual word, or a sentence that is too long. */
export function findings({ at, text }: ReaderText): string[] {
  const words = [...text.replace(/\s+/g, ' ').matchAll(UNUSUAL_WORDS)].map(({ 0: word }) => `${at} "${word}"`);
  const sentences = text.split(/[.!?]["”’)]*(?:\s|$)|\n\s*\n/);
  const long = sentences
    .map((sentence) => sentence.trim().split(/\s+/))
    .filter((sentence) => sentence.length > SENTENCE_WORDS)
    .map((sentence) => `${at} ${sentence.length} words: ${sentence.slice(0, 6).join(' ')} …`);
  return [...words, ...long];
}
