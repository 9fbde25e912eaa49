/**
 * Bounds a tool's result before it is recorded. If its text exceeds the tool's `max_output` (by default
 * `BOUNDS.toolResultInlineMaxBytes`), the whole text is stored as a blob, and the record has the beginning. If the tool
 * truncated the text itself, the whole text that it returned is stored. Files without room in the record become blobs,
 * too. The record refers to blobs by hash. What is too large for a blob, or cannot be stored, is left out, with a note
 * or an error. Large fields of records in general: `sealRecord` (append-record.ts).
 */
import type { Blobs, ToolOutcome } from '@coxswain/ports';
import {
  BOUNDS,
  cutText,
  type FilePart,
  shownMediaType,
  type TextPart,
  type ToolDefinition,
  type ToolResult,
} from '@coxswain/protocol';
import { sha256Hex } from '../journal/append-record.ts';
import { cutUtf8 } from './whole-results.ts';

/** The tool that reads the rest of a truncated result. The note in the result names it. */
export const READ_ON_TOOL = 'read_result';

/** The tool of a result, and whether the model can read the rest of a truncated one. */
export interface ResultFrame {
  readonly tool: ToolDefinition | undefined;
  /** Whether the model has the tool {@link READ_ON_TOOL}. */
  readonly hasReadOnTool: boolean;
}

/**
 * The status and the result of a call in recordable form. Never rejects. The result says which texts, files and details
 * were left out or could not be stored. If the text in `result.content` exceeds `BOUNDS.toolResultKeptMaxBytes`, an
 * error replaces the whole result.
 */
export async function boundResult(
  blobs: Pick<Blobs, 'put'>,
  outcome: ToolOutcome,
  frame: ResultFrame,
): Promise<ToolOutcome> {
  const { status } = outcome;
  const parts = outcome.result.content;
  const given = parts.filter((part) => part.type === 'text');
  // A UTF-16 unit has at least one byte: skip the encoding of a text that is certainly too long.
  const units = given.reduce((sum, { text }) => sum + text.length, 0);
  if (units > BOUNDS.toolResultKeptMaxBytes) return tooLarge(outcome, `more than ${BOUNDS.toolResultKeptMaxBytes}`);
  const size = bytesOf(given);
  if (size > BOUNDS.toolResultKeptMaxBytes) return tooLarge(outcome, String(size));
  // The tool may have truncated its text. If the text in `outcome.whole` is too large to be stored, the truncated text
  // stays.
  const wholeFits = fitsWhole(outcome.whole);
  const texts: readonly TextPart[] = wholeFits ? given : [...given, { type: 'text', text: WHOLE_NOT_KEPT }];
  const bytes = size + (wholeFits ? 0 : Buffer.byteLength(WHOLE_NOT_KEPT, 'utf8'));
  const maxBytes = frame.tool?.max_output ?? BOUNDS.toolResultInlineMaxBytes;
  const whole = wholeFits ? outcome.whole : undefined;
  const { content, detail } = await boundText(blobs, texts, bytes, maxBytes, whole, frame.hasReadOnTool);
  const files = parts.filter((part) => part.type === 'file');
  return {
    status,
    result: {
      content: [...content, ...(files.length > 0 ? await boundFiles(blobs, files, maxBytes - bytesOf(content)) : [])],
      is_error: outcome.result.is_error,
      ...boundDetail(outcome.result.detail, detail),
    },
  };
}

function bytesOf(texts: readonly TextPart[]): number {
  return texts.reduce((sum, { text }) => sum + Buffer.byteLength(text, 'utf8'), 0);
}

const WHOLE_NOT_KEPT = `[Only a part is shown. The complete result has more than ${BOUNDS.toolResultKeptMaxBytes} bytes of text and was not stored.]`;

function fitsWhole(whole = ''): boolean {
  const max = BOUNDS.toolResultKeptMaxBytes;
  return whole.length <= max && Buffer.byteLength(whole, 'utf8') <= max;
}

function tooLarge(outcome: ToolOutcome, bytes: string): ToolOutcome {
  const text =
    `The tool call ${outcome.status === 'ok' ? 'ran' : 'ended'}, but its result has ${bytes} bytes of text. ` +
    `At most ${BOUNDS.toolResultKeptMaxBytes} bytes can be stored. Request a smaller result.`;
  const status = outcome.status === 'cancelled' ? 'cancelled' : 'error';
  return {
    status,
    result: { content: [{ type: 'text', text }], is_error: true, detail: { code: 'tool_result_too_large' } },
  };
}

/** Bytes reserved for the note on a truncated result. */
const NOTE_MAX_BYTES = 256;

/**
 * The text parts of a result as they are recorded, and the reference to the whole text if it was stored.
 * @param bytes the size of `texts` in UTF-8.
 * @param wholeOfTool if the tool truncated `texts` itself: the whole text, or the part of it that the tool kept. It is
 *   stored even if `texts` fit into the record.
 */
