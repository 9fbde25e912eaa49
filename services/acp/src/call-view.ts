/** How an editor displays a tool call: kind, title, locations, diff and result. */
import { resolve } from 'node:path';
import type { ContentBlock, ToolCallContent, ToolCallLocation, ToolKind } from '@agentclientprotocol/sdk';
import { printable, summarizeArgs } from '@coxswain/client';
import { cutText, type Json, type JsonObject, type ToolResult } from '@coxswain/protocol';
import { ACP_BOUNDS } from './acp-bounds.ts';

const KINDS: Readonly<Record<string, ToolKind>> = {
  read_file: 'read',
  read_result: 'read',
  load_skill: 'read',
  write_file: 'edit',
  append_file: 'edit',
  edit_file: 'edit',
  list_files: 'search',
  search_files: 'search',
  run_command: 'execute',
  fetch_url: 'fetch',
};

/** The view of a tool call before it has a result. */
export interface CallView {
  readonly title: string;
  readonly name: string;
  readonly kind: ToolKind;
  readonly rawInput: unknown;
  readonly locations?: ToolCallLocation[];
  readonly content?: ToolCallContent[];
}

/** Builds the view of a call from its arguments. @param root the folder that relative paths refer to. */
export function callView(tool: string, args: Json, root: string): CallView {
  const members = isObject(args) ? args : {};
  const path = typeof members.path === 'string' && Object.hasOwn(KINDS, tool) ? resolve(root, members.path) : null;
  const line = typeof members.offset === 'number' ? members.offset : null;
  const content = path === null ? [] : diffOf(tool, members, path);
  return {
    title: printable(`${tool} ${summarizeArgs(args)}`.trim()),
    name: tool,
    kind: (Object.hasOwn(KINDS, tool) ? KINDS[tool] : undefined) ?? 'other',
    rawInput: args,
    ...(path === null ? {} : { locations: [line === null ? { path } : { path, line }] }),
    ...(content.length === 0 ? {} : { content }),
  };
}

function diffOf(tool: string, { old_text, new_text, content, encoding }: JsonObject, path: string): ToolCallContent[] {
  if (tool === 'edit_file' && typeof old_text === 'string' && typeof new_text === 'string')
    return [{ type: 'diff', path, oldText: cut(old_text), newText: cut(new_text) }];
  // The arguments of `write_file` do not include the previous content.
  if (tool === 'write_file' && typeof content === 'string' && encoding !== 'base64')
    return [{ type: 'diff', path, newText: cut(content) }];
  return [];
}

/** The content of a finished call: the diffs and terminals of its view, then its result. */
export function resultContent(result: ToolResult, view: CallView | undefined): ToolCallContent[] {
  const shown = (view?.content ?? []).filter(({ type }) => type !== 'content');
  return [...shown, ...result.content.map((part): ToolCallContent => ({ type: 'content', content: blockOf(part) }))];
}

/** Text as content of a call, without control characters and cut to `ACP_BOUNDS.shownMaxChars`. */
export function textContent(text: string): ToolCallContent {
  return { type: 'content', content: { type: 'text', text: cut(printable(text)) } };
}

function blockOf(part: ToolResult['content'][number]): ContentBlock {
  if (part.type === 'text') return { type: 'text', text: cut(part.text) };
  const { media_type: mimeType, data, filename = 'file' } = part;
  if (typeof data === 'string' && mimeType.startsWith('image/')) return { type: 'image', data, mimeType };
  return { type: 'text', text: `[${filename}: ${mimeType}]` };
}

function cut(text: string): string {
  const { shownMaxChars } = ACP_BOUNDS;
  return text.length <= shownMaxChars ? text : `${cutText(text, shownMaxChars)}\n[… ${text.length} characters in all]`;
}

function isObject(value: Json): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
