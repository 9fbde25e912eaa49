/**
 * Compares a start with the start of its session: a repetition has the same message id and body, under any command id.
 * Repetitions of any command under the same command id: `outcomeOfCommand` (libs/turn, command-memory.ts).
 */
import type { Blobs, Journal } from '@coxswain/ports';
import {
  type CommandInput,
  type CommandProblem,
  type CopyOrigin,
  canonicalJson,
  type Json,
  type JsonObject,
  type SessionRef,
  toWellFormed,
} from '@coxswain/protocol';
import { firstRecord } from '../journal/ended-record.ts';

/** The result: a repetition of the command with the id `first`, or a different start under the same message id. */
export type RepeatedStart = { readonly first: string } | { readonly problem: CommandProblem };

/** Whether a command is a valid start that names a message id, so that it may repeat the start of its session. */
export function namesMessage({ verb, body, problem }: CommandInput): boolean {
  return verb === 'start' && !problem && body.message_id !== undefined;
}

/**
 * Compares a start with the start in the session's first record.
 * @param input a start with a `message_id`, to a session that has a record.
 * @returns null if the session was started under another message id, under none, or by another command than `start`.
 *   Then the machine decides: `decideStart` (libs/turn, run-starts.ts).
 * @throws RecordUnreadableError if the first record is unreadable, and errors of the ports.
 */
export async function repeatedStart(
  ports: { readonly journal: Journal; readonly blobs: Pick<Blobs, 'get'> },
  ref: SessionRef,
  input: CommandInput,
): Promise<RepeatedStart | null> {
  const first = (await firstRecord(ports, ref))?.input;
  const started = first?.type === 'command' && first.verb === 'start' ? startOf(first) : null;
  const body = toWellFormed(input.body);
  if (started === null || started.body.message_id !== body.message_id) return null;
  if (comparable(started.body) === comparable(body)) return { first: started.commandId };
  const message = `message_id: the session ${ref.sessionId} was started with this message id and another body; the first start is valid`;
  return { problem: { code: 'message_id_reused', message, field: 'message_id' } };
}

/** The command that started a session, and its body. The first record of a fork holds the start of its origin. */
function startOf({ command_id, body, copied_from }: CommandInput): { commandId: string; body: JsonObject } {
  if (copied_from?.how !== 'fork') return { commandId: command_id, body };
  return { commandId: copied_from.command_id ?? command_id, body: forkedBy(copied_from) };
}

/** The body of the start that asked for a fork, from the member `copied_from` of the fork's first record. */
function forkedBy({ session, n, message_id, prompt, changes }: CopyOrigin): JsonObject {
  const asked = { ...changes, ...(prompt === undefined ? {} : { prompt }) };
  return {
    ...(message_id === undefined ? {} : { message_id }),
    fork: { session, n, ...(Object.keys(asked).length === 0 ? {} : { changes: asked as Json }) },
  };
}

/** The body without the members that headers may add: the sender's trace, and whether the sender is restricted. */
function comparable({ trace: _, restricted: __, ...body }: JsonObject): string {
  return canonicalJson(body);
}
