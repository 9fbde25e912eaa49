/** Formats the arguments of a call for a decision: file edits as a diff, everything else as JSON. */
import { printable, printableJson, visibleLine } from '@coxswain/client';
import type { Json } from '@coxswain/protocol';
import { structuredPatch } from 'diff';
import { counted, type Style, wrapStyled } from '../terminal/mod.ts';

/** The names of the old and the new text of an edit in common tools. */
const EDIT_NAMES = [
  ['old_text', 'new_text'],
  ['old_string', 'new_string'],
  ['oldText', 'newText'],
  ['old_str', 'new_str'],
] as const;
const PATH_NAMES = ['path', 'file_path', 'filename', 'file'] as const;
/** Context lines around a change. */
const CONTEXT_LINES = 3;
/** The time limit of a diff, in ms. Beyond it, all old lines and all new lines are shown. */
const DIFF_MAX_MS = 200;
const INDENT = '    ';

/**
 * The rows of the arguments. Invisible characters are shown as escapes, and long lines are wrapped and not cut, so that
 * a person sees what they approve.
 * @param maxRows after this many rows, one more row gives the number of remaining lines.
 */
export function argumentLines(args: Json, columns: number, style: Style, maxRows: number): string[] {
  const rows: string[] = [];
  const lines = argumentParts(args, style);
  for (const [index, { text, ...prefixes }] of lines.entries()) {
    if (rows.length >= maxRows)
      return [...rows, style.yellow(`${INDENT}… ${counted(lines.length - index, 'more line')}: Ctrl-O shows all`)];
    rows.push(...wrapStyled(text, columns, { ...prefixes, anywhere: true }));
  }
  return rows;
}

interface Part {
  readonly text: string;
  readonly first: string;
  readonly rest: string;
}

function argumentParts(args: Json, style: Style): Part[] {
  const edits = editsOf(args);
  if (edits !== null) return edits.flatMap((edit) => diffParts(edit, style));
  return args === null || (typeof args === 'object' && Object.keys(args).length === 0) ? [] : jsonParts(args);
}

function jsonParts(value: Json): Part[] {
  return printableJson(value)
    .split('\n')
    .map((text) => ({ text, first: INDENT, rest: INDENT }));
}

/**
 * The number of added and removed lines, `+3 -1`; for a whole file its lines, because its previous content is unknown
 * here. Null for a call that edits no file.
 */
function editSize(args: Json): string | null {
  const edits = editsOf(args);
  if (edits === null) return null;
  const [first] = edits;
  if (first?.isWholeFile) return `(whole file, ${counted(hunkLines(first).length, 'line')})`;
  let added = 0;
  let removed = 0;
  for (const line of edits.flatMap(hunkLines)) {
    if (line.startsWith('+')) added += 1;
    else if (line.startsWith('-')) removed += 1;
  }
  return `+${added} -${removed}`;
}

/**
 * The subject of a call in one line: the file of an edit and its size, as `math.ts +2 -1`; otherwise the summary.
 * @param summary the shortened arguments.
 */
export function callSubject(args: Json, summary: string): string {
  return (typeof args === 'object' && args !== null ? editSubject(args) : null) ?? printable(summary);
}

/** Caches the subjects, because every frame needs them and a long diff takes time. */
const subjects = new WeakMap<object, string | null>();

function editSubject(args: NonNullable<Json> & object): string | null {
  const known = subjects.get(args);
  if (known !== undefined) return known;
  const size = editSize(args);
  const path = size === null ? null : pathOf(args);
  const subject = path === null ? null : `${path} ${size}`;
  subjects.set(args, subject);
  return subject;
}

/** The file that a call names, with the escapes of JSON. */
function pathOf(args: Json): string | null {
  const fields = args as { readonly [name: string]: Json };
  const found = PATH_NAMES.map((name) => fields[name]).find((value) => typeof value === 'string');
  return found === undefined ? null : printableJson(found).slice(1, -1);
}

