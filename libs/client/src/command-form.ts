/** Commands as programs write them: names in camelCase, and an unknown name is an error before anything is sent. */
import {
  type CamelCased,
  COMMAND_BODIES,
  DetailNames,
  fromWire,
  nearestWord,
  pathText,
  placeFromWire,
  Receipt,
  type StandIns,
  toWire,
  type Verb,
} from '@coxswain/protocol';
import { CommandRejectedError, InvalidOptionError } from './client-errors.ts';
import { checkOptions } from './option-checks.ts';
import type { BodyInput, SendOptions, SendStage, WireSentCommand } from './outgoing-command.ts';
import type { OutputSource, TypedPersona } from './output-schema.ts';
import type { PersonaSettings } from './persona-form.ts';

/** The body of a command with the names of TypeScript; the id and the actor are options of the call. */
export type CommandInput<V extends Verb> = Omit<CamelCased<BodyInput<V>>, 'id' | 'actor'>;

type StartInput = CommandInput<'start'>;

/** What a session begins with: a prompt or messages. */
type Beginning =
  | { readonly prompt: NonNullable<StartInput['prompt']>; readonly messages?: undefined }
  | { readonly prompt?: undefined; readonly messages: NonNullable<StartInput['messages']> };

/**
 * How a session is started: its prompt or messages, persona, model, tools and limits. `output`: the schema of the final answer, Zod 4 or
 * JSON Schema; it types `output` of the result.
 */
export type SessionSettings<Schema = OutputSource, PersonaValue = unknown> = Beginning &
  Omit<StartInput, 'prompt' | 'messages' | 'fork' | 'output' | 'persona' | 'standIns'> & {
    readonly output?: Schema | undefined;
    readonly persona?: string | (PersonaSettings & TypedPersona<PersonaValue>) | undefined;
    /** Tools of the bus that carry out built-in ones, by the names of tools. */
    readonly standIns?: StandIns | undefined;
  };

/** What a session says of a command. `detail` depends on the command. */
export type CommandReceipt = CamelCased<Receipt>;

/** A command that is stored. */
export interface SentCommand extends Omit<WireSentCommand, 'receipt' | 'cancellation'> {
  /** The receipt that was waited for; absent with `wait: 'stored'`. */
  readonly receipt?: CommandReceipt;
}

/** A receipt with the names of TypeScript. */
export function commandReceipt(receipt: Receipt): CommandReceipt {
  return fromWire(Receipt, receipt);
}

/** The same in the form of the wire. */
export function receiptToWire(receipt: CommandReceipt): Receipt {
  const form = toWire(Receipt, receipt);
  if (!form.ok) throw new Error(`the receipt has no form on the wire: ${pathText(form.path)} ${form.words}`);
  return form.value as Receipt;
}

/** A stored command with the names of TypeScript. */
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
 * Splits the options of a call: how the command is sent, and members of its body.
 * @throws InvalidOptionError where the options are not an object.
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

/** The body of a command in the form of the wire. @throws InvalidOptionError for a member that the command does not have. */
export function wireBody<V extends Verb>(verb: V, input: object): BodyInput<V> {
  const form = toWire(COMMAND_BODIES[verb], input as never);
  if (form.ok) return form.value as BodyInput<V>;
  const option = pathText(form.path);
  throw new InvalidOptionError(`the option ${option} ${form.words}`, option);
}

/** An error of a command with its field and its detail in the names of the program; any other error as it is. */
export function inCallersNames(verb: Verb, error: unknown): unknown {
  if (!(error instanceof CommandRejectedError)) return error;
  const { code, commandId, detail: given, field: written } = error;
  const field = written === undefined ? undefined : asInFork(placeFromWire(COMMAND_BODIES[verb], written));
  if (field === written && given === undefined) return error;
  const detail = given && fromWire(DetailNames, given as never);
  const message = written === undefined ? error.message : error.message.replaceAll(written, field ?? written);
  return new CommandRejectedError(code, message, { field, commandId, detail, cause: error });
}

/** A fork is sent as a start: its fields are options of `fork()`. */
function asInFork(field: string): string {
  if (field === 'fork.n') return 'at';
  return field.startsWith('fork.changes') ? field.slice('fork.'.length) : field;
}

/** The same in the names of the wire: for programs that pass errors on as JSON. */
export function errorOnWire(error: unknown): unknown {
  const isRenamed = error instanceof CommandRejectedError && error.cause instanceof CommandRejectedError;
  return isRenamed ? error.cause : error;
}

/** Refuses options that are not an object, or not in a list of known ones. @throws InvalidOptionError naming the first one. */
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

/** Refuses the options that a call does not have. @throws InvalidOptionError naming the first one. */
export function refuseOthers(others: object): void {
  const unknown = Object.entries(others).find(([, value]) => value !== undefined);
  if (unknown) throw new InvalidOptionError(`the option ${unknown[0]} is unknown`, unknown[0]);
}
