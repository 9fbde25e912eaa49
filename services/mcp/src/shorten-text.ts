/** Texts and values within bounds: what is cut says so. */
import { cutText, type Json } from '@coxswain/protocol';
import { MCP_SERVER_BOUNDS } from './mcp-server-bounds.ts';

/** The text, or its beginning and how much is left out. */
export function shortenText(text: string, maxChars: number = MCP_SERVER_BOUNDS.textMaxChars): string {
  if (text.length <= maxChars) return text;
  const shown = cutText(text, maxChars);
  return `${shown}… (${text.length - shown.length} more characters)`;
}

/** Arguments as they are, or where they are long their JSON, cut. */
export function cutArgs(args: Json, maxChars: number = MCP_SERVER_BOUNDS.argsMaxChars): Json {
  const text = JSON.stringify(args) ?? 'null';
  return text.length <= maxChars ? args : shortenText(text, maxChars);
}

/** The same value with every text in it cut. */
export function cutTexts(value: unknown, maxChars: number): unknown {
  if (typeof value === 'string') return shortenText(value, maxChars);
  if (Array.isArray(value)) return value.map((one) => cutTexts(one, maxChars));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, cutTexts(one, maxChars)]));
}
