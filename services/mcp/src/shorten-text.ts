/** Cuts texts and values to a maximum length, and marks cut texts. */
import { cutText, type Json } from '@coxswain/protocol';
import { MCP_SERVER_BOUNDS } from './mcp-server-bounds.ts';

/** The text, or its start with the number of omitted characters. */
export function shortenText(text: string, maxChars: number = MCP_SERVER_BOUNDS.textMaxChars): string {
  if (text.length <= maxChars) return text;
  const shown = cutText(text, maxChars);
  return `${shown}… (${text.length - shown.length} more characters)`;
}

/** The arguments unchanged, or their JSON, cut, if that is too long. */
export function cutArgs(args: Json, maxChars: number = MCP_SERVER_BOUNDS.argsMaxChars): Json {
  const text = JSON.stringify(args) ?? 'null';
  return text.length <= maxChars ? args : shortenText(text, maxChars);
}

/** A copy of the value in which each text is cut. */
export function cutTexts(value: unknown, maxChars: number): unknown {
  if (typeof value === 'string') return shortenText(value, maxChars);
  if (Array.isArray(value)) return value.map((one) => cutTexts(one, maxChars));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, cutTexts(one, maxChars)]));
}
