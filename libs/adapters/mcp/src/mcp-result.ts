/** Converts the result of an MCP tool to the protocol's form. */
import type { ToolOutcome } from '@coxswain/ports';
import { BOUNDS, type FilePart, JsonObject, type TextPart } from '@coxswain/protocol';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import { MCP_BOUNDS } from './mcp-bounds.ts';

/**
 * Converts a result.
 * - Text stays text.
 * - Images, audio and binary resources become files.
 * - Text resources and links to resources become text with their names.
 * - Structured content becomes `detail.structured_content`. Without other content it becomes text as well.
 *
 * Content beyond a limit is omitted, with a note.
 */
export function outcomeOf(result: CallToolResult): ToolOutcome {
  const parts = new BoundedParts();
  for (const block of result.content) addBlock(parts, block);
  const detail = structuredDetail(result.structuredContent, parts, result.content.length === 0);
  const isError = result.isError === true;
  return {
    status: isError ? 'error' : 'ok',
    result: { content: parts.content, is_error: isError, ...(detail === null ? {} : { detail }) },
  };
}

function addBlock(parts: BoundedParts, block: CallToolResult['content'][number]): void {
  switch (block.type) {
    case 'text':
      parts.text(block.text);
      return;
    case 'image':
    case 'audio':
      parts.file(block.mimeType, block.data);
      return;
    case 'resource_link':
      parts.text(
        `[resource ${block.name}: ${[block.uri, block.mimeType, block.description].filter(Boolean).join(', ')}]`,
      );
      return;
    case 'resource': {
      const { resource } = block;
      if ('blob' in resource) {
        parts.file(resource.mimeType, resource.blob, fileNameOf(resource.uri));
      } else {
        parts.text(`[resource ${[resource.uri, resource.mimeType].filter(Boolean).join(', ')}]\n${resource.text}`);
      }
      return;
    }
    default:
      parts.text(`[content of the unknown type ${JSON.stringify((block satisfies never as { type: unknown }).type)}]`);
  }
}

function structuredDetail(structured: unknown, parts: BoundedParts, isAll: boolean): JsonObject | null {
  if (structured === undefined) return null;
  // Checked first: `JSON.stringify` is recursive. JSON parsers read 1e999 as Infinity.
  const detail = JsonObject.safeParse({ structured_content: structured });
  if (!detail.success) {
    parts.text(NOT_RECORDABLE);
    return null;
  }
  const json = JSON.stringify(structured);
  if (isAll) parts.text(json);
  const bytes = Buffer.byteLength(json);
  return bytes <= MCP_BOUNDS.structuredMaxBytes ? detail.data : { structured_content_left_out_bytes: bytes };
}

const NOT_RECORDABLE = `[omitted: structured content, nested at least ${BOUNDS.jsonDepthMax} deep or with a number that is too large]`;

/** The parts of a result, in order and within the limits. */
class BoundedParts {
  readonly content: (TextPart | FilePart)[] = [];
  #textBytes = 0;
  #fileBytes = 0;

  text(text: string): void {
    const room = MCP_BOUNDS.resultTextMaxBytes - this.#textBytes;
    const bytes = Buffer.byteLength(text);
    this.#textBytes += bytes;
    if (bytes <= room) this.#push(text);
    else if (room > 0) {
      const kept = wholeCharacters(Buffer.from(text), room);
      this.#push(`${kept}\n[truncated: ${bytes - Buffer.byteLength(kept)} bytes of text are omitted]`);
    } else this.#push(`[omitted: ${bytes} bytes of text]`);
  }

  file(mediaType: string | undefined, base64: string, filename?: string): void {
    // Encoded again, because decoders accept input that a strict reader of base64 rejects.
    const data = Buffer.from(base64, 'base64').toString('base64');
    const media_type = mediaType === undefined || mediaType === '' ? 'application/octet-stream' : mediaType;
    if (this.#fileBytes + data.length > MCP_BOUNDS.resultFilesMaxBytes) {
      this.#push(`[omitted: a file (${media_type}) of ${Math.floor((data.length * 3) / 4)} bytes]`);
      return;
    }
    this.#fileBytes += data.length;
    this.content.push({ type: 'file', media_type, data, ...(filename === undefined ? {} : { filename }) });
  }

  #push(text: string): void {
    this.content.push({ type: 'text', text });
  }
}

function wholeCharacters(bytes: Buffer, maxBytes: number): string {
  let end = maxBytes;
  // Continuation bytes are 10xxxxxx: go back to the start of a character.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return bytes.toString('utf8', 0, end);
}

/** The last segment of a URI's path; undefined if it ends with a slash. */
function fileNameOf(uri: string): string | undefined {
  const [path = ''] = uri.split(/[?#]/, 1);
  return path.slice(Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\')) + 1) || undefined;
}
