/** How a file of a transcript is shown to a model. */
import { Buffer } from 'node:buffer';
import type { FilePart } from '@coxswain/protocol';

/** A file as a model is shown it: as text, as a file, or as a note that says why not. */
export type ShownFile =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'file'; readonly mediaType: string; readonly data: string; readonly filename?: string };

const TEXTUAL = /^text\/|^application\/(json|xml|yaml|x-yaml|toml|javascript|x-sh)$|\+(json|xml|yaml)$/;

/** Shows a file; `takes` are the media types that the model takes as files. */
export function showFile(part: FilePart, takes: RegExp): ShownFile {
  const mediaType = (part.media_type.split(';', 1)[0] as string).trim().toLowerCase();
  const name = part.filename ?? 'file';
  if (typeof part.data !== 'string') {
    return {
      type: 'text',
      text: `[${name} (${mediaType}, ${part.data.bytes} bytes) is stored apart and is not shown]`,
    };
  }
  if (TEXTUAL.test(mediaType)) {
    const text = Buffer.from(part.data, 'base64').toString('utf8');
    return { type: 'text', text: `<file name=${JSON.stringify(name)} type="${mediaType}">\n${text}\n</file>` };
  }
  if (takes.test(mediaType)) {
    return { type: 'file', mediaType, data: part.data, ...(part.filename ? { filename: part.filename } : {}) };
  }
  const bytes = Buffer.byteLength(part.data, 'base64');
  return {
    type: 'text',
    text: `[${name} (${mediaType}, ${bytes} bytes) is not shown: this model takes no such files]`,
  };
}
