/** What MCP tools give back, as results of ours. https://modelcontextprotocol.io/specification/2025-06-18/server/tools#tool-result */
import type { JsonObject, ToolResult } from '@coxswain/protocol';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';

/** Maps a call's result. Text stays text, images and audio become files, resources become what they hold. */
export function resultOf(answer: CallToolResult): ToolResult {
  const content = answer.content.map(partOf);
  const { structuredContent } = answer;
  // Some servers give structured content alone; a model can only read what stands in the content.
  if (content.length === 0 && structuredContent)
    content.push({ type: 'text', text: JSON.stringify(structuredContent) });
  return {
    content,
    is_error: answer.isError === true,
    ...(structuredContent ? { detail: { structured_content: structuredContent as JsonObject } } : {}),
  };
}

function partOf(part: CallToolResult['content'][number]): ToolResult['content'][number] {
  switch (part.type) {
    case 'text':
      return { type: 'text', text: part.text };
    case 'image':
    case 'audio':
      return { type: 'file', media_type: part.mimeType, data: part.data };
    case 'resource_link':
      return { type: 'text', text: `${part.name}: ${part.uri}` };
    case 'resource': {
      const { resource } = part;
      if ('text' in resource) return { type: 'text', text: `${resource.uri}\n${resource.text}` };
      return {
        type: 'file',
        media_type: resource.mimeType ?? 'application/octet-stream',
        filename: resource.uri,
        data: resource.blob,
      };
    }
  }
}
