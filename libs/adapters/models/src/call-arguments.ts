/** The arguments of a call, from the text in which models write them. */
import type { CallPart, Json, JsonObject } from '@coxswain/protocol';

/** What a call part says of its arguments: them, or null and why. */
export type ReadArguments = Pick<CallPart, 'args' | 'problem'>;

/**
 * Reads the text of a call's arguments. An empty text is the empty object: some providers send nothing where a tool
 * takes nothing.
 */
export function readArguments(text: string): ReadArguments {
  if (text.trim() === '') return { args: {} };
  try {
    return checkArguments(JSON.parse(text) as Json);
  } catch {
    // The engine's own words change with its version, and this stands in journals.
    return unusable('The arguments are not valid JSON.');
  }
}

/**
 * What is said of a call's arguments where nothing of them had come when its answer was cut off: none can be meant as well
 * as all of them be missing.
 */
export function argumentsCutOff(finishReason: string): ReadArguments {
  return unusable(
    `The response was cut off (${finishReason}) before any arguments arrived. Write {} if there are none.`,
  );
}

/** Takes a JSON value for a call's arguments, which must be an object. */
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
