/** Converts a file of a transcript for a model. */
import { Buffer } from 'node:buffer';
import { type FilePart, labelText, untrustedText } from '@coxswain/protocol';

/** A file in the form for a model. */
export type ShownFile =
  /** A text file, marked as data. */
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'file'; readonly mediaType: string; readonly data: string; readonly filename?: string };

/** A note with the reason why the file is not shown. */
export interface FileNote {
  readonly note: string;
}

const TEXTUAL = /^text\/|^application\/(json|xml|yaml|x-yaml|toml|javascript|x-sh)$|\+(json|xml|yaml)$/;

/**
 * Converts a file.
 * @param takes the media types that the model accepts as files.
 * @param of the owner of the file, for the mark of a text file.
 */
export function showFile(part: FilePart, takes: RegExp, of = ''): ShownFile | FileNote {
  const mediaType = (part.media_type.split(';', 1)[0] as string).trim().toLowerCase();
  const name = labelText(part.filename ?? 'file');
  if (typeof part.data !== 'string')
    return {
      note: `[${name} (${labelText(mediaType)}, ${part.data.bytes} bytes) is stored separately and is not shown]`,
    };
  if (TEXTUAL.test(mediaType)) {
    const text = Buffer.from(part.data, 'base64').toString('utf8');
    return { type: 'text', text: untrustedText(`file ${name}${of}`, text) };
  }
  if (takes.test(mediaType)) {
    return { type: 'file', mediaType, data: part.data, ...(part.filename ? { filename: name } : {}) };
  }
  const bytes = Buffer.byteLength(part.data, 'base64');
  return {
    note: `[${name} (${labelText(mediaType)}, ${bytes} bytes) is not shown: this model does not accept such files]`,
  };
}

/** The same, with a note as a text of its own. */
export function shownFile(part: FilePart, takes: RegExp): ShownFile {
  const shown = showFile(part, takes);
  return 'note' in shown ? { type: 'text', text: shown.note } : shown;
}
