/** Validates options at run time, for programs in JavaScript. Each error names the option and the valid values. */
import { INJECTION_VERBS, nearestWord, type Verb } from '@coxswain/protocol';
import { InvalidOptionError } from './client-errors.ts';

const STAGES = ['stored', 'accepted', 'delivered', 'outcome'] as const;
/** Verbs with a message for the model. */
const DELIVERED: ReadonlySet<Verb> = new Set(INJECTION_VERBS);
/** The maximum delay of a timer in milliseconds. */
const WAIT_MAX_MS = 2 ** 31 - 1;

/** The sending options that are checked here. */
export interface CheckedSendOptions {
  readonly wait?: unknown;
  readonly timeoutMs?: unknown;
  readonly acceptedWithinMs?: unknown;
  readonly signal?: unknown;
}

/**
 * Checks the sending options of a command.
 * @throws InvalidOptionError if the options are not an object, or if `wait` is unknown or not supported by the verb.
 *   Also for a time outside 0 to 2,147,483,647 milliseconds, and for an invalid signal.
 */
export function checkSendOptions(verb: Verb, options: CheckedSendOptions): void {
  checkOptions(options);
  const { wait, timeoutMs, acceptedWithinMs, signal } = options;
  if (wait !== undefined && !STAGES.includes(wait as 'stored')) {
    const meant = nearestWord(String(wait), STAGES);
    const hint = meant === null ? '' : `; did you mean ${meant}?`;
    throw new InvalidOptionError(`wait must be one of ${STAGES.join(', ')}${hint}`, 'wait');
  }
  if (wait === 'delivered' && !DELIVERED.has(verb))
    throw new InvalidOptionError(
      `${verb} is not delivered to a model: use wait: "accepted". Only ${[...DELIVERED].join(', ')} have "delivered"`,
      'wait',
    );
  if (wait === 'outcome' && verb !== 'cancel_call')
    throw new InvalidOptionError(`${verb} has no outcome to wait for: only cancel_call has`, 'wait');
  for (const [name, time] of Object.entries({ timeoutMs, acceptedWithinMs })) checkTime(name, time);
  checkSignal(signal);
}

/**
 * Checks that the options of a call are an object, and not a string, a list or null.
 * @throws InvalidOptionError.
 */
export function checkOptions(options: unknown): void {
  if (isObject(options)) return;
  throw new InvalidOptionError('the options must be an object, as { name: value }', 'options');
}

/** Checks a boolean option. @throws InvalidOptionError naming the option. */
export function checkBoolean(name: string, value: unknown): void {
  if (typeof value !== 'boolean') throw new InvalidOptionError(`${name} must be true or false`, name);
}

/** Checks a string option. @throws InvalidOptionError naming the option, without its value, which may be a secret. */
export function checkText(name: string, value: unknown): void {
  if (value !== undefined && typeof value !== 'string') throw new InvalidOptionError(`${name} must be a string`, name);
}

/** Checks a time in milliseconds. @throws InvalidOptionError naming the option. */
export function checkTime(name: string, time: unknown): void {
  if (time === undefined || (typeof time === 'number' && time >= 0 && time <= WAIT_MAX_MS)) return;
  throw new InvalidOptionError(`${name} must be a number of milliseconds, from 0 to ${WAIT_MAX_MS}`, name);
}

/** Checks an abort signal. @throws InvalidOptionError if the value is not an AbortSignal. */
export function checkSignal(signal: unknown): void {
  // Not by its class: a frame of a page has another AbortSignal class.
  if (signal === undefined || typeof (signal as AbortSignal | null)?.throwIfAborted === 'function') return;
  throw new InvalidOptionError('signal must be an AbortSignal, such as AbortSignal.timeout(1_000)', 'signal');
}

/** Checks a record number. @throws InvalidOptionError naming the option. */
export function checkRecordNumber(name: string, n: unknown): void {
  if (n === undefined || (Number.isSafeInteger(n) && (n as number) >= 1)) return;
  throw new InvalidOptionError(`${name} must be the number of a record, 1 or more`, name);
}

/** Checks the maximum number of items of a loop. @throws InvalidOptionError. */
export function checkLimit(limit: unknown): void {
  if (limit === undefined || limit === Number.POSITIVE_INFINITY) return;
  if (Number.isSafeInteger(limit) && (limit as number) >= 0) return;
  throw new InvalidOptionError('limit must be a whole number, 0 or more', 'limit');
}

/**
 * Checks the arguments of `run()`.
 * @throws InvalidOptionError naming the argument and the valid values.
 */
export function checkRunArguments(persona: unknown, prompt: unknown, options: unknown): void {
  if (!isText(persona) && !isObject(persona))
    throw new InvalidOptionError('persona: must be a name, or what definePersona() returns', 'persona');
  if (!isText(prompt) && !(Array.isArray(prompt) && prompt.length > 0))
    throw new InvalidOptionError(
      "prompt: must be a string or a list of messages: run(persona, 'Say hello.')",
      'prompt',
    );
  checkOptions(options);
  const { onApproval } = options as { readonly onApproval?: unknown };
  if (onApproval !== undefined && typeof onApproval !== 'function')
    throw new InvalidOptionError(
      'onApproval: must be a function that decides: (approval) => approval.allow()',
      'onApproval',
    );
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value.trim() !== '';
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
