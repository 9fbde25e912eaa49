/** Arguments as a person has written them. */
import type { JsonObject } from '@coxswain/protocol';

/** Reads them, or says what is wrong with them in words. Whether they fit the tool the session says. */
export function readArguments(text: string): { readonly args: JsonObject } | { readonly problem: string } {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { problem: `This is not JSON: ${(error as Error).message}` };
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return { problem: 'Arguments are a JSON object: { … }' };
  return { args: value as JsonObject };
}