async function boundText(
  blobs: Pick<Blobs, 'put'>,
  texts: readonly TextPart[],
  bytes: number,
  maxBytes: number,
  wholeOfTool: string | undefined,
  hasReadOnTool: boolean,
): Promise<{ readonly content: readonly TextPart[]; readonly detail: ToolResult['detail'] }> {
  const fits = bytes <= maxBytes && texts.length <= BOUNDS.toolResultPartsMax;
  if (fits && wholeOfTool === undefined) return { content: texts, detail: undefined };
  const joined = texts.map(({ text }) => text).join('\n');
  const whole = Buffer.from(wholeOfTool ?? joined, 'utf8');
  // There were too many parts, but their text fits.
  if (wholeOfTool === undefined && whole.length <= maxBytes)
    return { content: [{ type: 'text', text: joined }], detail: undefined };
  const sha256 = sha256Hex(whole);
  const stored = await kept(blobs, sha256, whole);
  const detail = stored ? { whole: { sha256, bytes: whole.length } } : undefined;
  const readOn = (offset: number) =>
    !stored
      ? 'The rest could not be stored.'
      : hasReadOnTool
        ? `To continue, call ${READ_ON_TOOL} with {"ref": "${sha256}", "offset": ${offset}}.`
        : `The complete text is stored as sha256 ${sha256}.`;
  if (fits) {
    // The size of the whole text is unknown here: `wholeOfTool` may be a part, too.
    const shown = stored ? `Only a part of ${whole.length} stored bytes is shown` : 'Only a part is shown';
    const note = `[${shown}. ${readOn(0)}]`;
    return { content: [...texts, { type: 'text', text: note }], detail };
  }
  const shown = cutUtf8(Buffer.from(joined, 'utf8'), maxBytes - NOTE_MAX_BYTES);
  const shownBytes = Buffer.byteLength(shown, 'utf8');
  // If the tool truncated its text, the shown text may be any part of the stored one. So the model reads on from the
  // start.
  const note =
    wholeOfTool === undefined
      ? `\n[Truncated: the first ${shownBytes} of ${whole.length} bytes are shown. ${readOn(shownBytes)}]`
      : `\n[Truncated: a part of ${whole.length} bytes is shown. ${readOn(0)}]`;
  return { content: [{ type: 'text', text: shown + note }], detail };
}

async function boundFiles(
  blobs: Pick<Blobs, 'put'>,
  files: readonly FilePart[],
  room: number,
): Promise<(TextPart | FilePart)[]> {
  const parts: (TextPart | FilePart)[] = [];
  let inline = room;
  let bytes = 0;
  for (const [index, file] of files.entries()) {
    if (index >= BOUNDS.toolResultPartsMax) {
      parts.push(note(`${files.length - index} more files`, `a result may have at most ${BOUNDS.toolResultPartsMax}`));
      break;
    }
    const { filename } = file;
    const name = nameOf(filename);
    // Only this function creates references: a tool could name another session's blob.
    if (typeof file.data !== 'string') {
      parts.push(note(name, 'it is a reference, not a file'));
      continue;
    }
    const data = Buffer.from(file.data, 'base64');
    bytes += data.length;
    if (bytes > BOUNDS.toolResultFilesMaxBytes) {
      bytes -= data.length;
      parts.push(
        note(
          name,
          `it has ${data.length} bytes; all files of a result may have at most ${BOUNDS.toolResultFilesMaxBytes}`,
        ),
      );
      continue;
    }
    const type = shownMediaType(file.media_type, data);
    if ('refused' in type) {
      parts.push(note(name, type.refused));
      continue;
    }
    const head = {
      type: 'file' as const,
      media_type: type.mediaType,
      ...(filename === undefined ? {} : { filename: name }),
    };
    if (file.data.length <= inline) {
      inline -= file.data.length;
      parts.push({ ...head, data: data.toString('base64') });
      continue;
    }
    const sha256 = sha256Hex(data);
    const stored = await kept(blobs, sha256, data);
    parts.push(stored ? { ...head, data: { sha256, bytes: data.length } } : note(name, 'it could not be stored'));
  }
  return parts;
}

const note = (what: string, why: string): TextPart => ({ type: 'text', text: `[${what} omitted: ${why}]` });

// The name is untrusted and goes into prompts and headers.
function nameOf(filename: string | undefined): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the expression removes control characters.
  const plain = filename?.replaceAll(/[\u0000-\u001f\u007f-\u009f"\\<>]/g, '_').slice(0, 128);
  return plain || 'file';
}

function boundDetail(detail: ToolResult['detail'], more: ToolResult['detail']): Pick<ToolResult, 'detail'> {
  // Only this file sets `whole`: a tool could refer to another session's result.
  const { whole: _, ...own } = detail ?? {};
  const size = detail === undefined ? 0 : Buffer.byteLength(JSON.stringify(own), 'utf8');
  const code = typeof own.code === 'string' ? { code: cutText(own.code, 128) } : {};
  const bounded = size > BOUNDS.toolDetailMaxBytes ? { ...code, detail_left_out_bytes: size } : own;
  return detail === undefined && more === undefined ? {} : { detail: { ...bounded, ...more } };
}

// Whether the bytes were stored. The call has run: a failure to store a part of its result must not lose its outcome.
async function kept(blobs: Pick<Blobs, 'put'>, sha256: string, bytes: Uint8Array): Promise<boolean> {
  try {
    await blobs.put(sha256, bytes);
    return true;
  } catch {
    return false;
  }
}
