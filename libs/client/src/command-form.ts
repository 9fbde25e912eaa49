/** The form of a command: camelCase names, wire names, and its checked bytes. Invalid ones are rejected before anything is sent. */
import {
  type CamelCased,
  COMMAND_BODIES,
  DetailNames,
  fromWire,
  nearestWord,
  parseCommand,
  pathFromWire,
  pathText,
  Receipt,
  type StandIns,
  toWire,
  unwritableProblem,
  type Verb,
} from '@coxswain/protocol';
import { CommandRejectedError, InvalidOptionError } from './client-errors.ts';
import { checkOptions } from './option-checks.ts';
import type { BodyInput, SendOptions, SendStage, WireSentCommand } from './outgoing-command.ts';
import type { OutputSource, TypedPersona } from './output-schema.ts';
import type { PersonaSettings } from './persona-form.ts';

/** The body of a command in camelCase. The id and the actor are options of the call instead. */
export type CommandInput<V extends Verb> = Omit<CamelCased<BodyInput<V>>, 'id' | 'actor'>;

type StartInput = CommandInput<'start'>;

/** The first message of a session: a prompt or messages. */
type Beginning =
  | { readonly prompt: NonNullable<StartInput['prompt']>; readonly messages?: undefined }
  | { readonly prompt?: undefined; readonly messages: NonNullable<StartInput['messages']> };

/**
 * The settings of a new session: its prompt or messages, persona, model, tools and limits. `output`: the schema of the
 * final answer, Zod 4 or JSON Schema; it also types `output` of the result.
 */
export type SessionSettings<Schema = OutputSource, PersonaValue = unknown> = Beginning &
  Omit<StartInput, 'prompt' | 'messages' | 'fork' | 'output' | 'persona' | 'standIns'> & {
    readonly output?: Schema | undefined;
    readonly persona?: string | (PersonaSettings & TypedPersona<PersonaValue>) | undefined;
    /** Tools on the bus that replace built-in ones, by tool name. */
    readonly standIns?: StandIns | undefined;
  };

/** The session's receipt for a command. `detail` depends on the command. */
export type CommandReceipt = CamelCased<Receipt>;

/** A stored command. */
export interface SentCommand extends Omit<WireSentCommand, 'receipt' | 'cancellation'> {
  /** The awaited receipt; absent with `wait: 'stored'`. */
  readonly receipt?: CommandReceipt;
}

/** Converts a receipt to camelCase. */
export function commandReceipt(receipt: Receipt): CommandReceipt {
  return fromWire(Receipt, receipt);
}

/** Converts a receipt to its wire form. */
export function receiptToWire(receipt: CommandReceipt): Receipt {
  const form = toWire(Receipt, receipt);
  if (!form.ok) throw new Error(`the receipt has no form on the wire: ${pathText(form.path)} ${form.words}`);
  return form.value as Receipt;
}

/** Converts a stored command to camelCase. */
export function sentCommand({ receipt, ...stored }: WireSentCommand): SentCommand {
  return receipt === undefined ? stored : { ...stored, receipt: commandReceipt(receipt) };
}

const SEND_OPTIONS: Readonly<Record<keyof SendOptions, true>> = {
  id: true,
  actor: true,
  wait: true,
  timeoutMs: true,
  acceptedWithinMs: true,
  signal: true,
  traceparent: true,
  restricted: true,
};

/**
 * Splits the options of a call into sending options and members of the command's body.
 * @throws InvalidOptionError if the options are not an object.
 */
export function splitOptions(options: object): {
  readonly sending: SendOptions<SendStage>;
  readonly others: Readonly<Record<string, unknown>>;
} {
  checkOptions(options);
  const isSending = ([name]: [string, unknown]) => Object.hasOwn(SEND_OPTIONS, name);
  const members = Object.entries(options);
  return {
    sending: Object.fromEntries(members.filter(isSending)),
    others: Object.fromEntries(members.filter((member) => !isSending(member))),
  };
}

