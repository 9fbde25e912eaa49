/** Converts an editor's prompt into the form of a session: a text, or a message with images. */
import type { ContentBlock } from '@agentclientprotocol/sdk';
import type { Prompted } from '@coxswain/client';
import {
  cutText,
  type FilePart,
  fromWire,
  SNIFF_BYTES,
  shownMediaType,
  type TextPart,
  UserMessage,
} from '@coxswain/protocol';
import { ACP_BOUNDS } from './acp-bounds.ts';
import { invalidParams } from './request-errors.ts';

type Part = TextPart | FilePart;

/** A prompt in wire form: a text, or messages with files. */
export type WirePrompt = string | readonly UserMessage[];

/** Converts a prompt into the camelCase form of the client. */
export function toPrompted(prompt: WirePrompt): Prompted {
  return typeof prompt === 'string' ? prompt : prompt.map((message) => fromWire(UserMessage, message));
}

/**
 * Converts content blocks into one text, or into one message if there are images. The order is kept. Embedded resources
 * are included whole; linked resources are included as their addresses.
 * @throws RequestError naming the invalid block, or the limit that the prompt exceeds.
 */
export function promptContent(blocks: readonly ContentBlock[]): WirePrompt {
  if (blocks.length > ACP_BOUNDS.promptBlocksMax)
    throw invalidParams(`prompt: ${blocks.length} blocks; the limit is ${ACP_BOUNDS.promptBlocksMax}`, 'prompt');
  const parts = joined(blocks.map(partOf));
  const bytes = parts.reduce((sum, part) => sum + bytesOf(part), 0);
  if (bytes > ACP_BOUNDS.promptMaxBytes) {
    const message = `prompt: it has ${bytes} bytes with images as base64; the limit is ${ACP_BOUNDS.promptMaxBytes}`;
    throw invalidParams(
      `${message}; make them smaller, or link what the session’s tools can read`,
      'prompt',
      'body_too_large',
    );
  }
  const files = parts.filter(({ type }) => type === 'file');
  const text = parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('');
  if (files.length === 0 && text.trim() === '') throw invalidParams('prompt: it is empty', 'prompt', 'empty_body');
  if (files.length === 0) return text;
  const content = parts.filter((part) => part.type === 'file' || part.text !== '');
  return [{ role: 'user', content }];
}

/** Joins adjacent texts. */
function joined(parts: readonly Part[]): Part[] {
  const all: Part[] = [];
  for (const part of parts) {
    const last = all.at(-1);
    if (part.type === 'text' && last?.type === 'text')
      all.splice(-1, 1, { type: 'text', text: `${last.text}${part.text}` });
    else all.push(part);
  }
  return all;
}

function bytesOf(part: Part): number {
  return part.type === 'text' ? new TextEncoder().encode(part.text).length : String(part.data).length;
}

function partOf(block: ContentBlock, index: number): Part {
  const field = `prompt.${index}`;
  switch (block.type) {
    case 'text':
      return { type: 'text', text: block.text };
    case 'resource_link':
      return { type: 'text', text: `[${block.title ?? block.name}](${block.uri})` };
    case 'image':
      return image(block.data, block.mimeType, block.uri ?? undefined, field);
    case 'resource': {
      const { resource } = block;
      if ('text' in resource) return { type: 'text', text: embedded(resource.uri, resource.text) };
      const { blob, mimeType = null, uri } = resource;
      if (mimeType?.startsWith('image/')) return image(blob, mimeType, uri, field);
      throw invalidParams(`${field}: a resource must be text or an image; link other resources (resource_link)`, field);
    }
    default:
      throw invalidParams(
        `${field}: ${block.type} is not supported; send text, image, resource or resource_link`,
        field,
      );
  }
}

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;
/** Image types that providers accept. */
const IMAGES = /^image\/(png|jpeg|gif|webp)$/;

/** Validates an image. A provider rejects a session's later requests if the session contains an invalid image. */
function image(data: string, declaredType: string, uri: string | undefined, field: string): Part {
  if (!BASE64.test(data) || data.length % 4 !== 0) throw invalidParams(`${field}.data: must be base64`, field);
  const head = Buffer.from(data.slice(0, Math.ceil(SNIFF_BYTES / 3) * 4), 'base64');
  const media = shownMediaType(declaredType, head);
  if ('refused' in media) throw invalidParams(`${field}: ${media.refused}`, field);
  if (!IMAGES.test(media.mediaType))
    throw invalidParams(
      `${field}.mimeType: ${media.mediaType} is not supported; supported types: png, jpeg, gif and webp`,
      field,
    );
  const name = uri?.split(/[?#]/, 1)[0]?.split('/').at(-1);
  return { type: 'file', media_type: media.mediaType, data, ...(name ? { filename: cutText(name, 256) } : {}) };
}

/** Puts the text into a code fence that the text itself does not close. */
function embedded(uri: string, text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`{3,}/g)].map(([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  return `\n\n${uri}\n${fence}\n${text}${text.endsWith('\n') ? '' : '\n'}${fence}\n\n`;
}
