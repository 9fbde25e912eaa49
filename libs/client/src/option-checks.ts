/** Checks of options that a program in JavaScript, or one with wrong types, can get wrong. Each names the option and what is right. */
import { INJECTION_VERBS, nearestWord, type Verb } from '@coxswain/protocol';
import { InvalidOptionError } from './client-errors.ts';

const STAGES = ['stored', 'accepted', 'delivered', 'outcome'] as const;
/** Verbs whose message is delivered to a model. */
const DELIVERED: ReadonlySet<Verb> = new Set(INJECTION_VERBS);
/** The longest delay of a timer. */
const WAIT_MAX_MS = 2 ** 31 - 1;

/** How a command is sent, as far as it is checked here. */
export interface CheckedSendOptions {
  readonly wait?: unknown;
  readonly timeoutMs?: unknown;
  readonly acceptedWithinMs?: unknown;
  readonly signal?: unknown;
}

/**
 * Checks how a command is sent.
 * @throws InvalidOptionError for options that are not an object; for an unknown `wait`, or one that the verb does not have. Also for a
 *   time that is not 0 to 2,147,483,647 milliseconds, and for a signal of another type.
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
 * Checks that the options of a call are an object: a text or a list has keys of its own, and a number has none.
 * @throws InvalidOptionError.
 */
export function checkOptions(options: unknown): void {
  if (isObject(options)) return;
  throw new InvalidOptionError('the options must be an object, as { name: value }', 'options');
}

/** Checks an option that is true or false. @throws InvalidOptionError naming the option. */
export function checkBoolean(name: string, value: unknown): void {
  if (typeof value !== 'boolean') throw new InvalidOptionError(`${name} must be true or false`, name);
}

/** Checks an option that is a text. @throws InvalidOptionError naming the option; the message does not quote the value, which may be a secret. */
export function checkText(name: string, value: unknown): void {
  if (value !== undefined && typeof value !== 'string') throw new InvalidOptionError(`${name} must be a text`, name);
}

/** Checks a time in milliseconds. @throws InvalidOptionError naming the option. */
export function checkTime(name: string, time: unknown): void {
  if (time === undefined || (typeof time === 'number' && time >= 0 && time <= WAIT_MAX_MS)) return;
  throw new InvalidOptionError(`${name} must be a number of milliseconds, from 0 to ${WAIT_MAX_MS}`, name);
}

/** Checks an abort signal. @throws InvalidOptionError unless it can be listened to. */
export function checkSignal(signal: unknown): void {
  // Not by its class: a page in a frame has a class of its own.
  if (signal === undefined || typeof (signal as AbortSignal | null)?.throwIfAborted === 'function') return;
  throw new InvalidOptionError('signal must be an AbortSignal, such as AbortSignal.timeout(1_000)', 'signal');
}

/** Checks the number of a record. @throws InvalidOptionError naming the option. */
export function checkRecordNumber(name: string, n: unknown): void {
  if (n === undefined || (Number.isSafeInteger(n) && (n as number) >= 1)) return;
  throw new InvalidOptionError(`${name} must be the number of a record, 1 or more`, name);
}

/** Checks how many items a loop may have. @throws InvalidOptionError. */
export function checkLimit(limit: unknown): void {
  if (limit === undefined || limit === Number.POSITIVE_INFINITY) return;
  if (Number.isSafeInteger(limit) && (limit as number) >= 0) return;
  throw new InvalidOptionError('limit must be a whole number, 0 or more', 'limit');
}

/**
 * Checks the arguments of `run()`.
 * @throws InvalidOptionError naming the argument and what is right.
 */
export function checkRunArguments(persona: unknown, prompt: unknown, options: unknown): void {
  if (!isText(persona) && !isObject(persona))
    throw new InvalidOptionError('persona: must be a name, or what definePersona() returns', 'persona');
  if (!isText(prompt) && !(Array.isArray(prompt) && prompt.length > 0))
    throw new InvalidOptionError("prompt: must be a text or a list of messages: run(persona, 'Say hello.')", 'prompt');
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