/** Converts the body of a command to its wire form. @throws InvalidOptionError for an unknown member. */
export function wireBody<V extends Verb>(verb: V, input: object): BodyInput<V> {
  const form = toWire(COMMAND_BODIES[verb], input as never);
  if (form.ok) return form.value as BodyInput<V>;
  const option = pathText(form.path);
  throw new InvalidOptionError(`the option ${option} ${form.words}`, option);
}

/**
 * Encodes a body after validating it with the host's parser, so that an invalid body fails at once and is not stored.
 * @throws CommandRejectedError naming the field.
 */
export function checkedPayload(verb: Verb, body: unknown, actor: string | undefined): Uint8Array {
  const text = written(actor === undefined ? body : { ...(body as object), actor });
  // JSON.stringify writes an infinite number as null, which the host would accept.
  const unwritable = unwritableProblem(body);
  if (unwritable) throw new CommandRejectedError(unwritable.code, unwritable.message, { field: unwritable.field });
  const payload = new TextEncoder().encode(text);
  const parsed = parseCommand(verb, payload);
  if (parsed.ok) return payload;
  throw new CommandRejectedError(parsed.problem.code, parsed.problem.message, { field: parsed.problem.field });
}

/** Encodes a body as JSON. @throws CommandRejectedError for a circular reference, a bigint or too deep a nesting. */
function written(body: unknown): string {
  try {
    return JSON.stringify(body);
  } catch (error) {
    const [field] = Object.entries(body as object).find(([, member]) => !isWritable(member)) ?? ['body'];
    const why = error instanceof RangeError ? 'is nested too deep' : (error as Error).message.split('\n', 1)[0];
    throw new CommandRejectedError('invalid_field', `${field}: ${why}`, { field });
  }
}

function isWritable(value: unknown): boolean {
  try {
    JSON.stringify(value);
    return true;
  } catch {
    // The result is all that matters here.
    return false;
  }
}

/** Converts the field and the detail of a rejection to camelCase; any other error is returned as it is. */
export function inCallersNames(verb: Verb, error: unknown): unknown {
  if (!(error instanceof CommandRejectedError)) return error;
  const { code, commandId, detail: given, field: written } = error;
  const field = written === undefined ? undefined : asInFork(pathFromWire(COMMAND_BODIES[verb], written));
  if (field === written && given === undefined) return error;
  const detail = given && fromWire(DetailNames, given as never);
  const message = written === undefined ? error.message : error.message.replaceAll(written, field ?? written);
  return new CommandRejectedError(code, message, { field, commandId, detail, cause: error });
}

/** A fork is sent as a start: fields of its `fork` are options of `fork()`. */
function asInFork(field: string): string {
  if (field === 'fork.n') return 'at';
  return field.startsWith('fork.changes') ? field.slice('fork.'.length) : field;
}

/** Converts such an error back to wire names, for programs that return errors as JSON. */
export function errorOnWire(error: unknown): unknown {
  const isRenamed = error instanceof CommandRejectedError && error.cause instanceof CommandRejectedError;
  return isRenamed ? error.cause : error;
}

/** Checks that options are an object with known names only. @throws InvalidOptionError naming the first unknown one. */
export function refuseUnknown(options: object, known: Readonly<Record<string, true>>): void {
  checkOptions(options);
  const unknown = Object.entries(options).find(([name, value]) => value !== undefined && !Object.hasOwn(known, name));
  if (unknown === undefined) return;
  const [option] = unknown;
  const meant = nearestWord(option, Object.keys(known));
  throw new InvalidOptionError(
    `the option ${option} is unknown${meant === null ? '' : `; did you mean ${meant}?`}`,
    option,
  );
}

/** Rejects remaining options as unknown. @throws InvalidOptionError naming the first one. */
export function refuseOthers(others: object): void {
  const unknown = Object.entries(others).find(([, value]) => value !== undefined);
  if (unknown) throw new InvalidOptionError(`the option ${unknown[0]} is unknown`, unknown[0]);
}
