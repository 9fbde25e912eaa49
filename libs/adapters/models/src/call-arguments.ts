/** Parses the arguments of a tool call from the text that a model wrote. */
import type { CallPart, Json, JsonObject } from '@coxswain/protocol';

/** The arguments of a call part; or null and the problem. */
export type ReadArguments = Pick<CallPart, 'args' | 'problem'>;

/**
 * Parses the text of a call's arguments. An empty text is the empty object, because some providers send no text for a
 * tool without parameters.
 */
export function readArguments(text: string): ReadArguments {
  if (text.trim() === '') return { args: {} };
  try {
    return checkArguments(JSON.parse(text) as Json);
  } catch {
    // The engine's message changes with its version, and this text is recorded in journals.
    return unusable('The arguments are not valid JSON.');
  }
}

/**
 * The problem of a call whose answer was cut off before any arguments arrived. An empty text is ambiguous here: the
 * call may have no arguments, or all of them may be missing.
 */
export function argumentsCutOff(finishReason: string): ReadArguments {
  return unusable(
    `The response was cut off (${finishReason}) before any arguments arrived. Write {} if there are none.`,
  );
}

/** Accepts a JSON value as a call's arguments, which must be an object. */
export function checkArguments(value: Json): ReadArguments {
  if (isObject(value)) return { args: value };
  return unusable(
    `The arguments must be a JSON object, not ${value === null ? 'null' : Array.isArray(value) ? 'a list' : `a ${typeof value}`}.`,
  );
}

function isObject(value: Json): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function unusable(message: string): ReadArguments {
  return { args: null, problem: { code: 'invalid_call_arguments', message } };
}
