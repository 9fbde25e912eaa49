/** Texts and values within bounds: what is cut says so. */
import type { Json } from '@coxswain/protocol';
import { MCP_SERVER_BOUNDS } from './mcp-server-bounds.ts';

/** The text, or its beginning and how much is left out. */
export function cutText(text: string, maxChars: number = MCP_SERVER_BOUNDS.textMaxChars): string {
  if (text.length <= maxChars) return text;
  // Half of a pair is no character.
  const end = /[\ud800-\udbff]/.test(text.charAt(maxChars - 1)) ? maxChars - 1 : maxChars;
  return `${text.slice(0, end)}… (${text.length - end} more characters)`;
}

/** Arguments as they are, or where they are long their JSON, cut. */
export function cutArgs(args: Json, maxChars: number = MCP_SERVER_BOUNDS.argsMaxChars): Json {
  const text = JSON.stringify(args) ?? 'null';
  return text.length <= maxChars ? args : cutText(text, maxChars);
}

/** The same value with every text in it cut. */
export function cutTexts(value: unknown, maxChars: number): unknown {
  if (typeof value === 'string') return cutText(value, maxChars);
  if (Array.isArray(value)) return value.map((one) => cutTexts(one, maxChars));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, cutTexts(one, maxChars)]));
}
