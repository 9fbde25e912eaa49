/** Parses arguments that a person has edited. */
import type { JsonObject } from '@coxswain/protocol';

/** Parses arguments, or describes what is wrong. The session validates them against the tool's schema. */
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
