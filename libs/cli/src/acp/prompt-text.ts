/** What an editor puts into a prompt, as the text that a session is sent. */
import type { ContentBlock } from '@agentclientprotocol/sdk';
import { ACP_BOUNDS } from './acp-bounds.ts';
import { invalidParams } from './request-errors.ts';

/**
 * The blocks as one text: resources that are embedded stand in it whole, those that are linked by their address.
 * @throws RequestError naming the block that cannot be taken.
 */
export function promptText(blocks: readonly ContentBlock[]): string {
  if (blocks.length > ACP_BOUNDS.promptBlocksMax)
    throw invalidParams(`prompt: ${blocks.length} blocks, at most ${ACP_BOUNDS.promptBlocksMax} are taken`, 'prompt');
  const text = blocks.map(blockText).join('');
  const { length: bytes } = new TextEncoder().encode(text);
  if (bytes > ACP_BOUNDS.promptMaxBytes) {
    const message = `prompt: it has ${bytes} bytes of text, at most ${ACP_BOUNDS.promptMaxBytes} are taken`;
    throw invalidParams(message, 'prompt', 'body_too_large');
  }
  if (text.trim() === '') throw invalidParams('prompt: it says nothing', 'prompt', 'empty_body');
  return text;
}

function blockText(block: ContentBlock, index: number): string {
  const field = `prompt.${index}`;
  switch (block.type) {
    case 'text':
      return block.text;
    case 'resource_link':
      return `[${block.title ?? block.name}](${block.uri})`;
    case 'resource': {
      const { resource } = block;
      if ('text' in resource) return embedded(resource.uri, resource.text);
      throw invalidParams(`${field}: a resource that is not text cannot be taken; link it (resource_link)`, field);
    }
    default:
      throw invalidParams(`${field}: ${block.type} cannot be taken; send text, resource or resource_link`, field);
  }
}

/** In a fence that the text itself does not close. */
function embedded(uri: string, text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`{3,}/g)].map(([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  return `\n\n${uri}\n${fence}\n${text}${text.endsWith('\n') ? '' : '\n'}${fence}\n\n`;
}