interface Edit {
  readonly old: string;
  readonly new: string;
  /** Arguments other than the two texts, such as `replace_all`. */
  readonly others: Json;
  /** Whether the new text is the whole file. */
  readonly isWholeFile?: true;
}

/** The edits of a call: one, or those of a list `edits`; null for other arguments. */
function editsOf(args: Json): readonly Edit[] | null {
  if (typeof args !== 'object' || args === null || Array.isArray(args)) return null;
  const fields = args as { readonly [name: string]: Json };
  if (Array.isArray(fields.edits)) {
    const edits = fields.edits.map((edit) => editOf(edit as Json));
    const known = edits.filter((edit) => edit !== null);
    if (known.length === 0 || known.length < edits.length) return null;
    const others = without(fields, ['edits', ...PATH_NAMES]);
    return others === null ? known : [...known, { old: '', new: '', others }];
  }
  const edit = editOf(fields);
  if (edit !== null) return [edit];
  const isText = fields.encoding === undefined || fields.encoding === 'utf8';
  if (typeof fields.content !== 'string' || !isText || PATH_NAMES.every((name) => fields[name] === undefined))
    return null;
  const others = without(fields, ['content', 'encoding', ...PATH_NAMES]);
  return [{ old: '', new: fields.content, others, isWholeFile: true }];
}

function editOf(value: Json): Edit | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
  const fields = value as { readonly [name: string]: Json };
  for (const [old, changed] of EDIT_NAMES) {
    const [from, to] = [fields[old], fields[changed]];
    if (typeof from === 'string' && typeof to === 'string')
      return { old: from, new: to, others: without(fields, [old, changed, ...PATH_NAMES]) };
  }
  return null;
}

function without(fields: { readonly [name: string]: Json }, names: readonly string[]): Json {
  const others = Object.entries(fields).filter(([name]) => !names.includes(name));
  return others.length === 0 ? null : (Object.fromEntries(others) as Json);
}

function hunkLines(edit: Edit): string[] {
  // A part of a file often has no final line break. It is shown only if the edit changes it.
  const isSameEnd = edit.old.endsWith('\n') === edit.new.endsWith('\n') || edit.old === '';
  const [old, changed] = isSameEnd ? [withEnd(edit.old), withEnd(edit.new)] : [edit.old, edit.new];
  const options = { context: CONTEXT_LINES, timeout: DIFF_MAX_MS } as const;
  const patch = structuredPatch('', '', old, changed, undefined, undefined, options);
  if (patch === undefined) return [...signed('-', old), ...signed('+', changed)];
  return patch.hunks.flatMap(({ lines }, index) => (index === 0 ? lines : ['…', ...lines]));
}

function withEnd(text: string): string {
  return text === '' || text.endsWith('\n') ? text : `${text}\n`;
}

function signed(sign: string, text: string): string[] {
  return text === '' ? [] : text.split('\n').map((line) => `${sign}${line}`);
}

const COLOURS: Readonly<Record<string, 'green' | 'red' | 'dim'>> = {
  '+': 'green',
  '-': 'red',
  '…': 'dim',
  '\\': 'dim',
};

function diffParts(edit: Edit, style: Style): Part[] {
  const parts = hunkLines(edit).map((line) => {
    const sign = line.charAt(0);
    const [, blanks = '', text = ''] = /^(\s*)(.*)$/s.exec(line.slice(1)) ?? [];
    const colour = COLOURS[sign];
    const paint = (part: string) => (colour === undefined ? part : style[colour](part));
    const shown = `${blanks.replace(/[^ \t]/g, ' ')}${visibleLine(text, Number.MAX_SAFE_INTEGER)}`;
    return {
      text: paint(shown),
      first: `${INDENT}${paint(sign)} `,
      rest: `${INDENT}${paint(sign === ' ' ? ' ' : '┆')} `,
    };
  });
  return edit.others === null ? parts : [...parts, ...jsonParts(edit.others)];
}
